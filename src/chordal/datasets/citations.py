"""Papers that cite each other: Cora and CiteSeer."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from chordal._optional import needed
from chordal._validate import check_choice
from chordal.datasets._files import found, text_of
from chordal.datasets._npz import arrays_of, require

SOURCE = "the citation graphs of Sen et al."


if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class Citations:
    """Papers, their words and fields, and which of them cite which.

    Attributes
    ----------
    X : sparse array [n_papers, n_words]
        1 where a paper has a word.
    y : uint8 array [n_papers]
        The field of a paper.
    edges : int64 array [n_edges, 2]
        Papers of which one cites the other; each pair once.
    cites : int64 array [n_citations, 2]
        As the file has them: who is cited, by whom.
    """

    X: csr_array
    y: NDArray[np.uint8]
    edges: NDArray[np.int64]
    cites: NDArray[np.int64]


def load_citations(name: str = "cora", path: str | PathLike[str] | None = None) -> Citations:
    """The papers of Sen et al. (2008), Collective classification in network data.

    Parameters
    ----------
    name : {"cora", "citeseer"}
        2,708 papers on machine learning in 7 fields, or 3,312 papers in 6.
    path : str or Path, optional
        The file cora.content, with cora.cites beside it, as they are distributed (or those of
        citeseer), or cora.npz, made of them; or the folder. By default $CHORDAL_DATA/graphs.

    Raises
    ------
    FileNotFoundError
        The message says which file to put where.
    ValueError
        An array is missing or invalid.
    """
    with needed("scipy", "load_citations"):
        from scipy.sparse import csr_array

    check_choice("name", name, ["cora", "citeseer"])
    names = (f"{name}.npz", f"{name}.content", f"{name}/{name}.content")
    file = found(path, "graphs", names, SOURCE)
    if file.suffix == ".content":
        return _from_text(file)
    a = arrays_of(file, X_indptr="iu1", X_indices="iu1", y="u1", edges="iu2", cites="iu2")
    n, words = len(a["y"]), a["X_indices"]
    limits = a["X_indptr"].astype(np.int64)
    rises = len(limits) == n + 1 and limits[0] == 0 and (np.diff(limits) >= 0).all()
    require(rises and limits[-1] == len(words), file, f"X must have a row for each of {n} papers")
    require(words.min(initial=0) >= 0, file, "X_indices must not be negative")
    for pairs in ("edges", "cites"):
        ends = a[pairs]
        inside = ends.shape[1] == 2 and ends.min(initial=0) >= 0 and ends.max(initial=0) < n
        require(inside, file, f"{pairs} must join papers 0 to {n - 1}")
    n_words = int(words.max(initial=-1)) + 1
    X = csr_array((np.ones(len(words)), words.astype(np.int64), limits), shape=(n, n_words))
    edges, cites = a["edges"].astype(np.int64), a["cites"].astype(np.int64)
    return Citations(X, a["y"].astype(np.uint8), edges, cites)


def _from_text(file: Path) -> Citations:
    """The files as they are distributed: papers with words and field; who is cited, by whom.

    Fields are numbered by their names. Some papers that CiteSeer cites have no row: left out.
    """
    with needed("scipy", "load_citations"):
        from scipy.sparse import csr_array

    rows = [line.split() for line in text_of(file).splitlines() if line.strip()]
    n_words = len(rows[0]) - 2 if rows else 0
    for i, row in enumerate(rows):
        require(
            len(row) == n_words + 2 > 2 and {"0", "1"}.issuperset(row[1:-1]),
            file,
            f"row {i + 1} must have a paper, {max(n_words, 1)} zeros and ones, and a field",
        )
    papers = {row[0]: i for i, row in enumerate(rows)}
    require(len(papers) == len(rows) > 0, file, "every paper must have one row")
    fields, y = np.unique([row[-1] for row in rows], return_inverse=True)
    require(len(fields) < 256, file, "fields must be fewer than 256")
    pairs = [line.split() for line in text_of(file.with_suffix(".cites")).splitlines()]
    require(all(len(pair) in (0, 2) for pair in pairs), file, "the .cites must be pairs of papers")
    known = [pair for pair in pairs if pair and papers.keys() >= set(pair)]
    cites = np.array([[papers[a], papers[b]] for a, b in known], dtype=np.int64).reshape(-1, 2)
    edges = np.unique(np.sort(cites[cites[:, 0] != cites[:, 1]], axis=1), axis=0)
    X = csr_array(np.array([row[1:-1] for row in rows], dtype=np.float64))
    return Citations(X, y.astype(np.uint8), edges, cites)
