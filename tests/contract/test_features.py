"""Every kind of features: linear, with its adjoint, and the same for any number of threads."""

import numpy as np
import pytest
import scipy.sparse as sp

from chordal.estimators import chain_batch, chain_layout
from chordal.features import (
    AttributeInput,
    Batch,
    Cliques,
    DenseInput,
    Layout,
    RowFeatures,
    Rows,
    SparseInput,
    TableLayout,
    TemplateLayout,
    input_for,
)
from chordal.testing import check_features, check_shard_features

LENGTHS = [7, 1, 12, 0, 20]
NONE = np.zeros(0, dtype=np.int64)


def dense(rng, dtype=np.float64, n_columns=40):
    return [rng.normal(size=(n, n_columns)).astype(dtype) for n in LENGTHS]


def sparse(rng, ones=False):
    X = [sp.random(n, 30, density=0.2, format="csr", random_state=rng) for n in LENGTHS]
    return [abs(x).ceil() if ones else x for x in X]


def attributes(rng, values=False):
    # Frequent attributes go with every output and rare ones with few: wide rows and narrow pairs.
    def token():
        names = {f"a{int(k)}" for k in np.minimum(rng.geometric(0.12, 6), 60)}
        return {n: float(rng.normal()) for n in names} if values else sorted(names)

    return [[token() for _ in range(n)] for n in LENGTHS]


INPUTS = {
    "dense64": dense,
    "dense32": lambda rng: dense(rng, np.float32),
    "dense-narrow": lambda rng: dense(rng, n_columns=3),
    "sparse": sparse,
    "sparse-ones": lambda rng: sparse(rng, ones=True),
    "attributes": attributes,
    "attribute-values": lambda rng: attributes(rng, values=True),
}


def row_features(name, n_outputs, rng, **options):
    X = INPUTS[name](rng)
    source = input_for(next(x for x in X if len(x.shape if hasattr(x, "shape") else x)))
    rows = source.read(X, grow=True)
    outputs = rng.integers(0, n_outputs, rows.n_rows).astype(np.int32)
    return source.features(rows, outputs, n_outputs, **options), rows


@pytest.mark.parametrize("n_outputs", [1, 2, 3, 5, 8, 22, 40, 130])
@pytest.mark.parametrize("name", INPUTS)
def test_row_features(name, n_outputs):
    rng = np.random.default_rng(n_outputs)
    check_features(*row_features(name, n_outputs, rng), rng)


@pytest.mark.parametrize("name", INPUTS)
def test_relative_tables(name):
    """One function of two labels: the second has its scores, the first scores 0."""
    rng = np.random.default_rng(0)
    function, rows = row_features(name, 1, rng)
    layout = Layout(2, [TemplateLayout("x", TableLayout((2,), "relative"), function, NONE)])
    batch = Batch(rows.lengths, [Cliques("each", rows.lengths, rows, 1)])
    shard = layout.compile(batch, 0, len(LENGTHS))
    check_shard_features(layout, [shard], rng)
    weights, expected = rng.normal(size=layout.n_weights), np.empty(rows.n_rows)
    found = layout.potentials(shard, layout.expand(weights)).unary
    function.map(function.compile(rows, 0, rows.n_rows), function.expand(weights), expected)
    assert (found[1::2] == expected).all()
    assert (found[0::2] == 0.0).all()


@pytest.mark.parametrize("options", [{"pairs": "all"}, {"min_freq": 3}], ids=str)
@pytest.mark.parametrize("name", ["attributes", "attribute-values"])
def test_attribute_options(name, options):
    rng = np.random.default_rng(0)
    check_features(*row_features(name, 5, rng, **options), rng)


def test_no_weights_at_all():
    rng = np.random.default_rng(0)
    check_features(*row_features("attributes", 3, rng, min_freq=10_000), rng)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("edge", [None, "dense64", "sparse", "attributes"])
