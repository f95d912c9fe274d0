"""Attributes of seminar announcements, and the pairs of words that skip-chains join."""

import numpy as np

from chordal.datasets import Seminars
from chordal.experiments._seminar_scores import agreed, f1, fields, inconsistent
from chordal.experiments._seminar_tokens import (
    Lexicon,
    clocks,
    joined,
    line_headers,
    published_tokens,
    skip_edges,
    tokens,
)


def test_a_capitalised_word_is_joined_to_its_next_mention_unless_side_by_side():
    words = ["Ann", "Lee", "met", "ANN", "LEE", ",", "Lee", "Lee", "and", "ann"]
    assert skip_edges(words) == [(0, 3), (1, 4), (4, 6)]


def test_an_edge_sees_what_stands_at_either_of_its_ends_but_for_words():
    rows = [["0:Xx", "1:x", "Xx|x"], ["0:x"], ["0:Xx", "-1:w=who", "line=who"]]
    assert joined(["Ann", ":", "Ann"], rows, [(0, 2)]) == [["0:Xx", "1:x", "line=who"]]


def test_an_edge_sees_whether_the_words_around_its_ends_are_equal():
    words = ["Ann", "Lee", "met", "Mr", "LEE", ",", "Ann", "Lee", "Met"]
    rows = [[]] * len(words)
    seen = joined(words, rows, [(0, 6), (1, 4), (1, 7), (4, 7)])
    assert seen == [["equal after"], [], ["equal after", "equal before"], []]


def test_times_of_the_day():
    words = ["at", "3", ":", "30", "-", "5", *"p.m.", "in", "room", "12", "or", "1994", "noon"]
    looks = clocks(words)
    assert [t for t, look in enumerate(looks) if look] == [1, 2, 3, 5, 6, 7, 8, 9, 15]
    assert looks[1] == ["clock", "clock-", "first clock"]
    assert looks[5] == ["clock", "-clock"]
    assert looks[15] == ["clock"]


def test_an_announcement_learns_nothing_from_lists_that_it_made_itself():
    words = [["Ann", "Lee", "speaks"], ["Ann", "Ray", "speaks"], ["Ann", "speaks"]]
    y = [["B-speaker", "I-speaker", "O"], ["B-speaker", "I-speaker", "O"], ["O", "O"]]
    starts = [[True] + [False] * (len(text) - 1) for text in words]
    data = Seminars(words, starts, y)
    lexicon = Lexicon(data)
    own = tokens(data, lexicon, train=True)
    assert {"0:w=ann", "0:speaker"} <= set(own[0][0])
    assert not {"0:w=lee", "0:speaker"} & set(own[0][1])
    new = tokens(Seminars([["Lee"]], [[True]], [["O"]]), lexicon, train=False)
    assert "0:speaker" in new[0][0]


def test_headers_of_lines():
    words, starts = ["Who", ":", "Ann", "Lee", "met"], [True, False, False, True, False]
    assert line_headers(words, starts) == [("who", 0), ("who", 1), ("who", 2), ("", 0), ("", 1)]


def test_scores_count_tokens_and_what_equal_words_contradict():
    words = [["Ann", "met", "Ann", "Lee"]]
    gold = fields([["B-speaker", "O", "B-speaker", "I-speaker"]])
    found = [["speaker", "O", "O", "O"]]
    np.testing.assert_allclose(f1(gold, found), [0, 0, 0, 50], rtol=0, atol=1e-9)
    assert inconsistent(words, gold, found) == [0, 0, 0, 1]


def test_published_attributes_stand_at_nine_places_and_know_no_lines():
    words = [["Who", ":", "Dr", "Lee", "on", "Monday"], ["Lee", "spoke"], ["Lee"]]
    y = [["O", "O", "B-speaker", "I-speaker", "O", "O"], ["B-speaker", "O"], ["O"]]
    data = Seminars(words, [[True] + [False] * (len(text) - 1) for text in words], y)
    speech = [["X"] * len(text) for text in words]
    rows = published_tokens(data, Lexicon(data), train=True, speech=speech)[0]
    own = {a for a in rows[3] if a.startswith("0:")}
    assert own == {"0:s0", "0:w=lee", "0:speaker", "0:T=X"}
    assert {"-1:honorific", "2:date", "-3:s0", "3:outside"} <= set(rows[3])
    assert not any("line" in a or "|" in a for row in rows for a in row)
    assert not any(a.startswith(("5:", "-5:")) for row in rows for a in row)


def test_agreement_takes_the_best_label_that_was_found_for_one_of_the_equal_words():
    words = [["Ann", "met", "Ann", "Ann", "Lee", "Lee"]]
    gold = [["speaker", "O", "speaker", "O", "speaker", "speaker"]]
    found = [["speaker", "O", "O", "location", "O", "O"]]
    # Two of the three Anns are speakers; nothing was found for Lee, and agreement cannot know.
    assert agreed(words, gold, found) == [["speaker", "O", "speaker", "speaker", "O", "O"]]
    mixed = [["speaker", "O", "O", "O", "O", "O"]]
    right = [["speaker", "O", "O", "O", "O", "O"]]
    assert agreed(words, right, mixed) == mixed
