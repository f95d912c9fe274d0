"""How a network and its CRF learn: passes over mini-batches, watched, and stopped in time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from math import cos, floor, isfinite, pi

import numpy as np
import torch
from torch import Tensor, nn

from chordal._progress import FitProgress
from chordal._status import Status
from chordal.solvers.adam import Adam
from chordal.torch._course import REMEDY, Course, Examples, Settings
from chordal.torch._keeping import Passes, StageKeeper

OPTIMIZERS = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
#: The share of the learning rate after a share of all steps.
SCHEDULES: dict[str, Callable[[float], float]] = {
    "none": lambda done: 1.0,
    "cosine": lambda done: 0.5 * (1.0 + cos(pi * min(done, 1.0))),
    "step": lambda done: 0.1 ** floor(min(3.0 * done, 2.0)),
}


def train(
    course: Course,
    loss_of: Callable[[Tensor, Tensor, Tensor], Tensor],
    parameters: Sequence[nn.Parameter],
    data: Examples,
    generator: np.random.Generator,
    settings: Settings,
    keeper: StageKeeper | None = None,
) -> None:
    """Passes over the data, until one of the reasons to stop; Ctrl-C is one of them."""
    optimizer = OPTIMIZERS[settings.optimizer](
        parameters, lr=settings.learning_rate, weight_decay=settings.weight_decay
    )
    used = np.flatnonzero(data.weight > 0.0)
    per_pass = -(-len(used) // settings.batch_size)
    share = SCHEDULES[settings.schedule]
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: share(step / (per_pass * settings.max_iter))
    )
    if keeper is not None:
        keeper.begin(Passes(course, optimizer, schedule, generator, settings))
    began = time.monotonic() - course.elapsed
    watch = Adam(settings.max_iter, 0.0)  # how the line in the terminal names passes
    shown = FitProgress(settings.verbose, watch) if settings.verbose else nullcontext()
    try:
        with shown as progress:
            for n_iter in range(len(course.history), settings.max_iter):
                if keeper is not None:
                    keeper.between(n_iter)
                course.model.train()
                total = count = 0.0
                for chosen in np.array_split(generator.permutation(used), per_pass):
                    x, mask, tags = data.batch(chosen, settings.device)
                    weight = torch.from_numpy(data.weight[chosen]).to(settings.device)
                    size = (weight * mask.sum(1)).sum()
                    loss = (loss_of(x, mask, tags) * weight).sum() / size.clamp(min=1e-12)
                    if not isfinite(loss.item()):
                        raise ValueError(
                            f"the loss is {loss.item()} in pass {len(course.history) + 1}: {REMEDY}"
                        )
                    optimizer.zero_grad()
                    loss.backward()
                    if settings.clip_norm is not None:
                        nn.utils.clip_grad_norm_(parameters, settings.clip_norm)
                    optimizer.step()
                    schedule.step()
                    course.n_steps += 1
                    total, count = total + loss.item() * size.item(), count + size.item()
                course.elapsed = time.monotonic() - began
                if course.after_pass(total / max(count, 1e-12), settings, progress):
                    break
    except KeyboardInterrupt:
        course.status = Status.INTERRUPTED
        if keeper is not None:
            keeper.interrupted()
    course.elapsed = time.monotonic() - began


@contextmanager
def reproducible(seed: int, n_threads: int) -> Iterator[None]:
    """PyTorch's random numbers from a seed, and so many threads, for a time."""
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(before)
