"""Gibbs sampling: each variable drawn in turn given all others, on any structure."""

from __future__ import annotations

from typing import ClassVar, NamedTuple, final

import numpy as np

from chordal._errors import UnsupportedError
from chordal._validate import check_number
from chordal.inference._base import Inference, Labels, Marginals
from chordal.inference._sweeps import effective_sample_size, r_hat, sweep
from chordal.inference.chain import ChainInference
from chordal.potentials import Floats, Potentials
from chordal.structures import Structure


class Convergence(NamedTuple):
    """What the chains say about themselves, by the score of their labellings.

    r_hat : float64 [n_examples], near 1 where the chains agree; above 1.01 do not trust them
    effective_sample_size : float64 [n_examples], of `n_chains` · `n_draws` draws
    """

    r_hat: Floats
    effective_sample_size: Floats


@final
class GibbsInference(Inference):
    """Samples, and marginals from them, by Markov chains that need no tree and no table.

    Answers are estimates: draws of a chain depend on each other, and a chain may stay near one mode
    for longer than it runs. `diagnose` tells what the chains themselves reveal. There is no
    log Z: that of `marginals` is NaN, and an objective that needs one refuses this method.

    Parameters
    ----------
    n_chains : int
        Chains, each from labels of its own drawn uniformly.
    burn_in : int
        Sweeps before the first draw.
    thinning : int
        Sweeps between draws.
    n_draws : int
        Draws of each chain for `marginals` and `diagnose`.
    random_state : int
        Seed of `marginals` and `diagnose`, which give the same answer each time.

    References
    ----------
    Geman and Geman (1984), Stochastic relaxation, Gibbs distributions, and the Bayesian
    restoration of images.

    Examples
    --------
    >>> from chordal.structures import Chain
    >>> p = Potentials(Chain([2], n_labels=2), unary=[0, 1, 0, 0], tables=[1, 0, 0, 1])
    >>> gibbs = GibbsInference(n_draws=2000)
    >>> exact = ChainInference().marginals(p).parts.unary
    >>> bool(np.abs(gibbs.marginals(p).parts.unary - exact).max() < 0.03)
    True
    """

    answers: ClassVar[frozenset[str]] = frozenset({"marginals", "sample"})

    def __init__(
        self,
        n_chains: int = 4,
        burn_in: int = 100,
        thinning: int = 1,
        n_draws: int = 250,
        random_state: int = 0,
    ) -> None:
        for name, value in (("n_chains", n_chains), ("thinning", thinning), ("n_draws", n_draws)):
            check_number(name, value, minimum=1, integer=True)
        check_number("burn_in", burn_in, integer=True)
        check_number("random_state", random_state, integer=True)
        self.n_chains, self.burn_in, self.thinning = n_chains, burn_in, thinning
        self.n_draws, self.random_state = n_draws, random_state

    def supports(self, structure: Structure) -> bool:
        return True

    def exact_on(self, structure: Structure) -> bool:
        return False

    def sample(self, potentials: Potentials, n: int, rng: np.random.Generator) -> Labels:
        """n labellings (int32 [n, n_variables]); neighbours of one chain depend on each other."""
        chains = min(self.n_chains, max(n, 1))
        drawn = self._draws(potentials, chains, -(-n // chains), rng)
        return np.ascontiguousarray(drawn.reshape(-1, potentials.structure.n_variables)[:n])

    def marginals(
        self, potentials: Potentials, weight: Floats | None = None, overwrite: bool = False
    ) -> Marginals:
        rng = np.random.default_rng(self.random_state)
        drawn = self._draws(potentials, self.n_chains, self.n_draws, rng)
        parts = potentials.zeros()
        for labels in drawn.reshape(-1, potentials.structure.n_variables):
            parts.add_indicators(labels, 1.0 / (self.n_chains * self.n_draws), weight)
        return Marginals(np.full(potentials.structure.n_examples, np.nan), parts)

    def diagnose(self, potentials: Potentials) -> Convergence:
        """Whether the chains of `marginals` have converged, from their own draws."""
        rng = np.random.default_rng(self.random_state)
        drawn = self._draws(potentials, self.n_chains, self.n_draws, rng)
        score = np.array([[potentials.score(labels) for labels in draw] for draw in drawn])
        chains = np.swapaxes(score, 0, 1)
        return Convergence(r_hat(chains), effective_sample_size(chains))

    def _draws(
        self, potentials: Potentials, n_chains: int, n_draws: int, rng: np.random.Generator
    ) -> Labels:
        """[n_draws, n_chains, n_variables]."""
        s = potentials.structure
        uniform = rng.random((n_chains, s.n_variables))
        labels = (uniform * s.label_counts).astype(np.int32)
        sweep(potentials, labels, self.burn_in, rng)
        self._settle(potentials, labels, rng)
        out = np.empty((n_draws, n_chains, s.n_variables), dtype=np.int32)
        for draw in out:
            sweep(potentials, labels, self.thinning, rng)
            draw[:] = labels
        return out

    def _settle(self, potentials: Potentials, labels: Labels, rng: np.random.Generator) -> None:
        """Start again, from the best labelling, where a chain has found no allowed one."""
        s = potentials.structure
        lost = np.array([potentials.score(y) == -np.inf for y in labels])
        if not lost.any():
            return
        exact = ChainInference()
        if not exact.supports(s):
            raise UnsupportedError(
                f"inference {self.name!r} has found no allowed labelling of example "
                f"{int(np.argmax(lost.any(axis=0)))} in {self.burn_in} sweeps; raise burn_in, or "
                "use an exact method"
            )
        best = exact.map(potentials).labels
        mask = np.repeat(lost, np.diff(s.variable_offsets), axis=1)
        labels[mask] = np.broadcast_to(best, labels.shape)[mask]
        sweep(potentials, labels, self.burn_in, rng)

    def __repr__(self) -> str:
        return (
            f"GibbsInference(n_chains={self.n_chains}, burn_in={self.burn_in}, "
            f"thinning={self.thinning}, n_draws={self.n_draws}, random_state={self.random_state})"
        )
