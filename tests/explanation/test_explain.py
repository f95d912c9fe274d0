"""Explanations add up to log-odds that brute force gives, and flips are what the model says."""

import json
import math

import numpy as np
import pytest

from chordal import (
    HMM,
    ChainCRF,
    CRFClassifier,
    GraphCRF,
    GridCRF,
    MatchingModel,
    NaiveBayes,
    UnsupportedError,
    explain,
)
from chordal.emissions.categorical import Categorical
from chordal.emissions.gaussian import Gaussian
from chordal.model_selection import ChainCRFCV

from .models import LISTS, NAMES, ROWS, TAGS, TEMPLATE, BruteForce, listed, models

ODDS = ("marginal", "conditional")


def every_place(model, x):
    """Each variable's name, and its number in the potentials."""
    potentials = model.potentials(listed(model, x))
    n = potentials.structure.n_variables
    if isinstance(model, GridCRF):
        return [(at, k) for k, at in enumerate(np.ndindex(x.shape[:-1]))]
    if hasattr(model, "node_types"):
        return [(("word", k), k) for k in range(3)] + [(("text", 0), 3)]
    return [(k, k) for k in range(n)]


def classes_at(model, at):
    if hasattr(model, "node_types"):
        return model.classes_[at[0]].tolist()
    return [0, 1] if hasattr(model, "label_names_") else model.classes_.tolist()


def predicted_codes(model, x):
    return model.predict_codes(listed(model, x))


@pytest.mark.parametrize("odds", ODDS)
@pytest.mark.parametrize("name", NAMES)
def test_contributions_add_up_to_what_brute_force_says(name, odds):
    model, x = models()[name]
    brute = BruteForce(model, x)
    codes = predicted_codes(model, x)
    for at, v in every_place(model, x):
        found = explain(model, x, at, odds=odds)
        classes = classes_at(model, at)
        a, b = classes.index(found.label), classes.index(found.rival)
        if odds == "marginal":
            expected = brute.marginal(v, a) - brute.marginal(v, b)
            every = [brute.marginal(v, k) for k in range(len(classes))]
        else:
            expected = brute.conditional(v, a, codes) - brute.conditional(v, b, codes)
            every = [brute.conditional(v, k, codes) for k in range(len(classes))]
        assert found.odds == odds
        assert found.exact
        np.testing.assert_allclose(found.log_odds, expected, rtol=0, atol=1e-9)
        total = math.fsum(own.amount for own in found.contributions)
        np.testing.assert_allclose(total, expected, rtol=0, atol=1e-9)
        shares = np.exp(every - np.max(every))
        np.testing.assert_allclose(found.probability, shares[a] / shares.sum(), atol=1e-9)
        np.testing.assert_allclose(found.rival_probability, shares[b] / shares.sum(), atol=1e-9)
        assert a == codes[v]
        assert every[b] == max(every[k] for k in range(len(classes)) if k != a)
        for own in found.contributions:
            if own.parts:
                np.testing.assert_allclose(sum(p.amount for p in own.parts), own.amount, atol=1e-9)


@pytest.mark.parametrize("seed", range(1, 4))
def test_other_weights_and_given_labels(seed):
    for model, x in models(seed).values():
        brute = BruteForce(model, x)
        at, v = every_place(model, x)[-1]
        classes = classes_at(model, at)
        found = explain(model, x, at, label=classes[0], rival=classes[-1], odds="marginal")
        expected = brute.marginal(v, 0) - brute.marginal(v, len(classes) - 1)
        total = math.fsum(own.amount for own in found.contributions)
        np.testing.assert_allclose([found.log_odds, total], expected, rtol=0, atol=1e-9)
        assert (found.label, found.rival) == (classes[0], classes[-1])


def test_an_attribute_is_worth_what_its_removal_changes():
    """The other road: read the example without it, and sum over all labellings."""
    model, x = models()["lists"]
    for t, attributes in enumerate(x):
        found = explain(model, x, t)
        a, b = (model.classes_.tolist().index(own) for own in (found.label, found.rival))
        amounts = {own.name: own.amount for own in found.contributions if own.kind == "attribute"}
        assert set(amounts) == set(attributes)
        for name, amount in amounts.items():
            less = [list(own) for own in x]
            less[t].remove(name)
            brute = BruteForce(model, less)
            left = brute.marginal(t, a) - brute.marginal(t, b)
            np.testing.assert_allclose(found.log_odds - left, amount, rtol=0, atol=1e-9)


