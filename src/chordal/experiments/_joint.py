"""Networks that learn together with the chain above them. They need torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from chordal._optional import installed

if TYPE_CHECKING:
    from chordal.torch import NeuralCRF

#: What a report says where these models are left out.
NO_TORCH = 'Joint training was left out: it needs PyTorch, pip install "chordal[torch]".'


def has_torch() -> bool:
    """Whether joint training can run."""
    return installed("torch")


def joint_model(settings: Mapping[str, Any], seed: int, **more: Any) -> NeuralCRF:
    """The estimator. One thread: sums are then taken in one order on every machine."""
    from chordal.torch import NeuralCRF

    return NeuralCRF(**settings, **more, random_state=seed)
