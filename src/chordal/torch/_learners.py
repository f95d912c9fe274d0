"""What a network learns from: the losses of training examples, by a chain layer or by any CRF."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.utils.rnn import pad_sequence

from chordal.estimators import BaseCRF, ChainCRF
from chordal.estimators.chain_crf import chain_crf
from chordal.estimators.linked import Known, Linked, link_places
from chordal.features import DenseInput
from chordal.labels import SequenceLabels
from chordal.potentials import Floats
from chordal.torch._forms import Form, Raw, Seen, SequenceForm, answers
from chordal.torch._inputs import padded
from chordal.torch.crf import CRF

Ints = NDArray[np.int64]
Drawn = Callable[[Ints], list[Seen]]  # what a step of training sees of some examples

#: What a `ChainCRF` has whose links the chain layer learns.
PLAIN = {"transitions": "all", "ends": True, "fit_intercept": False, "freeze": (),
         "class_weight": None}  # fmt: skip


class Potentials(nn.Module):
    """A network's scores, and what links labels."""

    network: nn.Module


class ChainNetwork(Potentials):
    """The links of chains as a layer, whose tags are places in the classes."""

    def __init__(self, network: nn.Module, n_labels: int) -> None:
        super().__init__()
        self.network = network
        self.crf = CRF(n_labels, batch_first=True, any_mask=True)
        for parameter in self.crf.parameters():
            nn.init.zeros_(parameter)

    def take(self, chain: BaseCRF) -> None:
        """The links of a chain."""
        assert isinstance(chain, ChainCRF)
        own = (self.crf.transitions, self.crf.start_transitions, self.crf.end_transitions)
        with torch.no_grad():
            for tensor, learned in zip(
                own, (chain.transitions_, chain.start_, chain.end_), strict=True
            ):
                tensor.copy_(torch.from_numpy(learned.copy()))

    def chain(self, labels: SequenceLabels, crf: BaseCRF) -> ChainCRF:
        """A chain of scores with these links, and the parameters of a CRF."""
        fixed = {*PLAIN, "pairs"} - {"freeze", "class_weight"}
        given = {k: v for k, v in crf.get_params(deep=False).items() if k not in fixed}
        return chain_crf(
            labels,
            DenseInput(len(labels)),
            np.eye(len(labels)),
            transitions=_array(self.crf.transitions),
            start=_array(self.crf.start_transitions),
            end=_array(self.crf.end_transitions),
            **given,
        )


class LinkedNetwork(Potentials):
    """The links of any CRF in a row, as its weights are."""

    def __init__(self, network: nn.Module, links: Floats) -> None:
        super().__init__()
        self.network = network
        self.links = nn.Parameter(torch.tensor(links, dtype=torch.float32))


def is_plain(crf: BaseCRF) -> bool:
    """Whether the chain layer has the links and the loss of this CRF."""
    if not isinstance(crf, ChainCRF):
        return False
    asked = crf.objective, crf.inference
    usual = all(isinstance(own, str) for own in asked) and asked[0] in ("auto", "likelihood")
    same = all(getattr(crf, name) == value for name, value in PLAIN.items())
    return same and usual and asked[1] in ("auto", "chain")


class Learner(ABC):
    """Training examples and a model: losses, and the CRF that answers so far."""

    def __init__(
        self, model: Potentials, form: Form, drawn: Drawn, known: Known, weight: Floats
    ) -> None:
        self.form, self.drawn, self.known, self.weight = form, drawn, known, weight
        self.model = model
        self.tags = [torch.from_numpy(np.array(own)) for own in known.by_class()]

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

    @abstractmethod
    def crf(self) -> BaseCRF:
        """The CRF of scores with the links so far."""

    @abstractmethod
    def relink(self, X: Raw, y: object) -> BaseCRF:
        """Learn the links alone, from scores as they are."""

    @abstractmethod
    def score(self, X: Raw, y: object, gold: NDArray[np.int32], seen: NDArray[np.bool_]) -> float:
        """The share of labels that are right, of other examples with these scores."""

    def facts(self, X: Raw, y: object) -> dict[str, Any]:
        """What a report says about inference."""
        return {"inference": "chain"}

    def scores(self, examples: Sequence[Seen]) -> list[Floats]:
        """What the network gives, without dropout."""
        return answers(self.form, self.model.network, examples, self.known.n_classes)


