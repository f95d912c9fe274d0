"""How examples of each structure reach a network, and its scores the CRF that answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from chordal._errors import UnsupportedError
from chordal._validate import check_sequences
from chordal.estimators import BaseCRF, ChainCRF, GraphCRF, GridCRF
from chordal.estimators.linked import examples_of
from chordal.potentials import Floats
from chordal.torch._inputs import FLOAT32, Glance, Inputs, glance_at, padded

READ = 4096  # variables that a network reads at once when it only answers

Raw: TypeAlias = Sequence[Any]  # examples as users have them, of any structure
EdgeFeatures: TypeAlias = Callable[[Floats, Floats], object]


class Seen(NamedTuple):
    """What a network sees of one example."""

    values: Tensor  # [length, …], [features, height, width] or [nodes, …]
    size: int  # variables
    edges: Tensor | None = None  # [2, n_edges], of graphs


class Form(ABC):
    """Examples of one structure. Scores are rows of variables, one example after another.

    crf : the parameters of the CRF that the scores are for, as the user gave them
    inputs : what reads the features of a variable
    """

    presets: ClassVar[tuple[str, ...]]
    empty: ClassVar[str]  # what is wrong with examples without variables
    without: ClassVar[tuple[str, ...]] = ()  # parameters of the CRF that need more than scores

    def __init__(self, crf: BaseCRF, inputs: Inputs) -> None:
        self.crf, self.inputs = crf, inputs

    @classmethod
    def read(cls, crf: BaseCRF, X: Raw, min_freq: int) -> Form:
        """The form for examples like these, which are checked."""
        cls.check(crf)
        glance = cls.glance(X)
        if glance is None:
            raise ValueError(cls.empty)
        return cls.from_glance(crf, glance, min_freq)

    @classmethod
    def from_glance(cls, crf: BaseCRF, glance: Glance, min_freq: int) -> Form:
        """The form for data in which the features of a variable are like this."""
        return cls(crf, Inputs.from_glance(glance, min_freq))

    @classmethod
    def check(cls, crf: BaseCRF) -> None:
        """Raise an error if the CRF needs more than scores."""
        for name in cls.without:
            if getattr(crf, name) is not None:
                raise UnsupportedError(
                    f"crf must have no {name}: the chain sees scores, not observations"
                )

    @classmethod
    @abstractmethod
    def glance(cls, X: Raw) -> Glance | None:
        """What the features of a variable are like; None if there are no variables."""

    @classmethod
    def examples(cls, crf: BaseCRF, X: object, name: str = "X") -> Raw:
        """X, checked as far as the CRF can."""
        return examples_of(crf, X, name)

    @property
    def reads(self) -> BaseCRF:
        """The CRF with settings for examples that hold scores."""
        return _unfitted(self.crf)

    @abstractmethod
    def seen(self, X: Raw, name: str = "X") -> list[Seen]:
        """What a network sees of examples, checked."""

    @abstractmethod
    def observed(self, X: Raw, scores: Sequence[Floats]) -> list[Any]:
        """Examples as the CRF reads them, with scores as the features of variables."""

    @abstractmethod
    def scores(self, network: nn.Module, examples: Sequence[Seen], n_labels: int) -> Tensor:
        """[variables, labels], of examples that all have variables."""

    def groups(self, examples: Sequence[Seen]) -> Iterator[list[int]]:
        """Numbers of examples that have variables, in groups that a network takes at once."""
        return _groups(examples, range(len(examples)))


class SequenceForm(Form):
    """Sequences: arrays, images or tokens at each position."""

    presets = ("mlp", "cnn", "bilstm")
    empty = "X holds no positions: every sequence is empty"
    without = ("feature_template", "transition_features")

    @classmethod
    def glance(cls, X: Raw) -> Glance | None:
        """By the first sequence that is not empty, or the tokens of all."""
        return glance_at(X)

    @classmethod
    def examples(cls, crf: BaseCRF, X: object, name: str = "X") -> Raw:
        """A list of sequences."""
        return check_sequences(X, name, empty=True)

    def seen(self, X: Raw, name: str = "X") -> list[Seen]:
        """[length, …] of each."""
        return [Seen(values, len(values)) for values in self.inputs.tensors(X, name)]

    def observed(self, X: Raw, scores: Sequence[Floats]) -> list[Any]:
        """The scores."""
        return list(scores)

    def scores(self, network: nn.Module, examples: Sequence[Seen], n_labels: int) -> Tensor:
        """By sequences side by side, filled up with zeros."""
        x, mask = padded([own.values for own in examples])
        device = device_of(network)
        return self.padded_scores(network, x.to(device), mask.to(device), n_labels)[mask]

    @staticmethod
    def padded_scores(network: nn.Module, x: Tensor, mask: Tensor, n_labels: int) -> Tensor:
        """[batch, steps, labels]."""
        return checked(network(x, mask), (*mask.shape, n_labels), mask)

    def groups(self, examples: Sequence[Seen]) -> Iterator[list[int]]:
        """Sorted by length, so that there is little padding."""
        order = sorted(range(len(examples)), key=lambda i: examples[i].size)
        group: list[int] = []
        for i in order:
            if group and examples[i].size * (len(group) + 1) > READ:
                yield group
                group = []
            if examples[i].size:
                group.append(i)
        if group:
            yield group


class ImageForm(Form):
    """Images [height, width, features], and volumes; a network sees [batch, features, …]."""

    presets = ("mlp", "cnn")
    empty = "X holds no pixels: every image is empty"
    crf: GridCRF

    @classmethod
    def glance(cls, X: Raw) -> Glance | None:
        """By the first image."""
        first = next((x for x in X if x.size), None)
        return None if first is None else (int(first.shape[-1]),)

    @property
    def n_features(self) -> int:
        """Numbers of a pixel."""
        return self.inputs.shape[0]

    @property
    def compares(self) -> bool:
        """Whether edges see the features of pixels, too."""
        return self.crf.contrast is not None or self.crf.edge_features is not None

    @property
    def reads(self) -> BaseCRF:
        """Pixels are compared by their features, which stand before the scores."""
        crf = _unfitted(self.crf)
        if not self.compares:
            return crf
        columns, function = self.crf.contrast_columns, self.crf.edge_features
        first = range(self.n_features) if columns is None else columns
        own = None if function is None else OfFeatures(function, self.n_features)
        return crf.set_params(contrast_columns=list(first), edge_features=own)

    def seen(self, X: Raw, name: str = "X") -> list[Seen]:
        """[features, height, width] of each."""
        found = []
        for i, x in enumerate(X):
            if x.shape[-1] != self.n_features:
                raise ValueError(
                    f"{name}[{i}] must have {self.n_features} features of each pixel, as in "
                    f"training; got {x.shape[-1]}"
                )
            bad = np.argwhere(~(np.abs(x) <= FLOAT32))
            if len(bad):
                *place, feature = bad[0].tolist()
                large = bool(np.isfinite(x[tuple(bad[0])]))
                what = "a number too large for float32" if large else "NaN or infinity"
                raise ValueError(
                    f"{what} in {name}[{i}], at pixel {tuple(place)}, feature {feature}; "
                    f"{'scale' if large else 'clean'} it"
                )
            values = np.moveaxis(np.array(x, dtype=np.float32), -1, 0)
            found.append(Seen(torch.from_numpy(np.ascontiguousarray(values)), prod(x.shape[:-1])))
        return found

    def observed(self, X: Raw, scores: Sequence[Floats]) -> list[Any]:
        """Images of scores, after the features where these are compared."""
        pairs = zip(X, scores, strict=True)
        images = [own.reshape(*x.shape[:-1], own.shape[-1]) for x, own in pairs]
        if not self.compares:
            return images
        return [np.concatenate(pair, axis=-1) for pair in zip(X, images, strict=True)]

    def scores(self, network: nn.Module, examples: Sequence[Seen], n_labels: int) -> Tensor:
        """Images of one size at a time: none of them depends on how large others are."""
        device, found = device_of(network), dict[int, Tensor]()
        for group in _same_shape(examples, range(len(examples))):
            x = torch.stack([examples[i].values for i in group]).to(device)
            wanted = (len(group), n_labels, *x.shape[2:])
            rows = checked(network(x), wanted).flatten(2).transpose(1, 2)
            found.update(zip(group, rows, strict=True))
        return torch.cat([found[i] for i in range(len(examples))])

    def groups(self, examples: Sequence[Seen]) -> Iterator[list[int]]:
        """Of one size each."""
        for same in _same_shape(examples, range(len(examples))):
            yield from _groups(examples, same)


class GraphForm(Form):
    """Graphs (nodes, edges[, features of edges]); a network sees the nodes of a batch."""

    presets = ("mlp", "cnn")
    empty = "X holds no nodes: every graph is empty"

    @classmethod
    def glance(cls, X: Raw) -> Glance | None:
        """By the nodes of the first graph that has some, or the tokens of all."""
        return glance_at([x[0] for x in X], "the nodes of X")

    def seen(self, X: Raw, name: str = "X") -> list[Seen]:
        """[nodes, …] of each, and its edges."""
        nodes = self.inputs.tensors([x[0] for x in X], f"the nodes of {name}")
        pairs = zip(X, nodes, strict=True)
        return [
            Seen(own, len(own), _edges(x[1], len(own), f"{name}[{i}]"))
            for i, (x, own) in enumerate(pairs)
        ]

    def observed(self, X: Raw, scores: Sequence[Floats]) -> list[Any]:
        """Graphs of scores."""
        return [(own, *x[1:]) for x, own in zip(X, scores, strict=True)]

    def scores(self, network: nn.Module, examples: Sequence[Seen], n_labels: int) -> Tensor:
        """By all graphs as one."""
        device = device_of(network)
        x = torch.cat([own.values for own in examples]).to(device)
        edges, first = [], 0
        for own in examples:
            assert own.edges is not None
            edges.append(own.edges + first)
            first += own.size
        return checked(network(x, torch.cat(edges, 1).to(device)), (len(x), n_labels))


@dataclass(frozen=True)
class OfFeatures:
    """A function of both ends' features, where scores stand after these."""

    function: EdgeFeatures
    n_features: int

    def __call__(self, a: Floats, b: Floats) -> object:
        return self.function(a[:, : self.n_features], b[:, : self.n_features])


