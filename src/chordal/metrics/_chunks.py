"""Chunks (phrases, entities): precision, recall and F1, counted as conlleval counts them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from chordal._shown import in_a_line
from chordal.metrics._accuracy import SequenceCounts
from chordal.metrics._encode import encode_tags
from chordal.metrics._tags import Chunks, TagPair, find_chunks, read_tags, starts_and_ends


class Chunk(NamedTuple):
    """A chunk from `start` to `end` (exclusive)."""

    start: int
    end: int
    type: str


@dataclass(frozen=True)
class ChunkScore:
    """Counts of true, predicted and correct chunks."""

    true: int
    found: int
    correct: int

    @property
    def precision(self) -> float:
        """The share of predicted chunks that are correct."""
        return self.correct / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        """The share of true chunks that were found."""
        return self.correct / self.true if self.true else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        total = self.true + self.found
        return 2 * self.correct / total if total else 0.0

    def to_dict(self) -> dict[str, float]:
        """Shares and counts."""
        shares = {"precision": self.precision, "recall": self.recall, "f1": self.f1}
        return shares | asdict(self)


@dataclass(frozen=True)
class ChunkScores:
    """Scores over all chunks and per type; `str` gives conlleval's report.

    overall : ChunkScore
    types : ChunkScore of each type, sorted
    n_tokens, n_correct_tokens : number of positions, and of those with the correct tag
    """

    overall: ChunkScore
    types: dict[str, ChunkScore]
    n_tokens: int
    n_correct_tokens: int

    @property
    def accuracy(self) -> float:
        """The share of positions with the right tag."""
        return self.n_correct_tokens / self.n_tokens

    def to_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {
            "accuracy": self.accuracy,
            "n_tokens": self.n_tokens,
            "overall": self.overall.to_dict(),
            "types": {name: score.to_dict() for name, score in self.types.items()},
        }

    def __str__(self) -> str:
        overall = self.overall
        lines = [
            f"processed {self.n_tokens} tokens with {overall.true} phrases; "
            f"found: {overall.found} phrases; correct: {overall.correct}.",
            f"accuracy: {100 * self.n_correct_tokens / self.n_tokens:6.2f}%; {_shares(overall)}",
        ]
        for name, score in self.types.items():
            label = in_a_line(name)
            padding = " " * (17 - len(label.encode()))  # Perl counts bytes
            line = f"{padding}{label}: {_shares(score)}  {score.found}"
            lines += [line, line] if name == "" and score.true and score.found else [line]
        return "\n".join(lines)


def chunks(labels: Sequence[str], scheme: str = "conlleval") -> list[Chunk]:
    """The chunks in one sequence of tags.

    Parameters
    ----------
    labels : list of str
        A prefix, and a type after the first hyphen: "B-NP", "I-NP", "O", …
    scheme : {"conlleval", "bio", "iobes", "bilou"}
        "conlleval" reads every sequence, legal or not, as that script does: "I-NP" after "O" or
        after another type also begins a chunk. It has no rule for "S", "U" and "L", nor for "B"
        after "E", so adjacent chunks of one type are merged there. The other schemes count only
        legal chunks; an unknown prefix is an error.

    Examples
    --------
    >>> chunks(["B-NP", "I-NP", "O", "I-VP"])
    [Chunk(start=0, end=2, type='NP'), Chunk(start=3, end=4, type='VP')]
    >>> chunks(["B-NP", "I-NP", "O", "I-VP"], scheme="bio")
    [Chunk(start=0, end=2, type='NP')]
    """
    if (
        hasattr(labels, "__iter__")
        and getattr(labels, "ndim", 1) > 0
        and not isinstance(labels, str)
    ):
        labels = list(labels)
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise TypeError(f"labels must be a list of strings such as 'B-NP', got {labels!r}")
    if not labels:
        return []
    tags = read_tags(encode_tags([labels], [labels]), scheme)
    found = find_chunks(tags.true, scheme)
    rows = zip(*(column.tolist() for column in found), strict=True)
    return [Chunk(first - 1, stop - 1, tags.types[kind]) for first, stop, kind in rows]


def chunk_scores(
    y_true: Sequence[Any], y_pred: Sequence[Any], *, scheme: str = "conlleval"
) -> ChunkScores:
    """Precision, recall and F1 of chunks, overall and per type.

    With scheme "conlleval" the counts are those of the script for any tags; each sequence counts as
    followed by an empty line. `chunks` describes the other schemes.

    >>> scores = chunk_scores([["B-NP", "I-NP", "O", "B-VP"]], [["B-NP", "I-NP", "O", "B-NP"]])
    >>> scores.overall.f1, scores.types["NP"].precision, scores.accuracy
    (0.5, 0.5, 0.75)
    >>> print(scores)
    processed 4 tokens with 2 phrases; found: 2 phrases; correct: 1.
    accuracy:  75.00%; precision:  50.00%; recall:  50.00%; FB1:  50.00
                   NP: precision:  50.00%; recall: 100.00%; FB1:  66.67  2
                   VP: precision:   0.00%; recall:   0.00%; FB1:   0.00  0
    """
    pair = encode_tags(y_true, y_pred)
    tags = read_tags(pair, scheme)
    true, found, correct = _match(tags, scheme)
    size = len(tags.types)
    counts = np.array([np.bincount(a.kind, minlength=size) for a in (true, found, correct)])
    rows = sorted(zip(tags.types, counts.T.tolist(), strict=True))
    types = {name: ChunkScore(*row) for name, row in rows if row[0] or row[1]}
    padding = len(tags.sequence) - len(pair.true)  # outside tags, which are always equal
    right = int((tags.true.name == tags.pred.name).sum()) - padding
    overall = ChunkScore(len(true.kind), len(found.kind), len(correct.kind))
    return ChunkScores(overall, types, len(pair.true), right)


def conlleval_report(y_true: Sequence[Any], y_pred: Sequence[Any]) -> str:
    """The exact report of the script conlleval for these tags.

    >>> print(conlleval_report([["B-NP", "I-NP"]], [["B-NP", "O"]]), end="")
    processed 2 tokens with 1 phrases; found: 1 phrases; correct: 0.
    accuracy:  50.00%; precision:   0.00%; recall:   0.00%; FB1:   0.00
                   NP: precision:   0.00%; recall:   0.00%; FB1:   0.00  1
    """
    return f"{chunk_scores(y_true, y_pred)}\n"


def chunk_precision(
    y_true: Sequence[Any], y_pred: Sequence[Any], *, scheme: str = "conlleval"
) -> float:
    """The share of predicted chunks that are correct."""
    return chunk_scores(y_true, y_pred, scheme=scheme).overall.precision


def chunk_recall(
    y_true: Sequence[Any], y_pred: Sequence[Any], *, scheme: str = "conlleval"
) -> float:
    """The share of true chunks that were found."""
    return chunk_scores(y_true, y_pred, scheme=scheme).overall.recall


def chunk_f1(y_true: Sequence[Any], y_pred: Sequence[Any], *, scheme: str = "conlleval") -> float:
    """F1 of chunks: conlleval's FB1, as a share instead of percent.

    >>> chunk_f1([["B-NP", "I-NP", "O"]], [["B-NP", "I-NP", "B-NP"]])
    0.6666666666666666
    """
    return chunk_scores(y_true, y_pred, scheme=scheme).overall.f1


def chunk_counts(
    y_true: Sequence[Any], y_pred: Sequence[Any], *, share: str = "f1", scheme: str = "conlleval"
) -> SequenceCounts:
    """Counts per sequence for F1, "precision" or "recall" of chunks."""
    pair = encode_tags(y_true, y_pred)
    tags = read_tags(pair, scheme)
    size = len(pair.lengths)
    true, found, correct = (
        np.bincount(tags.sequence[a.first], minlength=size).astype(np.float64)
        for a in _match(tags, scheme)
    )
    if share == "f1":
        return SequenceCounts(2.0 * correct, true + found)
    return SequenceCounts(correct, found if share == "precision" else true)


def _match(tags: TagPair, scheme: str) -> tuple[Chunks, Chunks, Chunks]:
    """True, predicted and correct chunks."""
    true, found = find_chunks(tags.true, scheme), find_chunks(tags.pred, scheme)
    if scheme == "conlleval":
        return true, found, _conlleval_correct(tags)
    stop, kind = np.full((2, len(tags.sequence)), -1, dtype=np.int64)
    stop[found.first], kind[found.first] = found.stop, found.kind
    same = (stop[true.first] == true.stop) & (kind[true.first] == true.kind)
    return true, found, Chunks(*(column[same] for column in true))


def _conlleval_correct(tags: TagPair) -> Chunks:
    """The chunks that conlleval counts as correct.

    It reads the tags with one flag. The flag is set where both sides begin a chunk of the same
    type. Where both end, it is cleared and a correct chunk is counted. Where only one ends or the
    types differ, it is cleared without counting. On usual tags this finds the common chunks. On
    others it may not: for example, a chunk that begins before another one ended is not counted.
    """
    (true_start, true_end), (pred_start, pred_end) = map(starts_and_ends, (tags.true, tags.pred))
    same_type = tags.true.kind == tags.pred.kind
    both_end = true_end & pred_end
    falls = both_end | (true_end != pred_end) | ~same_type
    rises = true_start & pred_start & same_type
    position = np.arange(len(rises))
    last_rise = np.maximum.accumulate(np.where(rises, position, -1))
    last_fall = np.maximum.accumulate(np.where(falls, position, 0))
    up = last_rise >= last_fall  # at one position, it falls first and rises then
    stop = np.flatnonzero(up[:-1] & both_end[1:]) + 1
    if up[-1]:  # never fell, and the text ends
        stop = np.append(stop, len(up))
    return Chunks(last_rise[stop - 1], stop, tags.true.kind[stop - 1])


def _shares(score: ChunkScore) -> str:
    """As conlleval computes them: in percent, F1 from the two others."""
    precision = 100 * score.correct / score.found if score.found else 0.0
    recall = 100 * score.correct / score.true if score.true else 0.0
    total = precision + recall
    f1 = 2 * precision * recall / total if total > 0 else 0.0
    return f"precision: {precision:6.2f}%; recall: {recall:6.2f}%; FB1: {f1:6.2f}"
