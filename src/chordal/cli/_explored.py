"""Models and data for ``chordal explore``: what each class of model reads from which file."""

from __future__ import annotations

from typing import Any, NamedTuple

from chordal._errors import FormatError
from chordal.cli._data import Reading

ROWS = ("CRFClassifier", "MultiLabelCRF", "NaiveBayes")
GRAPHS = ("GraphCRF", "TypedGraphCRF")


class Explored(NamedTuple):
    """A model and its examples; see `chordal.explore.page`."""

    model: Any
    X: Any
    y: Any = None
    tokens: Any = None
    positions: Any = None


def opened(model: str, path: str, reading: Reading, jobs: int | None) -> Explored:
    """The model, and examples that fit it."""
    from chordal._opening import kind_of
    from chordal.model_file import class_of

    name = class_of(model) if kind_of(model) == "chordal" else "ChainCRF"
    if path.endswith(".npz"):
        return _arrays(_loaded(model, jobs), path)
    if name in ROWS:
        raise FormatError(path, f"a {name} takes rows of numbers: give an npz file with X and y")
    if name in GRAPHS:
        return _graphs(_loaded(model, jobs), path, reading)
    if name == "NeuralCRF":
        network = _loaded(model, jobs)
        if type(network.crf_).__name__ in GRAPHS:
            return _graphs(network, path, reading)
    if name == "GridCRF":
        raise FormatError(path, "a GridCRF takes images: give an npz file with X and y")
    return _text(model, path, reading, jobs)


def _loaded(model: str, jobs: int | None) -> Any:
    from chordal._opening import kind_of, open_model
    from chordal.model_file import load

    estimator: Any = load(model) if kind_of(model) == "chordal" else open_model(model)
    if "n_jobs" in estimator.get_params():
        estimator.set_params(n_jobs=jobs)
    return estimator


def _arrays(model: Any, path: str) -> Explored:
    """Rows, sequences of rows, or images."""
    from chordal import ChainCRF
    from chordal.cli._arrays import load_arrays, load_rows
    from chordal.features import ArrayInput

    name = type(model).__name__
    if name in ROWS:
        return Explored(model, *load_rows(path))
    if name in GRAPHS:
        raise FormatError(path, f"a {name} takes graphs: give them in JSON Lines")
    if isinstance(model, ChainCRF) and not isinstance(model.input_, ArrayInput):
        raise FormatError(path, "it holds arrays, and the model reads attributes or columns")
    return Explored(model, *load_arrays(path))


def _graphs(model: Any, path: str, reading: Reading) -> Explored:
    """Graphs from JSON Lines."""
    from chordal.formats.graphs import read_graphs

    if path != "-" and reading.name(path) != "jsonl":
        raise FormatError(
            path,
            f"a {type(model).__name__} takes graphs in JSON Lines: name them .jsonl or give -f",
        )
    found = list(read_graphs(reading.place(path)))
    if not found:
        raise FormatError(path, "the file has no graphs")
    labels = [own.labels for own in found]
    whole = [all(getattr(g, key) is not None for g in found) for key in ("names", "positions")]
    return Explored(
        model,
        [own.x for own in found],
        _unlabelled_too(found) if any(own is not None for own in labels) else None,
        [own.names for own in found] if whole[0] else None,
        [own.positions for own in found] if whole[1] else None,
    )


def _unlabelled_too(graphs: Any) -> list[Any]:
    """Labels of all graphs; those of graphs without labels are not known."""
    out: list[Any] = []
    for own in graphs:
        if isinstance(own.nodes, dict):
            given = own.labels or {}
            out.append({t: given.get(t, [None] * len(rows)) for t, rows in own.nodes.items()})
        else:
            out.append([None] * len(own.nodes) if own.labels is None else own.labels)
    return out


def _text(model: str, path: str, reading: Reading, jobs: int | None) -> Explored:
    """Sequences, read as `chordal evaluate --model` reads them."""
    from chordal.cli._judged import open_both
    from chordal.cli._token_model import TokenModel

    tagger, data = open_both(model, path, reading, jobs)
    if isinstance(tagger, TokenModel):
        tokens = tagger.tokens(data.X)
        return Explored(tagger.model, tokens, data.y, [[str(own) for own in x] for x in tokens])
    return Explored(tagger, data.X, data.y)
