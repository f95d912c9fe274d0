"""What a stage of training works with: the network with its CRF, data, settings, and its course."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from chordal._progress import FitProgress
from chordal._status import Status
from chordal.potentials import Floats
from chordal.solvers import Callback, Iteration
from chordal.torch._inputs import padded
from chordal.torch.crf import CRF

REMEDY = "decrease learning_rate, or scale the inputs"
READ = 4096  # positions that a network reads at once when it only answers

Batch = Callable[[NDArray[np.int64]], tuple[Tensor, Tensor]]
State = dict[str, Tensor]


class ChainNetwork(nn.Module):
    """A network's scores as the potentials of chains."""

    def __init__(self, network: nn.Module, n_labels: int) -> None:
        super().__init__()
        self.network = network
        self.crf = CRF(n_labels, batch_first=True, any_mask=True)
        for parameter in self.crf.parameters():
            nn.init.zeros_(parameter)

    def scores(self, x: Tensor, mask: Tensor) -> Tensor:
        """[batch, steps, labels], whose shape is checked: the network may be the user's."""
        scores: Tensor = self.network(x, mask)
        wanted = (*mask.shape, self.crf.num_tags)
        if not isinstance(scores, Tensor) or tuple(scores.shape) != wanted:
            got = tuple(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
            raise ValueError(
                f"network must give a score for each of {wanted[2]} labels at every position, a "
                f"tensor {wanted}; got {got}"
            )
        if bool(scores[mask].isnan().any()):
            raise ValueError(f"the network gives NaN: {REMEDY}")
        return scores

    def joint_loss(self, x: Tensor, mask: Tensor, tags: Tensor) -> Tensor:
        """−log p(tags) of each sequence."""
        loss: Tensor = -self.crf(self.scores(x, mask), tags, mask, reduction="none")
        return loss

    def softmax_loss(self, x: Tensor, mask: Tensor, tags: Tensor) -> Tensor:
        """−log p of each sequence, were its positions independent."""
        chances = self.scores(x, mask).log_softmax(2)
        if tags.dim() == 2:
            found = chances.gather(2, tags.clamp(min=0).unsqueeze(2)).squeeze(2)
        elif tags.dtype == torch.bool:
            found = chances.masked_fill(~tags, -torch.inf).logsumexp(2)
        else:
            found = (chances * tags).sum(2)
        return -torch.where(mask, found, 0.0).sum(1)

    def answers(self, sequences: Sequence[Tensor]) -> list[Floats]:
        """The scores [length, labels] of sequences, without dropout, by batches of like lengths."""
        self.eval()
        found: list[Floats] = [np.zeros((0, self.crf.num_tags))] * len(sequences)
        device = self.crf.transitions.device
        for chosen in _like_lengths(sequences):
            x, mask = padded([sequences[i] for i in chosen])
            with torch.no_grad():
                scores = self.scores(x.to(device), mask.to(device)).double().cpu().numpy()
            for row, i in enumerate(chosen):
                found[i] = scores[row, : len(sequences[i])]
        return found


def _like_lengths(sequences: Sequence[Tensor]) -> Iterator[list[int]]:
    """Numbers of sequences that are not empty, in groups that take few positions with padding."""
    group: list[int] = []
    for i in sorted(range(len(sequences)), key=lambda i: len(sequences[i])):
        if group and len(sequences[i]) * (len(group) + 1) > READ:
            yield group
            group = []
        if len(sequences[i]):
            group.append(i)
    if group:
        yield group


@dataclass(frozen=True)
class Examples:
    """Training data: what makes a batch of some sequences, their tags, lengths and weights."""

    inputs: Batch
    tags: Sequence[Tensor]
    weight: Floats

    def batch(self, chosen: NDArray[np.int64], device: str) -> tuple[Tensor, Tensor, Tensor]:
        """Inputs, mask and tags."""
        x, mask = self.inputs(chosen)
        fill = 1.0 if self.tags[0].dtype == torch.bool else 0.0
        tags = pad_sequence([self.tags[i] for i in chosen], True, padding_value=fill)
        return x.to(device), mask.to(device), tags.to(device)


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

    model: ChainNetwork
    score: Callable[[], float] | None
    callbacks: Sequence[Callback]
    history: list[float] = field(default_factory=list)
    scores: list[tuple[int, float]] = field(default_factory=list)
    status: Status = Status.MAX_ITERATIONS
    n_steps: int = 0
    elapsed: float = 0.0
    best: tuple[float, float, State] | None = None  # rank, loss, weights
    waited: int = 0

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


def copied(model: nn.Module) -> State:
    """The weights, in memory of their own."""
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def flat(model: nn.Module) -> Floats:
    """All weights in a row, in the order of their names."""
    state = model.state_dict()
    rows = [state[name].detach().double().cpu().numpy().ravel() for name in sorted(state)]
    return np.concatenate([np.zeros(0), *rows])


def fill(model: nn.Module, weights: Floats) -> None:
    """Give a model the weights that `flat` gave, as many as it has."""
    state, at = model.state_dict(), 0
    filled: State = {}
    for name in sorted(state):
        own = weights[at : at + state[name].numel()]
        at += len(own)
        values = torch.from_numpy(np.array(own, dtype=np.float64)).reshape(state[name].shape)
        filled[name] = values.to(state[name].dtype)
    model.load_state_dict(filled)
