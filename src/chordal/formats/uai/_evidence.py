"""Evidence: labels that were observed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np

from chordal.formats._files import Place, open_target
from chordal.formats.uai._tokens import Tokens
from chordal.potentials import Potentials

Evidence = dict[int, int]


def read_evidence(place: Place) -> list[Evidence]:
    """The observed labels {variable: label} of each sample of a UAI evidence file.

    Two forms are supported. The first is one sample: the number of observed variables, then pairs.
    The second is the number of samples, each with its number of variables and pairs. A file that
    fits both is the second form if each sample has its own line.

    Examples
    --------
    >>> import io
    >>> read_evidence(io.BytesIO(b"2  0 1  4 0"))
    [{0: 1, 4: 0}]
    >>> read_evidence(io.BytesIO(b"2\\n1  0 1\\n1  4 0"))
    [{0: 1}, {4: 0}]
    """
    tokens = Tokens(place)
    first = tokens.integer("the number of observed variables")
    words = tokens.left
    if words == 2 * first and not _is_by_line(tokens, first):
        return [_pairs(tokens, first)]
    if first == 0:
        line, _ = tokens.place(tokens.at)
        warnings.warn(
            f"{tokens.name}:{line}: the rest of the file is ignored, because it begins with 0 "
            "observed variables",
            UserWarning,
            stacklevel=2,
        )
        return [{}]
    if _counts_of_samples(tokens, first) is None:
        tokens.need(2 * first, f"variable and label of {first} observed variables")
        _pairs(tokens, first)
        tokens.end()
    return [_pairs(tokens, tokens.integer("the number of variables")) for _ in range(first)]


def _pairs(tokens: Tokens, n: int) -> Evidence:
    found: Evidence = {}
    for _ in range(n):
        variable, label = tokens.integers(2, "an observed variable or its label")
        if found.setdefault(variable, label) != label:
            tokens.at -= 1
            raise tokens.error(
                f"variable {variable} is observed with labels {found[variable]} and {label}"
            )
    return found


def _counts_of_samples(tokens: Tokens, n: int) -> list[int] | None:
    """How many variables each of n samples has, if the rest of the file is that."""
    counts, at = [], tokens.at
    for _ in range(n):
        if at >= len(tokens.words) or not tokens.words[at].isdigit():
            return None
        counts.append(int(tokens.words[at]))
        at += 1 + 2 * counts[-1]
    return counts if at == len(tokens.words) else None


def _is_by_line(tokens: Tokens, n: int) -> bool:
    """Whether the first line has one number and each of the n that follow has one sample."""
    lengths = [len(words) for line in tokens.text.split(b"\n") if (words := line.split())]
    counts = _counts_of_samples(tokens, n) if n else None
    return counts is not None and lengths == [1, *(1 + 2 * k for k in counts)]


def write_evidence(evidence: Mapping[int, int], place: Place) -> None:
    """Write one sample in the form of one line."""
    pairs = [f" {variable} {label}" for variable, label in evidence.items()]
    with open_target(place) as file:
        file.write(f"{len(evidence)}{''.join(pairs)}\n".encode())


def apply_evidence(potentials: Potentials, evidence: Mapping[int, int]) -> Potentials:
    """The potentials with −inf for all labels of an observed variable except the observed one.

    log Z is then that of the evidence, and marginals and the best labelling agree with it.

    Examples
    --------
    >>> from chordal.structures import Chain
    >>> p = Potentials(Chain([2], n_labels=2), [1, 2, 3, 4], [0, 0, 0, 0])
    >>> apply_evidence(p, {1: 0}).unary
    array([  1.,   2.,   3., -inf])
    """
    s = potentials.structure
    _check(potentials, evidence)
    unary = potentials.unary.copy()
    for variable, label in evidence.items():
        row = unary[s.state_offsets[variable] : s.state_offsets[variable + 1]]
        seen = row[label]
        row[:] = -np.inf
        row[label] = seen
    return potentials.like(unary, potentials.tables)


def condition_on(potentials: Potentials, evidence: Mapping[int, int]) -> Potentials:
    """The same model, in which each observed variable has only the observed label.

    Its scores are those of `apply_evidence`, in smaller tables: evidence then cuts loops, and
    exact inference may become affordable. Labels of observed variables are all 0.

    Parameters
    ----------
    potentials : Potentials
        Of a single example.
    evidence : dict of int to int

    Examples
    --------
    >>> from chordal.structures import Chain
    >>> p = Potentials(Chain([2], n_labels=2), [1, 2, 3, 4], [5, 6, 7, 8])
    >>> smaller = condition_on(p, {1: 0})
    >>> smaller.structure.label_counts, smaller.unary, smaller.tables
    (array([2, 1]), array([1., 2., 3.]), array([5., 7.]))
    """
    if not evidence:
        return potentials
    _check(potentials, evidence)
    labels = np.zeros(potentials.structure.n_variables, dtype=np.int32)
    fixed = np.zeros(len(labels), dtype=bool)
    observed = list(evidence)
    labels[observed], fixed[observed] = list(evidence.values()), True
    return potentials.given(labels, fixed)


def _check(potentials: Potentials, evidence: Mapping[int, int]) -> None:
    """Refuse variables and labels that the model does not have."""
    s = potentials.structure
    for variable, label in evidence.items():
        if not 0 <= variable < s.n_variables:
            raise ValueError(
                f"variable {variable} is observed, but the model has variables 0 to "
                f"{s.n_variables - 1}"
            )
        if not 0 <= label < s.label_counts[variable]:
            raise ValueError(
                f"variable {variable} is observed with label {label}, but it has labels 0 to "
                f"{s.label_counts[variable] - 1}"
            )
