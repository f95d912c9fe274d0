"""What comes back: the answers of the library, for every kind of input."""

import numpy as np
import pytest

from chordal.formats import sentences

serve = pytest.importorskip("chordal.serve")

WORDS = [
    [[word] for word in text.split()]
    for text in ("Ana lives in Rome .", "New York is large .", "Ana Bell sees New York", "Rome")
]
TEXT = "Ana lives in Rome. Bell sees New York!\nRome is large"


@pytest.fixture(scope="module")
def application(all_models):
    return serve.app(all_models)


def words(x):
    return [row[0] for row in x]


def test_tokens_have_the_labels_of_predict(application, all_models, tag):
    crf = all_models["words"]
    for x in WORDS:
        status, found = tag(application, {"tokens": words(x)}, "words")
        assert status == 200
        assert found["labels"] == crf.predict([x], allowed_transitions="bio")[0]
        assert found["model"] == "words"


def test_text_is_that_of_tag_text(application, all_models, tag):
    """Beside what the command line gives for the same lines."""
    import json

    from chordal.cli._raw import answers

    status, found = tag(application, {"text": TEXT, "probabilities": True}, "words")
    assert status == 200
    lines = TEXT.split("\n")
    expected = answers(all_models["words"], lines, None)
    own = [span for part in found["sentences"] for span in part["spans"]]
    starts = np.cumsum([0] + [len(line) + 1 for line in lines])
    flat = [(e, starts[k]) for k, line in enumerate(expected) for e in line["entities"]]
    assert len(own) == len(flat) >= 4
    for span, (entity, shift) in zip(own, flat, strict=True):
        assert (span["start"], span["end"]) == (entity["start"] + shift, entity["end"] + shift)
        assert span["label"] == entity["label"]
        assert span["text"] == entity["text"] == TEXT[span["start"] : span["end"]]
        assert span["probability"] == pytest.approx(entity["probability"], abs=1e-12)
    assert json.dumps(found)
    split = [s for line in lines for s in sentences(line)]
    assert [part["tokens"] for part in found["sentences"]] == [[t.text for t in s] for s in split]
    for part in found["sentences"]:
        assert part["tokens"] == [TEXT[a:b] for a, b in part["offsets"]]


def test_offsets_count_characters(application, tag):
    text = "😀 Rome é"
    _, found = tag(application, {"text": text}, "words")
    (part,) = found["sentences"]
    assert [text[a:b] for a, b in part["offsets"]] == part["tokens"] == ["😀", "Rome", "é"]


def test_marginals_probabilities_and_k_best(application, all_models, tag):
    crf, x = all_models["words"], WORDS[2]
    asked = {"tokens": words(x), "marginals": True, "probabilities": True, "k_best": 3}
    _, found = tag(application, asked, "words")
    table = crf.predict_marginals([x], allowed_transitions="bio")[0]
    np.testing.assert_allclose(found["marginals"], table, rtol=0, atol=1e-12)
    assert found["classes"] == crf.classes_.tolist()
    places = [found["classes"].index(label) for label in found["labels"]]
    chosen = table[np.arange(len(x)), places]
    np.testing.assert_allclose(found["probabilities"], chosen, rtol=0, atol=1e-12)
    ranked = crf.k_best([x], 3, allowed_transitions="bio")[0]
    assert [own["labels"] for own in found["k_best"]] == [list(labels) for labels, _ in ranked]
    chances = [own["log_probability"] for own in found["k_best"]]
    np.testing.assert_allclose(chances, [p for _, p in ranked], rtol=0, atol=1e-12)
    for span in found["spans"]:
        begin, end = span["tokens"]
        (alone,) = crf.span_probabilities([x], [[(begin, end, span["label"])]])
        assert span["probability"] == pytest.approx(alone[0], abs=1e-12)


def test_methods_and_constraints(application, all_models, tag):
    crf = all_models["words"]
    x = [["York"], ["York"], ["Bell"]]
    for method in ("map", "mpm"):
        for constrain in ("auto", "none", "bio"):
            body = {"tokens": words(x), "method": method, "constrain": constrain}
            _, found = tag(application, body, "words")
            legal = None if constrain == "none" else "bio"
            expected = crf.predict([x], method=method, allowed_transitions=legal)[0]
            assert found["labels"] == expected, (method, constrain)


def test_a_labelling_that_is_not_legal_is_made_so(application, all_models, tag):
    crf = all_models["words"]
    rng = np.random.default_rng(1)
    known = [row[0] for rows in WORDS for row in rows]
    X = [[[w] for w in rng.choice(known, rng.integers(1, 7)).tolist()] for _ in range(300)]
    free, legal = crf.predict(X), crf.predict(X, allowed_transitions="bio")
    assert any(a != b for a, b in zip(free, legal, strict=True))
    body = {"inputs": [{"tokens": words(x)} for x in X]}
    _, found = tag(application, body, "words")
    assert [own["labels"] for own in found["results"]] == legal


