"""A part of a data set as facts and arrays of one dimension, and back, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal.features import Batch, Cliques, Occurrences, Reader, Rows, SharedInput, SharedRows
from chordal.features.clique_template import PATTERNS
from chordal.structures import check_scopes, offsets_of
from chordal.targets import PartialLabels, SoftLabels, Target

Arrays = dict[str, NDArray[Any]]
Facts = dict[str, Any]
Ints = NDArray[np.int64]

LARGEST = 2**48  # numbers of anything: beyond are errors, and sums must not overflow


def to_arrays(batch: Batch) -> tuple[Facts, Arrays]:
    """Sizes, cliques and rows of a batch."""
    arrays: Arrays = {"sizes": batch.sizes}
    if batch.label_counts is not None:
        arrays["label_counts"] = batch.label_counts
    if batch.kinds is not None:
        arrays["kinds"] = batch.kinds
    templates = []
    for k, own in enumerate(batch.cliques):
        facts: Facts = {"cliques": own.pattern or "listed", "order": own.order, "rows": None}
        if own.pattern is None:
            arrays[f"{k}.scopes"] = np.asarray(own.scopes).ravel()
            arrays[f"{k}.counts"] = own.counts
        if own.rows is not None:
            facts["rows"], stored = _rows_to_arrays(own)
            arrays |= {f"{k}.{name}": array for name, array in stored.items()}
        templates.append(facts)
    return {"templates": templates, "exclusive": batch.exclusive}, arrays


def _rows_to_arrays(own: Cliques) -> tuple[str, Arrays]:
    assert own.rows is not None
    data, arrays = own.rows.data, {}
    if not np.array_equal(own.rows.lengths, own.counts):  # rows of labels
        arrays["lengths"] = own.rows.lengths
    kind = ""
    if isinstance(data, SharedRows):
        rows = data.row[own.rows.offsets[:-1]]  # of the examples, of which some may be left out
        whole = len(rows) == data.row.max(initial=-1) + 1
        data, kind = data.data if whole else data.data[rows], "shared "
    if isinstance(data, np.ndarray):
        arrays["data"] = data.ravel()
        return kind + "dense", arrays
    arrays["offsets"], arrays["ids"] = data.offsets, data.ids
    if data.values is not None:
        arrays["values"] = data.values
    return kind + "sparse", arrays


def from_arrays(
    facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], reader: Reader
) -> Batch:
    """The batch of a part, checked; ValueError if the arrays do not fit together."""
    sizes = counted(arrays, "sizes")
    n = int(sizes.sum())
    described = facts["templates"]
    if len(described) != len(reader.templates):
        raise ValueError(f"there must be {len(reader.templates)} templates, got {len(described)}")
    labels = None
    if "label_counts" in arrays:
        labels = counted(arrays, "label_counts", least=1)
        _same("label_counts", len(labels), n)
    cliques = []
    for k, own in enumerate(described):
        mine = {
            name.partition(".")[2]: array
            for name, array in arrays.items()
            if name.partition(".")[0] == str(k)
        }
        template, source = reader.templates[k], reader.inputs[k]
        if own["order"] != template.size:
            raise ValueError(f"template {template.name!r} must have cliques of {template.size}")
        found = _cliques(own, mine, sizes)
        if own["rows"] is not None:
            if source is None:
                raise ValueError(f"template {template.name!r} has rows, but no input reads them")
            columns = source.n_columns
            if isinstance(source, SharedInput):
                columns = source.source.n_columns
            found = Cliques(
                found.scopes,
                found.counts,
                _rows(own["rows"], mine, found, columns, labels),
                found.order,
            )
        cliques.append(found)
    kinds = None
    if "kinds" in arrays:
        kinds = counted(arrays, "kinds", most=len(reader.types) - 1)
        _same("kinds", len(kinds), n)
    exclusive = bool(facts["exclusive"])
    if (kinds is not None) != bool(reader.types) or exclusive != reader.exclusive:
        raise ValueError("its variables have other types than the templates say")
    if exclusive != (labels is not None):
        raise ValueError("a matching must have the number of labels of each variable")
    return Batch(sizes, cliques, labels, exclusive, kinds)


def _cliques(facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], sizes: Ints) -> Cliques:
    pattern, order = facts["cliques"], facts["order"]
    if pattern != "listed":
        if PATTERNS.get(pattern) != order:
            raise ValueError(f"cliques must be listed or one of {', '.join(PATTERNS)}")
        return Cliques.of_pattern(pattern, order, sizes, None)
    counts, scopes = counted(arrays, "counts"), typed(arrays, "scopes", np.int64)
    _same("counts", len(counts), len(sizes))
    _same("scopes", len(scopes), order * int(counts.sum()))
    check_scopes(scopes, order * np.arange(int(counts.sum()) + 1), offsets_of(counts), sizes)
    return Cliques(scopes.reshape(-1, order), counts, None, order)


def _rows(
    kind: str,
    arrays: Mapping[str, NDArray[Any]],
    cliques: Cliques,
    n_columns: int,
    labels: Ints | None,
) -> Rows:
    """The rows of a template: one for each clique, or for each label of each."""
    lengths, n = cliques.counts, int(cliques.counts.sum())
    if "lengths" in arrays:
        if labels is None:
            raise ValueError("there must be a row for every clique")
        lengths = counted(arrays, "lengths")
        _same("lengths", len(lengths), len(cliques.counts))
        n = int(lengths.sum())
    shared = kind.startswith("shared ")
    rows = len(lengths) if shared else n
    if kind.endswith("dense"):
        data: Any = _numbers(arrays, "data")
        _same("data", len(data), rows * n_columns)
        data = data.reshape(rows, n_columns)
    else:
        offsets, ids = typed(arrays, "offsets", np.int64), typed(arrays, "ids", np.int32)
        _same("offsets", len(offsets), rows + 1)
        if offsets[0] != 0 or offsets[-1] != len(ids) or (np.diff(offsets) < 0).any():
            raise ValueError("the offsets of rows do not fit their attributes")
        if len(ids) and (ids.min() < 0 or ids.max() >= n_columns):
            raise ValueError(f"attributes must have numbers from 0 to {n_columns - 1}")
        values = _numbers(arrays, "values") if "values" in arrays else None
        if values is not None:
            _same("values", len(values), len(ids))
        data = Occurrences(offsets, ids, values)
    if not shared:
        return Rows(lengths, data)
    k = int(lengths[0]) if len(lengths) else 0
    if (lengths != k).any():
        raise ValueError("examples must have the same variables")
    row = np.repeat(np.arange(rows, dtype=np.int64), k)
    return Rows(lengths, SharedRows(data, row, np.tile(np.arange(k), rows)))


def target_to_arrays(target: Target, observed: NDArray[np.bool_]) -> tuple[str, Arrays]:
    """Targets by their present label numbers, and which variables are observed."""
    if isinstance(target, SoftLabels):
        return "soft", {"gold.probability": target.probability}
    if isinstance(target, PartialLabels):
        flags = {"gold.allowed": target.allowed, "gold.observed": observed}
        return "partial", {name: own.astype(np.uint8) for name, own in flags.items()}
    return "hard", {"gold.codes": target}


def target_from_arrays(
    kind: str, arrays: Mapping[str, NDArray[Any]], n: int, n_labels: int
) -> tuple[Target, NDArray[np.bool_] | None]:
    """The target of n variables, and, for sets of labels, which of them are observed."""
    if kind == "hard":
        codes = typed(arrays, "gold.codes", np.int32)
        _same("gold.codes", len(codes), n)
        if len(codes) and (codes.min() < 0 or codes.max() >= n_labels):
            raise ValueError(f"labels must have numbers from 0 to {n_labels - 1}")
        return codes, None
    counts = np.full(n, n_labels)
    if kind == "soft":
        return SoftLabels(_numbers(arrays, "gold.probability"), counts), None
    observed = typed(arrays, "gold.observed", np.uint8).astype(bool)
    _same("gold.observed", len(observed), n)
    return PartialLabels(typed(arrays, "gold.allowed", np.uint8).astype(bool), counts), observed


def typed(arrays: Mapping[str, NDArray[Any]], name: str, dtype: type[np.generic]) -> NDArray[Any]:
    """An array of this type."""
    if name not in arrays:
        raise ValueError(f"there is no array {name!r}")
    if arrays[name].dtype != dtype:
        raise ValueError(f"{name} must be {dtype.__name__}, got {arrays[name].dtype}")
    return arrays[name]


def counted(
    arrays: Mapping[str, NDArray[Any]], name: str, least: int = 0, most: int = LARGEST
) -> Ints:
    """Whole numbers within limits, whose sum is one too."""
    array: Ints = typed(arrays, name, np.int64)
    if len(array) and (array.min() < least or array.max() > most):
        raise ValueError(f"{name} must be numbers from {least} to {most}")
    if array.sum(dtype=np.float64) > LARGEST:
        raise ValueError(f"{name} are more in all than there can be")
    return array


def _numbers(arrays: Mapping[str, NDArray[Any]], name: str) -> NDArray[Any]:
    """Finite numbers."""
    if name not in arrays or arrays[name].dtype not in (np.float32, np.float64):
        raise ValueError(f"{name} must be an array of float32 or float64")
    if not np.isfinite(arrays[name]).all():
        raise ValueError(f"{name} holds NaN or infinity")
    return arrays[name]


def _same(name: str, got: int, expected: int) -> None:
    if got != expected:
        raise ValueError(f"{name} must have {expected} entries, got {got}")
