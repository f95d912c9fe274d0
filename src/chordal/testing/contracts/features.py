"""The contract of features: a linear map, its adjoint, and one answer for any number of threads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from chordal._errors import UnsupportedError
from chordal.features import Layout, RowFeatures, Rows, unit_of
from chordal.potentials import Floats
from chordal.testing.contracts._common import require

N_JOBS = (1, 2, 3, 5)


def check_features(
    features: RowFeatures,
    rows: Rows,
    rng: np.random.Generator,
    n_jobs: Iterable[int] = N_JOBS,
) -> None:
    """Check that `map` is linear, that `adjoint` is its adjoint, and that threads change nothing.

    ⟨map(w), p⟩ = ⟨w, adjoint(p)⟩ for random w and p, over all rows and over shards of them. The
    adjoint is the same bit for bit, however its blocks are split among `n_jobs` tasks and whatever
    the order of these tasks.

    Raises
    ------
    AssertionError
        Saying which claim does not hold.

    Examples
    --------
    >>> from chordal.features import DenseInput
    >>> rng = np.random.default_rng(0)
    >>> rows = DenseInput(3).read([rng.normal(size=(5, 3))], grow=True)
    >>> outputs = np.zeros(5, dtype=np.int32)
    >>> check_features(DenseInput(3).features(rows, outputs, 2), rows, rng)
    """
    limits = np.unique([0, rows.n_rows // 3, rows.n_rows // 2, rows.n_rows])
    shards = [features.compile(rows, a, b) for a, b in pairwise(limits)]
    whole = [features.compile(rows, 0, rows.n_rows)]
    _check_keys(features)
    weights, other = rng.normal(size=(2, features.n_weights))
    scores = _mapped(features, whole, [rows.n_rows], weights)
    _close(_mapped(features, shards, np.diff(limits), weights), scores, "map over shards")
    both = _mapped(features, whole, [rows.n_rows], 2.0 * weights + other)
    apart = 2.0 * scores + _mapped(features, whole, [rows.n_rows], other)
    _close(both, apart, "map is not linear")
    _check_outputs(features, whole, rows.n_rows, weights)
    _check_entries(features, shards, scores, weights)

    parts = rng.normal(size=rows.n_rows * features.n_outputs)
    split = np.split(parts, limits[1:-1] * features.n_outputs)
    for compiled, pieces in ((whole, [parts]), (shards, split)):
        gradients = [_adjoint(features, compiled, pieces, n, rng) for n in n_jobs]
        _close(weights @ gradients[0], scores @ parts, "⟨w, adjoint(p)⟩ is not ⟨map(w), p⟩")
        for gradient in gradients[1:]:
            assert_array_equal(gradient, gradients[0], err_msg="adjoint depends on n_jobs")


def check_shard_features(
    features: Layout,
    shards: Sequence[Any],
    rng: np.random.Generator,
    n_jobs: Iterable[int] = N_JOBS,
) -> None:
    """The same contract for features of whole structures: unary scores and tables together."""
    weights = rng.normal(size=features.n_weights)
    expanded = features.expand(weights)
    scored = [features.potentials(shard, expanded) for shard in shards]
    parts = [p.like(rng.normal(size=len(p.unary)), rng.normal(size=len(p.tables))) for p in scored]
    inner = sum(
        float(a.unary @ b.unary + a.tables @ b.tables) for a, b in zip(scored, parts, strict=True)
    )
    for shard, expected in zip(shards, scored, strict=True):
        memory = np.full(len(expected.unary) + 3, np.nan)
        reused = features.potentials(shard, expanded, memory)
        assert_array_equal(reused.unary, expected.unary, err_msg="unary in given memory")
        assert_array_equal(reused.tables, expected.tables, err_msg="tables in given memory")
        doubled = features.potentials(shard, features.expand(2.0 * weights))
        _close(doubled.unary, 2.0 * expected.unary, "unary is not linear")
        _close(doubled.tables, 2.0 * expected.tables, "tables are not linear")

    gradients = []
    for n in n_jobs:
        sums = features.zeros()
        for block in rng.permutation(features.n_blocks(n)):
            for shard, part in zip(shards, parts, strict=True):
                features.adjoint(shard, part, sums, int(block), n)
        gradients.append(features.collect(sums))
        require(gradients[-1].shape == (features.n_weights,), f"gradient: {gradients[-1].shape}")
        assert_array_equal(gradients[-1], gradients[0], err_msg="adjoint depends on n_jobs")
    _close(weights @ gradients[0], inner, "⟨w, adjoint(p)⟩ is not ⟨potentials(w), p⟩")


def _check_entries(
    features: RowFeatures, shards: Sequence[Any], scores: Floats, weights: Floats
) -> None:
    """Entries, where features list them, give the same scores."""
    try:
        entries = features.entries(shards)
    except UnsupportedError:
        return
    cells = np.zeros(entries.n_cells)
    cells[entries.cells] = weights
    unit, out = unit_of(entries.n_outputs), np.zeros((entries.n_rows, entries.n_outputs))
    for row in range(entries.n_rows):
        for e in range(*entries.wide_offsets[row : row + 2].tolist()):
            begin, size = int(entries.wide_codes[e]) >> 5, int(entries.wide_codes[e]) & 31
            value = 1.0 if entries.wide_values is None else entries.wide_values[e]
            whole_row = cells[begin * unit : (begin + size) * unit]
            n = min(len(whole_row), entries.n_outputs)
            require(not whole_row[n:].any(), "entries: padding holds a weight")
            out[row, :n] += value * whole_row[:n]
        for e in range(*entries.narrow_offsets[row : row + 2].tolist()):
            value = 1.0 if entries.narrow_values is None else entries.narrow_values[e]
            out[row, entries.narrow_outputs[e]] += value * cells[entries.narrow_cells[e]]
    _close(out.ravel(), scores, "entries do not give the scores of map")


def _mapped(
    features: RowFeatures, compiled: Sequence[Any], sizes: Iterable[int], weights: Floats
) -> Floats:
    expanded, pieces = features.expand(weights), []
    for rows, size in zip(compiled, sizes, strict=True):
        out = np.full(size * features.n_outputs, np.nan)  # map sets, it does not add
        features.map(rows, expanded, out)
        require(np.isfinite(out).all(), "map leaves scores that are not finite, or not set")
        pieces.append(out)
    return np.concatenate(pieces)


def _adjoint(
    features: RowFeatures,
    compiled: Sequence[Any],
    parts: Sequence[Floats],
    n_jobs: int,
    rng: np.random.Generator,
) -> Floats:
    sums = features.zeros()
    for block in rng.permutation(features.n_blocks(n_jobs)):
        for rows, piece in zip(compiled, parts, strict=True):
            features.adjoint(rows, piece, sums, int(block), n_jobs)
    out = np.full(features.n_weights, np.nan)
    features.collect(sums, out)
    require(np.isfinite(out).all(), "collect leaves weights that are not finite, or not set")
    return out


def _check_keys(features: RowFeatures) -> None:
    """Every weight belongs to one column and output, and no two to the same."""
    column, output = features.keys().column, features.keys().output
    require(len(column) == len(output) == features.n_weights, "keys: one per weight")
    require(((output >= 0) & (output < features.n_outputs)).all(), "keys: outputs out of range")
    pairs = column.astype(np.int64) * features.n_outputs + output
    require(len(np.unique(pairs)) == len(pairs), "keys: two weights for the same pair")


def _check_outputs(
    features: RowFeatures, whole: Sequence[Any], n_rows: int, weights: Floats
) -> None:
    """A weight changes the scores of one output, the one that `keys` gives."""
    output = features.keys().output
    for k in np.unique(output)[:5]:
        alone = np.where(output == k, weights, 0.0)
        scores = _mapped(features, whole, [n_rows], alone).reshape(n_rows, features.n_outputs)
        others = np.delete(scores, k, axis=1)
        require((others == 0.0).all(), f"weights of output {k} move the scores of others")


def _close(actual: Floats | float, expected: Floats | float, message: str) -> None:
    assert_allclose(actual, expected, rtol=1e-10, atol=1e-10, equal_nan=False, err_msg=message)