def test_rows_of_every_kind(application, all_models, tag):
    cases = {
        "columns": [["Rome", "R"], ["sees", "s"]],
        "attributes": [{"word": "Rome", "size": 4.0}, ["word:sees"], {"word": "x", "f": ["a"]}],
        "vectors": [{"word": "Rome", "vec": [4, 1.0]}, {"word": "sees"}],
        "arrays": [[0.1, 0.2, -1], [3, 4, 5]],
        "plain": [["Rome"], ["sees"]],
    }
    for name, rows in cases.items():
        crf = all_models[name]
        status, found = tag(application, {"rows": rows, "marginals": True}, name)
        assert status == 200, found
        x = rows
        if name == "arrays":
            x = np.array(rows, dtype=float)
        if name == "vectors":
            x = [{"word": "Rome", "vec": np.array([4.0, 1.0])}, {"word": "sees"}]
        legal = "auto" if name not in ("arrays", "plain") else None
        assert found["labels"] == list(crf.predict([x], allowed_transitions=legal)[0])
        table = crf.predict_marginals([x], allowed_transitions=legal)[0]
        np.testing.assert_allclose(found["marginals"], table, rtol=0, atol=1e-12)
        assert ("spans" in found) == (legal is not None)


def test_empty_inputs(application, tag):
    asked = {"marginals": True, "probabilities": True, "k_best": 2}
    body = {"inputs": [{"tokens": []}, {"text": ""}, {"text": " \n "}, {"rows": []}], **asked}
    status, found = tag(application, body, "words")
    assert status == 200
    empty = {"labels": [], "probabilities": [], "marginals": [], "spans": [], "k_best": []}
    assert found["results"] == [empty, {"sentences": []}, {"sentences": []}, empty]
    assert tag(application, {"inputs": []}, "words")[1]["results"] == []


def test_several_inputs_are_as_each_alone(application, tag):
    inputs = [{"text": TEXT}, {"tokens": ["Rome"]}, {"rows": [["New"], ["York"]]}, {"tokens": []}]
    options = {"marginals": True, "probabilities": True, "k_best": 2}
    _, found = tag(application, {"inputs": inputs, **options}, "words")
    for one, own in zip(inputs, found["results"], strict=True):
        _, alone = tag(application, {**one, **options}, "words")
        assert {k: v for k, v in alone.items() if k not in ("model", "version", "classes")} == own


def test_the_first_model_is_the_default(application, tag):
    assert tag(application, {"text": "Rome"})[1]["model"] == "words"


def test_a_model_alone_is_called_model(all_models, tag):
    application = serve.app(all_models["plain"])
    assert tag(application, {"text": "Rome"}, "model")[1]["model"] == "model"
    assert all_models["plain"].n_jobs is None  # the server took a copy


def test_what_models_read(application, all_models, ask):
    (found,) = ask(application, ("GET", "/models", {}))
    facts = {own["name"]: own for own in found.json()["models"]}
    assert list(facts) == list(all_models)
    assert facts["words"]["inputs"] == ["text", "tokens", "rows"]
    assert facts["columns"]["inputs"] == ["rows"]
    assert (facts["columns"]["rows"], facts["columns"]["columns"]) == ("columns", 2)
    assert facts["words"]["scheme"] == "bio"
    assert facts["plain"]["scheme"] is None
    assert facts["arrays"]["labels"] == all_models["arrays"].classes_.tolist()
    (one,) = ask(application, ("GET", "/models/words", {}))
    assert one.json() == facts["words"]


def test_mounted_in_another_application(all_models, ask):
    from starlette.applications import Starlette
    from starlette.routing import Mount

    outer = Starlette(routes=[Mount("/ner", app=serve.app(all_models))])
    (found, page) = ask(
        outer, ("POST", "/ner/models/words/tag", {"json": {"text": "Rome"}}), ("GET", "/ner/", {})
    )
    assert found.json()["sentences"][0]["labels"] == ["B-LOC"]
    assert page.status_code == 200


def test_models_that_cannot_be_served():
    import scipy.sparse as sp

    from chordal import HMM, ChainCRF

    X, y = [sp.csr_array(np.eye(3))], [["A", "B", "A"]]
    with pytest.raises(ValueError, match="sparse"):
        serve.app(ChainCRF(l2=0.1).fit(X, y))
    for model in (HMM().fit([["a", "b"]], [["A", "B"]]), {"x": 1}, 3):
        what = f"model 'm' must be a fitted ChainCRF or the path .*, got {type(model).__name__}"
        with pytest.raises(TypeError, match=what):
            serve.app({"m": model})
    with pytest.raises(ValueError, match="ChainCRF instance is not fitted"):
        serve.app({"m": ChainCRF()})
    with pytest.raises(ValueError, match="no model"):
        serve.app({})
    with pytest.raises(ValueError, match="address"):
        serve.app({"a/b": "x"})
