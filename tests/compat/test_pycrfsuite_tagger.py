"""chordal.compat.pycrfsuite: a tagger, call by call beside python-crfsuite."""

import numpy as np
import pycrfsuite as theirs
import pytest

from chordal.compat import pycrfsuite as ours

from .crfsuite_pair import BOTH, LABELS, WEATHER, opened, train, weights


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("weather") / "model"
    train(theirs, path, [(WEATHER, LABELS), (WEATHER[::-1], LABELS[::-1])], c2=0.1)
    return path


def test_answers_on_one_file(model, tmp_path):
    mine, real = opened(ours, model), opened(theirs, model)
    assert mine.labels() == real.labels()
    for xseq in (WEATHER, theirs.ItemSequence(WEATHER).items(), WEATHER[:1], [["unknown"], []]):
        assert mine.tag(xseq) == real.tag(xseq)
        assert mine.tag(ours.ItemSequence(xseq)) == real.tag()
        assert mine.tag() == real.tag()
        path = mine.tag()
        assert mine.probability(path) == pytest.approx(real.probability(path), rel=1e-9)
        for label in mine.labels():
            for t in range(len(xseq)):
                assert mine.marginal(label, t) == pytest.approx(real.marginal(label, t), abs=1e-9)
    assert mine.tag([]) == real.tag([]) == []
    assert mine.probability([]) == real.probability([]) == 0.0
    assert mine.marginal("sunny", 0) == real.marginal("sunny", 0) == 0.0
    a, b = mine.info(), real.info()
    assert (a.header, a.labels, a.attributes) == (b.header, b.labels, b.attributes)
    assert list(weights(a)) == list(weights(b))
    np.testing.assert_allclose(
        list(weights(a).values()), list(weights(b).values()), rtol=0, atol=1e-6
    )
    mine.dump(tmp_path / "mine")
    real.dump(str(tmp_path / "real"))
    assert (tmp_path / "mine").read_bytes() == (tmp_path / "real").read_bytes()


def test_dump_to_standard_output(model, capsys):
    opened(ours, model).dump()
    assert "(1) sunny --> sunny: " in capsys.readouterr().out


@BOTH
def test_open_and_close(module, model):
    tagger = module.Tagger()
    with tagger.open(str(model)) as inside:
        assert inside is tagger
        labels = tagger.labels()
    with pytest.raises(ValueError, match="not opened"):
        tagger.labels()
    with tagger.open_inmemory(model.read_bytes()):
        assert tagger.labels() == labels
        assert tagger.tag() == []


@BOTH
def test_misuse_of_a_tagger(module, model):
    tagger = opened(module, model)
    tagger.set(WEATHER)
    with pytest.raises(ValueError, match=r"differ: \|x\| = 10, \|y\| = 2"):
        tagger.probability(LABELS[:2])
    for call in (lambda: tagger.probability(["?"] * 10), lambda: tagger.marginal("?", 0)):
        with pytest.raises(RuntimeError, match=r"label identifier: \?"):
            call()
    for position in (10, -1):
        with pytest.raises(ValueError, match="out of range of 10"):
            tagger.marginal("sunny", position)


@pytest.mark.parametrize("closed", [False, True])
def test_a_tagger_without_a_model(model, closed):
    tagger = ours.Tagger()
    if closed:
        tagger.open(model)
        tagger.set(WEATHER)
        tagger.close()
    for call in (
        tagger.labels,
        tagger.tag,
        lambda: tagger.tag(WEATHER),  # crashes theirs
        lambda: tagger.set(WEATHER),
        lambda: tagger.probability(LABELS),
        lambda: tagger.marginal("sunny", 0),
    ):
        with pytest.raises(ValueError, match="The tagger is not opened"):
            call()
    for call in (tagger.info, tagger.dump):
        with pytest.raises(RuntimeError, match="Tagger is closed"):
            call()
    tagger.close()


@BOTH
def test_files_that_are_no_models(module, tmp_path):
    tagger = module.Tagger()
    with pytest.raises(OSError, match="nowhere"):
        tagger.open(str(tmp_path / "nowhere"))
    for content in (b"", b"foo", b"lCRFfoo"):
        path = tmp_path / "bad"
        path.write_bytes(content)
        with pytest.raises(ValueError, match="bad"):
            tagger.open(str(path))
        with pytest.raises(ValueError, match="model"):
            tagger.open_inmemory(content)
    with pytest.raises(TypeError):
        tagger.open_inmemory("text")


def test_a_damaged_model_leaves_the_tagger_closed(model):
    tagger = opened(ours, model)
    with pytest.raises(ValueError, match="not a sound CRFsuite model"):
        tagger.open_inmemory(b"lCRFfoo" * 100)  # crashes theirs
    with pytest.raises(ValueError, match="not opened"):
        tagger.labels()
