"""TwoStageCRF: a classifier of positions first, the links between labels second."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal._validate import (
    check_number,
    check_same_lengths,
    check_sample_weight,
    check_sequences,
)
from chordal.estimators._chain_model import length_of
from chordal.estimators._estimator import Estimator, generator_from
from chordal.estimators._generative import chain_crf
from chordal.estimators._labels import SequenceLabels
from chordal.estimators._training import FitReport
from chordal.estimators._unary import UnaryPart
from chordal.estimators.chain_crf import ChainCRF
from chordal.features import GROUPS, ChainFeatures, DenseInput
from chordal.potentials import Floats


@final
class TwoStageCRF(Estimator):
    """Chain CRF on top of a classifier of single positions.

    First the classifier is fitted to the positions, whatever sequence they are in. Then the chain
    is: its node scores are the classifier's, and only transitions (with ends and biases, if asked
    for) are learned, which are few. At last, on request, everything is learned together.

    Parameters
    ----------
    unary : classifier, optional
        Of scikit-learn, with `predict_proba` or `decision_function`; its inputs are rows of
        arrays or sparse matrices, or tokens as X has them. Or a `ChainCRF`. By default a
        `ChainCRF` without links: logistic regression.
    crf : ChainCRF, optional
        Parameters of the second and third stage: l2, objective, solver, ends, ….
    cv : int, "same" or "prefit"
        Where the scores come from that the chain learns from. A classifier is too sure of
        positions it has seen, so that by default each sequence is scored by one that was fitted to
        the other folds (5). "same" takes scores of the training data as they are. "prefit" takes
        `unary` as it was fitted before.
    scale : bool
        Learn one number that the classifier's scores are multiplied by.
    joint : bool
        Go on from there with all weights. Needs a unary part that is linear.
    random_state : int, Generator or None
        Seed of the folds.

    Attributes
    ----------
    classes_ : array of labels
    unary_ : the fitted classifier
    crf_ : ChainCRF
        Of scores, or with `joint` of X.
    scale_ : float
    reports_ : list of FitReport, of the second and perhaps third stage

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

    classes_: NDArray[Any]
    unary_: Any
    crf_: ChainCRF
    scale_: float
    reports_: list[FitReport]

    def __init__(
        self,
        unary: Any = None,
        crf: ChainCRF | None = None,
        *,
        cv: int | str = 5,
        scale: bool = False,
        joint: bool = False,
        random_state: Any = None,
    ) -> None:
        self.unary = unary
        self.crf = crf
        self.cv = cv
        self.scale = scale
        self.joint = joint
        self.random_state = random_state

    def fit(self, X: Sequence[Any], y: Sequence[Any], *, sample_weight: Any = None) -> TwoStageCRF:
        """Fit the classifier, then the chain.

        Parameters
        ----------
        X, y : as for `ChainCRF`
        sample_weight : array [n_sequences], optional
        """
        settings = self._settings()
        X, y = check_sequences(X), check_sequences(y, "y")
        check_same_lengths(np.array([length_of(x) for x in X]), y)
        weight = check_sample_weight(sample_weight, len(X))
        labels = SequenceLabels()
        labels.learn(y)
        unary, scores = self._first_stage(X, y, weight, labels.classes)
        linear = unary.linear(labels, X[0]) if self.joint else None
        chain = self._second_stage(scores, y, weight, labels, settings)
        reports = [chain.fit_report_]
        scale = float(chain.coef_[0, 0])
        if linear is not None:
            chain = _joined(linear, chain, scale, settings).fit(X, y, sample_weight=weight)
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
        for name in ("template", "transition_features"):
            if getattr(crf, name) is not None:
                raise UnsupportedError(
                    f"TwoStageCRF takes no {name}: its chain sees scores, not observations"
                )
        if "node" in crf.freeze:
            raise ValueError("freeze must not name 'node': the second stage freezes it by itself")
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
        """The classifier, and scores of the training data that it has not learned by heart."""
        from sklearn.base import clone

        given = ChainCRF(transitions="none", bias=True) if self.unary is None else self.unary
        unary = UnaryPart(given, classes)
        if self.cv == "prefit":
            return unary, unary.scores(X)
        unary = UnaryPart(clone(given), classes)
        scores: list[Any] = [None] * len(X)
        if self.cv != "same":
            if len(X) < int(self.cv):
                raise ValueError(f"cv={self.cv} needs as many sequences, got {len(X)}")
            order = generator_from(self.random_state).permutation(len(X))
            for fold in range(int(self.cv)):
                apart = order[fold :: int(self.cv)].tolist()
                rest = sorted(set(range(len(X))) - set(apart))
                part = UnaryPart(clone(given), classes)
                of_rest = None if weight is None else weight[rest]
                part.fit([X[i] for i in rest], [y[i] for i in rest], of_rest)
                for i, found in zip(apart, part.scores([X[i] for i in apart]), strict=True):
                    scores[i] = found
        unary.fit(X, y, weight)
        return unary, unary.scores(X) if self.cv == "same" else scores

    def _second_stage(
        self,
        scores: list[Floats],
        y: Sequence[Any],
        weight: Floats | None,
        labels: SequenceLabels,
        settings: Mapping[str, Any],
    ) -> ChainCRF:
        """A chain on scores: node weights are one times, or some number times, the identity."""
        n = len(labels)
        chain = chain_crf(labels, DenseInput(n), np.eye(n))
        l2 = settings["l2"]
        l2 = dict(l2) if isinstance(l2, Mapping) else dict.fromkeys(GROUPS, l2)
        chain.set_params(**{**settings, "l2": {**l2, "node": 0.0}})
        if self.scale:
            return chain._fit(scores, y, weight, None, None, keep=True, centre=False, scaled="node")
        return chain.set_params(freeze=(*chain.freeze, "node")).fit(scores, y, sample_weight=weight)

    def _observed(self, X: Sequence[Any]) -> Sequence[Any]:
        """What the chain reads."""
        if not hasattr(self, "crf_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError("This TwoStageCRF instance is not fitted yet; call 'fit' first")
        X = check_sequences(X)
        return self._unary.scores(X) if self._on_scores else X

    def predict(self, X: Sequence[Any], **options: Any) -> list[Any]:
        """The labels of each sequence; options as for `ChainCRF`."""
        observed = self._observed(X)
        return self.crf_.predict(observed, **options)

    def predict_marginals(self, X: Sequence[Any], **options: Any) -> list[Floats]:
        """P(y_t | x) of each sequence, arrays [length, n_classes]."""
        observed = self._observed(X)
        return self.crf_.predict_marginals(observed, **options)

    def log_likelihood(self, X: Sequence[Any], y: Sequence[Any]) -> Floats:
        """log p(y | x) of each sequence."""
        observed = self._observed(X)
        return self.crf_.log_likelihood(observed, y)

    def score(self, X: Sequence[Any], y: Sequence[Any], sample_weight: Any = None) -> float:
        """The share of positions that `predict` labels right."""
        observed = self._observed(X)
        return self.crf_.score(observed, y, sample_weight)


def _joined(
    unary: ChainCRF, links: ChainCRF, scale: float, settings: Mapping[str, Any]
) -> ChainCRF:
    """A chain on observations: node weights of one model, all others of the other."""
    a, b = unary.features_, links.features_
    if unary._labels.labels != links._labels.labels:
        raise UnsupportedError("joint training needs a unary part that was fitted to the same y")
    features = ChainFeatures(b.n_labels, a.node, None, b.transitions, True, b.ends)
    groups = {name: links.weights_[where] for name, where in b.slices.items()}
    groups["node"] = scale * unary.weights_[a.slices["node"]]
    bias = np.zeros(b.n_labels)
    for model, factor in ((unary, scale), (links, 1.0)):
        own = model.weights_[model.features_.slices["bias"]]
        bias[: len(own)] += factor * own
    groups["bias"] = bias
    joint = copy.copy(links)
    joint.set_params(**{**settings, "bias": True, "states": unary.states})
    joint._inputs, joint.features_ = unary._inputs, features
    joint.weights_ = np.concatenate([groups[name] for name in GROUPS])
    return joint
