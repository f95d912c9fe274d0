"""Exact inference on structures with fixed cliques, as PyTorch operators.

`chordal::graph_log_partition` has the derivative `chordal::graph_marginals`, whose own is
`chordal::graph_covariance`. A structure is given by its index tensors, so that an operator needs
nothing else: models can be copied, exported and loaded elsewhere. Tensors of other devices are
copied to the CPU and back.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from chordal.inference import INFERENCE, Inference
from chordal.potentials import Floats, Potentials, refuse_infeasible
from chordal.structures import FactorGraph

if TYPE_CHECKING:
    Context: TypeAlias = Any  # what PyTorch hands from an operator to its derivative

Two: TypeAlias = "tuple[Tensor, Tensor]"

_INDICES = "Tensor scopes, Tensor orders, Tensor table_of_clique, Tensor table_offsets"
_SCORES = f"Tensor unary, Tensor tables, {_INDICES}, str method"


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


def _potentials(unary: Tensor, tables: Tensor, *indices: Tensor) -> Potentials:
    raw = (x.detach().cpu().contiguous().numpy().tobytes() for x in indices)
    return _frame(tuple(unary.shape), *raw).like(_array(unary), _array(tables))


def _read(given: Sequence[Any]) -> tuple[Potentials, Inference]:
    *scores, method = given
    return _potentials(*scores), INFERENCE.resolve(method)


def _tensor(array: Floats, like: Tensor) -> Tensor:
    # A copy: the same array may be an input of the operator.
    return torch.tensor(array).to(like).reshape(like.shape)


def _labels(array: np.ndarray, shape: Sequence[int], like: Tensor) -> Tensor:
    return torch.tensor(array.astype(np.int64), device=like.device).reshape(shape)


def _log_partition(*given: Any) -> Tensor:
    potentials, method = _read(given)
    value = method.log_partition(potentials)
    refuse_infeasible(value)
    return torch.tensor(value).to(given[0])


def _marginals(*given: Any) -> Two:
    potentials, method = _read(given)
    parts = method.marginals(potentials).parts
    return _tensor(parts.unary, given[0]), _tensor(parts.tables, given[1])


def _covariance(*given: Any) -> Two:
    *scores, d_unary, d_tables = given
    potentials, method = _read(scores)
    direction = potentials.like(_array(d_unary), _array(d_tables))
    parts = method.marginals_derivative(potentials, direction)
    return _tensor(parts.unary, given[0]), _tensor(parts.tables, given[1])


def _map(*given: Any) -> Two:
    potentials, method = _read(given)
    found = method.map(potentials)
    return _labels(found.labels, given[0].shape[:2], given[0]), torch.tensor(found.score).to(
        given[0]
    )


def _k_best(*given: Any) -> Two:
    *scores, k, pad = given
    potentials, method = _read(scores)
    found = method.k_best(potentials, k)
    batch, n_variables = scores[0].shape[:2]
    labels = _labels(found.labels, (k, batch, n_variables), scores[0]).transpose(0, 1)
    score = torch.tensor(found.score).to(scores[0])
    return labels.masked_fill((score == -torch.inf).unsqueeze(2), pad), score


def _sample(*given: Any) -> Tensor:
    *scores, n, seed = given
    potentials, method = _read(scores)
    drawn = method.sample(potentials, n, np.random.default_rng(int(seed)))
    return _labels(drawn, (n, *scores[0].shape[:2]), scores[0])


def _operator(name: str, function: object, schema: str) -> Any:
    return torch.library.custom_op(f"chordal::{name}", function, mutates_args=(), schema=schema)


# [B]: log Z.
graph_log_partition = _operator("graph_log_partition", _log_partition, f"({_SCORES}) -> Tensor")
# Its derivative for each example, [B, N, L] and [B, cells].
graph_marginals = _operator("graph_marginals", _marginals, f"({_SCORES}) -> (Tensor, Tensor)")
# The derivative of `graph_marginals` in a direction.
graph_covariance = _operator(
    "graph_covariance",
    _covariance,
    f"({_SCORES}, Tensor d_unary, Tensor d_tables) -> (Tensor, Tensor)",
)
# The best labels [B, N] and their scores [B].
graph_map = _operator("graph_map", _map, f"({_SCORES}) -> (Tensor, Tensor)")
# The k best labels [B, k, N] and their scores [B, k]; −inf and `pad` where there are fewer.
graph_k_best = _operator(
    "graph_k_best", _k_best, f"({_SCORES}, int k, int pad) -> (Tensor, Tensor)"
)
# Labels [n, B, N].
graph_sample = _operator("graph_sample", _sample, f"({_SCORES}, int n, Tensor seed) -> Tensor")


def _like_value(*given: Any) -> Tensor:
    return given[0].new_empty(given[0].shape[0])


def _like_parts(*given: Any) -> Two:
    return given[0].new_empty(given[0].shape), given[1].new_empty(given[1].shape)


def _like_map(*given: Any) -> Two:
    return given[0].new_empty(given[0].shape[:2], dtype=torch.long), _like_value(*given)


def _like_k_best(*given: Any) -> Two:
    (batch, n_variables), k = given[0].shape[:2], given[7]
    labels = given[0].new_empty((batch, k, n_variables), dtype=torch.long)
    return labels, given[0].new_empty((batch, k))


def _like_sample(*given: Any) -> Tensor:
    return given[0].new_empty((given[7], *given[0].shape[:2]), dtype=torch.long)


graph_log_partition.register_fake(_like_value)
graph_marginals.register_fake(_like_parts)
graph_covariance.register_fake(_like_parts)
graph_map.register_fake(_like_map)
graph_k_best.register_fake(_like_k_best)
graph_sample.register_fake(_like_sample)


def _keep(ctx: Context, inputs: Sequence[Any], output: object) -> None:
    *tensors, ctx.method = inputs
    ctx.save_for_backward(*tensors)


def _value_backward(ctx: Context, weight: Tensor) -> tuple[Tensor | None, ...]:
    unary, tables = graph_marginals(*ctx.saved_tensors, ctx.method)
    return weight[:, None, None] * unary, weight[:, None] * tables, None, None, None, None, None


def _marginals_backward(
    ctx: Context, d_unary: Tensor, d_tables: Tensor
) -> tuple[Tensor | None, ...]:
    parts = graph_covariance(*ctx.saved_tensors, ctx.method, d_unary, d_tables)
    return (*parts, None, None, None, None, None)


graph_log_partition.register_autograd(_value_backward, setup_context=_keep)
graph_marginals.register_autograd(_marginals_backward, setup_context=_keep)
