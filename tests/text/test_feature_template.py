"""Templates beside a plain statement of their meaning in Python."""

import itertools
import pickle
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chordal import ChainCRF, Columns, FeatureTemplate
from chordal.features import TemplateInput

ROWS = [["He", "PRP"], ["reckons", "VBZ"], ["the", "DT"], ["deficit", "NN"]]


def expanded(template, rows, dialect="crf++"):
    return FeatureTemplate(template, dialect).attributes(rows)


def test_cells_around_the_position_and_outside():
    found = expanded("U00:%x[-2,0]\nU01:%x[0,1]/%x[+1,0]\nU02:const", ROWS)
    assert found[0] == ["U00:_B-2", "U01:PRP/reckons", "U02:const"]
    assert found[3] == ["U00:reckons", "U01:NN/_B+1", "U02:const"]


def test_wapitis_names_of_what_lies_outside():
    found = expanded("U:%x[-6,0]|%x[-4,0]|%x[3,0]|%x[9,0]", ROWS, "wapiti")
    assert found[1] == ["U:_x-#|_x-3|_x+1|_x+#"]


def test_absolute_rows_count_from_one_and_from_the_end():
    assert expanded("u:%x[@1,0] %x[@-1,0] %x[@9,0]", ROWS)[2] == ["u:He deficit _B+5"]


def test_small_letters_and_shapes_know_unicode():
    rows = [["ÉCOLE"], ["Straße-12b"], ["東京"], ["iPhone"]]
    found = expanded("U:%X[0,0]|%s[0,0]", rows)
    assert [f[0] for f in found] == ["U:école|X", "U:straße-12b|Xx-dx", "U:東京|a", "U:iphone|xXx"]


def test_classes_and_small_letters_are_those_of_str():
    codes = (c for c in range(0x21, 0x110000) if not 0xD800 <= c < 0xE000)
    words = [c for c in map(chr, codes) if ord(c) % 97 == 0 or c.lower() != c or c.isdecimal()]
    tests = {"a": str.isalpha, "d": str.isdecimal, "l": str.islower, "u": str.istitle}
    tests |= {"s": str.isspace, "w": str.isalnum}
    lines = [f'{kind}:%m[0,0,"\\{kind}"]' for kind in tests]
    found = expanded(
        "\n".join(["U:%X[0,0]"] + [f"U{line}" for line in lines]), [[w] for w in words]
    )
    for word, names in zip(words, found, strict=True):
        kinds = [f"U{kind}:{word if holds(word) else ''}" for kind, holds in tests.items()]
        assert names == [f"U:{word.lower()[0]}", *kinds]


@pytest.mark.parametrize(
    ("pattern", "word", "expected"),
    [
        ("^...", "reckons", "rec"),
        ("^.?.?.?", "at", "at"),
        ("...$", "reckons", "ons"),
        ("...$", "at", ""),
        (r"\d\d*", "a123", "1"),  # as few as possible
        (r"\d*$", "a123", "123"),
        (r"^\u\l*$", "Paris", "Paris"),
        (r"^\u\l*$", "PARIS", ""),
        (r"^\u\l*$", "École", "École"),
        (r"\p", "U.S.", "."),
        (r"\P", "...a", "a"),
        (r"x\*?", "x*", "x*"),
        (r"\s", "a", ""),
        ("", "a", ""),
        ("$", "a", ""),
        ("a$b", "a$b", "a$b"),
    ],
)
def test_patterns(pattern, word, expected):
    found = expanded(f'U:%m[0,0,"{pattern}"]', [[word]])
    assert found == [[f"U:{expected}"]]


CLASSES = {
    "a": str.isalpha,
    "d": str.isdecimal,
    "w": str.isalnum,
    "u": str.isupper,
    "l": str.islower,
}


def search(elements, word, anchored, to_the_end):
    """All ways to match, tried in the documented order."""

    def is_a(kind, c):
        if kind == ".":
            return True
        if kind[0] == "\\":
            known = CLASSES[kind[1].lower()](c)
            return known if kind[1].islower() else not known
        return kind == c

    def ends(k, at):
        if k == len(elements):
            if not to_the_end or at == len(word):
                yield at
            return
        kind, count = elements[k]
        fits = at < len(word) and is_a(kind, word[at])
        if count == "*":
            yield from ends(k + 1, at)
            if fits:
                yield from ends(k, at + 1)
        elif count == "?":
            if fits:
                yield from ends(k + 1, at + 1)
            yield from ends(k + 1, at)
        elif fits:
            yield from ends(k + 1, at + 1)

    for start in range(1 if anchored else len(word) + 1):
        for end in ends(0, start):
            return word[start:end]
    return None


