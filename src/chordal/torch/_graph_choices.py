"""The settings of a layer: its inference method, and which cliques share a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from torch import Tensor, nn

from chordal._errors import UnsupportedError
from chordal.inference import INFERENCE, exact_for
from chordal.structures import FactorGraph, Grid, Structure
from chordal.torch._approximate import Approximate
from chordal.torch._exact import Exact
from chordal.torch._topology import Topology
from chordal.torch.loopy_bp import LoopyBP
from chordal.torch.mean_field import MeanField

TYINGS = ("all", "each", "direction")
Method: TypeAlias = str | MeanField | LoopyBP


def answers_of(structure: Structure, topology: Topology, inference: Method) -> Exact | Approximate:
    """What answers questions, chosen by its name or settings."""
    if isinstance(inference, MeanField | LoopyBP):
        return inference.on(topology)
    if inference == "mean_field":
        return MeanField().on(topology)
    if inference == "loopy_bp":
        return LoopyBP().on(topology)
    question, graph = "marginals_derivative", _as_factor_graph(structure)
    if inference == "auto":
        method = exact_for(graph, question)
        if method is None:
            raise UnsupportedError(
                f"{structure} is too large for exact inference; use inference='mean_field' or "
                "'loopy_bp'"
            )
        return Exact(topology, method.name)
    exact = sorted(
        n for n in INFERENCE if question in INFERENCE.resolve(n).answers and n != "chain"
    )
    if inference not in exact:
        names = ", ".join(map(repr, ["auto", *exact, "loopy_bp", "mean_field"]))
        raise ValueError(f"inference must be one of {names}, or settings; got {inference!r}")
    INFERENCE.resolve(inference).require(question, graph)
    return Exact(topology, inference)


def offsets(sizes: Tensor) -> Tensor:
    """Where each of consecutive blocks begins, and where the last one ends."""
    return nn.functional.pad(sizes.cumsum(0), (1, 0))


def _as_factor_graph(structure: Structure) -> FactorGraph:
    n_cliques = np.array([structure.n_cliques])
    n_variables = np.array([structure.n_variables])
    counts = structure.label_counts
    return FactorGraph.from_arrays(
        n_variables, structure.scopes, structure.orders, n_cliques, counts
    )


def table_numbers(structure: Structure, tying: str | Sequence[int]) -> tuple[np.ndarray, int]:
    """The table of each clique, int64 [n_cliques], and how many tables there are."""
    n_cliques = structure.n_cliques
    if isinstance(tying, str):
        if tying not in TYINGS:
            raise ValueError(
                f"tying must be one of {', '.join(map(repr, TYINGS))}, or the number of each "
                f"clique's table; got {tying!r}"
            )
        if tying == "direction":
            if not isinstance(structure, Grid):
                raise ValueError(f"tying 'direction' is for a Grid, got {type(structure).__name__}")
            # Narrow grids may have no edge of some direction; they have its table all the same.
            return np.array(structure.direction_of_clique), len(structure.directions)
        if tying == "each" and n_cliques > 0:
            return np.arange(n_cliques), n_cliques
        return np.zeros(n_cliques, dtype=np.int64), 1
    index = np.asarray(tying)
    if index.shape != (n_cliques,) or not np.issubdtype(index.dtype, np.integer):
        raise ValueError(
            f"tying must have a table's number for each of {n_cliques} cliques, got {index.dtype} "
            f"of shape {index.shape}"
        )
    if n_cliques and index.min() < 0:
        k = int(index.argmin())
        raise ValueError(f"tying: the table of clique {k} is {index[k]}; numbers begin at 0")
    unused = np.setdiff1d(np.arange(int(index.max(initial=-1)) + 1), index)
    if len(unused):
        raise ValueError(f"tying: no clique has table {unused[0]}; use every number from 0 on")
    return index.astype(np.int64), max(1, int(index.max(initial=0)) + 1)
