"""Clique templates: which variables belong together, and what is observed of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, final

from chordal._validate import check_choice, check_number
from chordal.features import TABLES


@final
@dataclass(frozen=True)
class CliqueTemplate:
    """A kind of cliques; the weights of a template are shared by all of its cliques.

    Parameters
    ----------
    name : str
        What its weights are called.
    cliques : function x → int array [n, order], optional
        The numbers of the variables that belong together, from 0. Without it every variable is a
        clique of its own, and `features` tells by its rows how many variables there are.
    features : function x → rows [n, n_features], optional
        An array, a SciPy sparse matrix or a list of attributes (dicts, or lists of strings): a
        row for each clique. Without it, all cliques have the same table of weights.
    order : int, optional
        Variables per clique; by default 2, or 1 without `cliques`.
    tables : {"full", "symmetric", "potts"}
        "full": every feature has a weight for every labelling of the clique, in the order of its
        variables. "symmetric": for every set of labels, in whatever order. "potts": one weight,
        for all labels being equal.
    bias : bool
        Whether there are weights for labellings as such too, beside those of features.

    Examples
    --------
    A chain, a skip-chain edge between equal words, and triplets:

    >>> import numpy as np
    >>> def steps(x, n=2):
    ...     return np.stack([np.arange(k, len(x) - n + 1 + k) for k in range(n)], axis=1)
    >>> def same_word(x):
    ...     pairs = [(i, j) for j in range(len(x)) for i in range(j) if x[i] == x[j]]
    ...     return np.array(pairs, dtype=int).reshape(-1, 2)
    >>> words = CliqueTemplate("words", features=lambda x: [[word] for word in x])
    >>> chain = CliqueTemplate("chain", steps)
    >>> skip = CliqueTemplate("skip", same_word, tables="potts")
    >>> triplets = CliqueTemplate("triplets", lambda x: steps(x, 3), order=3)
    >>> steps(["the", "cat", "sleeps"])
    array([[0, 1],
           [1, 2]])
    """

    name: str
    cliques: Callable[[Any], Any] | None = None
    features: Callable[[Any], Any] | None = None
    _: KW_ONLY
    order: int | None = None
    tables: str = "full"
    bias: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise TypeError(f"name of a clique template must be a str, got {self.name!r}")
        for what in ("cliques", "features"):
            given = getattr(self, what)
            if given is not None and not callable(given):
                raise TypeError(
                    f"{what} of template {self.name!r} must be a function of one example, or "
                    f"None; got {given!r}"
                )
        if self.order is not None:
            check_number(f"order of template {self.name!r}", self.order, minimum=1, integer=True)
        if self.cliques is None and self.order not in (None, 1):
            raise ValueError(f"template {self.name!r} of order {self.order} must have cliques")
        check_choice(f"tables of template {self.name!r}", self.tables, TABLES)
        if self.tables == "potts" and self.size == 1:
            raise ValueError(
                f"template {self.name!r} compares labels (tables='potts'), and needs cliques of "
                "two variables or more"
            )
        if self.features is None and not self.bias:
            raise ValueError(
                f"template {self.name!r} has no weights: give it features, or bias=True"
            )

    @property
    def size(self) -> int:
        """Variables per clique."""
        if self.order is not None:
            return self.order
        return 1 if self.cliques is None else 2
