"""The state of passes over mini-batches between two of them, for checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from chordal._saved import Saved, SavedError, State
from chordal.estimators import Checkpointer, FitReport
from chordal.torch._course import Course, Settings

Tensors = Mapping[str, Tensor]


@dataclass
class Passes:
    """All that changes from pass to pass: weights, means of the optimiser, random numbers."""

    course: Course
    optimizer: torch.optim.Optimizer
    schedule: torch.optim.lr_scheduler.LambdaLR
    generator: np.random.Generator
    settings: Settings

    def to_state(self) -> State:
        """All of it, tensors as bytes."""
        own, best = self.course, list[State]()
        if own.best is not None:
            rank, loss, weights = own.best
            best = [{"rank": rank, "loss": loss, "weights": _bytes(weights)}]
        return {
            "weights": _bytes(own.model.state_dict()),
            "optimizer": [_bytes(part) for part in self._parts()],
            "random": dict(self.generator.bit_generator.state),
            "torch": torch.get_rng_state().numpy(),
            "history": own.history,
            "scored": [k for k, _ in own.scores],
            "scores": [score for _, score in own.scores],
            "n_steps": own.n_steps,
            "elapsed": own.elapsed,
            "waited": own.waited,
            "best": best,
        }

    def from_state(self, saved: Saved) -> None:
        """Go on with passes over the same data."""
        own, weights = self.course, self.course.model.state_dict()
        own.history, own.n_steps = saved.numbers("history"), saved.integer("n_steps")
        n, most = len(own.history), self.settings.max_iter
        if n >= most:
            raise SavedError(f"it is at iteration {n}, and max_iter is {most}: raise it to go on")
        own.model.load_state_dict(_tensors(saved.part("weights"), weights))
        self._fill_optimizer(saved)
        saved.generator("random", self.generator)
        state = saved.array("torch", np.uint8, (len(torch.get_rng_state()),))
        torch.set_rng_state(torch.from_numpy(state))
        scored = zip(saved.numbers("scored"), saved.numbers("scores"), strict=False)
        own.scores = [(int(k), score) for k, score in scored]
        own.elapsed, own.waited = saved.number("elapsed"), saved.integer("waited")
        for best in saved.parts("best"):
            kept = _tensors(best.part("weights"), weights)
            own.best = (best.number("rank"), best.number("loss"), kept)

    def _parts(self) -> list[Tensors]:
        """What the optimiser has of each parameter."""
        groups = self.optimizer.param_groups
        return [self.optimizer.state[own] for group in groups for own in group["params"]]

    def _fill_optimizer(self, saved: Saved) -> None:
        """Means of every parameter, of its shape, and the learning rate of the next step."""
        groups, own = self.optimizer.param_groups, self.course
        parameters = [parameter for group in groups for parameter in group["params"]]
        parts = saved.parts("optimizer")
        if len(parts) != len(parameters):
            raise SavedError(f"there must be means of {len(parameters)} parameters")
        for parameter, part in zip(parameters, parts, strict=True):
            if part.names():
                means = {"exp_avg": parameter, "exp_avg_sq": parameter, "step": torch.zeros(())}
                self.optimizer.state[parameter] = _tensors(part, means)
        self.schedule.last_epoch = own.n_steps
        for group, base, share in zip(
            groups, self.schedule.base_lrs, self.schedule.lr_lambdas, strict=True
        ):
            group["lr"] = base * share(own.n_steps)


class StageKeeper:
    """Keeps the passes of a stage in a checkpoint, with the reports of the stages before."""

    def __init__(
        self,
        keeper: Checkpointer,
        stage: int,
        reports: Sequence[FitReport],
        saved: Saved | None = None,
    ) -> None:
        self._keeper, self._stage, self._saved = keeper, stage, saved
        self._reports, self._before = reports, sum(report.n_iter for report in reports)
        keeper.urgent = stage > 0 and saved is None  # stages before are not to be done again

    def begin(self, passes: Passes) -> None:
        """Passes are about to begin, or to go on."""
        self._passes = passes
        if self._saved is not None:
            passes.from_state(self._saved.part("passes"))

    def between(self, n_iter: int) -> None:
        """Between two passes; they work in place, so that a copy is kept for Ctrl-C."""
        self._keeper.between(self._before + n_iter, self._state, copy=True)

    def interrupted(self) -> None:
        """Ctrl-C."""
        self._keeper.interrupted()

    def _state(self) -> State:
        reports = [report.to_facts() for report in self._reports]
        return {"stage": self._stage, "reports": reports, "passes": self._passes.to_state()}


def stage_of(saved: Saved | None, n_stages: int) -> tuple[int, list[FitReport]]:
    """The stage to go on with, and the reports of those before."""
    if saved is None:
        return 0, []
    stage = saved.integer("stage")
    facts = [part.values for part in saved.parts("reports")]
    if stage >= n_stages or len(facts) != stage:
        raise SavedError(f"there is no stage {stage} with {len(facts)} before it")
    try:
        return stage, [FitReport.from_facts(own) for own in facts]
    except (TypeError, ValueError, LookupError) as error:
        raise SavedError(f"its reports cannot be read: {error}") from error


def _bytes(tensors: Tensors) -> State:
    return {name: _raw(tensor) for name, tensor in tensors.items()}


def _raw(tensor: Tensor) -> NDArray[np.uint8]:
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return np.asarray(flat.view(torch.uint8).numpy())


def _tensors(saved: Saved, like: Tensors) -> dict[str, Tensor]:
    """Tensors of the type, shape and place of these; those of floats are finite."""
    found: dict[str, Tensor] = {}
    for name, present in like.items():
        n = prod(present.shape) * present.element_size()
        flat = torch.from_numpy(saved.array(name, np.uint8, (n,))).view(present.dtype)
        if flat.is_floating_point() and not bool(flat.isfinite().all()):
            raise SavedError(f"{name} must hold finite numbers")
        found[name] = flat.reshape(present.shape).to(present.device)
    return found
