"""Checks of the parameters of a `NeuralCRF`."""

from __future__ import annotations

import warnings
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
LARGEST = 1e30  # PyTorch takes steps in float32


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
    for name in ("learning_rate", "weight_decay"):
        if given[name] > LARGEST:
            raise ValueError(f"{name} must be at most {LARGEST:g}, got {given[name]:g}")
    if given["n_iter_no_change"] is not None:
        check_number("n_iter_no_change", given["n_iter_no_change"], minimum=1, integer=True)
    check_device(given["device"])


def check_device(device: Any) -> None:
    """Refuse a device that PyTorch does not know, or does not have here."""
    why = _missing(device)
    if why:
        raise ValueError(f"device {device!r} cannot be used here: {why}; use 'cpu'")


def device_here(device: Any) -> Any:
    """The device of a model file; "cpu", with a warning, if this machine does not have it."""
    why = _missing(device)
    if why:
        warnings.warn(
            f"the model was saved with device {device!r}, which cannot be used here: {why}; it is "
            "on 'cpu' now",
            stacklevel=4,  # where `load` is called
        )
    return "cpu" if why else device


def _missing(device: Any) -> str:
    """Why the device cannot be used here; nothing if it can."""
    try:
        torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ValueError(
            f"device must be one that PyTorch knows, got {device!r}: {error}"
        ) from None
    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError) as error:  # as PyTorch says it of CUDA
        return str(error).splitlines()[0]
    return ""
