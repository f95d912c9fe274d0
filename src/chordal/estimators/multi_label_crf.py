"""MultiLabelCRF: multi-label classification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from chordal._optional import needed
from chordal._sparse import check_sparse
from chordal._validate import check_choice, check_sample_weight, is_sparse
from chordal.estimators._crf import BaseCRF, ValidationData
from chordal.estimators._still import unchanged_on_error
from chordal.estimators._training.checkpoint import Checkpoint
from chordal.estimators._training.preparing import is_stored, is_stream
from chordal.features import (
    Batch,
    Cliques,
    CliqueTemplate,
    DenseInput,
    Occurrences,
    Reader,
    Rows,
    SharedInput,
    SparseInput,
    itself,
    length_of,
)
from chordal.labels import SequenceLabels
from chordal.potentials import Floats
from chordal.solvers import Callback

if TYPE_CHECKING:
    from sklearn.utils import Tags

Ints = NDArray[np.int64]

STRUCTURES = ("independent", "tree", "full")


@final
@dataclass(eq=False, repr=False, kw_only=True)
class MultiLabelCRF(BaseCRF):
    """Multi-label classification: one binary variable per label.

    Every label has weights for all features and a constant term. An edge between two labels has a
    weight for each of the four combinations of absent and present, so the model learns which labels
    occur together. Without edges and with the likelihood, this is one logistic regression per
    label. The groups of weights are "nodes", "intercept" and, if there are edges, "edges".

    `score` is the share of correct decisions, 1 − the Hamming loss.

    Parameters
    ----------
    structure : {"tree", "independent", "full"} or list of pairs, default="tree"
        Which labels are joined by an edge. "tree": the spanning tree of maximal mutual information
        in the training data (Chow and Liu); inference is exact and fast. "full": all pairs, exact
        for up to about 20 labels. "independent": no edges. Or a list of pairs of labels, by name or
        number.
    l2 : float or dict, default=1.0
        Strength of the L2 penalty (l2/2)·‖w‖²; scikit-learn's C is 1 / l2. Constant terms are not
        penalised, unless l2 is a dict that names "intercept".
    fit_intercept : bool, default=True
        Whether each label has a constant term.

    Attributes
    ----------
    label_names_ : array [n_labels], the labels; their numbers if y was a matrix
    edges_ : int array [n_edges, 2], the labels that are joined, by their numbers
    coef_ : array [n_labels, n_features]
    intercept_ : array [n_labels]
    classes_ : array [0, 1], absent and present

    References
    ----------
    Ghamrawi and McCallum (2005), Collective multi-label classification; Chow and Liu (1968),
    Approximating discrete probability distributions with dependence trees.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [0.9, 0.2], [0.1, 1.0], [0.0, 0.9]])
    >>> y = [{"beach", "sea"}, {"beach", "sea"}, {"town"}, set()]
    >>> model = MultiLabelCRF(l2=0.1).fit(X, y)
    >>> model.label_names_, model.edges_.tolist()
    (array(['beach', 'sea', 'town'], dtype='<U5'), [[0, 1], [0, 2]])
    >>> model.predict([[0.8, 0.1]])
    array([[1, 1, 0]])
    >>> model.predict_proba([[0.8, 0.1]]).round(2)
    array([[0.89, 0.88, 0.05]])

    Known labels of an example help to predict the others:

    >>> model.predict_marginals([[0.5, 0.6]], allowed_labels=[[None, 1, None]])[0][0].round(2)
    array([0.11, 0.89])
    """

    structure: str | Sequence[Any] = "tree"
    fit_intercept: bool = True

    label_names_: NDArray[Any] = field(init=False)
    edges_: Ints = field(init=False)
    unpenalised: ClassVar[tuple[str, ...]] = ("intercept",)
    classifies: ClassVar[bool] = True

    def fit(
        self,
        X: object,
        y: object = None,
        sample_weight: object = None,
        *,
        validation_data: ValidationData | None = None,
        callback: Callback | None = None,
        checkpoint: str | PathLike[str] | Checkpoint | None = None,
    ) -> MultiLabelCRF:
        """Learn the weights.

        Parameters
        ----------
        X : array or SciPy sparse matrix [n_samples, n_features]
        y : matrix of 0 and 1 [n_samples, n_labels], or list of sets of labels
            With the likelihood, None in an object matrix marks an unobserved label.
        """
        self._check_parameters()
        stored = is_stored(X, y) or is_stream(X)
        options: dict[str, Any] = {"validation_data": validation_data, "callback": callback}
        with unchanged_on_error(self):
            if not stored and not self._goes_on():
                self._matrix(X, reset=True)
                self._learn_labels(y, sample_weight)
            return super().fit(X, y, sample_weight, **options, checkpoint=checkpoint)

    def partial_fit(
        self, X: object, y: object = None, sample_weight: object = None
    ) -> MultiLabelCRF:
        """Continue training on more data with the same labels and edges; see `BaseCRF`."""
        if not hasattr(self, "weights_"):
            return self.fit(X, y, sample_weight)
        return super().partial_fit(X, y, sample_weight)

    _glances: ClassVar[bool] = True

    def _glance(self, X: Any, y: Any, sample_weight: object) -> LabelTable:
        """The columns and labels of a part."""
        self._matrix(X, reset=True)
        names = getattr(self, "feature_names_in_", None)
        return self._label_table(y, sample_weight)._replace(
            n_features=self.n_features_in_, feature_names=names
        )

    def _know(self, glances: Sequence[LabelTable]) -> None:
        """Collect all labels, and check that all parts have the columns of the first."""
        if not glances:
            return
        self.n_features_in_ = glances[0].n_features
        if glances[0].feature_names is not None:
            self.feature_names_in_ = glances[0].feature_names
        for k, own in enumerate(glances):
            if own.sets != glances[0].sets:
                raise ValueError(
                    "y must be sets of labels in all partitions or matrices in all; partitions 0 "
                    "and "
                    f"{k} differ"
                )
            if not own.sets and len(own.names) != len(glances[0].names):
                raise ValueError(
                    f"y has {len(glances[0].names)} labels in partition 0 and {len(own.names)} in "
                    f"partition {k}"
                )
        self._take_labels(glances)

    def _learn_labels(self, y: object, sample_weight: object) -> None:
        """Names of the labels, and which are joined."""
        self._take_labels([self._label_table(y, sample_weight)])

    def _label_table(self, y: object, sample_weight: object) -> LabelTable:
        """The labels of some examples, and how often each two occur together."""
        sets = _are_sets(y)
        if sets:
            names = sorted({label for own in y for label in own})  # type: ignore[attr-defined]
            self.label_names_ = np.array(names)
        table = self._indicators(y, None if sets else -1)
        if not sets:
            names = list(range(table.shape[1]))
        weight = check_sample_weight(sample_weight, len(table))
        total = float(len(table)) if weight is None else float(weight.sum())
        return LabelTable(sets, names, pair_counts(table, weight), total)

    def _take_labels(self, tables: Sequence[LabelTable]) -> None:
        """Names and edges of the labels, from the tables of all parts."""
        names = sorted({name for own in tables for name in own.names})
        if not names:
            raise ValueError("y has no labels: every set is empty")
        counts = sum(own.counts_of(names) for own in tables)
        self.label_names_ = np.array(names)
        self.edges_ = self._edges(np.asarray(counts))

    def _edges(self, counts: Floats) -> Ints:
        """The labels that are joined, by their numbers."""
        k = len(self.label_names_)
        if isinstance(self.structure, str):
            pairs = list(combinations(range(k), 2)) if self.structure == "full" else []
            if self.structure == "tree":
                pairs = _spanning_tree(information(counts))
            return np.array(pairs, dtype=np.int64).reshape(-1, 2)
        number = {name: j for j, name in enumerate(self.label_names_.tolist())}
        found: set[tuple[int, int]] = set()
        for e, pair in enumerate(self.structure):
            ends = list(pair) if isinstance(pair, (list, tuple, np.ndarray)) else [pair]
            if len(ends) != 2 or not all(end in number for end in ends) or ends[0] == ends[1]:
                raise ValueError(
                    f"structure[{e}] must be a pair of different labels of "
                    f"{self.label_names_.tolist()[:20]}, got {pair!r}"
                )
            a, b = sorted(number[end] for end in ends)
            if (a, b) in found:
                raise ValueError(f"structure[{e}] repeats the edge {pair!r}; list it once")
            found.add((a, b))
        return np.array(sorted(found), dtype=np.int64).reshape(-1, 2)

    def _matrix(self, X: object, reset: bool = False) -> Any:
        with needed("sklearn", "MultiLabelCRF"):
            from sklearn.utils.validation import validate_data

        if is_sparse(X):
            check_sparse(X, "X")
        kinds = [np.float64, np.float32]
        return validate_data(self, X, accept_sparse="csr", dtype=kinds, reset=reset)

    def _examples(self, X: object, name: str = "X", known: bool = False) -> Any:
        if isinstance(X, (list, np.ndarray)) and len(X) == 0:
            return np.zeros((0, self.n_features_in_))
        return self._matrix(X)

    def _indicators(self, y: Any, n_labels: int | None = None) -> NDArray[Any]:
        """y as 0 and 1 [n_samples, n_labels]; an object matrix may also have None."""
        if _are_sets(y):
            number = {name: j for j, name in enumerate(self.label_names_.tolist())}
            table = np.zeros((len(y), len(number)), dtype=np.int64)
            for i, own in enumerate(y):
                for label in own:
                    if label not in number:
                        raise ValueError(
                            f"y[{i}] has the label {label!r}, which was not seen in training"
                        )
                    table[i, number[label]] = 1
            return table
        if is_sparse(y):
            check_sparse(y, "y")
        try:
            table = y.toarray() if is_sparse(y) else np.asarray(y)
        except ValueError:
            raise ValueError(
                "y must be a matrix of 0 and 1 or a list of sets of labels, got rows of several "
                "lengths"
            ) from None
        expected = len(self.label_names_) if n_labels is None else n_labels
        if table.ndim != 2 or table.shape[1] == 0 or expected not in (-1, table.shape[1]):
            shape = "n_labels" if expected == -1 else expected
            raise ValueError(
                f"y must be a matrix of 0 and 1 [n_samples, {shape}] or a list of sets of labels, "
                f"got shape {table.shape}"
            )
        wrong = [v for v in set(table.ravel().tolist()) if v is not None and v not in (0, 1)]
        if wrong:
            raise ValueError(f"y must hold 0 and 1, got {wrong[0]!r}")
        return table if table.dtype == object else table.astype(np.int64)

    def _flat(self, y: object, X: object, name: str = "y") -> Sequence[Any]:
        return list(self._indicators(y))

    def _check_lengths(self, sizes: Ints, flat: Sequence[Any], prefix: str = "") -> None:
        if len(sizes) != len(flat):
            raise ValueError(
                f"{prefix}X and y must have the same length, got {len(sizes)} and {len(flat)}"
            )

    def _new_labels(self) -> SequenceLabels:
        return SequenceLabels.of([np.array([0, 1])], ranked=True)

    def _begin_parts(self, X: object, y: object, sample_weight: object) -> None:
        self._matrix(X, reset=True)
        self._learn_labels(y, sample_weight)

    def _groups(self) -> Sequence[str]:
        linked = self.structure != "independent" if isinstance(self.structure, str) else True
        return ("nodes", "intercept", *["edges"] * linked)

    def _new_reader(self, X: Any, keep: bool = False) -> Reader:
        kind = SparseInput if is_sparse(X) else DenseInput
        return self._reader(SharedInput(kind(X.shape[1]), len(self.label_names_)))

    def _reader(self, source: SharedInput | None) -> Reader:
        """The reader; an indicator column identifies each label and each edge."""
        both: dict[str, Any] = {"features": itself, "fit_intercept": False}
        templates = [CliqueTemplate("nodes", tables="relative", **both)]
        inputs: list[Any] = [source]
        if self.fit_intercept:
            templates.append(CliqueTemplate("intercept", tables="relative", **both))
            inputs.append(SparseInput(len(self.label_names_)))
        if "edges" in self._groups():
            templates.append(CliqueTemplate("edges", itself, **both))
            inputs.append(SparseInput(len(self.edges_)))
        return MultiLabelReader(templates, inputs, self.edges_)

    read_by: ClassVar[tuple[str, ...]] = ("ignore_label", "structure")

    def _own_facts(self) -> dict[str, Any]:
        return {"label_names": self.label_names_.tolist(), "edges": self.edges_.tolist()}

    def _reader_from(self, facts: Mapping[str, Any]) -> Reader:
        names, edges = facts["label_names"], np.array(facts["edges"], dtype=np.int64)
        plain = isinstance(names, list) and all(isinstance(v, (str, int, float)) for v in names)
        if not plain or not names or len(set(names)) < len(names):
            raise ValueError("label_names must be a list of different labels")
        if facts["labels"]["labels"] != [0, 1]:
            raise ValueError("the labels must be 0 and 1")
        edges = edges.reshape(-1, 2)
        if len(edges) and not (edges.min() >= 0 and edges.max() < len(names)):
            raise ValueError(f"edges must join labels from 0 to {len(names) - 1}")
        if (edges[:, 0] >= edges[:, 1]).any():
            raise ValueError("edges must join a label with a later one")
        if len(np.unique(edges, axis=0)) < len(edges):
            raise ValueError("an edge occurs twice")
        self.label_names_, self.edges_ = np.array(names), edges
        return self._reader(None)

    def _check_reader(self, reader: Reader) -> None:
        sizes = [len(self.label_names_)] * bool(self.fit_intercept)
        sizes += [len(self.edges_)] * ("edges" in self._groups())
        source = reader.inputs[0]
        others = [own.n_columns if own is not None else -1 for own in reader.inputs[1:]]
        if not isinstance(source, SharedInput) or others != sizes:
            raise ValueError("the columns must be those of the labels and of their edges")
        if source.n_variables != len(self.label_names_):
            raise ValueError(f"there must be {len(self.label_names_)} variables")
        self.n_features_in_ = source.source.n_columns

    def _check_parameters(self) -> None:
        if isinstance(self.structure, str):
            check_choice("structure", self.structure, STRUCTURES)
        elif not hasattr(self.structure, "__len__"):
            raise TypeError(
                f"structure must be one of {', '.join(map(repr, STRUCTURES))} or a list of pairs "
                f"of labels, got {self.structure!r}"
            )
        super()._check_parameters()

    def _decoded(self, numbers: NDArray[np.int32], batch: Batch, X: object) -> Ints:
        return numbers.astype(np.int64).reshape(-1, len(self.label_names_))

    def predict_proba(self, X: object) -> Floats:
        """P(label | x), [n_samples, n_labels]: the marginal of each label."""
        self._check_fitted()
        found = self.predict_marginals(X)
        return np.array([own[:, 1] for own in found]).reshape(-1, len(self.label_names_))

    @property
    def coef_(self) -> Floats:
        """Weights [n_labels, n_features]."""
        table = self._table("nodes", "features")[:, 1]
        return np.ascontiguousarray(table.reshape(-1, len(self.label_names_)).T)

    @property
    def intercept_(self) -> Floats:
        """Constant terms [n_labels]; zeros without `fit_intercept`."""
        self._check_fitted()
        if not self.fit_intercept:
            return np.zeros(len(self.label_names_))
        return self._table("intercept", "features")[:, 1]

    @property
    def pair_coef_(self) -> Floats:
        """Weights of edges [n_edges, 2, 2]: first label absent or present, then the second."""
        self._check_fitted()
        if "edges" not in self._groups():
            return np.zeros((0, 2, 2))
        return self._table("edges", "features")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.two_d_labels = True
        tags.target_tags.single_output = False
        assert tags.classifier_tags is not None
        tags.classifier_tags.multi_class, tags.classifier_tags.multi_label = False, True
        return tags


class LabelTable(NamedTuple):
    """Names and pair counts of the labels of some examples."""

    sets: bool  # whether they were given as sets
    names: list[Any]
    counts: Floats  # [2, 2, n_names, n_names], of pairs of values
    total: float  # the weight of all examples
    n_features: int = 0
    feature_names: NDArray[Any] | None = None

    def counts_of(self, names: Sequence[Any]) -> Floats:
        """The pair counts of these labels; labels missing here count as absent."""
        if list(names) == self.names:
            return self.counts
        both, number = np.zeros((len(names), len(names))), {v: k for k, v in enumerate(names)}
        at = np.array([number[name] for name in self.names], dtype=np.int64)
        if len(at):
            both[np.ix_(at, at)] = self.counts[1, 1]
        alone = np.broadcast_to(np.diagonal(both)[:, None], both.shape)
        neither = self.total - alone - alone.T + both
        return np.array([[neither, alone.T - both], [alone - both, both]])


class MultiLabelReader(Reader):
    """Reads rows of a matrix as examples with a variable per label, joined by the same edges."""

    numbering: ClassVar[frozenset[str]] = frozenset({"intercept", "edges"})

    def __init__(
        self, templates: Sequence[CliqueTemplate], inputs: Sequence[Any], edges: Ints
    ) -> None:
        super().__init__(templates, inputs)
        self.edges = edges

    def read(self, X: Any, grow: bool) -> Batch:
        """An example for every row."""
        source = self.inputs[0]
        assert isinstance(source, SharedInput)
        dense = isinstance(source.source, DenseInput)
        if dense and is_sparse(X):
            X = X.toarray()
        elif not dense and not is_sparse(X):
            with needed("scipy", "a sparse matrix"):
                from scipy.sparse import csr_array

            X = csr_array(X)
        rows, n, k = source.read([X], grow=False), length_of(X), source.n_variables
        cliques = []
        for template in self.templates:
            if template.name == "edges":
                counts = np.full(n, len(self.edges), dtype=np.int64)
                scopes = np.tile(self.edges, (n, 1))
                cliques.append(
                    Cliques(scopes, counts, _numbered(counts), 2).recognised(rows.lengths)
                )
            else:
                own = rows if template.name == "nodes" else _numbered(rows.lengths)
                cliques.append(Cliques.of_pattern("each", 1, rows.lengths, own))
        return Batch(np.full(n, k, dtype=np.int64), cliques)


def _numbered(counts: Ints) -> Rows:
    """Rows with an indicator column for their place in the example."""
    total = int(counts.sum())
    ids = np.tile(np.arange(counts[0] if len(counts) else 0, dtype=np.int32), len(counts))
    return Rows(counts, Occurrences(np.arange(total + 1, dtype=np.int64), ids, None))


def _are_sets(y: object) -> bool:
    return (
        isinstance(y, (list, tuple))
        and len(y) > 0
        and all(isinstance(own, (set, frozenset)) for own in y)
    )


def mutual_information(y: NDArray[Any], weight: Floats | None = None) -> Floats:
    """The mutual information of every two columns of 0 and 1, in nats [k, k].

    None in object columns is skipped.

    >>> y = np.array([[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]])
    >>> mutual_information(y).round(3)[0]
    array([0.693, 0.693, 0.   ])
    """
    return information(pair_counts(y, weight))


def pair_counts(y: NDArray[Any], weight: Floats | None = None) -> Floats:
    """Joint counts [2, 2, k, k] of each two columns of 0 and 1; None is skipped."""
    shares = np.ones(len(y)) if weight is None else weight
    values = [np.equal(y, value).astype(np.float64) for value in (0, 1)]
    return np.array([[(a * shares[:, None]).T @ b for b in values] for a in values])


def information(counts: Floats) -> Floats:
    """The mutual information of every two columns, from the result of `pair_counts`."""
    joint = counts / np.maximum(counts.sum(axis=(0, 1)), 1e-300)
    independent = joint.sum(axis=1)[:, None] * joint.sum(axis=0)[None]
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(joint > 0.0, joint * np.log(joint / independent), 0.0)
    return np.asarray(terms.sum(axis=(0, 1)))


def _spanning_tree(value: Floats) -> list[tuple[int, int]]:
    """The edges of the maximum spanning tree, starting at node 0 (Prim)."""
    k, edges = len(value), []
    best, link = value[0].copy(), np.zeros(k, dtype=np.int64)
    outside = np.arange(k) > 0
    for _ in range(k - 1):
        new = int(np.argmax(np.where(outside, best, -np.inf)))
        edges.append((min(new, int(link[new])), max(new, int(link[new]))))
        outside[new] = False
        closer = value[new] > best
        best[closer], link[closer] = value[new][closer], new
    return sorted(edges)
