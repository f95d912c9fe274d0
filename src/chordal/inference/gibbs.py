"""Gibbs sampling: variables drawn in turn given all others, on any structure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import ClassVar, NamedTuple, final

import numpy as np

from chordal._errors import InfeasibleError, UnsupportedError
from chordal._limits import TimeLimitError, check_time, no_time_limit
from chordal._status import Status
from chordal._validate import check_choice, check_number
from chordal.inference._answers import Convergence, Labels, Marginals
from chordal.inference._base import Inference
from chordal.inference._cliques import allowed_labels
from chordal.inference._schedules import (
    ChromaticSchedule,
    Schedule,
    SingleSchedule,
    TreeSchedule,
    in_threads,
)
from chordal.inference._sweeps import effective_sample_size, r_hat, sweep
from chordal.potentials import Floats, Potentials
from chordal.structures import Ints, Structure

BLOCKS = ("single", "chromatic", "tree")
#: Chains with a higher R-hat have not converged.
R_HAT = 1.01
#: Sweeps that try to repair a start that is not allowed, before a search is made for one.
REPAIRS = 20

Consume = Callable[[int, int, Labels], None]


class Diagnosis(NamedTuple):
    """Convergence diagnostics of the chains, by the scores of their labellings.

    r_hat : float64 [n_examples], near 1 if the chains agree; do not trust values above 1.01
    effective_sample_size : float64 [n_examples], out of `n_chains` · `n_draws` draws
    """

    r_hat: Floats
    effective_sample_size: Floats


@final
class GibbsInference(Inference):
    """Samples, and marginals from them, by Markov chains; no tree or large table is needed.

    Answers are estimates: draws of a chain are dependent, and a chain may stay near one mode for
    longer than it runs. `diagnose` gives diagnostics, and the status of `marginals` is converged
    only if R-hat is at most 1.01. log Z is not computed: in `marginals` it is NaN, and objectives
    that need it raise an error.

    If scores of −inf forbid labellings, chains start at allowed ones, if necessary found by search,
    and stay allowed. They may be unable to move between them.

    Parameters
    ----------
    n_chains : int, default=4
        Number of chains, each started at uniformly drawn labels.
    burn_in : int, default=100
        Number of sweeps before the first draw.
    thinning : int, default=1
        Number of sweeps between draws.
    n_draws : int, default=250
        Number of draws per chain for `marginals` and `diagnose`.
    blocks : {"single", "chromatic", "tree"}, default="single"
        What is drawn jointly. "single": one variable after another. "chromatic": the same by
        colour; variables of a colour share no clique, so threads can share one chain of a large
        graph. "tree": variables are split into forests, each drawn jointly given the rest. A sweep
        costs more, but strongly coupled variables move together; on a forest the draws are
        independent and exact.
    random_state : int, default=0
        Seed of `marginals` and `diagnose`, which return the same answer each time.
    n_jobs : int, default=1
        Number of threads. The answers do not depend on it.

    References
    ----------
    Geman and Geman (1984), Stochastic relaxation, Gibbs distributions, and the Bayesian
    restoration of images; Hamze and de Freitas (2004), From fields to trees; Gonzalez, Low, Gretton
    and Guestrin (2011), Parallel Gibbs sampling: from colored fields to thin junction trees.

    Examples
    --------
    >>> from chordal.inference.chain import ChainInference
    >>> from chordal.structures import Chain
    >>> p = Potentials(Chain([2], n_labels=2), unary=[0, 1, 0, 0], tables=[1, 0, 0, 1])
    >>> gibbs = GibbsInference(n_draws=2000)
    >>> found, exact = gibbs.marginals(p), ChainInference().marginals(p)
    >>> bool(np.abs(found.parts.unary - exact.parts.unary).max() < 0.03)
    True
    >>> found.convergence.status.succeeded
    True
    """

    answers: ClassVar[frozenset[str]] = frozenset({"marginals", "sample"})
    # Marginals are as good as the chains are long; the only samples where nothing is exact.
    quality: ClassVar[Mapping[str, int]] = {"marginals": 50, "sample": 90}
    anytime: ClassVar[bool] = True

    def __init__(
        self,
        n_chains: int = 4,
        burn_in: int = 100,
        thinning: int = 1,
        n_draws: int = 250,
        blocks: str = "single",
        random_state: int = 0,
        n_jobs: int = 1,
        *,
        time_limit: float | None = None,
        memory_limit: float | None = None,
    ) -> None:
        super().__init__(time_limit=time_limit, memory_limit=memory_limit)
        for name, value in (
            ("n_chains", n_chains),
            ("thinning", thinning),
            ("n_draws", n_draws),
            ("n_jobs", n_jobs),
        ):
            check_number(name, value, minimum=1, integer=True)
        check_number("burn_in", burn_in, integer=True)
        check_number("random_state", random_state, integer=True)
        check_choice("blocks", blocks, BLOCKS)
        # As Python's integers: products of NumPy's small ones would wrap around.
        self.n_chains, self.burn_in, self.thinning = int(n_chains), int(burn_in), int(thinning)
        self.n_draws, self.blocks = int(n_draws), blocks
        self.random_state, self.n_jobs = random_state, n_jobs

    def supports(self, structure: Structure) -> bool:
        """Any structure."""
        return True

    def exact_on(self, structure: Structure) -> bool:
        """Never: it draws samples."""
        return False

    @property
    def copies(self) -> float:
        """A chain each, and its draws."""
        return float(self.n_chains) * self.n_draws / 100

    def memory(self, structure: Structure, question: str, n: int = 1) -> float:
        """Labels of all chains or samples, and the counts of each chain."""
        if question == "sample":
            return 4.0 * (n + self.n_chains) * structure.n_variables
        scores = self.n_chains * self.n_draws * structure.n_examples
        return 8.0 * (self.n_chains * structure.n_states + scores)

    def sample(self, potentials: Potentials, n: int, rng: np.random.Generator) -> Labels:
        """n labellings (int32 [n, n_variables]); successive draws of a chain are dependent."""
        chains = min(self.n_chains, max(n, 1))
        out = np.empty((-(-n // chains), chains, potentials.structure.n_variables), dtype=np.int32)

        def keep(chain: int, draw: int, labels: Labels) -> None:
            out[draw, chain] = labels

        drawn = self._run(potentials, chains, len(out), rng, keep)
        if drawn.sum() < chains * len(out):
            check_time()
        return np.ascontiguousarray(out.reshape(len(out) * chains, out.shape[2])[:n])

    def marginals(
        self, potentials: Potentials, weight: Floats | None = None, overwrite: bool = False
    ) -> Marginals:
        """Relative frequencies in the draws of all chains."""
        share = 1.0 / (self.n_chains * self.n_draws)
        counts = [potentials.zeros() for _ in range(self.n_chains)]

        def count(chain: int, draw: int, labels: Labels) -> None:
            counts[chain].add_indicators(labels, share, weight)

        score, drawn = self._scores(potentials, count)
        parts = counts[0]
        for other in counts[1:]:
            parts.unary[:] += other.unary
            parts.tables[:] += other.tables
        if drawn.sum() < self.n_chains * self.n_draws:  # time was over
            parts.unary[:] /= share * drawn.sum()
            parts.tables[:] /= share * drawn.sum()
        ended = self._how_it_ended(score, drawn)
        return Marginals(np.full(potentials.structure.n_examples, np.nan), parts, ended)

    def diagnose(self, potentials: Potentials) -> Diagnosis:
        """Convergence diagnostics of the chains of `marginals`."""
        score, drawn = self._scores(potentials, lambda chain, draw, labels: None)
        if (drawn < self.n_draws).any():
            check_time()
        return Diagnosis(r_hat(score), effective_sample_size(score))

    def _scores(self, potentials: Potentials, consume: Consume) -> tuple[Floats, Ints]:
        """Run the chains of `marginals`; returns the scores of all draws [n_chains, n_draws,
        n_examples] and the number of draws per chain.
        """
        score = np.empty((self.n_chains, self.n_draws, potentials.structure.n_examples))

        def note(chain: int, draw: int, labels: Labels) -> None:
            score[chain, draw] = potentials.score(labels)
            consume(chain, draw, labels)

        rng = np.random.default_rng(self.random_state)
        return score, self._run(potentials, self.n_chains, self.n_draws, rng, note)

    def _how_it_ended(self, score: Floats, drawn: Ints) -> Convergence:
        if (drawn < self.n_draws).any():
            n_sweeps = self.burn_in + int(drawn.max()) * self.thinning
            return Convergence(Status.MAX_TIME, n_sweeps, np.inf)
        worst = float(r_hat(score).max(initial=1.0)) if self.n_draws >= 4 else np.inf
        status = Status.CONVERGED if worst <= R_HAT else Status.MAX_ITERATIONS
        return Convergence(
            status, self.burn_in + self.n_draws * self.thinning, max(0.0, worst - 1.0)
        )

    def _run(
        self,
        potentials: Potentials,
        n_chains: int,
        n_draws: int,
        rng: np.random.Generator,
        consume: Consume,
    ) -> Ints:
        """Burn in, then pass on each draw of each chain, in the chain's thread.

        Returns the number of draws of each chain. If time is over before the first draw, the labels
        of the first chain are used.
        """
        s = potentials.structure
        of_chain = [np.random.default_rng(rng.integers(2**63, size=4)) for _ in range(n_chains)]
        drawn = np.zeros(n_chains, dtype=np.int64)
        start = np.array([g.random(s.n_variables) for g in of_chain]) * s.label_counts
        chains = start.astype(np.int32)
        self._repair(potentials, chains, of_chain)
        with no_time_limit():
            schedule = self._schedule(potentials, max(1, self.n_jobs // n_chains))

        def advance(chain: int, check: Callable[[], None]) -> None:
            labels = chains[chain]
            for first in range(0, self.burn_in, self.thinning):
                check()
                n = min(self.thinning, self.burn_in - first)
                schedule.advance(labels, n, of_chain[chain])
            for draw in range(n_draws):
                check()
                schedule.advance(labels, self.thinning, of_chain[chain])
                consume(chain, draw, labels)
                drawn[chain] += 1

        def in_time(chain: int, check: Callable[[], None]) -> None:
            with suppress(TimeLimitError):
                check_time()
                advance(chain, check)

        in_threads(in_time, n_chains, self.n_jobs)
        if n_draws and not drawn.any():
            consume(0, 0, chains[0])
            drawn[0] = 1
        return drawn

    def _schedule(self, potentials: Potentials, n_threads: int) -> Schedule:
        if self.blocks == "tree":
            return TreeSchedule(potentials)
        if self.blocks == "chromatic":
            return ChromaticSchedule(potentials, n_threads)
        return SingleSchedule(potentials)

    def _repair(
        self, potentials: Potentials, chains: Labels, rngs: list[np.random.Generator]
    ) -> None:
        """Move chains from forbidden labellings to allowed ones."""
        lost = _not_allowed(potentials, chains)
        if not lost.any():
            return
        with no_time_limit():
            for labels, rng, at in zip(chains, rngs, lost, strict=True):
                if at.any():
                    sweep(potentials, labels, REPAIRS, rng)
        lost = _not_allowed(potentials, chains)
        if not lost.any():
            return
        wanted = np.logical_or.reduce(lost)
        allowed, outcome = allowed_labels(potentials, wanted)
        for example in np.flatnonzero(wanted & (outcome != 1)).tolist():
            if outcome[example] == 0:
                raise InfeasibleError(example)
            check_time()
            raise UnsupportedError(
                f"inference {self.name!r} found no allowed labelling of example {example} to "
                "start from, by sweeps or by search; use an exact method"
            )
        mask = np.repeat(lost, np.diff(potentials.structure.variable_offsets), axis=1)
        chains[mask] = np.broadcast_to(allowed, chains.shape)[mask]


def _not_allowed(potentials: Potentials, chains: Labels) -> np.ndarray:
    """Bool [n_chains, n_examples]."""
    return np.array([potentials.score(labels) == -np.inf for labels in chains])