class ChainLearner(Learner):
    """Chains by the chain layer, on any device."""

    model: ChainNetwork

    def joint(self, chosen: Ints) -> tuple[Tensor, Tensor]:
        """The likelihood of whole sequences."""
        scores, mask, tags, weight = self._batch(chosen)
        loss: Tensor = -self.model.crf(scores, tags, mask, reduction="none")
        return (loss * weight).sum(), (weight * mask.sum(1)).sum()

    def alone(self, chosen: Ints) -> tuple[Tensor, Tensor]:
        """A softmax at each position."""
        scores, mask, tags, weight = self._batch(chosen)
        found = log_chances(scores, tags)
        loss = -torch.where(mask, found, 0.0).sum(1)
        return (loss * weight).sum(), (weight * mask.sum(1)).sum()

    def _batch(self, chosen: Ints) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Scores, mask, tags and weights."""
        assert isinstance(self.form, SequenceForm)
        device = self.model.crf.transitions.device
        x, mask = padded([own.values for own in self.drawn(chosen)])
        fill = 1.0 if self.tags[0].dtype == torch.bool else 0.0
        tags = pad_sequence([self.tags[i] for i in chosen], True, padding_value=fill)
        x, mask, tags = x.to(device), mask.to(device), tags.to(device)
        scores = self.form.padded_scores(self.model.network, x, mask, self.known.n_classes)
        return scores, mask, tags, torch.from_numpy(self.weight[chosen]).to(device)

    def crf(self) -> BaseCRF:
        """A chain with the layer's weights."""
        return self.model.chain(self.known.labels, self.form.crf)

    def relink(self, X: Raw, y: object) -> BaseCRF:
        """By the chain's own solver."""
        chain = self.crf().set_params(warm_start=True, freeze=("node",))
        chain.fit(X, y, sample_weight=self.weight)
        self.model.take(chain)
        return chain

    def score(self, X: Raw, y: object, gold: NDArray[np.int32], seen: NDArray[np.bool_]) -> float:
        """By the best labellings."""
        return float((self.crf().predict_codes(X) == gold)[seen].mean())


class LinkedLearner(Learner):
    """Any CRF by its own inference, on the CPU; the network may be elsewhere."""

    model: LinkedNetwork

    def __init__(
        self,
        model: LinkedNetwork,
        form: Form,
        drawn: Drawn,
        known: Known,
        weight: Floats,
        linked: Linked,
    ) -> None:
        super().__init__(model, form, drawn, known, weight)
        self.linked = linked

    @property
    def links(self) -> Floats:
        """The links so far."""
        return _array(self.model.links)

    def joint(self, chosen: Ints) -> tuple[Tensor, Tensor]:
        """The CRF's objective."""
        scores = self._scores(chosen)

        def evaluate(rows: Floats, links: Floats) -> tuple[float, Floats, Floats]:
            return self.linked.evaluate(chosen, rows, links)

        loss: Tensor = _Objective.apply(scores, self.model.links, evaluate)
        return loss, self._size(chosen)

    def alone(self, chosen: Ints) -> tuple[Tensor, Tensor]:
        """A softmax of each variable."""
        scores = self._scores(chosen)
        tags = torch.cat([self.tags[i] for i in chosen]).to(scores.device)
        weight = np.repeat(self.weight[chosen], self.known.sizes[chosen])
        of_each = torch.from_numpy(weight).to(scores.device)
        return -(log_chances(scores, tags) * of_each).sum(), self._size(chosen)

    def _scores(self, chosen: Ints) -> Tensor:
        return self.form.scores(self.model.network, self.drawn(chosen), self.known.n_classes)

    def _size(self, chosen: Ints) -> Tensor:
        return torch.tensor(float((self.weight * self.known.sizes)[chosen].sum()))

    def crf(self) -> BaseCRF:
        """The CRF with the links so far."""
        return self.linked.fitted(self.links)

    def relink(self, X: Raw, y: object) -> BaseCRF:
        """By the CRF's own solver."""
        model = self.linked.relinked(self.links, X, y, self.weight)
        with torch.no_grad():
            self.model.links.copy_(torch.from_numpy(model.weights_[link_places(model)]))
        return model

    def score(self, X: Raw, y: object, gold: NDArray[np.int32], seen: NDArray[np.bool_]) -> float:
        """By a quick way of prediction."""
        return self.linked.score(self.links, X, y)

    def facts(self, X: Raw, y: object) -> dict[str, Any]:
        """Whether inference was exact, and how predictions are made."""
        return self.linked.facts(self.links, X, y)


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
        value, of_scores, of_links = evaluate(_array(scores), _array(links))
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


def _array(tensor: Tensor) -> Floats:
    return tensor.detach().cpu().double().numpy()