def test_links_of_a_chain_are_its_messages():
    model, x = models()["lists"]
    found = explain(model, x, 2)
    links = {own.name: own for own in found.contributions if own.kind == "link"}
    assert {name: own.neighbours for name, own in links.items()} == {
        "positions before": (1,),
        "positions after": (3,),
    }
    a, b = (model.classes_.tolist().index(own) for own in (found.label, found.rival))
    alone = BruteForce(model, x)
    tables = alone.potentials.untied()
    cells = tables.tables.copy()
    begin = tables.table_offsets[2]
    cells[begin : tables.table_offsets[3]] = 0.0  # the clique of positions 2 and 3
    alone.potentials = tables.like(tables.unary, cells)
    alone.scores = np.array([alone.potentials.score(own)[0] for own in alone.labellings])
    unary = tables.unary.reshape(len(x), -1)[2]
    before = alone.marginal(2, a) - alone.marginal(2, b) - (unary[a] - unary[b])
    np.testing.assert_allclose(links["positions before"].amount, before, rtol=0, atol=1e-9)


def test_parts_of_the_graph_that_a_loop_holds_together_are_one_link():
    model, x = models()["loop"]  # 0, 1, 2 are a loop; 3 and 4 hang on 2
    links = [own for own in explain(model, x, 2).contributions if own.kind == "link"]
    assert {own.neighbours for own in links} == {(0, 1), (3,)}
    links = list(explain(model, x, 2, odds="conditional").contributions)
    assert {own.neighbours for own in links if own.kind == "link"} == {(0,), (1,), (3,)}


@pytest.mark.parametrize("odds", ODDS)
def test_a_flip_is_the_smallest_and_the_model_confirms_it(odds):
    flips = 0
    for seed in range(3):
        for model, x in models(seed).values():
            for at, _ in every_place(model, x):
                found = explain(model, x, at, odds=odds)
                side = 1.0 if found.log_odds >= 0.0 else -1.0
                gains = sorted(
                    (side * o.amount for o in found.contributions if o.kind == "attribute"),
                    reverse=True,
                )
                gains = [gain for gain in gains if gain > 0.0]
                if found.flip is None:
                    assert side * found.log_odds - sum(gains) >= -1e-9
                    continue
                flips += 1
                n = len(found.flip.removed)
                left = found.log_odds - sum(own.amount for own in found.flip.removed)
                np.testing.assert_allclose(found.flip.log_odds, left, rtol=0, atol=1e-9)
                assert found.flip.confirmed
                assert side * found.flip.log_odds < 0.0
                assert side * found.log_odds - sum(gains[: n - 1]) >= -1e-9  # no smaller set does
    assert flips > 50


def test_a_flip_is_what_predict_says_without_the_attributes():
    changed = 0
    for seed in range(5):
        model, x = models(seed)["lists"]
        for t in range(len(x)):
            flip = explain(model, x, t).flip
            if flip is not None:
                gone = {own.name for own in flip.removed}
                less = [[v for v in own if k != t or v not in gone] for k, own in enumerate(x)]
                assert model.predict([less])[0][t] == flip.prediction
                assert flip.changes_prediction == (model.predict([x])[0][t] != flip.prediction)
                changed += flip.changes_prediction
    assert changed


def test_by_default_the_variable_that_the_model_is_least_sure_of():
    model, x = models()["lists"]
    marginals, best = model.predict_marginals([x])[0], model.predict_codes([x])
    assert explain(model, x).at == int(np.argmin(marginals[np.arange(len(x)), best]))


def test_templates_explain_their_attributes():
    crf = ChainCRF(feature_template=TEMPLATE).fit(ROWS, TAGS)
    found = explain(crf, ROWS[0], 1, odds="conditional")
    meanings = {own.name: own.meaning for own in found.contributions}
    assert meanings["U1:the"] == "column 0, 1 before"
    link = next(own for own in found.contributions if own.kind == "link")
    assert any(part.name.startswith("B0:") for part in link.parts)


def test_names_of_columns_come_from_the_frame():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"width": [1.0, 2.0, -1.0], "height": [0.5, -0.5, 2.0]})
    model = CRFClassifier().fit(frame, ["a", "a", "b"])
    for x in (frame.iloc[0], frame.iloc[[0]]):
        found = explain(model, x)
        assert {"width", "height"} <= {own.name for own in found.contributions}


