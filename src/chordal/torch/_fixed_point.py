"""Fixed points of an iteration, and their derivatives: through all steps, or by the point alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import Tensor

from chordal._errors import ConvergenceWarning

if TYPE_CHECKING:
    Context: TypeAlias = Any  # what PyTorch hands from a function to its derivative

#: One step: from a point and the scores that it depends on to the next point.
Step: TypeAlias = Callable[..., Tensor]


def unrolled(step: Step, start: Tensor, scores: tuple[Tensor, ...], n_iter: int) -> Tensor:
    """So many steps; autograd goes through each of them."""
    point = start
    for _ in range(n_iter):
        point = step(point, *scores)
    return point


def implicit(
    step: Step, start: Tensor, scores: tuple[Tensor, ...], n_iter: int, tol: float
) -> Tensor:
    """Steps until nothing changes by more than tol, as a share of the largest value.

    The derivative is that of the equation point = step(point, scores), which is solved by an
    iteration of its own. No step is kept.
    """
    with torch.no_grad():
        point = _settled(lambda x: step(x, *scores), start, n_iter, tol, "the iterations")
    found: Tensor = _Implicit.apply(step, n_iter, tol, point, *scores)
    return found


def _settled(
    step: Callable[[Tensor], Tensor], point: Tensor, n_iter: int, tol: float, what: str
) -> Tensor:
    """Steps until no value changes by more than tol times the largest one, as far as there are
    digits.
    """
    tol = max(tol, 8.0 * torch.finfo(point.dtype).eps)
    change = 0.0
    for _ in range(n_iter):
        new = step(point)
        if new.numel() == 0:
            return new
        change = float((new - point).abs().max() / new.abs().max().clamp_min(1e-30))
        point = new
        if change <= tol:
            return point
    warnings.warn(
        f"{what} of inference have not settled after {n_iter}: the last one changed by "
        f"{change:.2g}, more than tol={tol:.2g}. Raise n_iter or the damping, or use weaker tables",
        ConvergenceWarning,
        stacklevel=2,
    )
    return point


class _Implicit(torch.autograd.Function):
    """The point, as a function of the scores."""

    @staticmethod
    def forward(
        ctx: Context, step: Step, n_iter: int, tol: float, point: Tensor, *scores: Tensor
    ) -> Tensor:
        ctx.step, ctx.n_iter, ctx.tol = step, n_iter, tol
        point = point.clone()
        ctx.save_for_backward(point, *scores)
        return point

    @staticmethod
    def backward(ctx: Context, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """u = gradient + (∂step/∂point)ᵀ u, and then (∂step/∂scores)ᵀ u."""
        point, *scores = ctx.saved_tensors
        if torch.is_grad_enabled():  # create_graph=True
            found = _with_graph(ctx, gradient, point, scores)
        else:
            found = _without_graph(ctx, gradient, point, scores)
        return (None, None, None, None, *found)


def _without_graph(
    ctx: Context, gradient: Tensor, point: Tensor, scores: list[Tensor]
) -> tuple[Tensor, ...]:
    """The derivatives in the scores, as numbers: one step serves all iterations."""
    point, *scores = (x.detach().requires_grad_() for x in (point, *scores))
    with torch.enable_grad():
        new = ctx.step(point, *scores)

    def back(u: Tensor) -> Tensor:
        return gradient + torch.autograd.grad(new, point, u, retain_graph=True)[0]

    u = _settled(back, gradient, ctx.n_iter, ctx.tol, "the derivatives' iterations")
    return torch.autograd.grad(new, scores, u)


def _with_graph(
    ctx: Context, gradient: Tensor, point: Tensor, scores: list[Tensor]
) -> tuple[Tensor, ...]:
    """The same, to be derived again: u too is the fixed point of an equation."""

    def back(u: Tensor, gradient: Tensor, point: Tensor, *scores: Tensor) -> Tensor:
        with torch.enable_grad():
            point = point if point.requires_grad else point.detach().requires_grad_()
            new = ctx.step(point, *scores)
            return gradient + torch.autograd.grad(new, point, u, create_graph=True)[0]

    u = implicit(back, gradient, (gradient, point, *scores), ctx.n_iter, ctx.tol)
    # The scores themselves would lead through the point, and so to this derivative again.
    held = [x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in scores]
    new = ctx.step(point, *held)
    return torch.autograd.grad(new, held, u, create_graph=True)
