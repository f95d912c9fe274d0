"""eli5's tables of weights hold our weights."""

import numpy as np
import pytest

from chordal import ChainCRF, ChainCRFCV, GraphCRF, MultiLabelCRF
from chordal.estimators import Wrapped

from .models import GENERATIVE, LISTS, NAMES, TAGS, models

eli5 = pytest.importorskip("eli5", reason='needs "chordal[explain]"')


@pytest.fixture(autouse=True)
def registered():
    import chordal.explanation.eli5  # noqa: F401


def weights_of(target):
    own = target.feature_weights
    return {item.feature: item.weight for item in (*own.pos, *own.neg)}


def test_a_chain():
    crf = ChainCRF(fit_intercept=True, ends=True, pairs="all").fit(LISTS, TAGS)
    found = eli5.explain_weights(crf, top=None)
    assert found.error is None
    assert [own.target for own in found.targets] == crf.classes_.tolist()
    np.testing.assert_array_equal(found.transition_features.coef, crf.transitions_)
    coef, names = crf.coef_.toarray(), [crf.input_.name(k) for k in range(crf.input_.n_columns)]
    for k, own in enumerate(found.targets):
        weights = weights_of(own)
        assert weights.pop("<BIAS>", 0.0) == crf.intercept_[k]
        assert weights.pop("<start>", 0.0) == crf.start_[k]
        assert weights.pop("<end>", 0.0) == crf.end_[k]
        expected = {name: w for name, w in zip(names, coef[k], strict=True) if w}
        assert weights == expected


def test_choices():
    crf = ChainCRF().fit(LISTS, TAGS)
    found = eli5.explain_weights(crf, top=2, targets=["V", "D"], feature_re="^w=")
    assert [own.target for own in found.targets] == ["V", "D"]
    for own in found.targets:
        weights = weights_of(own)
        assert len(weights) <= 2
        assert all(name.startswith("w=") for name in weights)
    order = [crf.classes_.tolist().index(name) for name in ("V", "D")]
    np.testing.assert_array_equal(
        found.transition_features.coef, crf.transitions_[np.ix_(order, order)]
    )
    few = eli5.explain_weights(crf, top=(1, 0)).targets[0].feature_weights
    assert (len(few.pos), len(few.neg)) == (1, 0)
    assert few.neg_remaining > 0


@pytest.mark.parametrize("name", NAMES)
def test_every_estimator_is_formatted(name):
    model, _ = models()[name]
    found = eli5.explain_weights(model)
    if name == "typed":
        assert "several types" in found.error
        return
    assert found.error is None
    assert isinstance(model, Wrapped) == (name in GENERATIVE)
    assert eli5.format_as_text(found)
    assert "<script" not in eli5.format_as_html(found)


def test_pairs_of_a_symmetric_table():
    graph = (np.eye(3), np.array([(0, 1), (1, 2)]))
    crf = GraphCRF().fit([graph], [["a", "b", "a"]])
    coef = eli5.explain_weights(crf).transition_features.coef
    np.testing.assert_array_equal(coef, crf.pair_intercept_)
    np.testing.assert_array_equal(coef, coef.T)


def test_not_fitted():
    with pytest.raises(ValueError, match="not fitted"):
        eli5.explain_weights(ChainCRF())
    with pytest.raises(ValueError, match="not fitted"):
        eli5.explain_weights(ChainCRFCV())


def test_a_search_shows_the_weights_of_what_it_chose():
    search = ChainCRFCV(l2s=[1.0], cv=2).fit(LISTS * 2, TAGS * 2)
    found = eli5.explain_weights(search)
    assert found.estimator == repr(search)
    assert found.targets == eli5.explain_weights(search.estimator_).targets


@pytest.mark.parametrize("targets", [["Z"], [["D"]], [None], "D", 3])
def test_labels_that_are_unknown(targets):
    crf = ChainCRF(max_iter=2).fit(LISTS, TAGS)
    with pytest.raises((TypeError, ValueError), match=r"^targets (has the label|must be a list)"):
        eli5.explain_weights(crf, targets=targets)
    shown = eli5.explain_weights(crf, target_names=dict.fromkeys("D", "det"), targets=["det"])
    assert [own.target for own in shown.targets] == ["det"]


def test_columns_are_called_by_the_label_that_they_speak_for():
    X, y = np.eye(4)[:, :3], [{"sport"}, {"news"}, {"sport", "news"}, set()]
    found = eli5.explain_weights(MultiLabelCRF(max_iter=3).fit(X, y), top=None)
    names = {name for own in found.targets for name in weights_of(own)}
    assert {"x0 of sport", "x1 of news"} <= names
    assert not [name for name in names if "variable" in name]