@pytest.mark.parametrize("node", ["dense32", "sparse", "attributes"])
def test_chain_features(node, edge, fit_intercept, ends):
    rng, n_labels = np.random.default_rng(0), 3
    features, shards = chain(node, edge, n_labels, rng, fit_intercept=fit_intercept, ends=ends)
    assert len(shards) > 1
    check_shard_features(features, shards, rng)


@pytest.mark.parametrize("edge", [None, "dense64", "sparse", "attributes"])
def test_shards_without_transitions(edge):
    rng = np.random.default_rng(0)
    features, shards = chain("attributes", edge, 3, rng, limits=[(1, 2), (3, 4), (1, 2)])
    assert all(shard.frame.structure.n_cliques == 0 for shard in shards)
    check_shard_features(features, shards, rng)


SHARDS = [(0, 2), (2, 4), (4, 5)]


def chain(node, edge, n_labels, rng, fit_intercept=True, ends=True, limits=SHARDS):
    node_features, rows = row_features(node, n_labels, rng)
    edge_features = edge_rows = None
    if edge is not None:
        edge_features, edge_rows = row_features(edge, n_labels**2, rng)
        edge_rows = without_last_positions(edge_rows)
    of_rows = {"node": node_features, "edge": edge_features}
    kept = {"transitions": np.array([0, 2, 3, 7, 8])}
    groups = ["intercept"] * fit_intercept + ["start", "end"] * ends
    kept |= dict.fromkeys(groups, np.arange(n_labels))
    layout = chain_layout(n_labels, {k: v for k, v in of_rows.items() if v is not None}, kept)
    batch = chain_batch(rows, edge_rows)
    return layout, [layout.compile(batch, a, b) for a, b in limits]


def without_last_positions(rows):
    """The rows of edges: one fewer than positions in every sequence."""
    keep = np.concatenate([np.arange(n) < n - 1 for n in rows.lengths]).astype(bool)
    lengths = np.maximum(rows.lengths - 1, 0)
    if isinstance(rows.data, np.ndarray):
        return Rows(lengths, rows.data[keep])
    data = rows.data
    counts = np.diff(data.offsets)
    entries = np.repeat(keep, counts)
    return Rows(
        lengths,
        type(data)(
            np.concatenate([[0], np.cumsum(counts[keep])]),
            data.ids[entries],
            None if data.values is None else data.values[entries],
        ),
    )


def template(name, order, kind, rows, rng, fit_intercept=True, n_labels=3, whole=False):
    """A template of random cliques, and its weights."""
    sizes, counts = np.array(LENGTHS), np.array(LENGTHS)  # as many cliques as there are rows
    scopes = [
        np.arange(n)[:, None]
        if whole
        else np.array([rng.permutation(max(n, 4))[:order] for _ in range(n)])
        for n in counts
    ]
    tables = TableLayout((n_labels,) * order, kind)
    features = data = None
    if rows is not None:
        features, data = row_features(rows, tables.n_outputs, rng)
    flat = np.concatenate([s.reshape(-1, order) for s in scopes]).astype(np.int64)
    layout = TemplateLayout(
        name, tables, features, np.arange(tables.n_outputs) if fit_intercept else NONE
    )
    return layout, Cliques("each" if whole else flat, counts, data, order), np.maximum(sizes, 4)