def test_scores_of_a_first_stage_are_named_by_their_labels():
    model, x = models()["two stages"]
    found = explain(model, x, 1, odds="conditional")
    own = {c.name: c.amount for c in found.contributions if c.kind == "attribute"}
    assert set(own) == {f"score of {label!r}" for label in model.classes_.tolist()}
    scores = model.node_scores([x])[0][1]
    a, b = (model.classes_.tolist().index(label) for label in (found.label, found.rival))
    np.testing.assert_allclose(own[f"score of {found.label!r}"], scores[a], atol=1e-9)
    np.testing.assert_allclose(own[f"score of {found.rival!r}"], -scores[b], atol=1e-9)
    assert np.count_nonzero(list(own.values())) == 2


def test_rows_have_no_position():
    model, x = models()["naive bayes"]
    found = explain(model, x)
    assert found.place == "row"
    assert str(found).startswith(f"NaiveBayes: {found.label!r} against")


def test_inference_that_is_not_exact_says_so():
    model, x = models()["loop"]
    model = GraphCRF(tables="full", inference="mean_field").fit([x], [["a", "b", "c", "a", "b"]])
    assert explain(model, x, 2).odds == "conditional"
    found = explain(model, x, 2, odds="marginal")
    assert not found.exact
    assert "approximate, mean_field" in str(found)
    marginals, classes = model.predict_marginals([x])[0][2], model.classes_.tolist()
    a, b = classes.index(found.label), classes.index(found.rival)
    np.testing.assert_allclose(found.log_odds, np.log(marginals[a] / marginals[b]), atol=1e-9)
    assert [own.neighbours for own in found.contributions if own.kind == "link"] == [(0, 1, 3)]
    total = sum(own.amount for own in found.contributions)
    np.testing.assert_allclose(total, found.log_odds, rtol=0, atol=1e-9)


def test_methods_without_marginals_are_explained_by_conditional_odds():
    model, x = models()["loop"]
    model = GraphCRF("hinge", inference="exhaustive", tables="full").fit([x], [list("abcab")])
    model.set_params(inference="icm")
    assert explain(model, x, 0).odds == "conditional"
    with pytest.raises(UnsupportedError, match="marginals"):
        explain(model, x, 0, odds="marginal")


def test_extreme_scores_do_not_underflow():
    crf = ChainCRF(pairs="all").fit(LISTS, TAGS)
    crf.weights_ = 400.0 * np.random.default_rng(0).normal(size=len(crf.weights_))
    found = explain(crf, LISTS[2], 2)
    assert abs(found.log_odds) > 100
    assert math.isfinite(found.log_odds)
    total = sum(own.amount for own in found.contributions)
    np.testing.assert_allclose(total, found.log_odds, rtol=1e-9)


def forbidding():
    """A model in which "rain" forbids H, and "sun" forbids L."""
    X = [["sun", "fog"], ["rain", "fog"], ["rain", "rain"]]
    return HMM(Categorical(alpha=0.0)).fit(X, [["H", "L"], ["L", "L"], ["L", "L"]])


@pytest.mark.parametrize("odds", ODDS)
def test_a_label_without_a_possible_rival_has_infinite_odds(odds):
    found = explain(forbidding(), ["rain", "rain"], 0, odds=odds)
    assert (found.label, found.rival, found.log_odds) == ("L", "H", math.inf)
    amounts = {own.name: own.amount for own in found.contributions}
    assert amounts["rain"] == sum(amounts.values()) == math.inf
    other = explain(HMM(alpha=0.0).fit([["s", "r"]] * 2, [[0, 1]] * 2), ["s"], 0, odds=odds)
    assert (other.label, other.rival, other.log_odds) == (0, 1, math.inf)


@pytest.mark.parametrize("odds", ODDS)
def test_without_the_attribute_that_forbids_it_the_other_label_may_win(odds):
    found = explain(forbidding(), ["sun"], 0, odds=odds)
    assert (found.label, found.log_odds) == ("H", math.inf)
    assert [own.name for own in found.flip.removed] == ["sun"]
    assert found.flip.confirmed
    assert found.flip.prediction == "L"
    np.testing.assert_allclose(found.flip.log_odds, np.log(2 / 3), rtol=0, atol=1e-9)
    assert explain(forbidding(), ["rain"], 0, odds=odds).flip is None


