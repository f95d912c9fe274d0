"""A network with its links: the model so far, which gives scores and answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from chordal.estimators import BaseCRF, ChainCRF
from chordal.estimators.chain_crf import chain_crf
from chordal.estimators.linked import Links, link_places
from chordal.features import DenseInput
from chordal.labels import SequenceLabels
from chordal.potentials import Floats
from chordal.torch._forms import Form, Raw, Seen, answers
from chordal.torch.crf import CRF

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
            transitions=array_of(self.crf.transitions),
            start=array_of(self.crf.start_transitions),
            end=array_of(self.crf.end_transitions),
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


class Head(ABC):
    """A network with its links.

    model : the weights
    form : how examples reach the network
    labels : of the training examples
    """

    def __init__(self, model: Potentials, form: Form, labels: SequenceLabels) -> None:
        self.model, self.form, self.labels = model, form, labels

    @property
    def n_classes(self) -> int:
        """How many labels there are."""
        return len(self.labels)

    def scores(self, examples: Sequence[Seen]) -> list[Floats]:
        """What the network gives, without dropout."""
        return answers(self.form, self.model.network, examples, self.n_classes)

    @abstractmethod
    def crf(self) -> BaseCRF:
        """The CRF of scores with the links so far."""

    @abstractmethod
    def to_relink(self) -> BaseCRF:
        """The same, so that `fit` learns the links alone, from scores as they are."""

    @abstractmethod
    def take(self, crf: BaseCRF) -> BaseCRF:
        """Take the links of what `to_relink` gave, after its fit; returns the CRF."""

    @abstractmethod
    def counts(
        self, X: Raw, y: object, gold: NDArray[np.int32], seen: NDArray[np.bool_]
    ) -> tuple[int, int]:
        """How many labels of examples with these scores are right, and how many there are."""

    @abstractmethod
    def facts(self, X: Raw, y: object, weight: Floats | None) -> dict[str, Any]:
        """What a report says about inference, for training examples with these scores."""


class ChainHead(Head):
    """Chains whose links are a layer."""

    model: ChainNetwork

    def crf(self) -> BaseCRF:
        """A chain with the layer's weights."""
        return self.model.chain(self.labels, self.form.crf)

    def to_relink(self) -> BaseCRF:
        """For the chain's own solver."""
        return self.crf().set_params(warm_start=True, freeze=("node",))

    def take(self, crf: BaseCRF) -> BaseCRF:
        """The layer's weights."""
        self.model.take(crf)
        return crf

    def counts(
        self, X: Raw, y: object, gold: NDArray[np.int32], seen: NDArray[np.bool_]
    ) -> tuple[int, int]:
        """By the best labellings."""
        right = (self.crf().predict_codes(X) == gold)[seen]
        return int(right.sum()), len(right)

    def facts(self, X: Raw, y: object, weight: Floats | None) -> dict[str, Any]:
        """Chains are exact."""
        return {"inference": "chain"}


class LinkedHead(Head):
    """Any CRF by its own inference, on the CPU; the network may be elsewhere."""

    model: LinkedNetwork

    def __init__(
        self, model: LinkedNetwork, form: Form, labels: SequenceLabels, linked: Links
    ) -> None:
        super().__init__(model, form, labels)
        self.linked = linked

    @property
    def links(self) -> Floats:
        """The links so far."""
        return array_of(self.model.links)

    def crf(self) -> BaseCRF:
        """The CRF with the links so far."""
        return self.linked.fitted(self.links)

    def to_relink(self) -> BaseCRF:
        """For the CRF's own solver."""
        return self.linked.to_relink(self.links)

    def take(self, crf: BaseCRF) -> BaseCRF:
        """Those that training may change."""
        crf = self.linked.relinked(crf)
        with torch.no_grad():
            self.model.links.copy_(torch.from_numpy(crf.weights_[link_places(crf)]))
        return crf

    def counts(
        self, X: Raw, y: object, gold: NDArray[np.int32], seen: NDArray[np.bool_]
    ) -> tuple[int, int]:
        """By a quick way of prediction."""
        return self.linked.counts(self.links, X, y)

    def facts(self, X: Raw, y: object, weight: Floats | None) -> dict[str, Any]:
        """Whether inference was exact, and how predictions are made."""
        return self.linked.facts(self.links, X, y, weight)


def array_of(tensor: Tensor) -> Floats:
    """The numbers of a tensor."""
    return tensor.detach().cpu().double().numpy()
