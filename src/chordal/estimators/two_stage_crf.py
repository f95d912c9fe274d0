"""TwoStageCRF: fit a classifier of positions first, then the transitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, field
from itertools import chain as chained
from os import PathLike
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chordal._errors import UnsupportedError
from chordal._optional import needed
from chordal._sparse import check_sparse
from chordal._validate import (
    RandomState,
    check_number,
    check_same_lengths,
    check_sample_weight,
    check_sequences,
    generator_from,
    is_sparse,
)
from chordal.estimators._training import steps
from chordal.estimators._training.checkpoint import Checkpoint
from chordal.estimators._training.monitor import FitReport, whole_fits
from chordal.estimators._wrapped import Wrapped, refuse_stored
from chordal.estimators.chain_crf import GROUPS, ChainCRF, chain_crf, fitted_chain
from chordal.features import DenseInput, Input, SparseInput, length_of
from chordal.labels import SequenceLabels
from chordal.potentials import Floats
from chordal.structures import offsets_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@final
@dataclass(eq=False, repr=False)
class TwoStageCRF(Wrapped):
    """Chain CRF on top of a classifier of single positions.

    First it fits the classifier to single positions. Then it fits a chain on the classifier's
    scores: only transitions, and optionally end weights and biases, are learned. With `joint`, it
    finally trains all weights together.

    Parameters
    ----------
    unary : classifier, optional
        A scikit-learn classifier with `predict_proba` or `decision_function`. Its inputs are rows
        of arrays or sparse matrices, or tokens as in X. Or a `ChainCRF`. The default is a
        `ChainCRF` without transitions: logistic regression.
    crf : ChainCRF, optional
        Parameters of the second and third stage: l2, objective, solver, ends, ….
    cv : int, "same" or "prefit", default=5
        Which scores the chain is trained on. A classifier is overconfident on its own training
        data, so by default each sequence is scored by a classifier fitted to the other folds.
        "same" uses the scores of the training data directly. "prefit" uses `unary` as already
        fitted.
    scale : bool, default=False
        Whether to learn one factor for the classifier's scores.
    joint : bool, default=False
        Whether to train all weights together at the end. Needs a linear unary classifier.
    random_state : int, Generator or None, default=None
        Seed of the folds.

    Attributes
    ----------
    classes_ : array of labels
    unary_ : the fitted classifier
    crf_ : ChainCRF
        The fitted chain; it reads scores, or with `joint` X itself.
    scale_ : float
    reports_ : list of FitReport, one of the second and, with `joint`, one of the third stage

    References
    ----------
    Sutton and McCallum (2005), Piecewise training for undirected models.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X = [np.array([[0.1], [0.9], [0.4]]), np.array([[0.2], [0.8]])] * 5
    >>> y = [["a", "b", "a"], ["a", "b"]] * 5
    >>> model = TwoStageCRF(GaussianNB(), random_state=0).fit(X, y)
    >>> model.predict([np.array([[0.3], [0.7]])])
    [['a', 'b']]
    """

    unary: object = None
    crf: ChainCRF | None = None
    _: KW_ONLY
    cv: int | str = 5
    scale: bool = False
    joint: bool = False
    random_state: RandomState = None

    crf_: ChainCRF = field(init=False)
    unary_: Any = field(init=False)
    scale_: float = field(init=False)
    reports_: list[FitReport] = field(init=False)

    def fit(
        self,
        X: Sequence[Any],
        y: Sequence[Any] | None = None,
        *,
        sample_weight: object = None,
        checkpoint: str | PathLike[str] | Checkpoint | None = None,
    ) -> TwoStageCRF:
        """Fit the classifier, then the chain.

        Parameters
        ----------
        X, y : as for `ChainCRF`
        sample_weight : array [n_sequences], optional
        checkpoint : path or Checkpoint, optional
            Save the state of the last stage to this file, and resume from it if it exists.
            Earlier stages are fitted again. With folds, set `random_state` too.
        """
        refuse_stored(self, X)
        settings = self._settings()
        if checkpoint is not None and self.random_state is None and isinstance(self.cv, int):
            raise ValueError("checkpoint needs a random_state: without it the folds change")
        X, y = check_sequences(X), check_sequences(y, "y")
        check_same_lengths(np.array([length_of(x) for x in X]), y)
        weight = check_sample_weight(sample_weight, len(X))
        labels = SequenceLabels.of(y)
        with whole_fits():  # but for the last stage
            unary, scores = self._first_stage(X, y, weight, labels.classes)
        linear = unary.linear(labels, X[0]) if self.joint else None
        with whole_fits() if self.joint else nullcontext():
            kept = None if self.joint else checkpoint
            chain = self._second_stage(scores, y, weight, labels, settings, kept)
        reports = [chain.fit_report_]
        scale = float(chain.coef_[0, 0])
        if linear is not None:
            joint = _joined(linear, chain, scale, settings)
            chain = joint.fit(X, y, sample_weight=weight, checkpoint=checkpoint)
            reports.append(chain.fit_report_)
        self.classes_, self._unary, self.unary_ = labels.classes, unary, unary.model
        self.crf_, self.scale_, self.reports_ = chain, scale, reports
        self._on_scores = linear is None
        return self

    def _settings(self) -> dict[str, Any]:
        """Parameters of the chain, checked before any work."""
        crf = ChainCRF() if self.crf is None else self.crf
        if not isinstance(crf, ChainCRF):
            raise TypeError(f"crf must be a ChainCRF, got {crf!r}")
        crf._check_parameters()
        for name in ("feature_template", "transition_features"):
            if getattr(crf, name) is not None:
                raise UnsupportedError(
                    f"TwoStageCRF does not take {name}: its chain reads scores, not observations"
                )
        if "node" in crf.freeze:
            raise ValueError("freeze must not name 'node': the second stage always freezes it")
        if self.cv not in ("same", "prefit"):
            if isinstance(self.cv, str):
                raise ValueError(
                    f"cv must be a number of folds, 'same' or 'prefit', got {self.cv!r}"
                )
            check_number("cv", self.cv, minimum=2, integer=True)
        if self.unary is None and self.cv == "prefit":
            raise ValueError("cv='prefit' needs a fitted unary")
        return {**crf.get_params(deep=False), "warm_start": True}

    def _first_stage(
        self, X: Sequence[Any], y: Sequence[Any], weight: Floats | None, classes: NDArray[Any]
    ) -> tuple[UnaryPart, list[Floats]]:
        """The classifier, and scores of the training data (by default out of fold)."""
        with needed("sklearn", "TwoStageCRF"):
            from sklearn.base import clone

        default = ChainCRF(transitions="none", fit_intercept=True)
        given = UnaryPart(default if self.unary is None else self.unary, classes)
        if self.cv == "prefit":
            return given, given.scores(X)

        def fitted_to(chosen: Sequence[int]) -> UnaryPart:
            part = UnaryPart(clone(given.model), classes)
            of_chosen = None if weight is None else weight[chosen]
            part.fit([X[i] for i in chosen], [y[i] for i in chosen], of_chosen)
            return part

        everyone = range(len(X))
        if self.cv == "same":
            unary = fitted_to(everyone)
            return unary, unary.scores(X)
        n_folds = int(self.cv)
        if len(X) < n_folds:
            raise ValueError(f"cv={self.cv} needs at least {self.cv} sequences, got {len(X)}")
        scores: list[Any] = [None] * len(X)
        order = generator_from(self.random_state).permutation(len(X)).tolist()
        for fold in range(n_folds):
            apart = order[fold::n_folds]
            part = fitted_to(sorted(set(everyone) - set(apart)))
            for i, found in zip(apart, part.scores([X[i] for i in apart]), strict=True):
                scores[i] = found
        return fitted_to(everyone), scores

    def _second_stage(
        self,
        scores: list[Floats],
        y: Sequence[Any],
        weight: Floats | None,
        labels: SequenceLabels,
        settings: Mapping[str, Any],
        checkpoint: str | PathLike[str] | Checkpoint | None,
    ) -> ChainCRF:
        """A chain on scores: its node weights are the identity, or with `scale` a multiple."""
        n = len(labels)
        chain = chain_crf(labels, DenseInput(n), np.eye(n))
        l2 = settings["l2"]
        l2 = dict(l2) if isinstance(l2, Mapping) else dict.fromkeys(GROUPS, l2)
        chain.set_params(**{**settings, "l2": {**l2, "node": 0.0}})
        if self.scale:
            options: dict[str, Any] = {"keep": True, "scaled": "node"}
            return steps.fit(chain, scores, y, weight, **options, checkpoint=checkpoint)
        chain.set_params(freeze=(*chain.freeze, "node"))
        return chain.fit(scores, y, sample_weight=weight, checkpoint=checkpoint)

    def _observed(self, X: object) -> Sequence[Any]:
        """The chain's input: scores of the classifier, or X itself."""
        self._check_fitted()
        X = check_sequences(X, empty=True)
        return self._unary.scores(X) if self._on_scores and len(X) else X


