"""Exact inference on structures with fixed cliques, as PyTorch operators.

`chordal::graph_log_partition` has the derivative `chordal::graph_marginals`, whose own is
`chordal::graph_covariance`. A structure is given by its index tensors, so that an operator needs
nothing else: models can be copied, exported and loaded elsewhere. Tensors of other devices are
copied to the CPU and back.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from chordal.inference import INFERENCE, Inference
from chordal.potentials import Floats, Potentials, refuse_infeasible
from chordal.structures import FactorGraph
from chordal.torch._custom_operators import Family

if TYPE_CHECKING:
    from chordal.torch._custom_operators import Context

Two: TypeAlias = "tuple[Tensor, Tensor]"
Derivatives: TypeAlias = "tuple[Tensor | None, ...]"

_INDICES = "Tensor scopes, Tensor orders, Tensor table_of_clique, Tensor table_offsets"
_SCORES = f"Tensor unary, Tensor tables, {_INDICES}, str method"


class Asked(NamedTuple):
    """Scores of a batch on a structure, and the method that answers."""

    unary: Tensor  # [B, N, L]
    tables: Tensor  # [B, cells]
    scopes: Tensor
    orders: Tensor
    table_of_clique: Tensor
    table_offsets: Tensor
    method: str


@lru_cache(maxsize=32)
def _frame(shape: tuple[int, ...], *indices: bytes) -> Potentials:
    """Potentials of a batch of equal structures, all zero; made once for a size of the batch.

    Plans of inference methods are kept with its structure.
    """
    batch, n_variables, n_labels = shape
    scopes, orders, table_of_clique, table_offsets = (np.frombuffer(x, np.int64) for x in indices)
    example = np.arange(batch, dtype=np.int64)[:, None]
    structure = FactorGraph.from_arrays(
        np.full(batch, n_variables, dtype=np.int64),
        (scopes + n_variables * example).ravel(),
        np.tile(orders, batch),
        np.full(batch, len(orders), dtype=np.int64),
        n_labels,
    )
    n_tables, n_cells = len(table_offsets) - 1, int(table_offsets[-1])
    offsets = (table_offsets[:-1] + n_cells * example).ravel()
    return Potentials.trusted(
        structure,
        np.zeros(structure.n_states),
        np.zeros(batch * n_cells),
        (table_of_clique + n_tables * example).ravel().astype(np.int32),
        np.append(offsets, batch * n_cells).astype(np.int64),
    )


def _array(tensor: Tensor) -> Floats:
    return tensor.detach().to("cpu", torch.float64).contiguous().numpy().reshape(-1)


def _read(asked: Asked) -> tuple[Potentials, Inference]:
    raw = (x.detach().cpu().contiguous().numpy().tobytes() for x in asked[2:6])
    frame = _frame(tuple(asked.unary.shape), *raw)
    potentials = frame.like(_array(asked.unary), _array(asked.tables))
    potentials.check()  # what could overflow
    return potentials, INFERENCE.resolve(asked.method)


def _tensor(array: Floats, like: Tensor) -> Tensor:
    # A copy: the same array may be an input of the operator.
    return torch.tensor(array).to(like).reshape(like.shape)


def _labels(array: np.ndarray, shape: Sequence[int], like: Tensor) -> Tensor:
    return torch.tensor(array.astype(np.int64), device=like.device).reshape(shape)


def _log_partition(asked: Asked) -> Tensor:
    potentials, method = _read(asked)
    value = method.log_partition(potentials)
    refuse_infeasible(value)
    return torch.tensor(value).to(asked.unary)


def _parts(asked: Asked, parts: Potentials) -> Two:
    return _tensor(parts.unary, asked.unary), _tensor(parts.tables, asked.tables)


def _marginals(asked: Asked) -> Two:
    potentials, method = _read(asked)
    return _parts(asked, method.marginals(potentials).parts)


def _covariance(asked: Asked, d_unary: Tensor, d_tables: Tensor) -> Two:
    potentials, method = _read(asked)
    direction = potentials.like(_array(d_unary), _array(d_tables))
    return _parts(asked, method.marginals_derivative(potentials, direction))


def _map(asked: Asked) -> Two:
    potentials, method = _read(asked)
    found = method.map(potentials)
    labels = _labels(found.labels, asked.unary.shape[:2], asked.unary)
    return labels, torch.tensor(found.score).to(asked.unary)


def _k_best(asked: Asked, k: int, pad: int) -> Two:
    potentials, method = _read(asked)
    found = method.k_best(potentials, k)
    batch, n_variables = asked.unary.shape[:2]
    labels = _labels(found.labels, (k, batch, n_variables), asked.unary).transpose(0, 1)
    score = torch.tensor(found.score).to(asked.unary)
    return labels.masked_fill((score == -torch.inf).unsqueeze(2), pad), score


def _sample(asked: Asked, n: int, seed: Tensor) -> Tensor:
    potentials, method = _read(asked)
    drawn = method.sample(potentials, n, np.random.default_rng(int(seed)))
    return _labels(drawn, (n, *asked.unary.shape[:2]), asked.unary)


def _like_value(asked: Asked) -> Tensor:
    return asked.unary.new_empty(asked.unary.shape[0])


def _like_parts(asked: Asked, *direction: Tensor) -> Two:
    return asked.unary.new_empty(asked.unary.shape), asked.tables.new_empty(asked.tables.shape)


def _like_map(asked: Asked) -> Two:
    return asked.unary.new_empty(asked.unary.shape[:2], dtype=torch.long), _like_value(asked)


def _like_k_best(asked: Asked, k: int, pad: int) -> Two:
    batch, n_variables = asked.unary.shape[:2]
    labels = asked.unary.new_empty((batch, k, n_variables), dtype=torch.long)
    return labels, asked.unary.new_empty((batch, k))


def _like_sample(asked: Asked, n: int, seed: Tensor) -> Tensor:
    return asked.unary.new_empty((n, *asked.unary.shape[:2]), dtype=torch.long)


_operator = Family(Asked, _SCORES).operator
# [B]: log Z.
graph_log_partition = _operator("graph_log_partition", _log_partition, _like_value)
# Its derivative for each example, [B, N, L] and [B, cells].
graph_marginals = _operator("graph_marginals", _marginals, _like_parts, gives=2)
# The derivative of `graph_marginals` in a direction.
graph_covariance = _operator(
    "graph_covariance", _covariance, _like_parts, "Tensor d_unary", "Tensor d_tables", gives=2
)
# The best labels [B, N] and their scores [B].
graph_map = _operator("graph_map", _map, _like_map, gives=2)
# The k best labels [B, k, N] and their scores [B, k]; −inf and `pad` where there are fewer.
graph_k_best = _operator("graph_k_best", _k_best, _like_k_best, "int k", "int pad", gives=2)
# Labels [n, B, N].
graph_sample = _operator("graph_sample", _sample, _like_sample, "int n", "Tensor seed")


def _keep(ctx: Context, inputs: Sequence[object], output: object) -> None:
    *tensors, ctx.method = inputs
    ctx.save_for_backward(*tensors)


def _value_backward(ctx: Context, weight: Tensor) -> Derivatives:
    unary, tables = graph_marginals(*ctx.saved_tensors, ctx.method)
    return weight[:, None, None] * unary, weight[:, None] * tables, None, None, None, None, None


def _marginals_backward(ctx: Context, d_unary: Tensor, d_tables: Tensor) -> Derivatives:
    parts = graph_covariance(*ctx.saved_tensors, ctx.method, d_unary, d_tables)
    return (*parts, None, None, None, None, None)


graph_log_partition.register_autograd(_value_backward, setup_context=_keep)
graph_marginals.register_autograd(_marginals_backward, setup_context=_keep)
