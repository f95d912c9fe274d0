"""What a network learns from: the losses of training examples, by a chain layer or by any CRF."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.utils.rnn import pad_sequence

from chordal.estimators.linked import Known, Linked
from chordal.oracle import Mapper
from chordal.potentials import Floats
from chordal.torch._forms import Seen, SequenceForm
from chordal.torch._heads import ChainHead, Head, LinkedHead, array_of
from chordal.torch._inputs import padded

Ints = NDArray[np.int64]
Drawn = Callable[[Ints], list[Seen]]  # what a step of training sees of some examples


def tags_of(known: Known) -> list[Tensor]:
    """What y says of each example, by the places of classes."""
    return [torch.from_numpy(np.array(own)) for own in known.by_class()]


class Learner(ABC):
    """The losses of training examples.

    head : the model so far
    drawn : what a step sees of some examples
    known, tags : what y says
    weight : of each example
    """

    head: Head

    def __init__(
        self, head: Head, drawn: Drawn, known: Known, tags: Sequence[Tensor], weight: Floats
    ) -> None:
        self.head, self.drawn, self.known, self.tags, self.weight = head, drawn, known, tags, weight

    @property
    def used(self) -> Ints:
        """Numbers of the examples that there is something to learn from."""
        return np.flatnonzero((self.weight > 0.0) & (self.known.sizes > 0))

    @abstractmethod
    def joint(self, chosen: Ints) -> tuple[Tensor, Tensor]:
        """The objective of examples, and their variables, both weighted."""

    @abstractmethod
    def alone(self, chosen: Ints) -> tuple[Tensor, Tensor]:
        """The same, were their variables independent: −log p by a softmax of each."""


class ChainLearner(Learner):
    """Chains by the chain layer, on any device."""

    head: ChainHead

    def joint(self, chosen: Ints) -> tuple[Tensor, Tensor]:
        """The likelihood of whole sequences."""
        scores, mask, tags, weight = self._batch(chosen)
        loss: Tensor = -self.head.model.crf(scores, tags, mask, reduction="none")
        return (loss * weight).sum(), (weight * mask.sum(1)).sum()

    def alone(self, chosen: Ints) -> tuple[Tensor, Tensor]:
        """A softmax at each position."""
        scores, mask, tags, weight = self._batch(chosen)
        found = log_chances(scores, tags)
        loss = -torch.where(mask, found, 0.0).sum(1)
        return (loss * weight).sum(), (weight * mask.sum(1)).sum()

    def _batch(self, chosen: Ints) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Scores, mask, tags and weights."""
        form, model = self.head.form, self.head.model
        assert isinstance(form, SequenceForm)
        device = model.crf.transitions.device
        x, mask = padded([own.values for own in self.drawn(chosen)])
        fill = 1.0 if self.tags[0].dtype == torch.bool else 0.0
        tags = pad_sequence([self.tags[i] for i in chosen], True, padding_value=fill)
        x, mask, tags = x.to(device), mask.to(device), tags.to(device)
        scores = form.padded_scores(model.network, x, mask, self.head.n_classes)
        return scores, mask, tags, torch.from_numpy(self.weight[chosen]).to(device)


class LinkedLearner(Learner):
    """Any CRF by its own inference, on the CPU; the network may be elsewhere.

    linked : what the CRF learns from
    mapper : runs inference on several examples at a time
    """

    head: LinkedHead

    def __init__(
        self,
        head: LinkedHead,
        drawn: Drawn,
        known: Known,
        tags: Sequence[Tensor],
        weight: Floats,
        linked: Linked,
        mapper: Mapper,
    ) -> None:
        super().__init__(head, drawn, known, tags, weight)
        self.linked, self.mapper = linked, mapper

    def joint(self, chosen: Ints) -> tuple[Tensor, Tensor]:
        """The CRF's objective."""
        scores = self._scores(chosen)

        def evaluate(rows: Floats, links: Floats) -> tuple[float, Floats, Floats]:
            return self.head.linked.evaluate(self.linked.examples, chosen, rows, links, self.mapper)

        loss: Tensor = _Objective.apply(scores, self.head.model.links, evaluate)
        return loss, self._size(chosen)

    def alone(self, chosen: Ints) -> tuple[Tensor, Tensor]:
        """A softmax of each variable."""
        scores = self._scores(chosen)
        tags = torch.cat([self.tags[i] for i in chosen]).to(scores.device)
        weight = np.repeat(self.weight[chosen], self.known.sizes[chosen])
        of_each = torch.from_numpy(weight).to(scores.device)
        return -(log_chances(scores, tags) * of_each).sum(), self._size(chosen)

    def _scores(self, chosen: Ints) -> Tensor:
        head = self.head
        return head.form.scores(head.model.network, self.drawn(chosen), head.n_classes)

    def _size(self, chosen: Ints) -> Tensor:
        return torch.tensor(float((self.weight * self.known.sizes)[chosen].sum()))


class _Context(Protocol):
    """What PyTorch keeps between the two directions."""

    saved_tensors: tuple[Tensor, Tensor]

    def save_for_backward(self, *tensors: Tensor) -> None:
        """Keep these."""


class _Objective(torch.autograd.Function):
    """An objective of scores and links that chordal computes, with its derivatives."""

    @staticmethod
    def forward(
        ctx: _Context,
        scores: Tensor,
        links: Tensor,
        evaluate: Callable[[Floats, Floats], tuple[float, Floats, Floats]],
    ) -> Tensor:
        value, of_scores, of_links = evaluate(array_of(scores), array_of(links))
        ctx.save_for_backward(
            torch.from_numpy(of_scores).to(scores), torch.from_numpy(of_links).to(links)
        )
        return torch.tensor(value, dtype=torch.float64)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: _Context, above: Tensor) -> tuple[Tensor, Tensor, None]:
        scores, links = ctx.saved_tensors
        return above.to(scores) * scores, above.to(links) * links, None


def log_chances(scores: Tensor, tags: Tensor) -> Tensor:
    """log p of tags, sets or distributions, by a softmax over the last axis of scores."""
    chances = scores.log_softmax(-1)
    if tags.dim() < scores.dim():
        return chances.gather(-1, tags.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    if tags.dtype == torch.bool:
        return chances.masked_fill(~tags, -torch.inf).logsumexp(-1)
    return (chances * tags).sum(-1)
