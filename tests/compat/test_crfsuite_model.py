"""CRFsuite's binary models, against CRFsuite itself."""

import struct
import zlib

import numpy as np
import pycrfsuite
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chordal import ChainCRF, FeatureTemplate, UnsupportedError, load, save
from chordal.compat._assembly import assembled
from chordal.compat._cqdb import hashlittle
from chordal.compat.crfsuite_model import read_crfsuite, write_crfsuite


def trained(X, y, path, **parameters):
    trainer = pycrfsuite.Trainer("lbfgs", parameters, verbose=False)
    for x, labels in zip(X, y, strict=True):
        trainer.append(x, labels)
    trainer.train(str(path))
    return path.read_bytes()


def assert_same_answers(model, path, X):
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    assert sorted(tagger.labels()) == sorted(model.classes_)
    for x, tags, marginals in zip(X, model.predict(X), model.predict_marginals(X), strict=True):
        assert tagger.tag(x) == tags
        theirs = [[tagger.marginal(c, t) for c in model.classes_] for t in range(len(x))]
        np.testing.assert_allclose(marginals, theirs, rtol=0, atol=1e-9)


@pytest.fixture(scope="module")
def small(tmp_path_factory, sentences):
    path = tmp_path_factory.mktemp("small") / "model.crfsuite"
    return trained(*sentences, path, max_iterations=15), path


OPTIONS = [
    {"max_iterations": 20},
    {"c1": 0.5, "max_iterations": 30},
    {"feature.possible_states": True, "feature.possible_transitions": True, "max_iterations": 20},
]


@pytest.mark.parametrize("options", OPTIONS, ids=["seen", "l1", "all"])
def test_reads_and_writes_what_crfsuite_writes(sentences, tmp_path, options):
    X, y = sentences
    content = trained(X, y, tmp_path / "theirs", **options)
    model = read_crfsuite(tmp_path / "theirs")
    assert_same_answers(model, tmp_path / "theirs", [*X, [["unseen"], ["w=1", "w=1", "unseen"]]])
    write_crfsuite(model, tmp_path / "ours")
    assert (tmp_path / "ours").read_bytes() == content  # to the last byte
    assert read_crfsuite(content).predict(X) == model.predict(X)


def test_a_model_that_was_read_can_be_saved(small, sentences, tmp_path):
    model = read_crfsuite(small[0])
    save(model, tmp_path / "model")
    assert load(tmp_path / "model").predict(sentences[0]) == model.predict(sentences[0])


def test_a_model_with_a_template_is_written_under_its_names(tmp_path):
    X, y = [[["Le", "D"], ["chat", "N"]], [["Un", "D"]]], [["B", "I"], ["B"]]
    model = ChainCRF(feature_template="U0:%x[0,0]\nU1:%x[-1,1]\nB", l2=0.1).fit(X, y)
    write_crfsuite(model, tmp_path / "model")
    tagger = pycrfsuite.Tagger()
    tagger.open(str(tmp_path / "model"))
    template = FeatureTemplate(model.feature_template)
    for x, marginals in zip(X, model.predict_marginals(X), strict=True):
        assert tagger.tag(template.attributes(x)) == model.predict([x])[0]
        assert tagger.marginal("B", 0) == pytest.approx(marginals[0, 0], abs=1e-9)


def test_weights_have_their_names(sentences, tmp_path):
    X, y = sentences
    path = tmp_path / "model"
    # python-crfsuite's own reader of names stops at the empty one
    content = trained([[list(filter(None, t)) for t in x] for x in X], y, path, max_iterations=9)
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    info = tagger.info()
    model = read_crfsuite(content)
    for (attribute, label), weight in info.state_features.items():
        column = model.reader_.inputs[0].vocabulary.find(attribute)
        row = model.classes_.tolist().index(label)
        # dumped with six decimals
        np.testing.assert_allclose(model.coef_.toarray()[row, column], weight, rtol=0, atol=6e-7)
    assert model.coef_.nnz == len(info.state_features)
    assert np.count_nonzero(model.transitions_) == len(info.transitions)


CHORDAL = [
    {},
    {"pairs": "all", "transitions": "all"},
    {"transitions": "none", "min_freq": 2},
    {"l1": 2.0, "l2": 0.0},  # attributes without weights
]


@pytest.mark.parametrize("parameters", CHORDAL)
def test_crfsuite_tags_with_a_model_of_ours(sentences, tmp_path, parameters):
    X, y = sentences
    model = ChainCRF(**parameters, max_iter=25).fit(X, y)
    write_crfsuite(model, tmp_path / "model")
    X = [*X, [["unseen"], ["w=1", "unseen"]]]
    assert_same_answers(model, tmp_path / "model", X)
    assert_same_answers(read_crfsuite(tmp_path / "model"), tmp_path / "model", X)


