"""The messages of a training run, in CRFsuite's words, which programs parse."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from chordal.compat.pycrfsuite._parameters import Parameters
from chordal.solvers import Iteration

TITLES = {
    "lbfgs": "L-BFGS optimization",
    "l2sgd": "Stochastic Gradient Descent (SGD)",
    "averaged-perceptron": "Averaged perceptron",
    "passive-aggressive": "Passive Aggressive",
    "arow": "Adaptive Regularization of Weights (AROW)",
}
_RENAMED = {"period": "stop", "max_linesearch": "linesearch.max_iterations"}  # by lbfgs


def beginning(parameters: Parameters, holdout: int) -> Iterator[str]:
    """What is said before features are made."""
    if holdout >= 0:
        yield f"Holdout group: {holdout + 1}\n"
        yield "\n"
    yield "Feature generation\n"
    yield "type: CRF1d\n"
    for name in parameters:
        if name.startswith("feature."):
            yield f"{name}: {_shown(parameters[name])}\n"
    for percent in range(0, 101, 2):
        yield "." if percent % 10 else str(percent // 10)
    yield "\n"


def prepared(parameters: Parameters, n_features: int, seconds: float) -> Iterator[str]:
    """What is said between the making of features and the first iteration."""
    yield f"Number of features: {n_features}\n"
    yield f"Seconds required: {seconds:.3f}\n"
    yield "\n"
    yield TITLES[parameters.algorithm] + "\n"
    renamed = _RENAMED if parameters.algorithm == "lbfgs" else {}
    for name in parameters:
        if not name.startswith("feature."):
            yield f"{renamed.get(name, name)}: {_shown(parameters[name])}\n"
    yield "\n"


def iteration(algorithm: str, state: Iteration, seconds: float, trials: int) -> Iterator[str]:
    """What is said after an iteration, before any holdout evaluation."""
    norm = float(np.linalg.norm(state.weights))
    epochs = algorithm == "l2sgd"
    yield f"***** {'Epoch' if epochs else 'Iteration'} #{state.iteration} *****\n"
    yield f"Loss: {state.value:f}\n"
    yield f"Feature {'L2-norm' if epochs else 'norm'}: {norm:f}\n"
    if algorithm == "lbfgs":
        yield f"Error norm: {state.gradient_norm:f}\n"
        yield f"Active features: {np.count_nonzero(state.weights)}\n"
        yield f"Line search trials: {trials}\n"
    yield f"Seconds required for this iteration: {seconds:.3f}\n"


def evaluation(
    labels: list[str],
    gold: NDArray[np.int32],
    predicted: NDArray[np.int32],
    lengths: NDArray[np.int64],
) -> Iterator[str]:
    """How well the holdout group was labelled."""
    n = len(labels)
    right = gold == predicted
    match = np.bincount(gold[right], minlength=n)
    model, ref = np.bincount(predicted, minlength=n), np.bincount(gold, minlength=n)
    precision, recall = match / np.maximum(model, 1), match / np.maximum(ref, 1)
    both = precision + recall
    f1 = 2.0 * precision * recall / np.where(both > 0.0, both, 1.0)
    yield "Performance by label (#match, #model, #ref) (precision, recall, F1):\n"
    for k, label in enumerate(labels):
        scores = f"({precision[k]:.4f}, {recall[k]:.4f}, {f1[k]:.4f})"
        shown = scores if ref[k] else "(******, ******, ******)"
        yield f"    {label}: ({match[k]}, {model[k]}, {ref[k]}) {shown}\n"
    counted = ref > 0  # labels that the holdout group lacks add nothing, but are divided by
    means = [float(s[counted].sum()) / n for s in (precision, recall, f1)]
    yield "Macro-average precision, recall, F1: ({:f}, {:f}, {:f})\n".format(*means)
    yield _accuracy("Item", int(right.sum()), len(gold))
    wrong = np.bincount(np.repeat(np.arange(len(lengths)), lengths)[~right], minlength=len(lengths))
    yield _accuracy("Instance", int((wrong == 0).sum()), len(lengths))


def ending(how: str, seconds: float) -> Iterator[str]:
    """Why the run ended."""
    yield f"{how}\n"
    yield f"Total seconds required for training: {seconds:.3f}\n"
    yield "\n"


def stored(features: tuple[int, int], attributes: tuple[int, int], labels: int) -> Iterator[str]:
    """What is said of the model that is about to be written: active features, and all."""
    yield "Storing the model\n"
    yield "Number of active features: {} ({})\n".format(*features)
    yield "Number of active attributes: {} ({})\n".format(*attributes)
    yield f"Number of active labels: {labels} ({labels})\n"
    yield "Writing labels\n"
    yield "Writing attributes\n"
    yield "Writing feature references for transitions\n"
    yield "Writing feature references for attributes\n"


def _accuracy(what: str, right: int, total: int) -> str:
    return f"{what} accuracy: {right} / {total} ({right / max(total, 1):.4f})\n"


def _shown(value: object) -> str:
    """As C prints it: %d for integers and flags, %f for other numbers."""
    if isinstance(value, float):
        return f"{value:f}"
    return str(int(value)) if isinstance(value, (bool, int)) else str(value)