def _joined(
    unary: ChainCRF, links: ChainCRF, scale: float, settings: Mapping[str, Any]
) -> ChainCRF:
    """A chain on observations: node weights from one model, all others from the other."""
    if unary.labels_.labels != links.labels_.labels:
        raise UnsupportedError(
            "joint training needs a unary classifier that was fitted to the same y"
        )
    n, intercept = links.layout_.n_labels, np.zeros(links.layout_.n_labels)
    for model, factor in ((unary, scale), (links, 1.0)):
        own = model.weights_[model.layout_.slices["intercept"]]
        intercept[: len(own)] += factor * own
    kept = {
        name: (links.layout_[name].kept, links.weights_[links.layout_.slices[name]])
        for name in ("transitions", "start", "end")
    }
    joint = ChainCRF(**{**settings, "fit_intercept": True, "pairs": unary.pairs})
    kept["intercept"] = (np.arange(n), intercept)
    inputs, rows = {}, {}
    for name in ("node", "vectors"):
        source, features = unary.reader_.input(name), unary.layout_[name].rows
        if source is not None and features is not None:
            inputs[name] = source
            rows[name] = (features, scale * unary.weights_[unary.layout_.slices[name]])
    return fitted_chain(joint, links.labels_, inputs, rows, kept)


class UnaryPart:
    """Fits a classifier of positions and returns its scores; a `ChainCRF` gets whole sequences."""

    def __init__(self, model: Any, classes: NDArray[Any]) -> None:
        self.own = isinstance(model, ChainCRF)
        if not self.own and not any(
            hasattr(model, name) for name in ("predict_proba", "decision_function")
        ):
            raise TypeError(
                f"unary must be a classifier with predict_proba or decision_function, got {model!r}"
            )
        self.model, self.classes = model, classes

    def fit(self, X: Sequence[Any], y: Sequence[Any], weight: Floats | None) -> None:
        """Fit the classifier to the positions of all sequences."""
        if self.own:
            self.model.fit(X, y, sample_weight=weight)
            return
        lengths = [length_of(x) for x in X]
        options = {} if weight is None else {"sample_weight": np.repeat(weight, lengths)}
        labels = np.array(list(chained.from_iterable(_plain(s) for s in y)))
        self.model.fit(positions(X), labels, **options)

    def scores(self, X: Sequence[Any]) -> list[Floats]:
        """Arrays [length, n_classes], in the order of the classes."""
        lengths = [length_of(x) for x in X]
        if self.own:
            found = _logarithms(np.concatenate(self.model.predict_marginals(X)))
        elif hasattr(self.model, "predict_proba"):
            found = _logarithms(self.model.predict_proba(positions(X)))
        else:
            found = np.asarray(self.model.decision_function(positions(X)), dtype=np.float64)
            if found.ndim == 1:  # of two labels, the margin of the second
                found = np.stack([np.zeros_like(found), found], axis=1)
        return np.split(self._aligned(found), offsets_of(lengths)[1:-1])

    def _aligned(self, found: Floats) -> Floats:
        """Columns in the order of all classes; an unseen class gets the lowest score."""
        own = self.model.classes_.tolist()
        if found.shape[1] != len(own):
            raise ValueError(
                f"the scores of {type(self.model).__name__} must have a column for each of its "
                f"{len(own)} labels, got {found.shape[1]}; use one-versus-rest scores"
            )
        everyone = self.classes.tolist()
        if own == everyone:
            return found
        out = np.repeat(found.min(axis=1, keepdims=True), len(everyone), axis=1)
        known = [k for k, label in enumerate(own) if label in everyone]
        out[:, [everyone.index(own[k]) for k in known]] = found[:, known]
        return out

    def linear(self, labels: SequenceLabels, x: object) -> ChainCRF:
        """A CRF of the observations with the same scores, for joint training."""
        if self.own:
            layout = self.model.layout_
            columns = self.model.feature_template is not None
            if columns or layout["edge"].rows or len(layout["transitions"].kept):
                raise UnsupportedError(
                    "joint training needs a unary ChainCRF with transitions='none' and without "
                    "feature_template and transition_features"
                )
            return self.model
        coef, intercept = getattr(self.model, "coef_", None), getattr(self.model, "intercept_", 0.0)
        if coef is None or not (is_sparse(x) or isinstance(x, np.ndarray)):
            raise UnsupportedError(
                f"joint training needs a classifier that is linear in arrays or sparse matrices, "
                f"or a ChainCRF; {type(self.model).__name__} is not"
            )
        if len(self.model.classes_) != len(labels):
            raise ValueError(f"{type(self.model).__name__} must know all {len(labels)} labels")
        coef = np.asarray(coef.toarray() if is_sparse(coef) else coef, dtype=np.float64)
        bias = np.broadcast_to(np.asarray(intercept, dtype=np.float64), (len(coef),))
        if len(coef) == 1:
            coef, bias = np.stack([0.0 * coef[0], coef[0]]), np.array([0.0, bias[0]])
        n = coef.shape[1]
        source: Input = SparseInput(n) if is_sparse(x) else DenseInput(n)
        return chain_crf(labels, source, coef, intercept=bias)


def positions(X: Sequence[Any]) -> NDArray[Any] | list[Any] | csr_array:
    """All positions of all sequences, in the type of the sequences."""
    if is_sparse(X[0]):
        with needed("scipy", "a sparse matrix"):
            import scipy.sparse as sp

        for i, x in enumerate(X):
            check_sparse(x, f"X[{i}]")
        return sp.vstack(X, format="csr")
    if isinstance(X[0], np.ndarray):
        return np.concatenate(X)
    return list(chained.from_iterable(X))


def _logarithms(chances: ArrayLike) -> Floats:
    """Logarithms of probabilities, clipped at the machine epsilon."""
    least = np.exp(np.log(np.finfo(np.float64).eps))
    return np.log(np.maximum(np.asarray(chances, dtype=np.float64), least))


def _plain(labels: Iterable[Any]) -> list[Any]:
    return labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
