"""What a fitted model has learned: its weights with their names, and a summary for notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal import _html
from chordal.estimators._crf import BaseCRF
from chordal.estimators._still import still
from chordal.features import Input, SharedInput
from chordal.potentials import Floats

Ints = NDArray[np.int64]

TOP = 10  # weights that a summary shows
FEW = 12  # labels that it names


@dataclass(frozen=True)
class NamedWeights:
    """The weights of one template.

    template : str
    columns : int64 [n], −1 for weights of labels as such
    labels : int64 [n, order], the numbers of the labels that each is for
    weights : float64 [n]
    """

    template: str
    columns: Ints
    labels: Ints
    weights: Floats
    source: Input | None
    names: tuple[list[Any], ...]  # of labels, for each variable of a clique
    equal: bool  # one weight for all labels being equal
    feature_names: NDArray[Any] | None = None
    variables: NDArray[Any] | None = None  # what they are called, if rows are shared by them

    @property
    def order(self) -> int:
        """Variables per clique."""
        return len(self.names)

    def name(self, k: int) -> str:
        """What users call the column of weight k; empty for that of labels as such."""
        column = int(self.columns[k])
        if column < 0:
            return ""
        source = self.source
        assert source is not None
        of = ""
        if isinstance(source, SharedInput) and self.variables is not None:
            column, variable = divmod(column, source.n_variables)
            source, of = source.source, f" of {self.variables[variable]}"
        if self.feature_names is not None and not isinstance(source, SharedInput):
            return f"{self.feature_names[column]}{of}"
        return f"{source.name(column)}{of}"

    def labels_of(self, k: int) -> tuple[Any, ...]:
        """The labels that weight k is for; none where it is for all equal ones."""
        if self.equal:
            return ()
        return tuple(of[i] for of, i in zip(self.names, self.labels[k].tolist(), strict=True))


def named_weights(model: BaseCRF) -> Iterator[NamedWeights]:
    """The weights of each template of a fitted model, with their names."""
    model = still(model)
    model._check_fitted()
    layout, types = model.layout_, model.labels_.types
    pairs = zip(model.reader_.templates, model.reader_.inputs, strict=True)
    every = dict(zip(layout.slices, pairs, strict=True))
    for own, of_rows, intercepts in layout.split(model.weights_):
        template, source = every[own.name]
        if types:
            listed = ([v for kind, v in model.labels_.labels if kind == t] for t in template.types)
            names = tuple(listed)
        else:
            names = (list(model.labels_.labels),) * own.order
        keys = None if own.rows is None else own.rows.keys()
        none = np.zeros(0, dtype=np.int64)
        columns, outputs = (none, none) if keys is None else (keys.column, keys.output)
        cells = own.tables.cell_of_output[np.concatenate([outputs, own.kept])]
        yield NamedWeights(
            own.name,
            np.concatenate([columns, np.full(len(own.kept), -1)]),
            np.stack(np.unravel_index(cells, own.tables.shape), axis=1),
            np.concatenate([of_rows, intercepts]),
            source,
            names,
            own.tables.kind == "potts",
            getattr(model, "feature_names_in_", None) if own.name in ("node", "nodes") else None,
            getattr(model, "label_names_", None),
        )


def top_weights(model: BaseCRF, n: int = TOP) -> list[tuple[str, str, tuple[Any, ...], float]]:
    """The n weights of largest magnitude: template, column (may be empty), labels, weight."""
    found = []
    for own in named_weights(model):
        if len(own.weights):
            k = min(n, len(own.weights))
            chosen = np.argpartition(-np.abs(own.weights), k - 1)[:k]
            found += [(abs(float(own.weights[i])), own, int(i)) for i in chosen]
    found.sort(key=lambda item: -item[0])
    return [
        (own.template, own.name(i), own.labels_of(i), float(own.weights[i]))
        for size, own, i in found[:n]
        if size > 0.0
    ]


def learned_facts(model: BaseCRF) -> dict[str, Any]:
    """Sizes, labels, and how the fit went."""
    classes = model.classes_
    listed = classes if isinstance(classes, dict) else {"": classes}
    facts: dict[str, Any] = {}
    for kind, own in listed.items():
        names = ", ".join(str(label) for label in own[:FEW].tolist())
        more = ", …" if len(own) > FEW else ""
        facts[f"labels {kind}".strip()] = f"{len(own)}: {names}{more}"
    for template, source in zip(model.reader_.templates, model.reader_.inputs, strict=True):
        if source is not None and source.n_columns:
            facts[f"columns of {template.name}"] = f"{source.n_columns:,}"
    nonzero = int(np.count_nonzero(model.weights_))
    facts["weights"] = f"{len(model.weights_):,}, of which {nonzero:,} are not zero"
    facts["inference"] = model.inference_.name
    report = getattr(model, "fit_report_", None)
    if report is not None:
        facts["solver"] = report.solver
        facts["fit"] = str(report)
    return facts


def learned_html(model: BaseCRF) -> str:
    """A folded summary of a fitted model."""
    rows = [
        (
            _html.text(template),
            _html.text(name),
            _html.text(" → ".join(map(str, labels)) if labels else "equal labels"),
            _html.signed(weight),
        )
        for template, name, labels, weight in top_weights(model)
    ]
    top = _html.table(["weights of", "column", "label", "weight"], rows, left=3)
    body = f"{_html.facts(learned_facts(model))}{_html.folded('Largest weights', top)}"
    return f'<div style="{_html.FONT}">{_html.folded("What was learned", body)}</div>'
