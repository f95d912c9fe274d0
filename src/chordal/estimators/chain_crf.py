"""ChainCRF: label sequences with a linear-chain conditional random field."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal._errors import UnsupportedError
from chordal._optional import needed
from chordal._validate import check_choice, check_function, check_sequences
from chordal.estimators._asking import Part, ask
from chordal.estimators._constraints import segment_spans
from chordal.estimators._crf import BaseCRF
from chordal.estimators._still import of_one_moment, still
from chordal.features import (
    AttributeFeatures,
    AttributeInput,
    Batch,
    Beside,
    Cliques,
    CliqueTemplate,
    DenseInput,
    Input,
    Layout,
    Occurrences,
    Reader,
    RowFeatures,
    Rows,
    SparseInput,
    TableLayout,
    TemplateInput,
    TemplateLayout,
    VocabularyInput,
    WeightKeys,
    input_for,
    itself,
    length_of,
)
from chordal.features.clique_template import PATTERNS
from chordal.inference import INFERENCE
from chordal.labels import SequenceLabels
from chordal.potentials import Floats
from chordal.structures import offsets_of
from chordal.text import Columns, FeatureTemplate, Items

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from chordal.estimators._training.stored_rows import StoredRows

Ints = NDArray[np.int64]

#: The templates of a chain with their cliques, in the order of the weight vector.
CHAIN = {
    "node": "each",
    "edge": "steps",
    "transitions": "steps",
    "intercept": "each",
    "start": "first",
    "end": "last",
    "vectors": "each",
}
GROUPS = tuple(CHAIN)

#: Which transitions have a weight, in the words of a template.
_TRANSITIONS: dict[str, bool | str] = {"seen": "seen", "all": True, "none": False}


class Compiled(NamedTuple):
    """Compiled weights for one sequence at a time, with the reader and labels of the same fit."""

    weights: Floats
    chain: _kernels.QuickChain | None
    source: Input | None
    labels: SequenceLabels


@final
@dataclass(eq=False, repr=False, kw_only=True)
class ChainCRF(BaseCRF):
    """Linear-chain conditional random field.

    Minimises Σ −log p(y|x) + l1·‖w‖₁ + (l2/2)·‖w‖². By default there are weights of node features
    (observations × labels) and of transitions (label pairs). `l2` and `freeze` name groups of
    weights: "node", "edge" (of `transition_features`), "transitions", "intercept", "start", "end"
    and "vectors".

    A sequence is a list of tokens, an array or a sparse matrix. A token is a dict or a list of
    strings. A dict may hold 1-d arrays, such as embeddings: ``{"word": "Paris", "vec": array}``.
    Each number of such an array has a weight per label; `template_weights("vectors")` returns them.
    Arrays under one name have the same length; a token without the array counts as zeros.

    Parameters
    ----------
    transitions : {"seen", "all", "none"}, default="seen"
        Which label pairs have a weight. Unseen pairs remain possible, with score 0.
    feature_template : str or FeatureTemplate, optional
        Feature templates of CRF++ or Wapiti. X then holds columns of text: each token is a list of
        strings, or a sequence is a `Columns`. Without a "B" line there are no transitions.
    transition_features : callable, optional
        Maps one sequence of length T to observations of its T − 1 transitions: an array [T − 1, d],
        a sparse matrix, or a list of attributes. Each observation has a weight per label pair.
    fit_intercept : bool, default=False
        Whether each label has a weight at every position. CRFsuite does not have it.
    ends : bool, default=False
        Whether each label has a weight for the first and for the last position. CRFsuite does not
        have it; a constant attribute there serves the same purpose.

    Attributes
    ----------
    transitions_ : array [n_classes, n_classes], weights from row to column
    coef_ : array or sparse matrix [n_classes, n_features]
    start_, end_, intercept_, transition_coef_ : arrays of the optional weights

    Examples
    --------
    >>> X = [[["w=the"], ["w=cat"], ["w=sleeps"]], [["w=a"], ["w=dog"]]]
    >>> y = [["D", "N", "V"], ["D", "N"]]
    >>> crf = ChainCRF(l2=0.1).fit(X, y)
    >>> crf.predict([[["w=a"], ["w=cat"], ["w=sleeps"]]])
    [['D', 'N', 'V']]
    """

    pairs: str = "seen"
    transitions: str = "seen"
    feature_template: str | FeatureTemplate | None = None
    transition_features: Callable[[Any], Any] | None = None
    fit_intercept: bool = False
    ends: bool = False
    min_freq: int = 0
    ignore_label: object = None

    functions: ClassVar[tuple[str, ...]] = ("transition_features",)
    #: The latest weights that `quick` has compiled, and the result.
    _quick: Compiled | None = field(default=None, init=False)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("transitions", self.transitions, _TRANSITIONS)
        template = self.columns_template()
        if template is not None and not isinstance(template, FeatureTemplate):
            raise TypeError(
                f"feature_template must be a str or a FeatureTemplate, got {template!r}"
            )
        if template is not None and self.transition_features is not None:
            raise ValueError(
                "give feature_template or transition_features, not both: the B lines of a template "
                "already observe transitions"
            )
        check_function("transition_features", self.transition_features, "one sequence")

    def columns_template(self) -> FeatureTemplate | None:
        """The parameter `feature_template` as a `FeatureTemplate`."""
        given = self.feature_template
        return FeatureTemplate(given) if isinstance(given, str) else given

    def _groups(self) -> Sequence[str]:
        return GROUPS

    def _examples(self, X: object, name: str = "X", known: bool = False) -> Any:
        """The user's X as a list of sequences or as blocks of text."""
        if self.feature_template is None:
            return X if isinstance(X, Items) else check_sequences(X, name, empty=True)
        return Columns.of(X, name)

    def _new_reader(self, X: Sequence[Any], keep: bool = False) -> Reader:
        """The reader with all seven templates; some may have no weights."""
        columns = self.columns_template()
        observed: Callable[[Any], Any] | None = None
        inputs: list[Input | None] = [None] * len(GROUPS)
        choice = self.transitions
        if columns is not None:
            choice = choice if columns.transitions else "none"
            inputs[0] = TemplateInput(columns, "unigrams")
            if len(columns.bigrams):
                observed, inputs[1] = itself, TemplateInput(columns, "bigrams")
        elif self.transition_features is not None:
            observed = _OfTransitions(self.transition_features)
        features = {"node": itself, "edge": observed, "vectors": Beside("node")}
        intercepts: dict[str, bool | str] = {
            "transitions": _TRANSITIONS[choice],
            "intercept": bool(self.fit_intercept),
            "start": bool(self.ends),
            "end": bool(self.ends),
        }
        templates = [
            CliqueTemplate(
                name, cliques, features.get(name), fit_intercept=intercepts.get(name, False)
            )
            for name, cliques in CHAIN.items()
        ]
        if columns is not None or keep:
            return Reader(templates, inputs)
        if isinstance(X, Items):
            return Reader(templates, [input_for([]), *inputs[1:]])
        return Reader.like(templates, X)

    def _check_reader(self, reader: Reader) -> None:
        node, edge = reader.inputs[:2]
        columns = self.columns_template()
        for source, part in ((node, "unigrams"), (edge, "bigrams")):
            read = isinstance(source, TemplateInput) and (source.template, source.part)
            if source is not None and read != (columns is not None and (columns, part)):
                raise ValueError("feature_template does not match the stored reader of rows")

    def _restored(self, stored: StoredRows) -> list[Any]:
        return stored.observed("node", "vectors")

    def quick(self) -> _kernels.QuickChain | None:
        """A compiled form of the model that labels one sequence of named attributes at a time.

        It takes microseconds per sequence: ``crf.quick().best(x)`` equals ``crf.predict([x])[0]``,
        and ``crf.quick().sequence(x)`` has scores, log Z and marginals. Returns None for models
        that read arrays or columns, have `transition_features`, or use another inference method
        than "chain". Arrays inside dicts count as arrays.

        Examples
        --------
        >>> crf = ChainCRF(l2=0.1).fit([[["w=a"], ["w=b"]]], [["A", "B"]])
        >>> crf.quick().best([["w=b"], ["w=a"]])
        ['B', 'A']
        """
        self._check_fitted()
        compiled = self._compiled()
        return compiled.chain if isinstance(compiled.source, AttributeInput) else None

    def _compiled(self) -> Compiled:
        """The compiled form of the current weights, cached."""
        found = self._quick
        if found is None or found.weights is not self.weights_:
            own = still(self)
            chain, source = own._new_quick(), own.reader_.inputs[0]
            self._quick = found = Compiled(own.weights_, chain, source, own.labels_)
        return found

    def _new_quick(self) -> _kernels.QuickChain | None:
        layout, source = self.layout_, self.reader_.inputs[0]
        rows = layout["node"].rows
        if not isinstance(source, VocabularyInput) or not isinstance(rows, AttributeFeatures):
            return None
        if layout["edge"].rows is not None or layout["vectors"].rows is not None:
            return None
        if self.inference not in ("auto", "chain"):
            return None
        if np.isnan(self.weights_.min(initial=0.0)):
            return None  # as a batch, they are an error
        expanded = dict(zip(layout.slices, layout.expanded(self.weights_), strict=True))
        wide, narrow = expanded["node"][0]
        shared = [expanded[name][1] for name in ("intercept", "start", "end")]
        none, given = np.zeros(layout.n_labels), any(own is not None for own in shared)
        return _kernels.QuickChain(
            source.vocabulary,
            rows.kernel_layout,
            list(self.labels_.labels),
            wide=wide,
            narrow=np.ascontiguousarray(narrow),
            table=np.ascontiguousarray(expanded["transitions"][1]),
            shared=np.concatenate([none if s is None else s for s in shared]) if given else None,
        )

    def _best_of_one(self, X: object) -> list[Any] | None:
        found = self._one(X)
        return found[0].best() if found is not None and found[1].as_list else None

    def _marginals_of_one(self, X: object) -> Floats | None:
        found = self._one(X)
        if found is None or found[0].log_partition() == -np.inf:
            return None  # where nothing is allowed, the batch explains the error
        return np.take(found[0].marginals(), found[1].order, axis=1)

    def _one(self, X: object) -> tuple[_kernels.QuickSequence, SequenceLabels] | None:
        """X in compiled form and the labels, if X is one sequence that it can read."""
        if not isinstance(X, (list, tuple, Columns)) or len(X) != 1:
            return None
        self._check_fitted()
        _, compiled, source, labels = self._compiled()
        if compiled is None or source is None:
            return None
        if isinstance(source, AttributeInput):
            x = None if isinstance(X, Columns) else X[0]
            return (compiled.sequence(x), labels) if isinstance(x, (list, tuple)) else None
        rows = source.read(self._examples(X), grow=False).data
        return compiled.rows(rows.offsets, rows.ids, rows.values), labels

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_quick": None}

    @of_one_moment
    def span_probabilities(
        self, X: object, spans: Sequence[Sequence[tuple[int, int, Any]]]
    ) -> list[Floats]:
        """The probability that each span is exactly this entity.

        Parameters
        ----------
        spans : for each sequence, a list of (start, end, label)
            `end` is exclusive. With BIO or IOBES tags the label is the type ("PER"). With plain
            labels the span must be a maximal run of this label.
        """
        self._check_fitted()
        examples = self._examples(X)
        n = len(examples)
        lists = isinstance(spans, Sequence) and all(isinstance(own, Sequence) for own in spans)
        if not lists or isinstance(spans, str) or len(spans) != n:
            got = len(spans) if lists else type(spans).__name__
            raise ValueError(f"spans must have one list per sequence ({n}), got {got}")

        def answer(part: Part) -> Floats:
            lengths = np.diff(part.potentials.structure.variable_offsets)
            of_part = spans[part.examples]
            query = segment_spans(self.labels_, of_part, lengths, part.examples.start)
            return np.exp(part.inference.span_log_probability(part.potentials, query))

        _, _, found = ask(self, examples, "span_log_probability", answer)
        flat = np.concatenate([np.zeros(0), *found])
        return np.split(flat, offsets_of([len(s) for s in spans])[1:-1]) if len(spans) else []

    @property
    def transitions_(self) -> Floats:
        """Weights of transitions, from row to column, in the order of `classes_`."""
        return self._table("transitions")

    @property
    def coef_(self) -> Floats | csr_array:
        """Weights of node features [n_classes, n_features]; sparse for named attributes."""
        self._check_fitted()
        number, source = np.argsort(self.labels_.order), self.input_
        keys, weights = self.node_weights()
        shape = (self.layout_.n_labels, source.n_columns)
        if isinstance(source, (DenseInput, SparseInput)):
            dense = np.zeros(shape)
            dense[number[keys.output], keys.column] = weights
            return dense
        with needed("scipy", "coef_ of named attributes"):
            from scipy.sparse import csr_array

        return csr_array((weights, (number[keys.output], keys.column)), shape=shape)

    @property
    def transition_coef_(self) -> Floats:
        """Weights of `transition_features` [n_classes, n_classes, n_features], (from, to, …)."""
        return np.moveaxis(self._table("edge", "features"), 0, -1)

    @property
    def start_(self) -> Floats:
        """Weights of labels at the first position; zeros without `ends`."""
        return self._table("start")

    @property
    def end_(self) -> Floats:
        """Weights of labels at the last position; zeros without `ends`."""
        return self._table("end")

    @property
    def intercept_(self) -> Floats:
        """Weights of labels at every position; zeros without `fit_intercept`."""
        return self._table("intercept")

    @property
    def input_(self) -> Input:
        """The input that reads rows of positions; it knows the names of their columns."""
        source = self.reader_.inputs[0]
        assert source is not None
        return source

    def node_weights(self) -> tuple[WeightKeys, Floats]:
        """Column, label number and value of every node weight."""
        rows = self.layout_["node"].rows
        assert rows is not None
        return rows.keys(), self.weights_[self.layout_.slices["node"]]

    def top_features(self, n: int = 10, label: object = None) -> list[tuple[str, Any, float]]:
        """The n node weights of largest magnitude: (feature, label, weight).

        With `label`, they are sorted from the strongest evidence for it to the strongest against
        it. Number k of the array "vec" is named "vec:k".
        """
        self._check_fitted()
        (keys, weights), labels = self.node_weights(), self.labels_
        column, output, names = keys.column, keys.output, self.input_.name
        beside, of_vectors = self.reader_.input("vectors"), self.layout_["vectors"].rows
        n_attributes = self.input_.n_columns
        if beside is not None and of_vectors is not None:
            more = of_vectors.keys()
            column = np.concatenate([column, n_attributes + more.column])
            output = np.concatenate([output, more.output])
            weights = np.concatenate([weights, self.weights_[self.layout_.slices["vectors"]]])
        if label is None:
            chosen = np.argsort(-np.abs(weights), kind="stable")[:n]
        else:
            mine = np.flatnonzero(output == labels.number(label))
            chosen = mine[np.argsort(-weights[mine], kind="stable")][:n]

        def name(k: int) -> str:
            if beside is None or k < n_attributes:
                return names(k)
            return beside.name(k - n_attributes)

        return [(name(int(column[k])), labels.labels[output[k]], float(weights[k])) for k in chosen]

    def top_transitions(self, n: int = 10) -> list[tuple[Any, Any, float]]:
        """The n transitions of largest magnitude: (from, to, weight)."""
        table, names = self.transitions_, self.classes_.tolist()
        chosen = np.argsort(-np.abs(table).ravel(), kind="stable")[:n]
        rows, columns = np.divmod(chosen, len(table))
        return [
            (names[i], names[j], float(table[i, j])) for i, j in zip(rows, columns, strict=True)
        ]


