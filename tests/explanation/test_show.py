"""Predictions with their tokens: spans, offsets, exports, HTML that shows text as text."""

import base64
import io
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from chordal import ChainCRF, Columns, GridCRF, UnsupportedError, explain, show
from chordal.model_selection import ChainCRFCV

from .models import LISTS, ROWS, TAGS, TEMPLATE, models
from .test_explain import HOSTILE

WORDS = ["in", "New", "York", "with", "Anna"]
TAGGED = ["O", "B-LOC", "I-LOC", "O", "B-PER"]


@pytest.fixture(scope="module")
def tagger():
    return ChainCRF(l2=0.01).fit([[[w] for w in WORDS], [["Anna"]]], [TAGGED, ["B-PER"]])


X = [[w] for w in WORDS]


class Page(HTMLParser):
    """The text of a page, and its tags."""

    def __init__(self, html):
        super().__init__()
        self.words, self.tags, self.attributes = [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attributes]

    def handle_data(self, data):
        self.words.append(data)


def test_entities_and_their_probabilities(tagger):
    found = show(tagger, X)
    assert [(s.start, s.end, s.label) for s in found.spans] == [(1, 3, "LOC"), (4, 5, "PER")]
    expected = tagger.span_probabilities([X], [[(1, 3, "LOC"), (4, 5, "PER")]])[0]
    assert [s.probability for s in found.spans] == expected.tolist()
    marginals = tagger.predict_marginals([X])[0]
    np.testing.assert_allclose(found.probabilities, marginals.max(axis=1))
    loc, per = (s.probability for s in found.spans)
    assert str(found) == f"in [New York LOC {loc:.2f}] with [Anna PER {per:.2f}]"


def test_displacy(tagger):
    text = "in  New York, with Anna."
    found = show(tagger, X, text=text).to_displacy(title="A trip")
    assert found == {
        "text": text,
        "ents": [
            {"start": 4, "end": 12, "label": "LOC"},
            {"start": 19, "end": 23, "label": "PER"},
        ],
        "title": "A trip",
    }
    assert json.loads(json.dumps(found)) == found


def test_displacy_renders_it(tagger):
    displacy = pytest.importorskip("spacy.displacy")
    html = displacy.render(show(tagger, X).to_displacy(), style="ent", manual=True)
    assert "New York" in html


def test_label_studio(tagger):
    found = show(tagger, X)
    task = json.loads(json.dumps(found.to_label_studio(from_name="ner", model_version="v2")))
    (prediction,) = task["predictions"]
    assert task["data"] == {"text": "in New York with Anna"}
    assert prediction["model_version"] == "v2"
    assert prediction["score"] == min(s.probability for s in found.spans)
    first = prediction["result"][0]
    assert first["value"] == {"start": 3, "end": 11, "text": "New York", "labels": ["LOC"]}
    assert (first["from_name"], first["to_name"], first["type"]) == ("ner", "text", "labels")
    assert first["score"] == found.spans[0].probability
    ids = [own["id"] for own in prediction["result"]]
    assert len(set(ids)) == len(ids)


def test_where_tokens_come_from(tagger):
    assert show(tagger, X).tokens == tuple(WORDS)
    assert show(tagger, X, list("abcde")).tokens == tuple("abcde")
    with pytest.raises(ValueError, match="tokens must be 5, one per position, got 1"):
        show(tagger, X, ["a"])
    with pytest.raises(ValueError, match="token 1, 'New', is not in the text"):
        show(tagger, X, text="in Paris")
    with pytest.raises(TypeError, match="text must be a str in which the tokens stand, got list"):
        show(tagger, X, text=WORDS)
    crf = ChainCRF(feature_template=TEMPLATE).fit(ROWS, TAGS)
    for x in (ROWS[0], Columns.from_sequences(ROWS[:1])):
        assert show(crf, x).tokens == ("the", "cat", "sleeps", "now")
    assert show(*models()["dicts"]).tokens[:2] == ("the", "dog")
    assert show(*models()["lists"]).tokens[:2] == ("the", "dog")  # of "w=the" and "w=dog"
    assert show(tagger, [["http://a?b=c"], ["w"], []]).tokens == ("http://a?b=c", "w", "2")
    assert show(*models()["arrays"]).tokens == tuple("01234")
    assert show(*models()["tree"]).tokens == tuple("01234")


def test_plain_labels_are_spans_of_one_token():
    model, x = models()["lists"]
    found = show(model, x)
    assert [s.label for s in found.spans] == model.predict([x])[0]
    assert [s.probability for s in found.spans] == list(found.probabilities)