ELEMENT = st.tuples(
    st.sampled_from(["a", "b", "É", ".", "\\a", "\\d", "\\w", "\\u", "\\l", "\\U", "\\D"]),
    st.sampled_from(["", "", "*", "?"]),
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(ELEMENT, max_size=5),
    st.text(alphabet="abAÉé1٣ßǅ", min_size=1, max_size=7),
    st.booleans(),
    st.booleans(),
)
def test_patterns_beside_a_search_over_all_matches(elements, word, anchored, to_the_end):
    pattern = "^" * anchored + "".join(k + c for k, c in elements) + "$" * to_the_end
    expected = search(elements, word.replace("ǅ", "D"), anchored, to_the_end)
    found = expanded(f'U:%m[0,0,"{pattern}"]\nU:%t[0,0,"{pattern}"]', [[word.replace("ǅ", "D")]])
    assert found == [[f"U:{expected or ''}", f"U:{'false' if expected is None else 'true'}"]]


def test_wapitis_patterns_see_bytes():
    # é is two bytes and no letter in the C locale; ".$" cuts it.
    found = expanded('U:%t[0,0,"^\\a*$"]|%m[0,0,"^."]', [["été"], ["ete"]], "wapiti")
    assert found == [["U:false|\\xc3"], ["U:true|e"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("X00:%x[0,0]", "line 1 must begin with U, B, "),
        ("U0:%x[0]", "line 1, column 4: expected a macro"),
        ("# comment\nU0:%q[0,0]", "line 2, column 4"),
        ("U0:%t[0,0]", "%t needs a pattern"),
        ('U0:%x[0,0,"a"]', "%x takes no pattern"),
        ('U0:%m[0,0,"a**"]', "must follow a character"),
        ('U0:%m[0,0,"*"]', "must follow a character"),
        ("U0:%x[99999999,0]", "out of range"),
        ("# nothing\n\n", "has no lines"),
    ],
)
def test_bad_templates_name_the_line(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        FeatureTemplate(text)


def test_a_missing_column_is_named():
    with pytest.raises(ValueError, match="uses column 2, but the rows have 2"):
        ChainCRF(feature_template="U:%x[0,2]").fit([ROWS], [list("abcd")])


def test_unknown_attributes_are_dropped_and_known_ones_found():
    source = TemplateInput(FeatureTemplate("U:%x[0,0]"), "unigrams")
    first = source.read(Columns.from_sequences([[["a"], ["b"]]]), grow=True)
    again = source.read(Columns.from_sequences([[["b"], ["c"], ["a"]]]), grow=False)
    assert first.data.ids.tolist() == [0, 1]
    assert again.data.ids.tolist() == [1, 0]
    assert again.data.offsets.tolist() == [0, 1, 1, 2]
    assert source.n_columns == 2


MACRO = st.tuples(
    st.booleans(), st.sampled_from([-40, -17, -2, -1, 0, 1, 2, 16, 900]), st.sampled_from([0, 2])
)


def name_of(line, rows, t):
    """What a line of cells gives at position t, said plainly."""
    parts = []
    for absolute, offset, column in line:
        at = t + offset
        if absolute:
            at = len(rows) + offset if offset < 0 else offset - 1
        if at < 0:
            parts.append(f"_B{at}")
        elif at >= len(rows):
            parts.append(f"_B+{at - len(rows) + 1}")
        else:
            parts.append(rows[at][column])
    return "|".join(parts)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.lists(MACRO, max_size=3), min_size=1, max_size=6),
    st.lists(st.integers(1, 30), min_size=1, max_size=4),
    st.integers(0, 10**6),
)
def test_lines_beside_a_plain_statement(lines, lengths, seed):
    """One reader reads sequence after sequence, and remembers what it has met."""
    rng = np.random.default_rng(seed)
    macros = [[f"%x[{'@' * a}{o},{c}]" for a, o, c in line] for line in lines]
    text = "\n".join(f"U{k}:" + "|".join(parts) for k, parts in enumerate(macros))
    source = TemplateInput(FeatureTemplate(text), "unigrams")
    sequences = [rng.choice(["a", "b", "_B-1"], size=(n, 3)).tolist() for n in lengths]
    expected = [
        [f"U{k}:{name_of(line, rows, t)}" for k, line in enumerate(lines)]
        for rows in sequences
        for t in range(len(rows))
    ]
    known = source.read(Columns.from_sequences(sequences[:1]), grow=True)
    names = {source.name(k) for k in known.data.ids}
    assert names == set(itertools.chain(*expected[: lengths[0]]))
    for parts in (sequences, sequences[::-1], sequences):
        rows = [source.read(Columns.from_sequences([part]), grow=False).data for part in parts]
        if parts is sequences:
            found = [
                [source.name(k) for k in data.ids[a:b]]
                for data in rows
                for a, b in itertools.pairwise(data.offsets)
            ]
            assert found == [[name for name in row if name in names] for row in expected]


