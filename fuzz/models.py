"""Targets of model files: refused, or a model whose answers are sound."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import chordal
from chordal import (
    ChainCRF,
    CliqueTemplate,
    CRFClassifier,
    GraphCRF,
    GridCRF,
    MatchingModel,
    MultiLabelCRF,
    TemplateCRF,
    TypedGraphCRF,
    UnsupportedError,
)
from chordal.model_file import class_of
from fuzz.mutation import of_container
from fuzz.target import ITEMS, TAGS, TEMPLATE, WORDS, Target, put, written


def models() -> Target:
    """Model files of six kinds: refused, or a model whose answers are sound."""
    rng = np.random.default_rng(0)
    graph = (rng.normal(size=(4, 2)), np.array([(0, 1), (1, 2), (2, 3), (3, 0)]))
    image, table = rng.normal(size=(2, 3, 2)), rng.normal(size=(9, 2))
    made: list[tuple[Any, Any]] = [
        (ChainCRF(fit_intercept=True, ends=True).fit(ITEMS, TAGS), ITEMS),
        (ChainCRF(feature_template=TEMPLATE).fit(WORDS, TAGS), WORDS),
        (ChainCRF().fit([graph[0]], [["a", "b", "a", "b"]]), [graph[0]]),
        (GraphCRF().fit([graph], [["a", "b", "a", "b"]]), [graph]),
        (GridCRF(max_iter=3).fit([image], [(image[..., 0] > 0).astype(int)]), [image]),
        (CRFClassifier().fit(table, table[:, 0] > 0), table),
        (MultiLabelCRF(max_iter=5).fit(table, (table > 0).astype(int)), table),
    ]
    return _of_models(made)


def more_models() -> Target:
    """Model files of the other estimators, some of which need functions again."""
    rng = np.random.default_rng(0)
    words, tags = [["a", "b", "a"], ["b", "b"]], [["x", "y", "x"], ["y", "y"]]
    rows = [rng.normal(size=(3, 2)), rng.normal(size=(2, 2))]
    table = np.concatenate(rows)
    nodes = {"w": rng.normal(size=(3, 2)), "t": np.array([[0.3]])}
    typed = (nodes, {("w", "w"): [(0, 1), (1, 2)], ("w", "t"): [(0, 0), (2, 0)]})
    links = [("w", "w"), ("w", "t")]
    pairs = [([1.0, 5.0], [5.2, 1.1]), ([3.0, 9.0], [2.8])]
    templates = [
        CliqueTemplate("words", features=_singles),
        CliqueTemplate("pairs", "steps"),
    ]
    made: list[tuple[Any, Any]] = [
        (
            TypedGraphCRF(node_types=["w", "t"], edge_types=links).fit(
                [typed] * 2, [{"w": list("NVN"), "t": ["s"]}, {"w": list("VVN"), "t": ["r"]}]
            ),
            [typed],
        ),
        (TemplateCRF(templates).fit(words, tags), words),
        (MatchingModel(features=_near).fit(pairs, [[1, 0], [0, -1]]), pairs),
        (MultiLabelCRF(structure="full", max_iter=5).fit(table, (table > 0).astype(int)), table),
    ]
    return _of_models(
        made, {"TemplateCRF": {"templates": templates}, "MatchingModel": {"features": _near}}
    )


def _singles(x: Any) -> Any:
    return [[word] for word in x]


def _near(a: Any, b: Any) -> Any:
    return -np.abs(np.subtract.outer(a, b))[:, :, None]


def neural_models() -> Target:
    """Model files with networks, where PyTorch is installed."""
    from chordal.torch import NeuralCRF

    rng = np.random.default_rng(0)
    words, tags = [["a", "b", "a"], ["b", "b"]], [["x", "y", "x"], ["y", "y"]]
    rows = [rng.normal(size=(3, 2)), rng.normal(size=(2, 2))]
    own: dict[str, Any] = {"hidden": 4, "max_iter": 2, "random_state": 0}
    graph = (rows[0], np.array([(0, 1), (1, 2)]))
    made = [
        (NeuralCRF("bilstm", **own).fit(words, tags), words),
        (NeuralCRF("mlp", **own).fit(rows, tags), rows),
        (NeuralCRF("cnn", **own).fit(rows, tags), rows),
        (NeuralCRF("mlp", crf=GraphCRF(), **own).fit([graph], [list("aba")]), [graph]),
    ]
    return _of_models(made)


def _of_models(made: list[tuple[Any, Any]], functions: dict[str, Any] | None = None) -> Target:
    asked: dict[str, list[Any]] = {}
    for model, X in made:
        asked.setdefault(type(model).__name__, []).append(X)

    def run(data: bytes) -> None:
        place = put("model", data)
        given = functions.get(class_of(place), {}) if functions else {}
        loaded = chordal.load(place, **given)
        with _quick_inference(loaded):
            for X in asked.get(type(loaded).__name__, ()):
                _ask(loaded, X)

    seeds = [written(functools.partial(chordal.save, model)) for model, _ in made]
    return Target(seeds, run, of_container("model"))


class _quick_inference:
    """Settings of a file may ask for hours; that is the file's affair, and not looked at here."""

    def __init__(self, model: Any) -> None:
        from chordal._limits import time_limit

        self._limit = time_limit(0.5)

    def __enter__(self) -> None:
        self._limit.__enter__()

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> bool:
        self._limit.__exit__(kind, *rest)  # type: ignore[arg-type]
        return kind is not None and issubclass(kind, TimeoutError)


def _ask(model: Any, X: Any) -> None:
    try:
        model.predict(X)
        found = model.predict_marginals(X)
    except (ValueError, TypeError, UnsupportedError):  # other rows than the model reads
        return
    answers = found if isinstance(found, list) else [found]
    for own in answers:
        for rows in own.values() if isinstance(own, dict) else [own]:
            sums = np.asarray(rows, dtype=float).sum(axis=-1)
            if not np.allclose(sums, 1.0, rtol=0, atol=1e-6):
                raise AssertionError(f"marginals sum to {sums}")
