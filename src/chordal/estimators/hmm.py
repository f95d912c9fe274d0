"""HMM: the hidden Markov model, learned from labelled sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import pairwise
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chordal._validate import (
    RandomState,
    check_number,
    check_same_lengths,
    check_sample_weight,
    check_sequences,
    generator_from,
)
from chordal.emissions import Emission, Statistics
from chordal.estimators._generative import Counts, Generative, Known, input_of
from chordal.estimators.chain_crf import ChainCRF, chain_crf
from chordal.features import Rows
from chordal.labels import SequenceLabels
from chordal.potentials import Floats
from chordal.structures import offsets_of


@final
@dataclass(eq=False, repr=False)
class HMM(Generative):
    """Hidden Markov model of labelled sequences, the generative partner of `ChainCRF`.

    p(x, y) = π(y₁) Π A(y_{t−1}, y_t) Π p(x_t | y_t), estimated by counting, without iterations.
    With few sequences it often beats a chain CRF; with many the CRF wins where the model's
    assumptions fail. `to_crf` gives the CRF with the same posterior, to train further.

    Parameters
    ----------
    emission : {"categorical", "gaussian", "multinomial", "poisson"} or Emission
        Family of p(x_t | y_t); default "categorical".
    alpha : float, default=1.0
        Pseudo-count added to first labels and transitions. With 0, unseen ones are impossible.
    random_state : int, Generator or None, default=None
        Seed of `sample`.

    Attributes
    ----------
    classes_ : array of labels
    start_ : array [n_classes], probabilities of first labels
    transitions_ : array [n_classes, n_classes], probabilities from row to column
    emission_ : Emission
        Its parameters are in the order of `classes_`.

    References
    ----------
    Ng and Jordan (2001), On discriminative vs. generative classifiers; Sutton and McCallum (2012),
    An introduction to conditional random fields.

    Examples
    --------
    >>> X = [["sun", "sun", "rain"], ["rain", "rain", "sun"]]
    >>> y = [["H", "H", "L"], ["L", "L", "H"]]
    >>> hmm = HMM().fit(X, y)
    >>> hmm.predict([["rain", "sun", "sun"]])
    [['L', 'H', 'H']]
    >>> crf = hmm.to_crf(l2=0.1)
    >>> bool(np.allclose(crf.predict_marginals(hmm.statistics(X)), hmm.predict_marginals(X)))
    True
    """

    emission: str | Emission = "categorical"
    _: KW_ONLY
    alpha: float = 1.0
    random_state: RandomState = None

    labels_: SequenceLabels = field(init=False)
    emission_: Emission = field(init=False)
    start_: Floats = field(init=False)
    transitions_: Floats = field(init=False)

    def fit(
        self, X: Sequence[Any], y: Sequence[Any] | None = None, *, sample_weight: object = None
    ) -> HMM:
        """Estimate the probabilities by counting.

        Parameters
        ----------
        X : list of sequences; or a `Dataset`, its path or a list of paths, without y
            Lists or arrays of symbols for "categorical"; else arrays [length, n_features]. Or an
            iterator of batches (X, y) or (X, y, sample_weight). Data on disk are read part by part.
        y : list of label sequences
        sample_weight : array [n_sequences], optional
        """
        self._fit(X, y, sample_weight)
        return self

    @classmethod
    def from_parameters(
        cls, classes: Sequence[Any], start: ArrayLike, transitions: ArrayLike, emission: Emission
    ) -> HMM:
        """A fitted model with given probabilities, in the order of the classes.

        Examples
        --------
        >>> from chordal.emissions.poisson import Poisson
        >>> chances = [[0.9, 0.1], [0.2, 0.8]]
        >>> hmm = HMM.from_parameters(["busy", "calm"], [0.5, 0.5], chances, Poisson.of([[9], [1]]))
        >>> hmm.predict([np.array([[0], [2], [12]])])
        [['calm', 'calm', 'busy']]
        """
        labels = SequenceLabels.of([list(classes)])
        order = labels.order  # the given number of every class
        n = len(labels)
        first, table = np.asarray(start, dtype=np.float64), np.asarray(transitions, np.float64)
        if len(classes) != n or first.shape != (n,) or table.shape != (n, n):
            raise ValueError(
                f"start and transitions must have shapes ({n},) and ({n}, {n}) for {n} different "
                f"classes, got {first.shape} and {table.shape}"
            )
        for name, p in (("start", first), ("transitions", table)):
            if not ((p >= 0.0).all() and np.allclose(p.sum(axis=-1), 1.0, rtol=0.0, atol=1e-6)):
                raise ValueError(f"{name} must be probabilities whose rows sum to 1")
        if emission.natural.shape[0] != n:
            raise ValueError(
                f"the emission must have parameters for {n} labels, got {len(emission.natural)}"
            )
        if not (order == np.arange(n)).all():
            raise ValueError(f"classes must be sorted, got {list(classes)!r}")
        return cls(emission)._set(labels, first, table, emission)

    def _check(self) -> None:
        check_number("alpha", self.alpha)

    def _sequences(self, X: Any, y: Any) -> tuple[Sequence[Any], Any]:
        return check_sequences(X, empty=True), y

    def _read(
        self, emission: Emission, X: Any, y: Any, weight: object, grow: bool
    ) -> tuple[Rows, Sequence[Any], Floats | None]:
        X, y = check_sequences(X), check_sequences(y, "y")
        rows = emission.read(X, grow=grow)
        check_same_lengths(rows.lengths, y)
        own = check_sample_weight(weight, len(X))
        return rows, y, None if own is None else np.repeat(own, rows.lengths)

    def _counts(
        self, known: Known, rows: Rows, codes: NDArray[np.int32], weight: Floats | None
    ) -> Counts:
        """Those of the emission, of first labels and of transitions."""
        n = len(known.labels)
        of_emission = known.emission.sums(rows.data, codes, n, weight)
        weight = np.ones(len(codes)) if weight is None else weight
        first = _first(rows)
        at = np.delete(np.arange(len(codes)), first)
        start = np.bincount(codes[first], weight[first], minlength=n)
        pairs = codes[at - 1] * n + codes[at]
        table = np.bincount(pairs, weight[at], minlength=n * n).reshape(n, n)
        return *of_emission, start.astype(np.float64), table.astype(np.float64)

    def _learn(self, known: Known, counts: Counts) -> None:
        start, table = (own + self.alpha for own in counts[2:])
        table[table.sum(axis=1) == 0.0] = 1.0  # what nothing follows says nothing of what would
        chances = start / start.sum(), table / table.sum(axis=1, keepdims=True)
        self._set(known.labels, *chances, known.emission)

    def _set(
        self, labels: SequenceLabels, start: Floats, transitions: Floats, emission: Emission
    ) -> HMM:
        self.labels_, self.classes_ = labels, labels.classes
        self.start_, self.transitions_, self.emission_ = start, transitions, emission
        self.crf_ = self._named(self.to_crf())
        return self

    def to_crf(self, **parameters: Any) -> ChainCRF:
        """The chain CRF with the same posterior p(y | x); its input is `statistics(X)`.

        Node weights are the natural parameters of the emissions, biases minus their log-partition
        functions, transitions and starts log-probabilities. Weights of −inf stay so in training.
        `warm_start` is set: `fit` continues from these weights.

        Parameters
        ----------
        **parameters
            Parameters of `ChainCRF`: l2, solver, n_jobs, ….
        """
        emission = self.emission_
        start, transitions = self._logarithms()
        return chain_crf(
            self.labels_,
            input_of(emission),
            emission.natural,
            intercept=-emission.log_partition,
            transitions=transitions,
            start=start,
            **parameters,
        )

    def _logarithms(self) -> tuple[Floats, Floats]:
        with np.errstate(divide="ignore"):
            return np.log(self.start_), np.log(self.transitions_)

    def statistics(self, X: object) -> list[Statistics]:
        """The sufficient statistics of every position: the input of the CRF of `to_crf`."""
        self._check_fitted()
        rows = self.emission_.read(check_sequences(X, empty=True), grow=False)
        limits = offsets_of(rows.lengths).tolist()
        whole = self.emission_.statistics(rows.data)
        return [whole[a:b] for a, b in pairwise(limits)]

    def _observed(self, X: object) -> list[Statistics]:
        return self.statistics(X)

    def log_likelihood(self, X: Sequence[Any], y: Sequence[Any]) -> Floats:
        """log p(x, y) of each sequence, the joint probability or density."""
        self._check_fitted()
        rows = self.emission_.read(check_sequences(X), grow=False)
        y = check_sequences(y, "y")
        check_same_lengths(rows.lengths, y)
        codes = self.labels_.codes(self.labels_.encode(y))
        terms = self.emission_.log_density(rows.data)[np.arange(len(codes)), codes]
        start, transitions = self._logarithms()
        chained = np.empty(len(codes))
        chained[1:] = transitions[codes[:-1], codes[1:]]
        first = _first(rows)
        chained[first] = start[codes[first]]
        sums = np.zeros(len(rows.lengths))
        np.add.at(sums, np.repeat(np.arange(len(sums)), rows.lengths), terms + chained)
        return sums

    def sample(self, n_sequences: int = 1, length: int = 10) -> tuple[list[Any], list[Any]]:
        """Draw sequences X and their labels y from the joint distribution."""
        self._check_fitted()
        check_number("n_sequences", n_sequences, minimum=1, integer=True)
        check_number("length", length, minimum=1, integer=True)
        rng = generator_from(self.random_state)
        n = len(self.classes_)
        codes = np.empty((n_sequences, length), dtype=np.int64)
        codes[:, 0] = rng.choice(n, n_sequences, p=self.start_ / self.start_.sum())
        below = np.cumsum(self.transitions_, axis=1)
        for t in range(1, length):
            limits = below[codes[:, t - 1]]
            codes[:, t] = (rng.random((n_sequences, 1)) * limits[:, -1:] >= limits).sum(axis=1)
        observed = self.emission_.sample(codes.ravel(), rng)
        numbers = self.labels_.order[codes.ravel()].astype(np.int32)
        lengths = np.full(n_sequences, length, dtype=np.int64)
        X = np.split(observed, offsets_of(lengths)[1:-1])
        return X, self.labels_.decode(numbers, lengths)


def _first(rows: Rows) -> NDArray[np.int64]:
    """The first positions of all non-empty sequences."""
    return offsets_of(rows.lengths)[:-1][rows.lengths > 0]
