"""Who watches a fit: a live line in a terminal, and the callbacks of scikit-learn 1.9."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from math import isnan
from types import TracebackType
from typing import TYPE_CHECKING

from chordal.estimators._estimator import Estimator
from chordal.solvers import Callback, Iteration

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


@contextmanager
def fit_callbacks(
    estimator: Estimator,
    max_iter: int | None,
    data: Mapping[str, object],
    attributes: Callable[[Iteration], Mapping[str, object]] | None = None,
) -> Iterator[Callback | None]:
    """What `Estimator.set_callbacks` set, as one callback for the time of a fit; None if none is.

    Set the estimator's fitted attributes before this ends: callbacks then see the fitted model.

    Parameters
    ----------
    max_iter : int or None
        The most iterations that are reported; None for no limit.
    data : dict
        `X`, `y` and `metadata`, which callbacks may ask for.
    attributes : callable, optional
        Makes the fitted attributes after an iteration, for callbacks that ask for a fitted model.
    """
    if not getattr(estimator, "_skl_callbacks", None):
        yield None
        return
    from sklearn.callback import CallbackSupportMixin

    known: dict[str, object] = {"estimator": estimator, **data}
    number = count(1)

    def after_iteration(state: Iteration) -> bool:
        if max_iter is not None and next(number) > max_iter:
            return False  # scikit-learn allows no more tasks than were announced
        task = root.subcontext(task_name="iteration")
        task.call_on_fit_task_begin(**known)
        made = None if attributes is None else lambda: attributes(state)
        return task.call_on_fit_task_end(**known, reconstruction_attributes=made)

    try:
        root = CallbackSupportMixin._init_callback_context(estimator, max_subtasks=max_iter)
        root.call_on_fit_task_begin(**known)
        yield after_iteration
        root.call_on_fit_task_end(**known, reconstruction_attributes={})
    finally:
        _tear_down(estimator)


def _tear_down(estimator: Estimator) -> None:
    """End the callbacks whose setup began, and drop what scikit-learn keeps for the fit."""
    kept = vars(estimator)
    context, begun = kept.pop("_callback_fit_ctx"), kept.pop("_skl_callbacks_to_teardown", ())
    for callback in begun:
        callback.teardown(estimator=estimator, context=context)


class FitProgress:
    """Shows iteration, objective, gradient norm, elapsed and remaining time.

    `verbose` 0 shows nothing, 1 a live line when standard error is a terminal, 2 a line of text
    per iteration wherever it goes.
    """

    def __init__(self, verbose: int, max_iter: int) -> None:
        self._lines = verbose >= 2
        self._bar: Progress | None = None
        if verbose <= 0:
            return
        from rich.console import Console

        self._console = Console(stderr=True)
        if verbose == 1 and self._console.is_terminal:
            self._bar = _live_line(self._console)
            self._task = self._bar.add_task("fit", total=max_iter, value=0.0, norm="", score="")

    def __enter__(self) -> FitProgress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, state: Iteration, score: float | None) -> None:
        """Show one iteration, and the validation score if there is one."""
        text = "" if score is None else f"validation {score:.4f}"
        norm = "" if isnan(state.gradient_norm) else f"‖g‖ {state.gradient_norm:.3g}"
        if not isnan(state.gap):
            norm = f"dual {state.value - state.gap:.6f}  gap {state.gap:.3g}"
        if self._bar is not None:
            self._bar.update(self._task, advance=1, value=state.value, norm=norm)
            if text:
                self._bar.update(self._task, score=text)
        elif self._lines:
            self._console.print(
                f"iteration {state.iteration:4d}  objective {state.value:.6f}  "
                f"{norm + '  ' if norm else ''}{state.elapsed:.2f} s  {text}".rstrip(),
                highlight=False,
                soft_wrap=True,
            )


def _live_line(console: Console) -> Progress:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("[bold]fit"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("objective {task.fields[value]:.6g}"),
        TextColumn("{task.fields[norm]}"),
        TextColumn("{task.fields[score]}"),
        TimeElapsedColumn(),
        TextColumn("left ≤"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
