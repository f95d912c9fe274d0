"""Checks of what layers on structures are given; those of numbers are left out when tracing."""

from __future__ import annotations

import torch
from torch import Tensor

from chordal._errors import InfeasibleError, UnsupportedError
from chordal.structures import Structure
from chordal.torch._checks import check_tensor, looks_at_numbers, same_device


def check_structure(structure: Structure) -> None:
    """Refuse structures of several examples, and variables that differ in their labels."""
    if not isinstance(structure, Structure):
        raise TypeError(
            "structure must be one of chordal.structures, such as Grid([(4, 5)], n_labels=2), got "
            f"{type(structure).__name__}"
        )
    if structure.n_examples != 1:
        raise ValueError(
            "structure must have one example, whose form all examples of a batch share; got "
            f"{structure.n_examples}"
        )
    if structure.n_variables == 0:
        raise ValueError("structure must have at least one variable, got 0")
    counts = structure.label_counts
    if (counts != counts[0]).any():
        v = int((counts != counts[0]).argmax())
        raise UnsupportedError(
            f"structure: variable {v} has {counts[v]} labels and variable 0 {counts[0]}; give all "
            "variables the largest number, and forbid the surplus labels by the score -inf"
        )


def check_unary(unary: Tensor, n_variables: int, n_labels: int, like: Tensor) -> None:
    """Refuse scores of another shape, dtype or device than the layer's, NaN and +inf."""
    check_tensor("unary", unary)
    if unary.dim() != 3 or unary.shape[1:] != (n_variables, n_labels):
        raise ValueError(
            f"unary must have shape [batch, {n_variables}, {n_labels}] (variables, labels), got "
            f"{tuple(unary.shape)}"
        )
    if not unary.is_floating_point():
        raise TypeError(f"unary must be floating point, got {unary.dtype}")
    same_device("unary", unary, "the layer", like)
    check_scores("unary", unary, ("example", "variable", "label"))


def check_scores(name: str, scores: Tensor, axes: tuple[str, ...], finite: bool = False) -> None:
    """Refuse NaN and +inf, and where scores must be finite −inf too."""
    if not looks_at_numbers(scores):
        return
    bad = ~scores.isfinite() if finite else ~(scores < torch.inf)
    if not bool(bad.any()):
        return
    place = bad.nonzero()[0].tolist()
    value = float(scores.detach()[tuple(place)])
    where = ", ".join(f"{axis} {i}" for axis, i in zip(axes, place, strict=True))
    allowed = "finite numbers for this inference" if finite else "numbers below +inf"
    raise ValueError(f"{name}: {where} is {value:+}; scores must be {allowed}")


def check_possible(scores: Tensor, dim: int) -> None:
    """Refuse examples with a variable all of whose labels, along `dim`, are forbidden."""
    if not looks_at_numbers(scores):
        return
    nothing = (scores == -torch.inf).all(dim)
    if bool(nothing.any()):
        raise InfeasibleError(int(nothing.nonzero()[0, 0]))


def check_answer(answer: Tensor, name: str, advice: str) -> Tensor:
    """An answer, unless it is NaN or +inf: scores or parameters were too large."""
    if looks_at_numbers(answer) and not bool((answer < torch.inf).all()):
        raise ValueError(
            f"{name} overflows: scores or parameters are too large for {answer.dtype}, or are not "
            f"numbers; {advice}"
        )
    return answer


def check_labels(labels: Tensor, unary: Tensor, ignore_index: int) -> None:
    """Refuse labels that are neither numbers nor sets in the shape of the unary scores."""
    same_device("labels", labels, "unary", unary)
    batch, n_variables, n_labels = unary.shape
    if labels.dim() == 3:
        if labels.shape != unary.shape or labels.dtype != torch.bool:
            raise ValueError(
                f"labels as sets must be boolean, of the shape of unary, {tuple(unary.shape)}; got "
                f"{labels.dtype} of shape {tuple(labels.shape)}"
            )
        return
    if labels.shape != (batch, n_variables):
        raise ValueError(
            f"labels must have shape {(batch, n_variables)} (batch, variables), got "
            f"{tuple(labels.shape)}"
        )
    if labels.dtype == torch.bool or labels.is_floating_point():
        raise TypeError(f"labels must be integers, got {labels.dtype}")
    check_range(labels, ("example", "variable"), n_labels, ignore_index)


def check_range(labels: Tensor, axes: tuple[str, ...], n_labels: int, ignore_index: int) -> None:
    """Refuse numbers that are not labels."""
    if not looks_at_numbers(labels):
        return
    bad = ((labels < 0) | (labels >= n_labels)) & (labels != ignore_index)
    if bool(bad.any()):
        place = bad.nonzero()[0].tolist()
        where = ", ".join(f"{axis} {i}" for axis, i in zip(axes, place, strict=True))
        raise ValueError(
            f"labels: {where} is {int(labels[tuple(place)])}, which is not a label; labels are 0 "
            "to "
            f"{n_labels - 1}, or {ignore_index} where they were not observed"
        )


def check_image(scores: Tensor, n_labels: int, like: Tensor) -> None:
    """Refuse scores of pixels of another shape, dtype or device than the layer's, NaN and +inf."""
    check_tensor("scores", scores)
    if scores.dim() != 4 or scores.shape[1] != n_labels or 0 in scores.shape[2:]:
        raise ValueError(
            f"scores must have shape [batch, {n_labels}, height, width] with at least one pixel, "
            f"got {tuple(scores.shape)}"
        )
    if not scores.is_floating_point():
        raise TypeError(f"scores must be floating point, got {scores.dtype}")
    same_device("scores", scores, "the layer's parameters", like)
    check_scores("scores", scores, ("image", "label", "row", "column"))


def check_pixels(labels: Tensor, scores: Tensor, ignore_index: int) -> None:
    """Refuse labels of pixels that do not fit their scores."""
    check_tensor("labels", labels)
    shape = (scores.shape[0], *scores.shape[2:])
    if tuple(labels.shape) != shape:
        raise ValueError(
            f"labels must have shape {shape} (batch, height, width), got {tuple(labels.shape)}"
        )
    if labels.dtype == torch.bool or labels.is_floating_point():
        raise TypeError(f"labels must be integers, got {labels.dtype}")
    same_device("labels", labels, "scores", scores)
    check_range(labels, ("image", "row", "column"), scores.shape[1], ignore_index)
