"""What an emission is: a distribution of an observation for each label."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from chordal._optional import needed
from chordal.features import Rows
from chordal.potentials import Floats

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

#: Sufficient statistics [n, n_statistics]: an array, or a CSR matrix without stored zeros.
Statistics: TypeAlias = "NDArray[Any] | csr_matrix"

E = TypeVar("E", bound="Emission")


class Emission(ABC):
    """p(x | y) = h(x) exp(⟨η_y, T(x)⟩ − A(η_y)), an exponential family.

    With features T(x) and weights η_y this is the node of a conditional random field; −A(η_y) is
    its bias, and h(x) cancels.

    Attributes
    ----------
    natural : float64 [n_labels, n_statistics]
        The natural parameters η_y; −inf where something never occurs.
    log_partition : float64 [n_labels]
        A(η_y).
    """

    natural: Floats
    log_partition: Floats
    sparse: ClassVar[bool]  # whether statistics are a CSR matrix

    @abstractmethod
    def read(self, X: Sequence[Any], grow: bool) -> Rows:
        """Read sequences of observations; `grow` learns their columns and symbols."""

    @abstractmethod
    def statistics(self, data: Statistics) -> Statistics:
        """T(x) of every row that was read."""

    @abstractmethod
    def log_base(self, data: Statistics) -> Floats:
        """log h(x) of every row."""

    @abstractmethod
    def learn(self, sums: Floats, counts: Floats) -> None:
        """Set the parameters from Σ T(x) [n_labels, n_statistics] and the rows of each label."""

    @abstractmethod
    def sample(self, labels: NDArray[np.int64], rng: np.random.Generator) -> NDArray[Any]:
        """An observation for each label, [n, n_columns]."""

    def names(self) -> list[str]:
        """What users call the statistics: by default "x0", "x1", … for the columns."""
        return [f"x{k}" for k in range(self.natural.shape[1])]

    @property
    def name(self) -> str:
        """The name of its file, as registries have it."""
        return type(self).__module__.rpartition(".")[2]

    @abstractmethod
    def join(self: E, others: Sequence[E]) -> None:
        """Take over what others, which have read other parts of the data, have learned."""

    def fit(
        self,
        data: Statistics,
        labels: NDArray[np.int64],
        n_labels: int,
        weight: Floats | None = None,
    ) -> None:
        """Learn from rows with labels, each of which has a row with positive weight."""
        self.learn(*self.sums(data, labels, n_labels, weight))

    def sums(
        self,
        data: Statistics,
        labels: NDArray[Any],
        n_labels: int,
        weight: Floats | None = None,
    ) -> tuple[Floats, Floats]:
        """Σ T(x) and the rows of each label: what `learn` takes."""
        with needed("scipy", f"emission {self.name!r}"):
            import scipy.sparse as sp

        n = len(labels)
        weight = np.ones(n) if weight is None else weight
        indicators = sp.csr_matrix((weight, (labels, np.arange(n))), (n_labels, n))
        sums = indicators @ self.statistics(data)
        return (sums.toarray() if sp.issparse(sums) else sums), indicators.sum(axis=1).A1

    def log_density(self, data: Statistics) -> Floats:
        """log p(x | y) of every row and label, [n, n_labels]."""
        scores = np.asarray(self.statistics(data) @ self.natural.T)
        return scores - self.log_partition + self.log_base(data)[:, None]

    def __repr__(self) -> str:
        own = ", ".join(f"{k}={getattr(self, k)!r}" for k in self._settings())
        return f"{type(self).__name__}({own})"

    @classmethod
    def _settings(cls) -> list[str]:
        import inspect

        return list(inspect.signature(cls).parameters)


def log_probabilities(p: Floats) -> Floats:
    """log p, −inf for zero."""
    with np.errstate(divide="ignore"):
        return np.log(p)


def check_columns(widths: Sequence[int]) -> None:
    """Refuse parts of the data that have different numbers of columns."""
    if len(set(widths)) > 1:
        raise ValueError(f"observations must have the same number of columns, got {set(widths)}")