@dataclass(frozen=True)
class _OfTransitions:
    """The user's transition function; not called for sequences of one position."""

    function: Callable[[Any], Any]
    called = "transition_features"

    def __call__(self, x: Sized) -> object:
        return self.function(x) if length_of(x) > 1 else []


def fitted_chain(
    model: ChainCRF,
    labels: SequenceLabels,
    inputs: Mapping[str, Input],
    rows: Mapping[str, tuple[RowFeatures, Floats]],
    intercepts: Mapping[str, tuple[Ints, Floats]],
) -> ChainCRF:
    """A fitted model from its parts, by template: rows with weights, and kept outputs with weights.
    Templates that are not named have no weights.
    """
    model._check_parameters()
    layout = chain_layout(
        len(labels),
        {name: features for name, (features, _) in rows.items()},
        {name: kept for name, (kept, _) in intercepts.items()},
    )
    weights = [part[name][1] for name in GROUPS for part in (rows, intercepts) if name in part]
    reader = model._new_reader([], keep=True)
    reader.inputs = [inputs.get(name) for name in GROUPS]
    model.reader_, model.labels_, model.classes_ = reader, labels, labels.classes
    model.layout_, model.weights_ = layout, np.concatenate(weights)
    chosen = "chain" if model.inference == "auto" else model.inference
    model.inference_ = INFERENCE.resolve(chosen)
    model.objective_, model.n_iter_ = float("nan"), 0  # what was minimised is not known
    return model


