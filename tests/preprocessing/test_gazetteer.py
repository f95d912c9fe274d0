"""Names of lists in sequences of tokens."""

import pickle
import random

import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from chordal import ChainCRF
from chordal.preprocessing import Gazetteer
from chordal.text import Columns

CITIES = ["York", "New York", "New York City", "Rome"]


def marks(words, names, **options):
    (row,) = Gazetteer({"n": names}, key=0, **options).transform([[[word] for word in words]])
    return [cell[0] for _, cell in row]


def test_the_longest_name_wins():
    assert marks(["in", "New", "York", "City"], CITIES) == ["O", "B", "I", "I"]
    assert marks(["New", "York", "Rome", "York"], CITIES) == ["B", "I", "B", "B"]
    assert marks(["New"], CITIES) == ["O"]
    assert marks([], CITIES) == []


def test_a_longer_name_that_breaks_off_leaves_the_shorter_one():
    assert marks(["a", "b", "c", "x"], ["a b", "a b c d", "c x"]) == ["B", "I", "B", "I"]


def test_against_a_search_of_all_spans():
    rng = random.Random(0)
    for _ in range(200):
        names = [tuple(rng.choices("abc", k=rng.randint(1, 4))) for _ in range(5)]
        words = rng.choices("abcd", k=12)
        expected, t = [], 0
        while t < len(words):
            sizes = [len(n) for n in names if tuple(words[t : t + len(n)]) == n]
            size = max(sizes, default=0)
            expected += ["B"] + ["I"] * (size - 1) if size else ["O"]
            t += size or 1
        assert marks(words, names) == expected


def test_case():
    assert marks(["NEW", "york"], CITIES) == ["O", "O"]
    assert marks(["NEW", "york"], CITIES, ignore_case=True) == ["B", "I"]


def test_every_form_of_tokens():
    gazetteer = Gazetteer({"city": CITIES, "first": ["Rome"]})
    words = [["to", "Rome"]]
    assert gazetteer.transform(words) == [
        [{"word": "to"}, {"word": "Rome", "city": "B", "first": "B"}]
    ]
    dicts = [[{"word": "to", "n": 1}, {"word": "Rome"}]]
    assert gazetteer.transform(dicts) == [
        [{"word": "to", "n": 1}, {"word": "Rome", "city": "B", "first": "B"}]
    ]
    assert dicts == [[{"word": "to", "n": 1}, {"word": "Rome"}]]
    lists = [[["x", "word=to"], ["word:Rome"]]]
    assert gazetteer.transform(lists) == [[["x", "word=to"], ["word:Rome", "city:B", "first:B"]]]


def test_columns_for_templates():
    rows = [[["to", "TO"], ["Rome", "NNP"]], [], [["York", "NNP"]]]
    gazetteer = Gazetteer({"city": CITIES, "first": ["Rome"]}, key=0)
    expected = [
        [["to", "TO", "O", "O"], ["Rome", "NNP", "B-city", "B-first"]],
        [],
        [["York", "NNP", "B-city", "O"]],
    ]
    assert gazetteer.transform(rows) == expected
    columns = gazetteer.transform(Columns.from_sequences(rows))
    assert isinstance(columns, Columns)
    assert columns.rows() == expected
    y = [["O", "L"], [], ["L"]]
    crf = ChainCRF(feature_template="U0:%x[0,2]\nB").fit(columns, y)
    assert crf.predict(gazetteer.transform([[["Rome", "X"], ["b", "X"]]])) == [["L", "O"]]


def test_files(tmp_path):
    path = tmp_path / "cities.txt"
    path.write_text("Rome\n\nNew  York \nZürich\n", encoding="utf-8")
    for given in (path, str(path)):
        found = Gazetteer({"c": given}, key=0).transform([[["New"], ["York"], ["Zürich"]]])
        assert [row[1] for row in found[0]] == ["B-c", "I-c", "B-c"]


def test_scikit_learn():
    gazetteer = Gazetteer({"city": CITIES})
    same = clone(gazetteer).set_params(ignore_case=True)
    assert same.get_params() == {"lists": {"city": CITIES}, "key": "word", "ignore_case": True}
    assert same.transform([["ROME"]]) == [[{"word": "ROME", "city": "B"}]]
    X, y = [["in", "Rome"], ["to", "York", "now"]], [["O", "L"], ["O", "L", "O"]]
    model = make_pipeline(gazetteer, ChainCRF()).fit(X, y)
    assert model.predict([["via", "New", "York"]])[0][1] == "L"
    assert pickle.loads(pickle.dumps(model)).predict(X) == y


def test_bad_input():
    with pytest.raises(TypeError, match="lists must be a dict"):
        Gazetteer(["Rome"]).fit()
    with pytest.raises(ValueError, match="list 'city' is empty"):
        Gazetteer({"city": [""]}).fit()
    with pytest.raises(TypeError, match="names of list 'city' must be str"):
        Gazetteer({"city": [[1]]}).fit()
    good = {"city": CITIES}
    with pytest.raises(ValueError, match=r"X\[0\]\[1\] has no str 'word'; set key"):
        Gazetteer(good).transform([[{"word": "a"}, {"w": "b"}]])
    with pytest.raises(ValueError, match=r"X\[0\]\[0\] has no cell 2"):
        Gazetteer(good, key=2).transform([[["a", "b"]]])
    with pytest.raises(ValueError, match=r"X\[0\]\[0\] has 'city' already"):
        Gazetteer(good).transform([[{"word": "Rome", "city": 1}]])
    with pytest.raises(ValueError, match="key must be the number of a column"):
        Gazetteer(good).transform(Columns.from_sequences([[["a"]]]))
    with pytest.raises(ValueError, match="Invalid parameter 'case'"):
        Gazetteer(good).set_params(case=True)