def test_iob1_tells_no_probability_of_entities():
    crf = ChainCRF().fit([[["a"], ["b"]]], [["I-X", "O"]])
    assert show(crf, [["a"], ["b"]]).spans[0].probability is None
    task = show(crf, [["a"], ["b"]]).to_label_studio()
    assert "score" not in task["predictions"][0]["result"][0]


def test_images():
    Image = pytest.importorskip("PIL.Image")
    model, x = models()["grid"]
    found = show(model, x)
    np.testing.assert_array_equal(found.labels.astype(int), model.predict([x])[0])
    np.testing.assert_allclose(found.probabilities.max() <= 1.0, True)
    html = found._repr_html_()
    data = base64.b64decode(re.search(r"base64,([^\"]+)", html)[1])
    image = np.asarray(Image.open(io.BytesIO(data)))
    assert image.shape == (2, 3, 3)
    same = found.codes.ravel()
    hues = image.reshape(-1, 3).argmax(axis=1)  # the strongest channel tells the label here
    for k in set(same.tolist()):
        assert len(set(hues[same == k].tolist())) == 1
    volume = np.random.default_rng(0).normal(size=(2, 2, 3, 1))
    crf = GridCRF(neighbours=6).fit([volume], [(volume[..., 0] > 0).astype(int)])
    assert show(crf, volume)._repr_html_().count("<img") == 2
    assert "image of 2 × 2 × 3 pixels" in str(show(crf, volume))


def test_others_are_refused():
    for name in ("three classes", "multi-label", "typed"):
        with pytest.raises(UnsupportedError, match="show is for sequences"):
            show(*models()[name])


def everything(crf, x):
    yield show(crf, x)
    yield explain(crf, x)
    yield crf
    yield crf.fit_report_


def test_hostile_text_is_shown_as_text():
    x = [[name] for name in HOSTILE]
    crf = ChainCRF(l2=0.1).fit([x], [[f"B-{name}" for name in HOSTILE]])
    safe = {"div", "b", "bdi", "table", "thead", "tbody", "tr", "th", "td", "mark", "span"}
    for shown in everything(crf, x):
        html = shown._repr_html_()
        if shown is crf:  # scikit-learn's diagram has a script of its own
            html = crf._learned_html()
            safe |= {"details", "summary"}
        page = Page(html)
        assert set(page.tags) <= safe
        assert set(page.attributes) <= {"style"}
        assert not set(html) & {"\x1b", "\x07", "\u202e", "\n"}
    terminal = str(show(crf, x))
    assert not set(terminal) & {"\x1b", "\x07", "\u202e", "\n"}
    text = "".join(Page(show(crf, x)._repr_html_()).words)
    assert HOSTILE[0] in text
    assert HOSTILE[4] in text  # Hebrew, as it is


def test_bars_begin_below_the_arrows_and_long_words_break():
    found = explain(*models()["lists"], 1)
    html = found._repr_html_()
    width = re.search(r"position:relative;width:(\d+)px", html)[1]
    assert f'<div style="width:{width}px;display:flex' in html
    text = "".join(Page(html).words)
    assert f"{found.rival!r} ←→ {found.label!r}" in text
    for own in (found, show(*models()["lists"]), models()["lists"][0].fit_report_):
        assert "overflow-wrap:anywhere" in own._repr_html_()


def test_every_fitted_estimator_shows_what_it_learned():
    for name, (model, _) in models().items():
        html = model._learned_html()
        assert "What was learned" in html, name
        assert "solver" in html or name in ("hmm", "naive bayes"), name
    assert ChainCRF()._learned_html() == ""


def test_a_report_has_its_facts():
    report = models()["lists"][0].fit_report_
    words = Page(report._repr_html_()).words
    assert words[words.index("iterations") + 1] == str(report.n_iter)
    assert words[words.index("status") + 1] == "converged"
    assert words[words.index("weights that are not zero") + 1] == str(report.n_nonzero)
    assert "nan" not in words


def test_a_search_shows_its_scores_and_what_its_model_learned():
    search = ChainCRFCV(l2s=[0.1, 1.0], cv=2)
    assert search._learned_html() == ""
    html = search.fit(LISTS, TAGS)._learned_html()
    words = Page(html).words
    chosen = search.best_params_["l2"]
    assert f"Choice: l2 = {chosen:g}" in words
    best = search.scores_[search.values_ == chosen].mean()
    assert any(word.startswith(f"{best:.4f} ±") for word in words)
    assert search.estimator_._learned_html() in html