@pytest.mark.parametrize(
    "parts",
    [
        (["only"], ["x"], ([0], [0], [1.5]), ([0], [0], [0.5])),
        (["A", "never seen", "B"], ["x", "idle"], ([0, 0], [2, 0], [1.0, -1.0]), ([], [], [])),
        (["A", "B"], [], ([], [], []), ([0], [1], [1.0])),
        (["B", "A"], ["x"], ([0], [1], [0.0]), ([], [], [])),
    ],
    ids=["one label", "a label without weights", "no attributes", "nothing"],
)
def test_small_models(tmp_path, parts):
    model = assembled(*parts)
    write_crfsuite(model, tmp_path / "model")
    X = [[["x"]], [["x"], ["idle"], ["unseen"]], [["unseen"]], [[], []]]
    assert_same_answers(model, tmp_path / "model", X)
    assert read_crfsuite(tmp_path / "model").classes_.tolist() == model.classes_.tolist()


def test_many_attributes_are_found_by_their_names(tmp_path):
    """Hash tables of all sizes, with names of every length up to five blocks of the hash."""
    rng = np.random.default_rng(1)
    names = sorted({
        "".join(rng.choice(list("abé日"), size=k % 40)) + str(k) for k in range(5000)
    })  # fmt: skip
    n = len(names)
    weights = rng.normal(size=n)
    model = assembled(["A", "B"], names, (np.arange(n), np.arange(n) % 2, weights), ([], [], []))
    write_crfsuite(model, tmp_path / "model")
    assert_same_answers(model, tmp_path / "model", [[[name] for name in names]])


def test_the_hash_is_lookup3():
    """A value that the author of the hash publishes; python-crfsuite finds all other names."""
    assert hashlittle([b"Four score and seven years ago"]).tolist() == [0x17770551]


def escaped(name):
    return name.replace("\\", "\\\\").replace(":", "\\:")


def test_the_real_crfsuite_agrees(sentences, tmp_path, peer):
    X, y = sentences
    X = [[[a for a in token if a.strip() and "\t" not in a] for token in x] for x in X]
    model = ChainCRF(max_iter=25).fit(X, y)
    write_crfsuite(model, tmp_path / "model")
    lines = ["\n".join("\t".join(["O", *map(escaped, t)]) for t in x) + "\n" for x in X]
    printed = peer("crfsuite", "tag", "-l", "-m", tmp_path / "model", "-", text="\n".join(lines))
    for x, block in zip(X, printed.strip().split("\n\n"), strict=True):
        rows = [line.split("\t") for line in block.split("\n")]
        assert [row[0] for row in rows] == model.predict([x])[0]
        (ours,) = model.predict_marginals([x])
        for t, row in enumerate(rows):
            theirs = dict(entry.rsplit(":", 1) for entry in row[1:])
            found = [float(theirs[c]) for c in model.classes_]
            np.testing.assert_allclose(ours[t], found, rtol=0, atol=1e-6)


UNSUPPORTED = [
    ({"fit_intercept": True}, "weights of fit_intercept=True"),
    ({"ends": True}, "weights of ends=True"),
    ({"transition_features": lambda x: [["any"]] * (len(x) - 1)}, "transition_features"),
    ({"feature_template": "U:%x[0,0]\nB:%x[0,0]"}, "lines B and . of a template"),
]


@pytest.mark.parametrize(("parameters", "message"), UNSUPPORTED)
def test_what_crfsuite_does_not_know_is_refused(tmp_path, parameters, message):
    model = ChainCRF(**parameters).fit([[["a"], ["b"]]], [["A", "B"]])
    with pytest.raises(UnsupportedError, match=message):
        write_crfsuite(model, tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([np.eye(2)], [["A", "B"]], "arrays and sparse matrices"),
        ([[["a"], ["b"]]], [[1, 2]], "label 1: it must be a str"),
        ([[["a"], ["b"]]], [["A", "B\0"]], "without NUL"),
        ([[["a"], ["b\0"]]], [["A", "B"]], "attribute b'b.x00'"),
        ([[["a"], ["\ud800"]]], [["A", "B"]], "Unicode text"),
    ],
)
def test_data_that_crfsuite_does_not_know_is_refused(tmp_path, X, y, message):
    with pytest.raises(UnsupportedError, match=message):
        write_crfsuite(ChainCRF().fit(X, y), tmp_path / "model")