def cliques(*templates, limits=SHARDS):
    """Features of these templates, and shards of a batch; every example has four variables."""
    sizes = templates[0][2]
    if any(t[1].pattern for t in templates):
        sizes = np.array(LENGTHS)
    features = Layout(3, [t[0] for t in templates])
    batch = Batch(sizes, [t[1] for t in templates])
    return features, [features.compile(batch, a, b) for a, b in limits]


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("rows", ["dense32", "sparse", "attributes"])
@pytest.mark.parametrize("kind", ["full", "symmetric", "antisymmetric", "potts"])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_clique_features(order, kind, rows, fit_intercept):
    rng = np.random.default_rng(0)
    if order != 2 and kind == "antisymmetric":
        with pytest.raises(ValueError, match="needs cliques of two variables"):
            template("observed", order, kind, rows, rng, fit_intercept)
        return
    if order == 1 and kind == "potts":
        with pytest.raises(ValueError, match="compares labels"):
            template("observed", order, kind, rows, rng, fit_intercept)
        return
    observed = template("observed", order, kind, rows, rng, fit_intercept)
    tied = template("tied", 2, kind, None, rng)
    some = template("some", 1, "full", "attributes", rng, fit_intercept)
    check_shard_features(*cliques(some, observed, tied), rng)


@pytest.mark.parametrize("rows", ["dense64", "attributes"])
def test_cliques_of_single_variables(rows):
    """One row for every variable, and no clique of more than one."""
    rng = np.random.default_rng(0)
    every = template("every", 1, "full", rows, rng, whole=True)
    again = template("again", 1, "full", None, rng, whole=True)
    for chosen in ([every], [every, again], [again, every], [again]):
        features, shards = cliques(*chosen)
        assert all(shard.frame.structure.n_cliques == 0 for shard in shards)
        check_shard_features(features, shards, rng)


def test_cliques_are_scored_where_they_are():
    """Beside a loop over cliques: each template's table, at the clique's own labels."""
    rng = np.random.default_rng(0)
    chosen = [
        template("unary", 1, "full", "dense-narrow", rng),
        template("pairs", 2, "symmetric", "dense-narrow", rng, fit_intercept=False),
        template("equal", 3, "potts", None, rng),
    ]
    features, (shard,) = cliques(*chosen, limits=[(0, 5)])
    weights = rng.normal(size=features.n_weights)
    potentials = features.potentials(shard, features.expand(weights))
    sizes = chosen[0][2]
    labels = rng.integers(0, 3, sizes.sum())
    first, expected = np.cumsum(sizes) - sizes, np.zeros(len(sizes))
    for layout, found, _ in chosen:
        own = weights[features.slices[layout.name]]
        split = layout.n_row_weights
        example = np.repeat(np.arange(len(sizes)), found.counts)
        for k, (e, scope) in enumerate(zip(example, found.scopes, strict=True)):
            y = labels[first[e] + scope]
            cell = np.ravel_multi_index(tuple(y), (3,) * layout.order)
            output = layout.tables.output_of_cell[cell]
            if output < 0:
                assert len(set(y)) > 1
                continue
            if layout.rows is not None:
                table = own[:split].reshape(-1, layout.tables.n_outputs)
                expected[e] += found.rows.data[k] @ table[:, output]
            if len(layout.kept):
                expected[e] += own[split + output]
    np.testing.assert_allclose(potentials.score(labels), expected, rtol=1e-10, atol=1e-10)


def test_a_subgraph_keeps_the_cliques_inside_it():
    rng = np.random.default_rng(0)
    chosen = [template("unary", 1, "full", "dense64", rng), template("p", 2, "full", "sparse", rng)]
    batch = Batch(chosen[0][2], [t[1] for t in chosen])
    mask = rng.random(batch.sizes.sum()) < 0.6
    part = batch.kept(mask)
    assert part.sizes.sum() == mask.sum()
    features = Layout(3, [t[0] for t in chosen])
    expanded = features.expand(rng.normal(size=features.n_weights))
    score = []
    labels = rng.integers(0, 3, mask.sum())
    for b in (batch, part):
        potentials = features.potentials(features.compile(b, 0, 5), expanded)
        if b is part:
            score.append(potentials.score(labels))
            continue
        # Zero what is left out: its labels then do not matter.
        s, keep = potentials.structure, mask.copy()
        unary = potentials.unary.reshape(-1, 3) * keep[:, None]
        inside = keep[s.scopes.reshape(-1, 2)].all(axis=1)
        tables = potentials.untied().tables.reshape(-1, 9) * inside[:, None]
        # A template of order 1 may name a variable: it is zero with the variable.
        whole = np.zeros(len(mask), dtype=int)
        whole[mask] = labels
        untied = potentials.untied().like(unary.ravel(), tables.ravel())
        score.append(untied.score(whole))
    np.testing.assert_allclose(score[0], score[1], rtol=1e-10, atol=1e-10)


