"""Settings that a small file may name, and what they may cost."""

import resource
import time
import tracemalloc

import numpy as np
import pytest

from chordal import ChainCRF, GraphCRF, MultiLabelCRF, UnsupportedError
from chordal._container import read, write
from chordal.inference import INFERENCE
from chordal.model_file import ModelFileError, load, save
from chordal.potentials import Potentials
from chordal.structures import Chain
from chordal.text import FeatureTemplate

NODES = np.eye(4)
GRAPH = (NODES, np.array([(0, 1), (1, 2), (2, 3), (3, 0)]))
CHAIN = Potentials(Chain([4], 2), np.arange(8.0), np.zeros(4))


@pytest.mark.parametrize(
    ("method", "setting"),
    [
        ("gibbs", "n_chains"),
        ("gibbs", "n_draws"),
        ("annealing", "n_restarts"),
        ("tree_reweighted", "n_trees"),
    ],
)
def test_memory_by_settings_is_counted(method, setting):
    question = "map" if method == "annealing" else "marginals"
    with pytest.raises(UnsupportedError, match=f"{method!r} would need about .* [TG]B"):
        getattr(INFERENCE.get(method)(**{setting: 10**10}), question)(CHAIN)


MANY = [
    (cls.__module__.rpartition(".")[2], question)
    for cls in INFERENCE.classes()
    for question in ("k_best", "sample")
    if question in cls.answers
]


@pytest.mark.parametrize("n", [10**11, 2**62, 2**70])
@pytest.mark.parametrize(("method", "question"), MANY)
def test_memory_by_number_of_labellings_is_counted(method, question, n):
    asked = INFERENCE.resolve(method)
    rest = (np.random.default_rng(0),) if question == "sample" else ()
    with pytest.raises(UnsupportedError, match=f"{method!r} would need about .* [TG]B"):
        getattr(asked, question)(CHAIN, n, *rest)


def test_a_file_with_such_settings_is_a_model_that_refuses(tmp_path):
    gibbs = INFERENCE.get("gibbs")(n_chains=10**10)
    crf = GraphCRF().fit([GRAPH], [list("abab")]).set_params(inference=gibbs)
    crf.inference_ = gibbs
    save(crf, tmp_path / "model")
    with pytest.raises(UnsupportedError, match="would need about"):
        load(tmp_path / "model").predict_marginals([GRAPH])


def test_sweeps_take_no_memory():
    gibbs = INFERENCE.get("gibbs")(n_chains=1, thinning=10**12, time_limit=0.2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    gibbs.marginals(CHAIN)
    assert time.perf_counter() - start < 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_all_labellings_may_be_asked_for():
    crf = ChainCRF().fit([[["a"], ["b"], ["a"]]], [["x", "y", "z"]])
    found = crf.k_best([[["a"], ["b"]], [["a"]]], k=10**12)
    assert [len(own) for own in found] == [9, 3]
    for own in found:
        np.testing.assert_allclose(sum(np.exp(p) for _, p in own), 1.0, rtol=1e-9)


def test_labels_as_wide_as_they_are(tmp_path):
    """A dtype of a file is memory of each answer."""
    y = [np.array(["x", "y"], dtype="<U2000")]
    crf = ChainCRF().fit([[["a"], ["b"]]], y)
    save(crf, tmp_path / "model")
    found = load(tmp_path / "model").predict([[["a"], ["b"]]])[0]
    assert (found.tolist(), found.dtype) == (["x", "y"], np.dtype("<U1000"))
    facts = {**crf.labels_.to_facts(), "dtype": "<U99999"}
    with pytest.raises(ValueError, match="must be as wide as these are, got '<U99999'"):
        type(crf.labels_).from_facts(facts)


def test_labels_of_images_are_arrays(tmp_path):
    from chordal import GridCRF

    crf = GridCRF(max_iter=2).fit([np.ones((2, 2, 1))], [np.array([[0, 1], [1, 0]])])
    crf.labels_.as_list = True
    save(crf, tmp_path / "model")
    with pytest.raises(ModelFileError, match="labels of images must be arrays"):
        load(tmp_path / "model")


def test_a_switch_that_is_a_large_number(tmp_path):
    """It must not become so many columns."""
    table = np.random.default_rng(0).normal(size=(9, 2))
    crf = MultiLabelCRF(max_iter=2).fit(table, (table > 0).astype(int))
    crf.fit_intercept = 2**62
    with pytest.raises(TypeError, match="fit_intercept must be True or False, got 46116"):
        save(crf, tmp_path / "model")
    crf.fit_intercept = True
    save(crf, tmp_path / "model")
    facts, arrays = read(tmp_path / "model")
    facts["parameters"]["fit_intercept"] = 2**62
    write(tmp_path / "model", facts, arrays)
    with pytest.raises(ModelFileError, match="fit_intercept must be True or False, got 46116"):
        load(tmp_path / "model")


def test_a_file_of_many_labels(tmp_path):
    """Tables of pairs of labels are made when they are asked for."""
    path = tmp_path / "model"
    save(ChainCRF(transitions="seen").fit([[["a"], ["b"]]], [["x", "y"]]), path)
    facts, arrays = read(path)
    facts["labels"]["labels"] = [f"label {k}" for k in range(10_000)]
    write(path, facts, arrays)
    tracemalloc.start()
    try:
        load(path)
        assert tracemalloc.get_traced_memory()[1] < 30_000_000
    finally:
        tracemalloc.stop()
    facts["labels"]["labels"] = [f"label {k}" for k in range(20_000)]
    write(path, facts, arrays)
    with pytest.raises(ModelFileError, match=r"with 20000 labels each would need 3\.2 GB"):
        load(path)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_templates_of_too_many_lines(end):
    assert len(FeatureTemplate(f"U:%x[0,0]{end}" * 10_000).attributes([["a"]])[0]) == 10_000
    with pytest.raises(ValueError, match="at most 10000 lines"):
        FeatureTemplate(f"U:%x[0,0]{end}" * 10_001)


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
def test_other_marks_end_no_line_of_a_template(mark):
    """They would hide a line in a comment."""
    template = FeatureTemplate(f"U1{mark}U2:%x[0,0]\n# nothing{mark}U3:%x[9,0]\n")
    assert template.attributes([["a"]]) == [[f"U1{mark}U2:a"]]
    assert template.explain(f"U1{mark}U2:a") == "column 0"


def test_a_message_about_a_template_is_short():
    with pytest.raises(ValueError, match="line 1 must begin with U") as caught:
        FeatureTemplate("x" * 400_000)
    assert len(str(caught.value)) < 200


def test_templates_of_too_many_characters():
    with pytest.raises(ValueError, match="at most 500000 characters"):
        FeatureTemplate("U:" + "%x[0,0]/" * 70_000)