def test_columns_of_emissions_have_the_names_of_what_they_are():
    def names(model, x, at=None):
        found = explain(model, x, at).contributions
        return {own.name for own in found if own.kind == "attribute"}

    assert names(forbidding(), ["rain", "sun"], 0) == {"rain"}
    X = [["sun", "hot"], ["rain", "cold"], ["rain", "hot"]]
    assert names(NaiveBayes("categorical").fit(X, [0, 1, 1]), X[1]) == {"x0=rain", "x1=cold"}
    rows = np.random.default_rng(0).normal(size=(9, 2))
    labels = [0, 1, 1] * 3
    assert names(NaiveBayes().fit(rows, labels), rows[0]) == {"z0", "z1", "z0²", "z1²"}
    full = NaiveBayes(Gaussian("full")).fit(rows, labels)
    assert names(full, rows[0]) == {"z0", "z1", "z0²", "z0·z1", "z1²"}
    assert "rain" in forbidding()._repr_html_()


def test_a_search_is_explained_by_what_it_chose():
    search = ChainCRFCV(l2s=[0.1, 1.0], cv=2).fit(LISTS, TAGS)
    found = explain(search, LISTS[0], 1)
    assert found.log_odds == explain(search.estimator_, LISTS[0], 1).log_odds


def test_forms():
    model, x = models()["templates"]
    found = explain(model, x, 2)
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["log_odds"] == found.log_odds
    assert [own["amount"] for own in plain["contributions"]] == [
        own.amount for own in found.contributions
    ]
    frame = found.to_frame()
    assert frame["amount"].sum() == pytest.approx(found.log_odds, abs=1e-9)
    assert list(frame.columns)[:2] == ["kind", "name"]
    assert str(found).splitlines()[0] == f"TemplateCRF, node 2: {found.label!r} against " + repr(
        found.rival
    )
    with pytest.raises(AttributeError):
        found.label = "x"


def test_bad_questions():
    crf, x = models()["lists"]
    with pytest.raises(IndexError, match="position from 0 to 4, got 5"):
        explain(crf, x, 5)
    with pytest.raises(TypeError, match="number of a position, got 'the'"):
        explain(crf, x, "the")
    with pytest.raises(ValueError, match=r"label must be one of .*; got 'X'"):
        explain(crf, x, 0, label="X")
    with pytest.raises(ValueError, match="must differ"):
        explain(crf, x, 0, label="N", rival="N")
    with pytest.raises(ValueError, match="odds must be"):
        explain(crf, x, 0, odds="even")
    with pytest.raises(ValueError, match="x is empty"):
        explain(crf, [])
    with pytest.raises(ValueError, match="not fitted"):
        explain(ChainCRF(), x)
    with pytest.raises(TypeError, match="must be one of chordal's"):
        explain(object(), x)
    with pytest.raises(ValueError, match="must be one example, got 2"):
        explain(models()["three classes"][0], np.zeros((2, 3)))
    image = models()["grid"]
    with pytest.raises(TypeError, match="2 coordinates"):
        explain(*image, 3)
    with pytest.raises(IndexError, match="shape"):
        explain(*image, (0, 3))
    with pytest.raises(ValueError, match="'word', 0"):
        explain(*models()["typed"], ("word", 9))
    matching = MatchingModel().fit([np.zeros((2, 2, 1))], [[0, 1]])
    with pytest.raises(UnsupportedError, match="matching"):
        explain(matching, np.zeros((2, 2, 1)))
    with pytest.raises(ValueError, match="one label"):
        explain(ChainCRF().fit([[["a"]]], [["A"]]), [["a"]])
    assert explain(crf, x, -1).at == len(x) - 1


HOSTILE = [
    "<script>alert(1)</script>",
    "\"' onmouseover='x",
    "\x1b[31mred\x1b]0;title\x07",
    "\u202egnp.exe",
    "\u05e9\u05dc\u05d5\u05dd",
    "a\nb",
]


def test_hostile_text_is_shown_as_text():
    X, y = [[[name] for name in HOSTILE]], [[f"L{name}" for name in HOSTILE]]
    crf = ChainCRF(l2=0.1).fit(X, y)
    for t in range(len(HOSTILE)):
        found = explain(crf, X[0], t)
        terminal, html = str(found), found._repr_html_()
        for text in (terminal, html):
            assert not set(text) & {"\x1b", "\x07", "\u202e"}
        assert len(terminal.splitlines()) == 3 + sum(o.amount != 0 for o in found.contributions)
        assert "<script" not in html
        assert "onmouseover='x" not in html
