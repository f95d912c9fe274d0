"""Pickles of CRF, between sklearn-crfsuite and chordal in both directions."""

import io
import json
import pickle
import struct
import subprocess
import sys

import joblib
import numpy as np
import pytest

from chordal import UnsupportedError
from chordal.compat import sklearn_crfsuite as ours
from chordal.compat.sklearn_crfsuite.trainer import LinePerIterationTrainer

from .crfsuite_pair import LABELS, WEATHER

X, Y = [WEATHER, WEATHER[2:7]], [LABELS, LABELS[2:7]]
PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)


@pytest.fixture(scope="module")
def theirs():
    return pytest.importorskip("sklearn_crfsuite")


@pytest.fixture(scope="module")
def real(theirs):
    return theirs.CRF(c1=0.01, c2=0.1, max_iterations=30).fit(X, Y, X, Y)


def answers(crf):
    marginals = [[m[c] for c in crf.classes_] for x in X for m in crf.predict_marginals_single(x)]
    return [list(labels) for labels in crf.predict(X)], marginals


# In a process of its own: here the real package has the name.
LOAD = """
import json, pickle, sys
import chordal.compat
chordal.compat.install()
import joblib
for path in sys.argv[2:]:
    crf = joblib.load(path) if path.endswith("joblib") else pickle.load(open(path, "rb"))
    assert type(crf).__module__ == "chordal.compat.sklearn_crfsuite.estimator", type(crf)
    X = json.loads(sys.argv[1])
    for x in X:
        for item in x:
            item.update({k: v.encode() for k, v in item.items() if isinstance(v, str)})
    marginals = [[m[c] for c in crf.classes_] for x in X for m in crf.predict_marginals_single(x)]
    log = crf.training_log_
    answers = [list(labels) for labels in crf.predict(X)], marginals
    print(json.dumps([answers, crf.get_params(), len(log.iterations), log.last_iteration["loss"]]))
"""


