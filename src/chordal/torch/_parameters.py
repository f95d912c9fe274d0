"""Checks of the parameters of a `NeuralCRF`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from chordal._validate import check_choice, check_function, check_number
from chordal.torch._networks import PRESETS
from chordal.torch._training import OPTIMIZERS, SCHEDULES

TRAINING = ("joint", "two_stage", "two_stage_joint")
#: Whole numbers among the parameters, with their limits.
WHOLE = {
    "hidden": 1_000_000, "n_layers": 100, "embedding": 1_000_000, "channels": 100_000,
    "window": 999, "max_iter": 10**9, "batch_size": 10**9, "min_freq": 10**9,
}  # fmt: skip


def check_parameters(given: Mapping[str, Any]) -> None:
    """Refuse parameters that are not of their kind."""
    if isinstance(given["network"], str):
        check_choice("network", given["network"], PRESETS)
    elif not callable(given["network"]):
        raise TypeError(
            f"network must be one of {', '.join(map(repr, PRESETS))}, an nn.Module or a "
            f"function that gives one; got {given['network']!r}"
        )
    check_choice("training", given["training"], TRAINING)
    check_choice("optimizer", given["optimizer"], OPTIMIZERS)
    check_choice("schedule", given["schedule"], SCHEDULES)
    check_function("augment", given["augment"], "a list of examples and a Generator")
    for name, most in WHOLE.items():
        check_number(name, given[name], minimum=1, integer=True)
        if given[name] > most:
            raise ValueError(f"{name} must be at most {most}, got {given[name]}")
    if given["window"] % 2 == 0:
        raise ValueError(f"window must be odd, got {given['window']}")
    for name in ("weight_decay", "dropout", "validation_fraction"):
        check_number(name, given[name])
    for name in ("dropout", "validation_fraction"):
        if given[name] >= 1.0:
            raise ValueError(f"{name} must be below 1, got {given[name]}")
    check_number("learning_rate", given["learning_rate"], strict=True)
    if given["clip_norm"] is not None:
        check_number("clip_norm", given["clip_norm"], strict=True)
    if given["n_iter_no_change"] is not None:
        check_number("n_iter_no_change", given["n_iter_no_change"], minimum=1, integer=True)
    try:
        torch.device(given["device"])
    except (RuntimeError, TypeError) as error:
        raise ValueError(
            f"device must be one that PyTorch knows, got {given['device']!r}: {error}"
        ) from None
