"""Fixed points of an iteration, and their derivatives: through all steps, or by the point alone.

An iteration is given by the name of its step and by tensors, so that compiled and exported graphs
can hold it as one operator, `chordal::fixed_point`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import torch
from torch import Tensor

from chordal._errors import ConvergenceWarning
from chordal.torch._custom_operators import Family

if TYPE_CHECKING:
    from chordal.torch._custom_operators import Context

#: One step: from a point, unary scores, edge tables, index tensors and a damping to the next point.
Step: TypeAlias = Callable[[Tensor, Tensor, Tensor, Sequence[Tensor], float], Tensor]
#: A step of the point and the scores that it depends on.
Bound: TypeAlias = Callable[..., Tensor]

_STEPS: dict[str, Step] = {}


def register(name: str, step: Step) -> None:
    """Let iterations name this step."""
    _STEPS[name] = step


class Iteration(NamedTuple):
    """Steps from a start, by scores."""

    start: Tensor
    unary: Tensor  # [B, N, L]
    tables: Tensor  # [1 or B, 1 or E, L, L]
    indices: list[Tensor]
    name: str
    damping: float
    n_iter: int
    tol: float

    def step(self, point: Tensor, unary: Tensor, tables: Tensor) -> Tensor:
        """The next point."""
        return _STEPS[self.name](point, unary, tables, self.indices, self.damping)


def unrolled(iteration: Iteration) -> Tensor:
    """All of the steps; autograd goes through each of them."""
    point = iteration.start
    for _ in range(iteration.n_iter):
        point = iteration.step(point, iteration.unary, iteration.tables)
    return point


def implicit(iteration: Iteration) -> Tensor:
    """Steps until nothing changes by more than tol, as a share of the largest value.

    The derivative is that of the equation point = step(point, scores); a second iteration solves
    for it. No step is kept in memory.
    """
    if torch.compiler.is_compiling():
        found: Tensor = fixed_point(*iteration)
        return found
    scores = (iteration.unary, iteration.tables)
    return _implicit(iteration.step, iteration.start, scores, iteration.n_iter, iteration.tol)


def _implicit(
    step: Bound, start: Tensor, scores: tuple[Tensor, ...], n_iter: int, tol: float
) -> Tensor:
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
        ctx: Context, step: Bound, n_iter: int, tol: float, point: Tensor, *scores: Tensor
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
            found = _without_graph(ctx.step, gradient, point, scores, ctx.n_iter, ctx.tol)
        return (None, None, None, None, *found)


def _without_graph(
    step: Bound,
    gradient: Tensor,
    point: Tensor,
    scores: Sequence[Tensor],
    n_iter: int,
    tol: float,
) -> tuple[Tensor, ...]:
    """The derivatives in the scores, as numbers: one step serves all iterations."""
    _, pull = torch.func.vjp(
        step, point, *scores
    )  # works inside of operators, as autograd does not

    def back(u: Tensor) -> Tensor:
        return gradient + pull(u)[0]

    u = _settled(back, gradient, n_iter, tol, "the derivatives' iterations")
    return tuple(pull(u)[1:])


def _with_graph(
    ctx: Context, gradient: Tensor, point: Tensor, scores: list[Tensor]
) -> tuple[Tensor, ...]:
    """The same, to be derived again: u too is the fixed point of an equation."""

    def back(u: Tensor, gradient: Tensor, point: Tensor, *scores: Tensor) -> Tensor:
        with torch.enable_grad():
            point = point if point.requires_grad else point.detach().requires_grad_()
            new = ctx.step(point, *scores)
            return gradient + torch.autograd.grad(new, point, u, create_graph=True)[0]

    u = _implicit(back, gradient, (gradient, point, *scores), ctx.n_iter, ctx.tol)
    # The scores themselves would lead through the point, and so to this derivative again.
    held = [x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in scores]
    new = ctx.step(point, *held)
    return torch.autograd.grad(new, held, u, create_graph=True)


def _found(given: Iteration) -> Tensor:
    scores = given.unary, given.tables
    point = _settled(
        lambda x: given.step(x, *scores), given.start, given.n_iter, given.tol, "the iterations"
    )
    return point.clone()  # the start itself is an input of the operator


def _pulled(given: Iteration, gradient: Tensor) -> tuple[Tensor, Tensor]:
    """The derivatives in the unary scores and tables, where the iteration starts at its end."""
    scores, limits = (given.unary, given.tables), (given.n_iter, given.tol)
    unary, tables = _without_graph(given.step, gradient, given.start, scores, *limits)
    return unary, tables


def _like_point(given: Iteration) -> Tensor:
    return torch.empty_like(given.start)


def _like_scores(given: Iteration, gradient: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(given.unary), torch.empty_like(given.tables)


_family = Family(
    Iteration,
    "Tensor start, Tensor unary, Tensor tables, Tensor[] indices, str name, float damping, "
    "int n_iter, float tol",
)
fixed_point = _family.operator("fixed_point", _found, _like_point)
fixed_point_backward = _family.operator(
    "fixed_point_backward", _pulled, _like_scores, "Tensor gradient", gives=2
)


def _keep(ctx: Context, inputs: Iteration, output: Tensor) -> None:
    given = Iteration(*inputs)
    ctx.settings = given[4:]
    ctx.save_for_backward(output, given.unary, given.tables, *given.indices)


def _backward(ctx: Context, gradient: Tensor) -> tuple[object, ...]:
    point, unary, tables, *indices = ctx.saved_tensors
    found = fixed_point_backward(point, unary, tables, indices, *ctx.settings, gradient)
    return (None, *found, [None] * len(indices), None, None, None, None)


fixed_point.register_autograd(_backward, setup_context=_keep)