def test_theirs_load_as_fitted_models(real, tmp_path):
    paths = []
    for protocol in PROTOCOLS:
        paths.append(tmp_path / f"{protocol}.pickle")
        paths[-1].write_bytes(pickle.dumps(real, protocol))
    for compress in (0, 3):
        paths.append(tmp_path / f"{compress}.joblib")
        joblib.dump(real, paths[-1], compress)
    data = json.dumps(X, default=bytes.decode)
    command = [sys.executable, "-W", "error", "-c", LOAD, data, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(paths)
    labels, marginals = answers(real)
    for line in lines:
        found, params, iterations, loss = json.loads(line)
        assert found[0] == labels
        np.testing.assert_allclose(found[1], marginals, rtol=0, atol=1e-12)
        assert params == real.get_params()
        assert (iterations, loss) == (
            len(real.training_log_.iterations),
            real.training_log_.last_iteration["loss"],
        )


@pytest.mark.parametrize("protocol", [0, 1, *PROTOCOLS])
def test_ours_load_there(theirs, protocol):
    crf = ours.CRF(c2=0.01, all_possible_transitions=True).fit(X, Y)
    content = pickle.dumps(ours.portable(crf), protocol)
    assert b"chordal" not in content
    for again in (pickle.loads(content), _through_joblib(ours.portable(crf))):
        assert type(again) is theirs.CRF
        assert again.get_params() == crf.get_params()
        assert answers(again)[0] == answers(crf)[0]
        np.testing.assert_allclose(answers(again)[1], answers(crf)[1], rtol=0, atol=1e-12)
        assert again.fit(X, Y).score(X, Y) == 1.0  # its file is its own


def test_ours_unfitted_and_with_a_named_file(theirs, tmp_path):
    assert pickle.loads(pickle.dumps(ours.portable(ours.CRF(c1=2.0)))).c1 == 2.0
    crf = ours.CRF(model_filename=str(tmp_path / "model")).fit(X, Y)
    again = pickle.loads(pickle.dumps(ours.portable(crf)))
    assert type(again) is theirs.CRF
    assert again.modelfile.name == str(tmp_path / "model")
    assert answers(again)[0] == answers(crf)[0]


def test_a_trainer_of_ones_own_needs_chordal():
    crf = ours.CRF(trainer_cls=LinePerIterationTrainer)
    with pytest.raises(UnsupportedError, match="LinePerIterationTrainer, which needs chordal"):
        ours.portable(crf)


def _through_joblib(value):
    file = io.BytesIO()
    joblib.dump(value, file)
    return joblib.load(io.BytesIO(file.getvalue()))


# ------------------------------------------------------------------------------- written by hand


class Unpickler(pickle.Unpickler):
    """Finds our classes by their names, as after `install`."""

    def find_class(self, module, name):
        if module.partition(".")[0] in ("sklearn_crfsuite", "pycrfsuite"):
            module = f"chordal.compat.{module}"
        return super().find_class(module, name)


def loads(content, **options):
    return Unpickler(io.BytesIO(content), **options).load()


def text(value):
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def mapping(**values):
    return b"}(" + b"".join(text(key) + value for key, value in values.items()) + b"u"


def made(module, name, state):
    return f"c{module}\n{name}\n".encode() + b")\x81" + state + b"b"


def by_hand(file, **state):
    if file is not None:
        state["modelfile"] = made("sklearn_crfsuite._fileresource", "FileResource", mapping(**file))
    return b"\x80\x03" + made("sklearn_crfsuite.estimator", "CRF", mapping(**state)) + b"."


NONE, FALSE, TRUE = b"N", b"\x89", b"\x88"
FILE = {
    "name": NONE,
    "auto": TRUE,
    "keep_tempfiles": FALSE,
    "suffix": text(".crfsuite"),
    "prefix": text("model"),
}
LOG = made("pycrfsuite._logparser", "TrainLogParser", mapping(iterations=b"]"))


def stored(content, code=b"B"):
    return {
        **FILE,
        "fd": b"K\x07",
        "__FILE_RESOURCE_DATA__": code + struct.pack("<I", len(content)) + content,
    }


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model"
    ours.CRF(model_filename=str(path), c2=0.1).fit(X, Y)
    return path.read_bytes()


@pytest.mark.parametrize(("code", "encoding"), [(b"B", "ASCII"), (b"T", "latin1")])
def test_state_of_an_old_version(content, code, encoding):
    """0.3.6 kept neither model_filename nor keep_tempfiles; Python 2 had no bytes."""
    crf = loads(
        by_hand(stored(content, code), c2=b"G?\xb9\x99\x99\x99\x99\x99\x9a"), encoding=encoding
    )
    assert (crf.c2, crf.model_filename, crf.keep_tempfiles, crf.algorithm) == (
        0.1,
        None,
        False,
        None,
    )
    assert crf.classes_ == ["sunny", "rainy", "好"]
    assert crf.score(X, Y) == 1.0
    assert crf.fit(X, Y).score(X, Y) == 1.0


def test_a_file_with_a_name_of_its_own(content, tmp_path):
    (tmp_path / "model").write_bytes(content)
    file = {**FILE, "name": text(str(tmp_path / "model")), "auto": FALSE}
    crf = loads(by_hand(file, training_log_=LOG))
    assert crf.model_filename == str(tmp_path / "model")
    assert crf.score(X, Y) == 1.0
    (tmp_path / "model").unlink()
    with pytest.raises(FileNotFoundError):
        loads(by_hand(file, training_log_=LOG)).predict(X)


def test_an_unfitted_one_is_unfitted():
    assert loads(by_hand(FILE, training_log_=NONE)).classes_ is None


def without(*names):
    return {key: value for key, value in FILE.items() if key not in names}


@pytest.mark.parametrize(
    ("pickled", "message"),
    [
        (by_hand(None, c1=NONE), "holds no file of a model: .* got NoneType among \\['c1'\\]"),
        (by_hand(None, modelfile=text("a")), "must be a FileResource, got str"),
        (by_hand(without("auto")), "lacks auto, it has .*encoding='latin1'"),
        (by_hand({**FILE, "fd": b"K\x03"}), "has lost its model"),
        (by_hand(FILE, training_log_=LOG), "trained CRF, but it holds no model"),
        (by_hand(stored(b"")), "holds no sound model: .*fewer than its header"),
        (by_hand(stored(b"lCRF" * 30)), "holds no sound model"),
        (by_hand({**FILE, "__FILE_RESOURCE_DATA__": b"]"}), "must be bytes, got"),
    ],
)
def test_what_cannot_be_understood_is_refused(pickled, message):
    with pytest.raises(ValueError, match=message):
        loads(pickled)


def test_a_damaged_model_is_refused(content):
    damaged = content[: len(content) // 2]
    with pytest.raises(ValueError, match="holds no sound model"):
        loads(by_hand(stored(damaged)))
    with pytest.raises(ValueError, match="holds no sound model"):
        loads(by_hand(stored(content.replace(b"FEAT", b"FEED"))))


def test_theirs_whose_file_is_gone(theirs):
    """sklearn-crfsuite pickles it without a word."""
    crf = theirs.CRF().fit(X, Y)
    name = crf.modelfile.name
    crf.modelfile.name = "/nonexistent/model"
    pickled = pickle.dumps(crf)
    crf.modelfile.name = name
    with pytest.raises(ValueError, match="has lost its model"):
        loads(pickled)


def test_nothing_is_left_behind(content, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(ValueError, match="no sound model"):
        loads(by_hand(stored(b"lCRF" * 30)))
    crf = loads(by_hand(stored(content)))
    assert len(list(tmp_path.iterdir())) == 1
    del crf
    assert list(tmp_path.iterdir()) == []
