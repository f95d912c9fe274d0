"""How a network and its CRF learn: passes over mini-batches, watched, and stopped in time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from math import cos, floor, isfinite, nan, pi
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from chordal._fit_progress import FitProgress
from chordal._status import Status
from chordal.potentials import Floats
from chordal.solvers import Callback, Iteration
from chordal.solvers.adam import Adam
from chordal.torch._drawing import Stream

OPTIMIZERS = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
#: The share of the learning rate after a share of all steps.
SCHEDULES: dict[str, Callable[[float], float]] = {
    "none": lambda done: 1.0,
    "cosine": lambda done: 0.5 * (1.0 + cos(pi * min(done, 1.0))),
    "step": lambda done: 0.1 ** floor(min(3.0 * done, 2.0)),
}
REMEDY = "decrease learning_rate, or scale the inputs"

Ints = NDArray[np.int64]
State = dict[str, Tensor]
Facts = dict[str, Any]  # what JSON can hold
Saved = tuple[Facts, dict[str, NDArray[Any]]]
UNSAVED: Saved = ({}, {})  # of a model that is not a checkpoint
#: Of the numbers of some examples: the sum of their losses, and of their variables, both weighted.
LossOf = Callable[[Ints], tuple[Tensor, Tensor]]


class Settings(NamedTuple):
    """Of the optimiser and of when to stop."""

    optimizer: str
    learning_rate: float
    weight_decay: float
    schedule: str
    clip_norm: float | None
    max_iter: int
    batch_size: int
    n_iter_no_change: int | None
    verbose: int
    device: str


@dataclass
class Course:
    """How a stage of training goes, and what it has to give."""

    model: nn.Module
    score: Callable[[], float] | None
    callbacks: Sequence[Callback]
    stream: Stream  # of what networks draw here
    history: list[float] = field(default_factory=list)
    scores: list[tuple[int, float]] = field(default_factory=list)
    status: Status = Status.MAX_ITERATIONS
    n_steps: int = 0
    elapsed: float = 0.0
    best: tuple[float, float, State] | None = None  # rank, loss, weights
    waited: int = 0
    saved: Saved | None = None  # where an earlier run stopped, to go on from there
    optimizer: torch.optim.Optimizer = field(init=False)
    generator: np.random.Generator = field(init=False)

    def begin(
        self,
        parameters: Sequence[nn.Parameter],
        generator: np.random.Generator,
        settings: Settings,
    ) -> None:
        """Create the optimiser, or restore its state."""
        made = OPTIMIZERS[settings.optimizer]
        self.optimizer = made(
            parameters, lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        self.generator = generator
        if self.saved is not None:
            self._take(self.saved)

    def save(self) -> Saved:
        """What training needs to go on after the last pass."""
        moments = [_moments(self.optimizer, p) for p in self.parameters()]
        best = self.best
        facts: Facts = {
            "history": self.history,
            "scores": self.scores,
            "n_steps": self.n_steps,
            "elapsed": self.elapsed,
            "waited": self.waited,
            "steps": [steps for steps, _ in moments],
            "best": None if best is None else list(best[:2]),
            "generator": self.generator.bit_generator.state,
        }
        arrays = {
            "moments": np.concatenate([np.zeros(0), *(own for _, own in moments)]),
            "best": np.zeros(0) if best is None else flat_state(best[2]),
            "torch": self.stream.to_array(),
        }
        return facts, arrays

    def _take(self, saved: Saved) -> None:
        facts, arrays = saved
        self.history = [float(loss) for loss in facts["history"]]
        self.scores = [(int(n), float(score)) for n, score in facts["scores"]]
        self.n_steps, self.waited = int(facts["n_steps"]), int(facts["waited"])
        self.elapsed = float(facts["elapsed"])
        if facts["best"] is not None:
            rank, loss = facts["best"]
            state = unflat_state(copied(self.model), arrays["best"])
            self.best = float(rank), float(loss), state
        at = 0
        for parameter, steps in zip(self.parameters(), facts["steps"], strict=True):
            n = 2 * parameter.numel() if steps else 0
            own = torch.tensor(arrays["moments"][at : at + n])
            at += n
            if steps:
                first, second = own.to(parameter).reshape(2, *parameter.shape)
                self.optimizer.state[parameter] = {
                    "step": torch.tensor(float(steps)), "exp_avg": first, "exp_avg_sq": second
                }  # fmt: skip
        self.generator.bit_generator.state = facts["generator"]
        self.stream.take(arrays["torch"])

    def parameters(self) -> list[nn.Parameter]:
        """What the optimiser changes, in its order."""
        return [own for group in self.optimizer.param_groups for own in group["params"]]

    def after_pass(self, loss: float, settings: Settings, progress: FitProgress | None) -> bool:
        """Take note of a pass; whether training is over."""
        self.history.append(loss)
        n, score = len(self.history), None
        if self.score is not None:
            score = self.score()
            self.scores.append((n, score))
        judged = score is not None and settings.n_iter_no_change is not None
        rank = score if judged and score is not None else -loss
        self.waited += 1
        if self.best is None or rank > self.best[0]:
            self.best, self.waited = (rank, loss, copied(self.model)), 0
        state = self._iteration(n, loss, score)
        if progress is not None:
            progress.update(state, score)
        stops = [bool(callback(state)) for callback in self.callbacks]
        if any(stops):
            self.status = Status.STOPPED
        elif judged and self.waited >= (settings.n_iter_no_change or 0):
            self.status = Status.CONVERGED
        return self.status is not Status.MAX_ITERATIONS

    def _iteration(self, n: int, loss: float, score: float | None) -> Iteration:
        state = Iteration(n, loss, nan, self.n_steps, self.elapsed, flat(self.model))
        return state._replace(scores=tuple(self.scores), score=nan if score is None else score)

    def finish(self, settings: Settings) -> float:
        """Give the model its weights: the best ones if they were judged or training was cut short.

        Returns the loss of the pass that had them.
        """
        if self.best is None:
            return nan
        judged = self.score is not None and settings.n_iter_no_change is not None
        if judged or self.status is Status.INTERRUPTED:
            self.model.load_state_dict(self.best[2])
            return self.best[1]
        return self.history[-1]


class Steps(Protocol):
    """What a model learns from, wherever it is, in steps."""

    @property
    def per_pass(self) -> int:
        """Steps in a pass over the data."""

    def taken(self, course: Course) -> Iterator[tuple[float, float]]:
        """For every step of a pass: the mean loss of a variable and the weight of all variables,
        once the gradients of the mean are set.
        """


class StepsInMemory:
    """Steps through examples by their numbers, in a new order in each pass."""

    def __init__(self, loss_of: LossOf, used: Ints, batch_size: int) -> None:
        self.loss_of, self.used = loss_of, used
        self.per_pass = -(-len(used) // batch_size)

    def taken(self, course: Course) -> Iterator[tuple[float, float]]:
        """Mini-batches of about the same size."""
        order = course.generator.permutation(self.used)
        for chosen in np.array_split(order, self.per_pass):
            with course.stream.step():
                loss, size = self.loss_of(chosen)
            loss = loss / size.clamp(min=1e-12)
            course.optimizer.zero_grad()
            loss.backward()
            yield loss.item(), size.item()


def train(course: Course, steps: Steps, settings: Settings) -> None:
    """Passes over the data, until one of the reasons to stop; Ctrl-C is one of them."""
    began = time.monotonic() - course.elapsed
    watch = Adam(settings.max_iter, 0.0)  # how the line in the terminal names passes
    shown = FitProgress(settings.verbose, watch) if settings.verbose else nullcontext()
    try:
        with shown as progress:
            for _ in range(len(course.history), settings.max_iter):
                loss = _pass(course, steps, settings)
                course.elapsed = time.monotonic() - began
                if course.after_pass(loss, settings, progress):
                    break
    except KeyboardInterrupt:
        course.status = Status.INTERRUPTED
    course.elapsed = time.monotonic() - began


def _pass(course: Course, steps: Steps, settings: Settings) -> float:
    """One pass over the examples; the mean loss of a variable in it."""
    optimizer, total, count = course.optimizer, 0.0, 0.0
    share = SCHEDULES[settings.schedule]
    course.model.train()
    for loss, size in steps.taken(course):
        if not isfinite(loss):
            raise ValueError(f"the loss is {loss} in pass {len(course.history) + 1}: {REMEDY}")
        for group in optimizer.param_groups:
            done = course.n_steps / (steps.per_pass * settings.max_iter)
            group["lr"] = settings.learning_rate * share(done)
            if settings.clip_norm is not None:
                nn.utils.clip_grad_norm_(group["params"], settings.clip_norm)
        optimizer.step()
        course.n_steps += 1
        total, count = total + loss * size, count + size
    return total / max(count, 1e-12)


def copied(model: nn.Module) -> State:
    """A copy of the weights."""
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def flat(model: nn.Module) -> Floats:
    """All weights in a row, in the order of their names."""
    return flat_state(model.state_dict())


def flat_state(state: State) -> Floats:
    """The same of what `state_dict` gave."""
    rows = [state[name].detach().cpu().double().numpy().ravel() for name in sorted(state)]
    return np.concatenate([np.zeros(0), *rows])


def unflat_state(like: State, weights: Floats) -> State:
    """What `flat_state` put in a row; refuses another number of weights."""
    n = sum(tensor.numel() for tensor in like.values())
    if n != len(weights):
        raise ValueError(f"the network has {n} weights, but the file {len(weights)}")
    filled, at = State(), 0
    for name in sorted(like):
        own = weights[at : at + like[name].numel()]
        at += len(own)
        values = torch.from_numpy(np.array(own, dtype=np.float64)).reshape(like[name].shape)
        filled[name] = values.to(like[name].dtype)
    return filled


def _moments(optimizer: torch.optim.Optimizer, parameter: nn.Parameter) -> tuple[int, Floats]:
    """The steps of a parameter, and the means that Adam keeps of it."""
    state = optimizer.state.get(parameter)
    if not state:
        return 0, np.zeros(0)
    both = torch.stack([state["exp_avg"], state["exp_avg_sq"]]).cpu().double().numpy()
    return int(state["step"].item()), both.ravel()
