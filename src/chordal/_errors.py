"""Errors with a meaning of their own; everything else is a ``ValueError`` or ``TypeError``."""

from __future__ import annotations


class InfeasibleError(ValueError):
    """The constraints (scores of −inf) leave no labelling of some example."""

    def __init__(self, example: int) -> None:
        self.example = example
        super().__init__(
            f"no labelling of example {example} is allowed: its scores of -inf (forbidden labels "
            "or transitions) exclude every one; allow more"
        )

    def __reduce__(self) -> tuple[type[InfeasibleError], tuple[int]]:
        return InfeasibleError, (self.example,)

    def moved(self, offset: int) -> InfeasibleError:
        """The same of an example counted from the beginning of a larger batch."""
        return InfeasibleError(self.example + offset)


class UnsupportedError(ValueError):
    """Two parts that cannot work together; the message names both and what is missing."""
