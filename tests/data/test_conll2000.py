"""CoNLL-2000 chunking with the attributes of CRFsuite's example: the same weights and optimum."""

import pytest

from chordal import ChainCRF

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def optimum(conll2000):
    """c2 = 1 in CRFsuite's words."""
    return ChainCRF(l2=2.0, n_jobs=2).fit(conll2000.X, conll2000.y)


def test_chunk_f1_is_that_of_conlleval(chunk_f1):
    gold = [["B-NP", "I-NP", "O", "B-VP", "B-NP"], ["O", "I-NP", "I-VP"]]
    assert chunk_f1(gold, gold) == 100.0
    # Right: VP. Wrong: an NP cut in two, an O for the last NP; a stray I-NP is a chunk of its own.
    assert chunk_f1(gold[:1], [["B-NP", "B-NP", "O", "B-VP", "O"]]) == pytest.approx(200 / 6)
    assert chunk_f1(gold[1:], [["O", "B-NP", "B-VP"]]) == 100.0


def test_attributes_are_those_of_the_example(conll2000_start):
    assert conll2000_start.X[0][0] == [
        "w[0]=Confidence", "w[1]=in", "w[2]=the", "w[0]|w[1]=Confidence|in",
        "pos[0]=NN", "pos[1]=IN", "pos[2]=DT", "pos[0]|pos[1]=NN|IN", "pos[1]|pos[2]=IN|DT",
        "pos[0]|pos[1]|pos[2]=NN|IN|DT", "__BOS__",
    ]  # fmt: skip
    assert max(len(token) for x in conll2000_start.X for token in x) == 19


@pytest.mark.slow
def test_weights_are_for_the_pairs_that_were_seen(conll2000):
    assert len(conll2000.X) == 8936
    assert sum(map(len, conll2000.y)) == 211_727
    crf = ChainCRF(max_iter=1, n_jobs=2).fit(conll2000.X, conll2000.y)
    assert len(crf.classes_) == 22
    assert crf.coef_.nnz == 452_610
    assert crf.fit_report_.n_weights == 452_610 + 145


@pytest.mark.slow
def test_optimum_of_l2(conll2000, optimum, chunk_f1):
    assert optimum.fit_report_.status.succeeded
    assert optimum.objective_ == pytest.approx(13_139.36, rel=5e-4)
    assert chunk_f1(conll2000.test_y, optimum.predict(conll2000.test_X)) >= 93.6


@pytest.mark.slow
def test_optimum_of_l1(conll2000, chunk_f1):
    crf = ChainCRF(l1=1.0, l2=0.0, n_jobs=2).fit(conll2000.X, conll2000.y)
    assert crf.fit_report_.status.succeeded
    assert crf.objective_ == pytest.approx(16_889.4, rel=5e-4)
    assert crf.fit_report_.n_nonzero <= 9_700
    assert crf.n_iter_ <= 619 / 2
    assert chunk_f1(conll2000.test_y, crf.predict(conll2000.test_X)) >= 93.6


@pytest.mark.slow
def test_legal_tags_are_no_worse(conll2000, optimum, chunk_f1):
    legal = optimum.predict(conll2000.test_X, allowed_transitions="bio")
    for tags in legal:
        for before, tag in zip(["O", *tags], tags, strict=False):
            assert not tag.startswith("I-") or before in (tag, "B" + tag[1:])
    assert chunk_f1(conll2000.test_y, legal) >= 93.6


def share_of_equal_tags(found, expected):
    equal = [
        a == b for p, q in zip(found, expected, strict=True) for a, b in zip(p, q, strict=True)
    ]
    return sum(equal) / len(equal)


@pytest.mark.parametrize(
    # Near the optimum of L1 many weights are about to leave zero: a tag in hundreds may differ.
    ("l1", "l2", "n_sentences", "agreement"),
    [(0.0, 2.0, 500, 1.0), (1.0, 0.0, 100, 0.995)],
)
def test_same_as_crfsuite(conll2000_start, tmp_path, l1, l2, n_sentences, agreement):
    crfsuite = pytest.importorskip("pycrfsuite")
    X, y = conll2000_start.X[:n_sentences], conll2000_start.y[:n_sentences]
    trainer = crfsuite.Trainer(verbose=False)
    for x, tags in zip(X, y, strict=True):
        trainer.append(x, tags)
    trainer.set_params({"c1": l1, "c2": l2 / 2})
    trainer.train(str(tmp_path / "model"))
    tagger = crfsuite.Tagger()
    tagger.open(str(tmp_path / "model"))

    crf = ChainCRF(l1=l1, l2=l2, tol=1e-6, n_jobs=2).fit(X, y)
    loss = trainer.logparser.last_iteration["loss"]
    assert crf.objective_ == pytest.approx(loss, rel=5e-4)
    for asked in (X, conll2000_start.test_X):
        expected = [tagger.tag(x) for x in asked]
        assert share_of_equal_tags(crf.predict(asked), expected) >= agreement