class Wrapper(RowFeatures):
    """Dense features, with one claim broken in each subclass."""

    def __init__(self, inner):
        self.inner, self.n_outputs, self.n_weights = inner, inner.n_outputs, inner.n_weights

    def compile(self, rows, first, last):
        return self.inner.compile(rows, first, last)

    def expand(self, weights):
        return self.inner.expand(weights)

    def map(self, rows, expanded, out):
        self.inner.map(rows, expanded, out)

    def zeros(self):
        return self.inner.zeros()

    def n_blocks(self, n_jobs):
        return self.inner.n_blocks(n_jobs)

    def adjoint(self, rows, parts, sums, block, n_jobs):
        self.inner.adjoint(rows, parts, sums, block, n_jobs)

    def collect(self, sums, out):
        self.inner.collect(sums, out)

    def keys(self):
        return self.inner.keys()


class NotLinear(Wrapper):
    def map(self, rows, expanded, out):
        self.inner.map(rows, expanded, out)
        out += 1e-3


class AddsToOut(Wrapper):
    def map(self, rows, expanded, out):
        before = out.copy()
        self.inner.map(rows, expanded, out)
        out += before


class NoAdjoint(Wrapper):
    def adjoint(self, rows, parts, sums, block, n_jobs):
        self.inner.adjoint(rows, parts * (1 + 1e-6), sums, block, n_jobs)


class DependsOnThreads(Wrapper):
    def adjoint(self, rows, parts, sums, block, n_jobs):
        self.inner.adjoint(rows, parts * (1 + 1e-15 * n_jobs), sums, block, n_jobs)


class WrongKeys(Wrapper):
    def keys(self):
        keys = self.inner.keys()
        return type(keys)(keys.column, keys.output[::-1].copy())


BROKEN = [
    (NotLinear, "not linear"),
    (AddsToOut, "not finite, or not set"),
    (NoAdjoint, "is not ⟨map"),
    (DependsOnThreads, "depends on n_jobs"),
    (WrongKeys, "move the scores of others"),
]


@pytest.mark.parametrize(("broken", "message"), BROKEN)
def test_a_broken_claim_is_caught(broken, message):
    rng = np.random.default_rng(0)
    features, rows = row_features("dense64", 3, rng)
    check_features(Wrapper(features), rows, rng)
    with pytest.raises(AssertionError, match=message):
        check_features(broken(features), rows, rng)


@pytest.mark.parametrize("tied", ["intercept", "transitions", "start"])
def test_a_gradient_that_leaves_out_a_tied_part_is_caught(tied):
    rng = np.random.default_rng(0)
    features, shards = chain("attributes", None, 3, rng)
    collect = features.collect

    def forgetful(sums):
        return collect(
            [
                (rows, np.zeros_like(outputs) if own.name == tied else outputs)
                for own, (rows, outputs) in zip(features.templates, sums, strict=True)
            ]
        )

    features.collect = forgetful
    with pytest.raises(AssertionError, match="is not ⟨potentials"):
        check_shard_features(features, shards, rng)


def test_inputs_are_recognised():
    assert isinstance(input_for(np.zeros((2, 3))), DenseInput)
    assert isinstance(input_for(sp.eye(3, format="csc")), SparseInput)
    assert isinstance(input_for([["a"], ["b"]]), AttributeInput)
    with pytest.raises(ValueError, match="got 1 dimensions"):
        input_for(np.zeros(3))