def chain_layout(
    n_labels: int, rows: Mapping[str, RowFeatures | None], kept: Mapping[str, Ints]
) -> Layout:
    """The layout of a chain: rows, and outputs with an intercept, by template."""
    tables = {
        k: TableLayout((n_labels,) * PATTERNS[cliques], "full") for k, cliques in CHAIN.items()
    }
    none = np.zeros(0, dtype=np.int64)
    parts = [TemplateLayout(k, tables[k], rows.get(k), kept.get(k, none)) for k in CHAIN]
    return Layout(n_labels, parts)


def chain_batch(node: Rows, edge: Rows | None = None) -> Batch:
    """A batch of chains with these rows of positions and, optionally, of transitions."""
    rows, sizes = {"node": node, "edge": edge}, node.lengths
    patterns = ((cliques, PATTERNS[cliques], rows.get(name)) for name, cliques in CHAIN.items())
    return Batch(sizes, [Cliques.of_pattern(k, order, sizes, own) for k, order, own in patterns])


def chain_crf(
    labels: SequenceLabels,
    source: Input,
    coef: Floats,
    intercept: Floats | None = None,
    transitions: Floats | None = None,
    start: Floats | None = None,
    end: Floats | None = None,
    **parameters: Any,
) -> ChainCRF:
    """A fitted `ChainCRF` with these weights, all in the order of the classes.

    Parameters
    ----------
    labels : SequenceLabels
    source : DenseInput or SparseInput
    coef : array [n_classes, n_columns]
    intercept, start, end : arrays [n_classes], optional
        If only `start` is given, the end weights are zero.
    transitions : array [n_classes, n_classes], optional
        Weights from row to column; by default labels are not linked.
    **parameters
        Parameters of `ChainCRF`. Those that say which weights exist cannot be set.
    """
    n, order = len(labels), np.argsort(labels.order)  # the class of every label number
    fixed: dict[str, Any] = {
        "pairs": "all",
        "transitions": "none" if transitions is None else "all",
        "fit_intercept": intercept is not None,
        "ends": start is not None,
    }
    given = sorted(parameters.keys() & fixed.keys())
    if given:
        raise UnsupportedError(f"{given[0]} is determined by the weights: do not pass it")
    model = ChainCRF(**fixed, **{"warm_start": True, **parameters})
    empty = Occurrences(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32), None)
    no_rows = Rows(np.zeros(0, dtype=np.int64), empty)
    node = source.features(no_rows, np.zeros(0, dtype=np.int32), n, "all")
    keys = node.keys()
    if start is not None and end is None:
        end = np.zeros(n)
    per_label = {"intercept": intercept, "start": start, "end": end}
    kept = {name: (np.arange(n), w[order]) for name, w in per_label.items() if w is not None}
    if transitions is not None:
        kept["transitions"] = (np.arange(n * n), transitions[np.ix_(order, order)].ravel())
    rows = {"node": (node, coef[order][keys.output, keys.column])}
    return fitted_chain(model, labels.copy(), {"node": source}, rows, kept)
