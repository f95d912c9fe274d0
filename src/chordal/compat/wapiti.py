"""Wapiti inside a process: load a model, label blocks of text, let it go.

>>> from chordal import ChainCRF, FeatureTemplate
>>> from chordal.compat.wapiti_model import write_wapiti
>>> import pathlib, tempfile
>>> path = pathlib.Path(tempfile.mkdtemp()) / "model.wapiti"
>>> crf = ChainCRF(feature_template=FeatureTemplate("u:%x[0,0]\\nb", "wapiti"))
>>> write_wapiti(crf.fit([[["a", "DT"], ["cat", "NN"]]], [["D", "N"]]), path)
>>> with Model(path) as model:
...     model.label("a DT\\ncat NN\\n")
'a DT\\tD\\ncat NN\\tN\\n\\n'
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import TracebackType
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from chordal._validate import check_number
from chordal.compat.wapiti_model import read_wapiti
from chordal.estimators import ChainCRF
from chordal.potentials import Floats, Potentials
from chordal.text import Columns

_SPACE = np.zeros(256, dtype=bool)
_SPACE[list(b" \t\n\v\f\r")] = True  # what ends a cell

Path = list[int]  # numbers of labels


class Model:
    """A model of Wapiti's, for labelling.

    Parameters
    ----------
    source : path of the file, or its bytes
        A text model of Wapiti 1.5, as `wapiti train` and GROBID have them.

    Notes
    -----
    Any number of threads may label with one model at a time. `close` and the end of a ``with``
    block let the model go; threads that are at work finish.
    """

    def __init__(self, source: str | os.PathLike[str] | bytes) -> None:
        self._crf: ChainCRF | None = read_wapiti(source)

    @property
    def crf(self) -> ChainCRF:
        """The model as an estimator."""
        crf = self._crf
        if crf is None:
            raise ValueError("the model is closed")
        return crf

    def label(
        self,
        text: str,
        *,
        labels_only: bool = False,
        scores: bool = False,
        posteriors: bool = False,
        n_best: int = 1,
    ) -> str:
        """Label a block of text, as `wapiti label` does with a file of the same content.

        Parameters
        ----------
        text : str
            A token per line, its columns separated by white space; empty lines end sequences.
            Columns after those that the model asks for may be anything.
        labels_only : bool
            Leave out the lines of the text (``-l``).
        scores : bool
            A line "# rank score" before each sequence, and "label/score" as a last column (``-s``).
            Scores are sums of weights; with `posteriors`, probabilities and their product.
        posteriors : bool
            Take the most probable label of each position (``-p``).
        n_best : int
            Number of best labellings of each sequence (``-n``); fewer if it has fewer.

        Returns
        -------
        str
            Every line with a tab and its label, and an empty line after each sequence.
        """
        check_number("n_best", n_best, minimum=1, integer=True)
        crf = self.crf
        data = text.encode()
        columns, lines = _read(data, crf)
        names = [str(label).encode() for label in crf.labels_.labels]
        out: list[bytes] = []
        row = 0
        for length, found in zip(
            columns.lengths.tolist(), _labellings(crf, columns, scores, posteriors, n_best),
            strict=True,
        ):  # fmt: skip
            rows = lines[row : row + length]
            row += length
            for rank, (score, path, local) in enumerate(found):
                if scores:
                    out.append(f"# {rank} {score:f}\n".encode())
                for t, k in enumerate(path):
                    if not labels_only:
                        out += (rows[t], b"\t")
                    out.append(names[k])
                    if scores:
                        out.append(b"\t%s/%f" % (names[k], local[t]))
                    out.append(b"\n")
                out.append(b"\n")
        return b"".join(out).decode()

    def close(self) -> None:
        """Let the model go."""
        self._crf = None

    def __enter__(self) -> Model:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


Labelling = tuple[float, Path, list[float]]  # score, labels, score of each position


def _read(data: bytes, crf: ChainCRF) -> tuple[Columns, list[bytes]]:
    """The columns that the model asks for, and the lines that are not separators."""
    template = crf.columns_template()
    assert template is not None
    n = template.n_columns
    text = np.frombuffer(data, dtype=np.uint8)
    space = np.concatenate([[True], _SPACE[text], [True]])
    begins = np.flatnonzero(space[:-1] & ~space[1:])
    ends = np.flatnonzero(~space[:-1] & space[1:])
    breaks = np.concatenate([[-1], np.flatnonzero(text == ord("\n")), [len(text)]])
    number = np.searchsorted(breaks, begins) - 1  # of the line that a cell is on
    line, first, count = np.unique(number, return_index=True, return_counts=True)
    short = np.flatnonzero(count < n)
    if len(short):
        k = short[0]
        raise ValueError(
            f"line {line[k] + 1} must have {n} columns for the model's patterns, got {count[k]}"
        )
    at = first[:, None] + np.arange(n)
    cells = np.stack([begins[at], ends[at]], axis=2).astype(np.uint32)
    new = np.flatnonzero(np.diff(line, prepend=-2) > 1)
    lengths = np.diff(np.append(new, len(line)))
    limits = zip((breaks[line] + 1).tolist(), breaks[line + 1].tolist(), strict=True)
    return Columns(data, cells, lengths), [data[a:b] for a, b in limits]


def _labellings(
    crf: ChainCRF, columns: Columns, scores: bool, posteriors: bool, n_best: int
) -> list[list[Labelling]]:
    """The best labellings of each sequence."""
    if not len(columns):
        return []
    if posteriors:
        place = np.argsort(crf.labels_.order)
        return [_products(table[:, place], n_best) for table in crf.predict_marginals(columns)]
    if scores or n_best > 1:
        return [_ranked(crf, columns[i : i + 1], n_best) for i in range(len(columns))]
    number = crf.labels_.number
    return [[(0.0, [number(k) for k in labels], [])] for labels in crf.predict(columns)]


def _ranked(crf: ChainCRF, columns: Columns, n_best: int) -> list[Labelling]:
    """The labellings of highest score of one sequence."""
    batch = crf.reader_.read(cast(Sequence[Any], columns), grow=False)
    layout = crf.layout_
    shard = layout.compile(batch, 0, 1, once=True)
    potentials = layout.potentials(shard, layout.expanded(crf.weights_))
    labels, found = crf.inference_.k_best(potentials, n_best)
    ranked = zip(labels, found[0].tolist(), strict=True)
    return [(s, p.tolist(), _local(potentials, p)) for p, s in ranked if s > -np.inf]


def _local(potentials: Potentials, path: NDArray[np.int32]) -> list[float]:
    """What each position adds to the score of a labelling: its label, and the step to it."""
    position = np.arange(len(path))
    local = potentials.unary.reshape(len(path), -1)[position, path]
    for t in range(potentials.structure.n_cliques):
        local[t + 1] += potentials.table(t)[path[t], path[t + 1]]
    return list(local.tolist())


def _products(marginals: Floats, n_best: int) -> list[Labelling]:
    """The labellings with the highest products of marginals."""
    best: list[tuple[float, Path]] = [(1.0, [])]
    for row in marginals:
        order = np.argsort(-row, kind="stable")[:n_best].tolist()
        longer = [(score * row[k], path, k) for score, path in best for k in order]
        longer.sort(key=lambda each: -each[0])
        best = [(float(score), [*path, k]) for score, path, k in longer[:n_best]]
    position = np.arange(len(marginals))
    return [(score, path, marginals[position, path].tolist()) for score, path in best]
