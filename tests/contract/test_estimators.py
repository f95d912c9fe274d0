"""Every estimator on a few examples of its own kind."""

import inspect

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from chordal import CliqueTemplate, estimators
from chordal.estimators import ESTIMATORS
from chordal.testing import check_estimator

rng = np.random.default_rng(0)
TAGS = [rng.integers(0, 2, size=6) for _ in range(8)]
ROWS = [tags[:, None] + rng.normal(0.0, 0.3, size=(6, 1)) for tags in TAGS]
RING = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0)]
IMAGES = [rows.reshape(2, 3, 1) for rows in ROWS]
LINKS = [rng.normal(size=(2, 3, 2)) for _ in range(4)]


def ring(x):
    return RING


def itself(x):
    return x


TEMPLATES = [CliqueTemplate("nodes", features=itself), CliqueTemplate("ring", ring)]
#: For each estimator: its parameters, examples and labels.
DATA = {
    "ChainCRF": ({}, ROWS, TAGS),
    "CRFClassifier": ({}, np.concatenate(ROWS), np.concatenate(TAGS)),
    "GraphCRF": ({"l2": 0.1}, [(rows, RING) for rows in ROWS], TAGS),
    "GridCRF": ({}, IMAGES, [tags.reshape(2, 3) for tags in TAGS]),
    "HMM": ({"emission": "gaussian"}, ROWS, TAGS),
    "MatchingModel": ({}, LINKS, [np.array([0, 1]), np.array([2, 0])] * 2),
    "MultiLabelCRF": ({}, np.concatenate(ROWS), np.eye(2, dtype=int)[np.concatenate(TAGS)]),
    "NaiveBayes": ({}, np.concatenate(ROWS), np.concatenate(TAGS)),
    "TemplateCRF": ({"templates": TEMPLATES}, ROWS, TAGS),
    "TypedGraphCRF": (
        {"node_types": ["v", "w"], "edge_types": [("v", "v"), ("v", "w")]},
        [({"v": rows, "w": rows[:1]}, {("v", "v"): RING, ("v", "w"): [(2, 0)]}) for rows in ROWS],
        [{"v": tags.tolist(), "w": ["ab"[tags[0]]]} for tags in TAGS],
    ),
    "TwoStageCRF": ({"unary": LogisticRegression()}, ROWS, TAGS),
}


@pytest.mark.parametrize("name", DATA)
def test_what_tools_rely_on(name):
    params, X, y = DATA[name]
    check_estimator(getattr(estimators, name)(**params), X, y)


@pytest.mark.parametrize("name", DATA)
def test_help_describes_every_parameter_once(name):
    cls = getattr(estimators, name)
    described = described_in(cls)
    assert sorted(described) == sorted(inspect.signature(cls).parameters)
    assert described_in(cls.fit) == list(inspect.signature(cls.fit).parameters)[1:]


def described_in(thing):
    """The names that the section on parameters of a docstring describes."""
    section = inspect.getdoc(thing).partition("Parameters\n---")[2].partition("\n\n")[0]
    lines = [line for line in section.splitlines()[1:] if line[0] != " "]
    return [name.strip() for line in lines for name in line.partition(" : ")[0].split(",")]


def test_what_is_shared_comes_from_the_base_class():
    own, shared = estimators.CRFClassifier.fit.__doc__, estimators.BaseCRF.fit.__doc__
    assert "array or SciPy sparse matrix" in own
    assert "array or SciPy sparse matrix" not in shared
    told = "Called with an `Iteration` after each iteration; training stops when it returns"
    assert told in own
    assert told in shared
    assert "pairs :" in estimators.BaseCRF.__doc__
    assert "pairs :" not in estimators.GridCRF.__doc__  # which has no such parameter


def test_every_estimator_is_checked():
    checked = {ESTIMATORS.module_of(name) for name in DATA}
    assert checked == set(ESTIMATORS) - {"clique_template"}