FORMS: dict[type[BaseCRF], type[Form]] = {
    ChainCRF: SequenceForm,
    GridCRF: ImageForm,
    GraphCRF: GraphForm,
}


def form_for(crf: object) -> type[Form]:
    """The form of the examples of this CRF."""
    found = FORMS.get(type(crf)) if isinstance(crf, BaseCRF) else None
    if found is None:
        raise TypeError(f"crf must be a ChainCRF, GridCRF or GraphCRF, or None; got {crf!r}")
    return found


def device_of(network: nn.Module) -> torch.device:
    """Where a network is; one without weights works anywhere."""
    first = next(iter(network.parameters()), None)
    return torch.device("cpu") if first is None else first.device


def checked(scores: object, wanted: tuple[int, ...], mask: Tensor | None = None) -> Tensor:
    """The scores of a network, which may be the user's: refuses another shape, NaN and +inf."""
    if not isinstance(scores, Tensor) or tuple(scores.shape) != wanted:
        got = tuple(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
        raise ValueError(
            "network must give every variable a score for each label, a tensor of shape "
            f"{wanted}; got {got}"
        )
    used = scores if mask is None else scores[mask]
    for what, wrong in (("NaN", used.isnan()), ("+inf", used.isposinf())):
        if bool(wrong.any()):
            raise ValueError(
                f"the network gives {what}: decrease learning_rate, or scale the inputs"
            )
    return scores


def answers(
    form: Form, network: nn.Module, examples: Sequence[Seen], n_labels: int
) -> list[Floats]:
    """The scores [variables, labels] of each example, without dropout."""
    network.eval()
    found: list[Floats] = [np.zeros((0, n_labels))] * len(examples)
    for group in form.groups(examples):
        own = [examples[i] for i in group]
        with torch.no_grad():
            rows = form.scores(network, own, n_labels).cpu().double().numpy()
        limits = np.cumsum([example.size for example in own])[:-1]
        found_here = zip(group, np.split(rows, limits), strict=True)
        for i, scores in found_here:
            found[i] = scores
    return found


def _unfitted(crf: BaseCRF) -> BaseCRF:
    """A new estimator with the same parameters."""
    return type(crf)(**crf.get_params(deep=False))


def _groups(examples: Sequence[Seen], numbers: Iterable[int]) -> Iterator[list[int]]:
    """Those that have variables, in groups of some thousands of these."""
    group: list[int] = []
    total = 0
    for i in numbers:
        size = examples[i].size
        if group and total + size > READ:
            yield group
            group, total = [], 0
        if size:
            group.append(i)
            total += size
    if group:
        yield group


def _same_shape(examples: Sequence[Seen], numbers: Iterable[int]) -> list[list[int]]:
    """Examples with inputs of the same shape together."""
    found: dict[tuple[int, ...], list[int]] = {}
    for i in numbers:
        found.setdefault(tuple(examples[i].values.shape), []).append(i)
    return list(found.values())


def _edges(given: object, n: int, where: str) -> Tensor:
    """[2, n_edges], checked before a network sees them."""
    ends: NDArray[Any] = np.asarray(given)
    if ends.size == 0:
        return torch.zeros((2, 0), dtype=torch.long)
    if ends.ndim != 2 or ends.shape[1] != 2 or ends.dtype.kind not in "iu":
        raise ValueError(
            f"the edges of {where} must be whole numbers [n_edges, 2], got {ends.dtype} of shape "
            f"{ends.shape}"
        )
    bad = np.argwhere((ends < 0) | (ends >= n))
    if len(bad):
        k, end = bad[0].tolist()
        raise ValueError(
            f"edge {k} of {where} names node {ends[k, end]}, and there are {n} nodes, from 0 on"
        )
    return torch.from_numpy(ends.T.astype(np.int64))
