"""Stochastic maximum likelihood: expectations from samples instead of sums."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable
from typing import Any, ClassVar, final
from weakref import WeakKeyDictionary

import numpy as np

from chordal._saved import Kept, Saved, SavedError, State
from chordal._validate import check_choice, check_number
from chordal.inference import Inference, sweep
from chordal.objectives._base import Evaluation, Objective, hard_labels
from chordal.potentials import Floats, Potentials
from chordal.structures import Structure
from chordal.targets import Labels, Target


@final
class StochasticLikelihood(Objective):
    """The likelihood with a sampled gradient: indicators of samples minus those of gold labels.

    log Z is not computed. The value is the mean score of the samples minus the score of the gold
    labelling; its derivative is the parts, with the samples held fixed. It may be negative and only
    shows how near the samples are to gold (0). Solvers that compare values, as every line search
    does, raise an error for this objective.

    Parameters
    ----------
    samples : {"persistent", "contrastive", "inference"}, default="persistent"
        "contrastive": chains start at the gold labelling in every evaluation (contrastive
        divergence; biased, with little noise). "persistent": chains continue from their last state,
        while the weights change slowly. "inference": independent samples of the inference method,
        unbiased if it is exact.
    n_samples : int, default=1
        Number of chains, or samples, per example.
    n_sweeps : int, default=1
        Number of Gibbs sweeps per evaluation.
    random_state : int, default=0
        Seed. Each batch has its own chains and random numbers, from the seed and its gold labels,
        as long as its structure exists. The result does not depend on the number of threads.

    References
    ----------
    Hinton (2002), Training products of experts by minimizing contrastive divergence; Tieleman
    (2008), Training restricted Boltzmann machines using approximations to the likelihood gradient.

    Examples
    --------
    >>> from chordal.inference.chain import ChainInference
    >>> from chordal.structures import Chain
    >>> p = Potentials(Chain([2], n_labels=2), unary=[0, 0, 0, 0], tables=[1, 0, 0, 1])
    >>> loss = StochasticLikelihood("contrastive", n_samples=2)
    >>> values, parts = loss.evaluate(p, [0, 0], ChainInference())
    >>> values, parts.unary
    (array([-0.5]), array([ 0. ,  0. , -0.5,  0.5]))
    """

    convex: ClassVar[bool] = False
    smooth: ClassVar[bool] = True
    stochastic: ClassVar[bool] = True

    def __init__(
        self,
        samples: str = "persistent",
        n_samples: int = 1,
        n_sweeps: int = 1,
        random_state: int = 0,
    ) -> None:
        check_choice("samples", samples, ["persistent", "contrastive", "inference"])
        for name, value in (("n_samples", n_samples), ("n_sweeps", n_sweeps)):
            check_number(name, value, minimum=1, integer=True)
        check_number("random_state", random_state, integer=True)
        self.samples, self.n_samples = samples, n_samples
        self.n_sweeps, self.random_state = n_sweeps, random_state
        if samples == "inference":
            self.needs = frozenset({"sample"})
        self._start()

    def _start(self) -> None:
        self._states: WeakKeyDictionary[Structure, _State] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def evaluate(
        self,
        potentials: Potentials,
        labels: Target | None,
        inference: Inference,
        weight: Floats | None = None,
        overwrite: bool = False,
    ) -> Evaluation:
        """An estimate of the derivative of −log p, from samples."""
        gold = potentials.checked_labels(hard_labels(self, labels))
        state = self._state_of(potentials.structure, gold)
        if self.samples == "inference":
            drawn = inference.sample(potentials, self.n_samples, state.rng)
        else:
            if self.samples == "contrastive":
                state.chains[:] = gold
            sweep(potentials, state.chains, self.n_sweeps, state.rng)
            drawn = state.chains
        parts, share = potentials.zeros(), 1.0 / self.n_samples
        values = -potentials.score(gold)
        for sample in drawn:
            values += share * potentials.score(sample)
            parts.add_indicators(sample, share, weight)
        parts.add_indicators(gold, -1.0, weight)
        return Evaluation(values if weight is None else weight * values, parts)

    def kept_for(self, structures: Iterable[Structure]) -> _Samples:
        """The chains of these batches, and their random numbers."""
        return _Samples(self, structures)

    def _state_of(self, structure: Structure, gold: Labels) -> _State:
        with self._lock:  # threads evaluate different batches at the same time
            if structure not in self._states:
                self._states[structure] = _State(gold, self.n_samples, self.random_state)
            return self._states[structure]

    def __getstate__(self) -> dict[str, Any]:
        """The settings; a copy starts new chains."""
        return {k: v for k, v in vars(self).items() if k not in ("_states", "_lock")}

    def __setstate__(self, settings: dict[str, Any]) -> None:
        vars(self).update(settings)
        self._start()

    def __repr__(self) -> str:
        return (
            f"StochasticLikelihood(samples={self.samples!r}, n_samples={self.n_samples}, "
            f"n_sweeps={self.n_sweeps}, random_state={self.random_state})"
        )


class _State(Kept):
    """The chains of one batch, started at its gold labels, and its random numbers."""

    kept: ClassVar[tuple[str, ...]] = ("chains", "rng")

    def __init__(self, gold: Labels, n_chains: int, seed: int) -> None:
        digest = hashlib.blake2b(gold.tobytes(), digest_size=16).digest()
        self.rng = np.random.default_rng([seed, *np.frombuffer(digest, dtype=np.uint32)])
        self.chains: Labels = np.repeat(gold[None], n_chains, axis=0)


class _Samples:
    """The chains of some batches; none for a batch that was not evaluated yet."""

    def __init__(self, objective: StochasticLikelihood, structures: Iterable[Structure]) -> None:
        self._objective, self._structures = objective, list(structures)

    def to_state(self) -> State:
        """Chains and random numbers of each batch."""
        states = [self._objective._states.get(own) for own in self._structures]
        return {"batches": [{} if own is None else own.to_state() for own in states]}

    def from_state(self, saved: Saved) -> None:
        """Restore the chains of the same number of batches."""
        objective, parts = self._objective, saved.parts("batches")
        if len(parts) != len(self._structures):
            raise SavedError(f"there must be chains of {len(self._structures)} batches")
        for structure, part in zip(self._structures, parts, strict=True):
            if part.names():
                first = np.zeros(structure.n_variables, dtype=np.int32)
                own = _State(first, objective.n_samples, objective.random_state)
                own.from_state(part)
                if ((own.chains < 0) | (own.chains >= structure.label_counts)).any():
                    raise SavedError("a sample must have labels of its variables")
                objective._states[structure] = own
