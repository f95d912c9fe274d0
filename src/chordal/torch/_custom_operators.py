"""How functions become PyTorch operators: with shapes for tracing, so that no graph breaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

if TYPE_CHECKING:
    Context: TypeAlias = Any  # what PyTorch hands from an operator to its derivative
    Function: TypeAlias = Callable[..., Any]


class Family:
    """Operators whose first arguments are the fields of one named tuple.

    Parameters
    ----------
    given : type
        The named tuple, which functions take in place of these arguments.
    schema : str
        The fields' types and names, with commas between them.
    device_types : str, optional
        Devices that functions are for; all by default.
    """

    def __init__(
        self, given: Callable[..., object], schema: str, device_types: str | None = None
    ) -> None:
        self.given, self.schema, self.device_types = given, schema, device_types

    def operator(
        self, name: str, function: Function, like: Function, *more: str, gives: int = 1
    ) -> torch.library.CustomOpDef:
        """The operator `chordal::name`.

        `like` makes outputs of the right shapes, `more` are further arguments, and `gives` is how
        many tensors come back.
        """
        tensors = "Tensor" if gives == 1 else f"({', '.join(['Tensor'] * gives)})"
        schema = f"({', '.join([self.schema, *more])}) -> {tensors}"
        made = torch.library.custom_op(
            f"chordal::{name}",
            self.flat(function),
            mutates_args=(),
            schema=schema,
            device_types=self.device_types,
        )
        made.register_fake(self.flat(like))
        return made

    def flat(self, function: Function) -> Function:
        """The function of all fields and arguments one after another."""
        n = self.schema.count(",") + 1

        def called(*arguments: object) -> object:
            return function(self.given(*arguments[:n]), *arguments[n:])

        return called
