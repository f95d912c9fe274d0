"""TwoStageCRF: fit a classifier of positions first, then the transitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from os import PathLike
from typing import Any, final

from chordal._errors import UnsupportedError
from chordal._validate import RandomState, check_number, check_sequences
from chordal.estimators._positions import kind_of_rows
from chordal.estimators._stages import Asked, fit_stages
from chordal.estimators._training.checkpoint import Checkpoint
from chordal.estimators._training.crews import Handle, Tasks
from chordal.estimators._training.here import LocalCrew, train_here
from chordal.estimators._training.keeping import fit_kept, fit_wrapped, is_kept
from chordal.estimators._training.monitor import FitReport
from chordal.estimators._training.on_part import Given
from chordal.estimators._training.preparing import AS_GIVEN, Keeping
from chordal.estimators._training.row_forms import RowForm
from chordal.estimators._unary import UnaryPart
from chordal.estimators._wrapped import Train, Wrapped
from chordal.estimators.chain_crf import ChainCRF
from chordal.features import length_of

#: Tokens as they are, for classifiers that read them.
TOKENS = RowForm(symbols=True)


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
    >>> import numpy as np
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

    _unary: UnaryPart = field(init=False)
    _on_scores: bool = field(init=False)  # whether the chain reads scores

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
            Or, without y, a `Dataset`, its path, a list of paths, or an iterator of batches
            (X, y) or (X, y, sample_weight). Data on disk are read part by part, but a scikit-learn
            classifier gets all positions in memory.
        sample_weight : array [n_sequences], optional
        checkpoint : path or Checkpoint, optional
            Save the state of the last stage to this file, and resume from it if it exists.
            Earlier stages are fitted again. With folds, set `random_state` too.
        """
        options = {} if checkpoint is None else {"checkpoint": checkpoint}
        if is_kept(X, y):
            fit_kept(self, X, y, sample_weight, **options)
            return self
        self._settings()
        X, y = check_sequences(X), check_sequences(y, "y")
        fit_wrapped(self, LocalCrew(), [Given(X, y, sample_weight)], train_here, **options)
        return self

    def _check(self) -> None:
        self._settings()

    def _own_reader(self) -> bool:
        """Whether a CRF classifies positions by attributes, of which any list is as good."""
        unary = ChainCRF() if self.unary is None else self.unary
        functions = ("feature_template", "transition_features")
        return isinstance(unary, ChainCRF) and all(getattr(unary, f) is None for f in functions)

    def _keeping(self, X: Any) -> Keeping:
        first: Any = next((x for x in X if length_of(x)), [])
        if self._own_reader() or kind_of_rows(first) != "tokens":
            return AS_GIVEN
        return Keeping(_kept_tokens, TOKENS)

    def _restored(self, part: Given, form: RowForm) -> Given:
        if form.shape is not None:
            raise ValueError(f"its rows are {form.described}")
        if form != TOKENS and not self._own_reader() and kind_of_rows(part.X[0]) == "tokens":
            raise ValueError("it keeps the attributes of tokens, and the unary reads tokens")
        return part

    def _fit_parts(self, crew: Tasks, parts: list[Handle], train: Train, **options: Any) -> None:
        unknown = sorted(options.keys() - {"checkpoint"})
        if unknown:
            raise UnsupportedError(f"TwoStageCRF takes no {' and no '.join(unknown)}")
        if options and self.random_state is None and self.cv not in ("same", "prefit"):
            raise ValueError("checkpoint needs a random_state: without it the folds change")
        given = self.unary, self.cv, self.scale, self.joint, self.random_state
        found = fit_stages(Asked(*given, self._settings()), crew, parts, train, **options)
        self.classes_, self._unary, self.unary_ = (
            found.unary.classes,
            found.unary,
            found.unary.model,
        )
        self.crf_, self.scale_, self.reports_ = found.chain, found.scale, found.reports
        self._on_scores = not self.joint

    def _settings(self) -> dict[str, Any]:
        """Parameters of the chain, checked before any work."""
        self._check_flags()
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

    @property
    def on_scores(self) -> bool:
        """Whether the chain reads the scores of the classifier."""
        return self._on_scores

    def _observed(self, X: object) -> Sequence[Any]:
        """The chain's input: scores of the classifier, or X itself."""
        self._check_fitted()
        X = check_sequences(X, empty=True)
        return self._unary.scores(X) if self._on_scores and len(X) else X


def _kept_tokens(X: Sequence[Any], y: Any) -> tuple[Sequence[Any], Any]:
    return [TOKENS.stored(x, f"X[{i}]") for i, x in enumerate(X)], y