def test_long_sequences_and_more_names_than_are_remembered():
    lines = "\n".join(f"U{k}:%x[{k % 5 - 2},0]" for k in range(64))
    source = TemplateInput(FeatureTemplate(lines), "unigrams")
    words = [f"w{k}" for k in range(70_000)]
    source.read(Columns.from_sequences([[[w] for w in words[:10]]]), grow=True)
    columns = Columns.from_sequences([[[w] for w in words]])
    once, again = (source.read(columns, grow=False).data for _ in range(2))
    for data in (once, again):
        counts = np.diff(data.offsets)
        assert counts[2:8].tolist() == [64] * 6
        assert counts[12:-2].tolist() == [0] * (len(words) - 14)
    assert once.ids.tolist() == again.ids.tolist()


def test_what_is_learned_later_is_found():
    source = TemplateInput(FeatureTemplate("U:%x[0,0]"), "unigrams")
    columns = Columns.from_sequences([[["a"], ["b"]]])
    assert source.read(columns, grow=False).data.ids.tolist() == []
    assert source.read(columns[:0], grow=True).data.ids.tolist() == []
    assert source.read(columns, grow=True).data.ids.tolist() == [0, 1]
    assert source.read(columns, grow=False).data.ids.tolist() == [0, 1]


def test_threads_read_alike():
    source = TemplateInput(FeatureTemplate("U:%x[0,0]\nU:%x[-1,0]/%x[0,0]"), "unigrams")
    rng = np.random.default_rng(0)
    blocks = [
        Columns.from_sequences([rng.integers(50, size=(300, 1)).astype(str).tolist()])
        for _ in range(24)
    ]
    source.read(blocks[0], grow=True)
    alone = [source.read(block, grow=False).data.ids.tolist() for block in blocks]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda block: source.read(block, grow=False), blocks))
    assert [rows.data.ids.tolist() for rows in found] == alone


def attribute_lists(template, sequences):
    return [FeatureTemplate(template).attributes(rows) for rows in sequences]


@pytest.fixture
def sequences():
    rng = np.random.default_rng(0)
    words = ["the", "Cat", "sat", "on", "Mat", "1"]
    X = [[[words[k], words[k][:1]] for k in rng.integers(6, size=n)] for n in (1, 4, 7, 3) * 5]
    y = [["NM"[int(w[0].isupper())] if w != "1" else "D" for w, _ in s] for s in X]
    return X, y


def test_a_model_of_a_template_is_the_model_of_its_attributes(sequences):
    X, y = sequences
    template = "U0:%x[0,0]\nU1:%x[-1,0]/%s[0,0]\nU2:%x[1,1]\nB"
    by_template = ChainCRF(feature_template=template).fit(X, y)
    by_attributes = ChainCRF().fit(attribute_lists(template, X), y)
    assert by_template.objective_ == pytest.approx(by_attributes.objective_, rel=1e-12)
    assert by_template.predict(X) == by_attributes.predict(attribute_lists(template, X))
    assert pickle.loads(pickle.dumps(by_template)).predict(X) == by_template.predict(X)


def test_lines_b_observe_transitions(sequences):
    X, y = sequences
    by_template = ChainCRF(feature_template="U:%x[0,0]\nB1:%x[0,0]\nB").fit(X, y)
    by_function = ChainCRF(
        transition_features=lambda x: [[f"B1:{row[0].removeprefix('U:')}"] for row in x[1:]]
    ).fit(attribute_lists("U:%x[0,0]", X), y)
    assert by_template.objective_ == pytest.approx(by_function.objective_, rel=1e-9)
    assert (
        by_template.layout_["edge"].n_row_weights == by_function.layout_["edge"].n_row_weights > 0
    )


def test_without_b_labels_are_not_linked(sequences):
    X, y = sequences
    assert len(ChainCRF(feature_template="U:%x[0,0]").fit(X, y).layout_["transitions"].kept) == 0
    assert len(ChainCRF(feature_template="U:%x[0,0]\nB").fit(X, y).layout_["transitions"].kept) > 0
    star = ChainCRF(feature_template="*:%x[0,0]").fit(X, y)
    assert star.layout_["edge"].n_row_weights > 0


def test_columns_and_lists_give_the_same(sequences):
    X, y = sequences
    model = ChainCRF(feature_template="U:%x[0,0]\nB")
    columns = Columns.from_sequences(X)
    assert (
        model.fit(columns, y).weights_
        == ChainCRF(feature_template=model.feature_template).fit(X, y).weights_
    ).all()
    assert model.predict(columns) == model.predict(X)


def test_template_and_transition_features_exclude_each_other(sequences):
    with pytest.raises(ValueError, match="not both"):
        ChainCRF(feature_template="U:%x[0,0]", transition_features=len).fit(*sequences)
    with pytest.raises(TypeError, match="feature_template must be a str or a FeatureTemplate"):
        ChainCRF(feature_template=3).fit(*sequences)
