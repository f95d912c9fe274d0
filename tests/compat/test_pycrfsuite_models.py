"""chordal.compat.pycrfsuite: what is learned is what python-crfsuite learns."""

import numpy as np
import pycrfsuite as theirs
import pytest

from chordal.compat import pycrfsuite as ours

from .crfsuite_pair import LABELS, WEATHER, opened, train, weights

NESTED = [
    (
        [
            {"foo": {"bar": "baz", "spam": 0.5, "egg": ["x", "y"], "ham": {"x": -0.5, "y": -0.1}}},
            {"foo": {"bar": "ham", "spam": -0.5, "ham": {"x", "y"}}, "zero": {"in": 0}},
        ],
        ["first", "second"],
    ),
    ([{"zero": {"in": 1.0}}, ["foo:egg:x", "foo:egg:x"]], ["first", "third"]),
]
ZEROS = [([{"a": 0, "b": 1}, {"a": 1}, {"c": False}], ["x", "y", "z"])]
PARAMETERS = [
    {},
    {"c1": 0.05, "c2": 0.05},
    {"c2": 0.01, "feature.possible_states": True},
    {"feature.possible_transitions": True},
    {"feature.minfreq": 1.0, "feature.possible_states": True, "feature.possible_transitions": True},
    {"feature.minfreq": 0.5},
    {"feature.minfreq": 2},
]


@pytest.mark.parametrize("params", PARAMETERS, ids=str)
@pytest.mark.parametrize("instances", [[(WEATHER, LABELS)], NESTED, ZEROS])
def test_features_and_weights(tmp_path, instances, params):
    params = {**params, "epsilon": 1e-7, "delta": 0.0, "max_iterations": 1000}
    mine, real = [train(m, tmp_path / m.__name__, instances, **params) for m in (ours, theirs)]
    assert mine.logparser.featgen_num_features == real.logparser.featgen_num_features
    info = opened(theirs, tmp_path / ours.__name__).info()  # their tagger reads our file
    expected = opened(theirs, tmp_path / theirs.__name__).info()
    assert list(info.labels) == list(expected.labels)
    a, b = weights(info), weights(expected)
    for key in a.keys() | b.keys():
        assert a.get(key, 0.0) == pytest.approx(b.get(key, 0.0), abs=2e-4), key
    if not params.get("c1"):
        assert list(a) == list(b)
        assert list(info.attributes) == list(expected.attributes)


def test_random_sentences(sentences, tmp_path):
    X, y = sentences
    X = [[[name or "empty" for name in item] for item in x] for x in X]  # theirs cannot list ""
    instances = list(zip(X, y, strict=True))
    params = {"feature.possible_transitions": True, "epsilon": 1e-7, "delta": 0.0}
    for module in (ours, theirs):
        train(module, tmp_path / module.__name__, instances, **params)
    mine, real = opened(ours, tmp_path / ours.__name__), opened(theirs, tmp_path / theirs.__name__)
    a, b = weights(mine.info()), weights(real.info())
    assert list(a) == list(b)
    np.testing.assert_allclose(list(a.values()), list(b.values()), rtol=0, atol=1e-4)
    assert [mine.tag(x) for x, _ in instances] == [real.tag(x) for x, _ in instances]


@pytest.mark.parametrize("algorithm", ["l2sgd", "ap", "pa", "arow"])
def test_online_algorithms(sentences, tmp_path, algorithm):
    """Their results depend on the order of instances, which differs: not equal, but alike."""
    X, y = sentences
    y = [[f"{item[0]}"[-1] for item in x] for x in X]  # a digit that can be learned
    instances = [*zip(X, y, strict=True), (X[0], y[0], 1)]
    mine, real = [
        train(m, tmp_path / m.__name__, instances, algorithm, 1, max_iterations=20)
        for m in (ours, theirs)
    ]
    a, b = mine.logparser, real.logparser
    assert a.featgen_num_features == b.featgen_num_features
    for log in (a, b):  # which pass is the last depends on the order of instances
        assert [i["num"] for i in log.iterations] == list(range(1, len(log.iterations) + 1))
    assert set(a.last_iteration) == set(b.last_iteration)
    assert list(dict.fromkeys(e for e, *_ in a.events)) == list(
        dict.fromkeys(e for e, *_ in b.events)
    )
    assert a.iterations[-1]["loss"] < a.iterations[0]["loss"]
    right = []
    for module in (ours, theirs):
        tagger = opened(module, tmp_path / module.__name__)
        assert tagger.tag(X[0]) == opened(theirs, tmp_path / module.__name__).tag(X[0])
        right.append(np.mean([tagger.tag(x) == labels for x, labels in zip(X, y, strict=True)]))
    assert min(right) >= 0.9
    again = train(ours, tmp_path / "again", instances, algorithm, 1, max_iterations=20)
    assert again.logparser.last_iteration["loss"] == a.last_iteration["loss"]
    assert (tmp_path / "again").read_bytes() == (tmp_path / ours.__name__).read_bytes()


@pytest.mark.parametrize("options", [{"type": 0}, {"type": 2, "c": 0.1}, {"averaging": False}])
def test_variants_of_passive_aggressive(tmp_path, options):
    for module in (ours, theirs):
        train(module, tmp_path / "model", [(WEATHER, LABELS)], "pa", **options)
        assert opened(theirs, tmp_path / "model").tag(WEATHER) == LABELS


@pytest.mark.parametrize("c2", [0.0, 0.1])
def test_the_path_of_owlqn_is_theirs(sentences, tmp_path, c2):
    """Early iterations are compared, before rounding has driven the two apart."""
    instances = list(zip(*sentences, strict=True))
    params = {"c1": 0.3, "c2": c2, "max_iterations": 15}
    mine, real = [train(m, tmp_path / "model", instances, **params) for m in (ours, theirs)]
    for a, b in zip(mine.logparser.iterations, real.logparser.iterations, strict=True):
        assert a["loss"] == pytest.approx(b["loss"], rel=1e-5)
        assert a["feature_norm"] == pytest.approx(b["feature_norm"], rel=1e-3)
        assert a["active_features"] == b["active_features"]
        assert a["linesearch_trials"] == b["linesearch_trials"]