def test_the_old_file_survives_a_failure(tmp_path, small, monkeypatch):
    model = read_crfsuite(small[0])
    (tmp_path / "model").write_bytes(b"old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_crfsuite(model, tmp_path / "model")
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
    assert (tmp_path / "model").read_bytes() == b"old"


def word(content, at, value):
    return content[:at] + struct.pack("<I", value) + content[at + 4 :]


def header(content, field):
    return struct.unpack_from("<I", content, 4 * field)[0]


DAMAGE = [
    (lambda c: b"", "0 bytes, fewer than its header"),
    (lambda c: b"lCRF", "4 bytes"),
    (lambda c: b"#mdl" + c[4:], "must begin with b'lCRF'"),
    (lambda c: c[:-1], "the file has"),
    (lambda c: c + b"\0", "the file has"),
    (lambda c: word(c, 12, 101), "version must be 100, got 101"),
    (lambda c: word(c, 20, 2**31), "hash tables hold 4"),
    (lambda c: word(c, 20, 3), "hash tables hold 4"),
    (lambda c: word(c, 24, 2**32 - 1), "attributes must be 4294967295"),
    (lambda c: word(c, 28, 2**32 - 4), "FEAT is said to be at 4294967292"),
    (lambda c: word(c, 28, 52), "FEAT at 52 is damaged"),
    (lambda c: word(c, 32, 2**32 - 1), "labels are cut off"),
    (lambda c: word(c, 32, header(c, 8) + 4), "labels must begin with a CQDB"),
    (lambda c: word(c, 44, 0), "AFRF is said to be at 0"),
    (lambda c: word(c, 56, 2**28), "FEAT says 268435456 features"),
    (lambda c: word(c, 60, 1), "which is another's"),
    (lambda c: word(c, 68, 99), "labels must be 0 to 3, got 99"),
    (lambda c: word(c, 76, 0x7FF80000), "must be numbers"),
    (lambda c: word(c, header(c, 8) + 4, 2**31), "labels must have at most"),
    (lambda c: word(c, header(c, 8) + 16, 2**31), "a link for each of 4"),
    (lambda c: word(c, header(c, 8) + 20, 2**31), "a link for each of 4"),
    (lambda c: word(c, header(c, 8) + 2072, 1), "entry 0 of the labels is damaged"),
    (lambda c: word(c, header(c, 8) + 2076, 2**31), "entry 0 of the labels is damaged"),
    (lambda c: c.replace(b"I-NP\0", b"\xff-NP\0"), "must be UTF-8"),
    (lambda c: c.replace(b"I-NP\0", b"B-NP\0"), "'B-NP' twice"),
    (lambda c: word(c, header(c, 10) + 8, 1), "LFRF must have 4 entries, got 1"),
    (lambda c: word(c, header(c, 10) + 12, 2**32 - 4), "LFRF points outside"),
    (lambda c: word(c, header(c, 10) + 12, 50), "LFRF points outside"),
    (lambda c: word(c, header(c, 11) + 12, header(c, 11) + 16), "AFRF must refer to each"),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGE)
def test_a_damaged_file_is_refused(small, damage, message):
    with pytest.raises(ValueError, match=f"not a sound CRFsuite model: .*{message}"):
        read_crfsuite(damage(small[0]))


def test_the_error_names_the_file(tmp_path):
    (tmp_path / "notes.txt").write_text("not a model, but a text of more than forty-eight bytes")
    with pytest.raises(ValueError, match=r"notes\.txt is not a sound CRFsuite model"):
        read_crfsuite(tmp_path / "notes.txt")
    with pytest.raises(FileNotFoundError):
        read_crfsuite(tmp_path / "absent")


def answers_or_refuses(content):
    """Any file gives a working model or a ValueError."""
    try:
        model = read_crfsuite(content)
    except ValueError:
        return
    for marginals in model.predict_marginals([[["w=1"], ["p=2", "a:b"]]]):
        np.testing.assert_allclose(marginals.sum(axis=1), 1.0, rtol=0, atol=1e-5)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_flipped_bits(small, data):
    content = bytearray(small[0])
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    answers_or_refuses(bytes(content))


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_hostile_words(small, data):
    """Offsets and counts set to whatever would hurt."""
    content = small[0]
    hurtful = [0, 1, 4, len(content), len(content) - 4, 2**31 - 1, 2**31, 2**32 - 1]
    for _ in range(data.draw(st.integers(1, 3))):
        value = data.draw(st.sampled_from(hurtful) | st.integers(0, 2**32 - 1))
        content = word(content, 4 * data.draw(st.integers(1, len(content) // 4 - 2)), value)
    answers_or_refuses(content)


def test_every_truncation_is_refused(small):
    content = small[0]
    for size in [*range(0, 200), *range(200, len(content), 97)]:
        with pytest.raises(ValueError, match="not a sound CRFsuite model"):
            read_crfsuite(content[:size])
        if size >= 48:  # also when the header agrees
            with pytest.raises(ValueError, match="not a sound CRFsuite model"):
                read_crfsuite(word(content, 4, size)[:size])


def test_noise_is_refused():
    with pytest.raises(ValueError, match="must begin with"):
        read_crfsuite(zlib.compress(bytes(1000)) * 50)
