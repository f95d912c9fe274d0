"""A generative–discriminative pair: the hidden Markov model and the chain CRF."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, final

import numpy as np

from chordal import HMM, ChainCRF
from chordal.experiments._base import Experiment, Outcome, Row, Setup, Table
from chordal.experiments._pictures import curves, heat_map
from chordal.metrics import token_accuracy

N_LABELS, N_SYMBOLS, LENGTH, N_TEST = 4, 12, 20, 400


@final
class HMMCRF(Experiment):
    """Equal posteriors first; then which of both learns faster."""

    title: ClassVar[str] = "HMM and chain CRF: a pair"
    about: ClassVar[str] = (
        "A hidden Markov model's posterior is that of a chain CRF with certain weights. Learned "
        "from data, they differ: counting needs few examples, the CRF makes no assumption about "
        "what is observed. Here every second observation is seen twice, which an HMM takes for "
        "two witnesses."
    )
    data: ClassVar[str] = (
        f"sequences of {LENGTH} positions, {N_LABELS} labels, {N_SYMBOLS} symbols, drawn from an "
        "HMM; each position shows its symbol, every second one also a copy, at times disturbed"
    )
    split: ClassVar[str] = f"3 to 2,000 sequences to learn from, {N_TEST} others to test"
    model: ClassVar[str] = "HMM with multinomial counts; ChainCRF with l2 = 1 on the same counts"
    source: ClassVar[str] = "theory: Ng and Jordan (2001); Busa and Lepinnet (2018)"

    def run(self, setup: Setup) -> Outcome:
        """Everything, from the data to the figures."""
        outcome = Outcome()
        rng = np.random.default_rng(self.seed)
        chain = _Source(rng)
        test = chain.draw(N_TEST, rng)
        setup.say("equal posteriors")
        X, y = chain.draw(100, rng)
        hmm = HMM("multinomial").fit(X, y)
        crf = hmm.to_crf()
        posteriors = zip(
            hmm.predict_marginals(test[0]),
            crf.predict_marginals(hmm.statistics(test[0])),
            strict=True,
        )
        difference = max(float(np.abs(a - b).max()) for a, b in posteriors)
        outcome.rows.append(
            Row(
                "largest difference of the two posteriors",
                difference,
                0.0,
                must=1e-10,
                lower=True,
                digits=12,
            )
        )
        sizes = [3, 20, 80] if setup.quick else [3, 5, 10, 20, 50, 100, 200, 500, 2000]
        repeats = 2 if setup.quick else 8
        found = self._learned(sizes, repeats, chain, test, setup)
        for at, (ahead, behind, what) in (
            (0, ("HMM", "CRF", "little")),
            (-1, ("CRF", "HMM", "much")),
        ):
            gain = found[ahead][:, at] - found[behind][:, at]
            outcome.rows.append(
                Row(
                    f"{ahead} ahead on {what} data ({sizes[at]} sequences)",
                    gain.mean(),
                    must=0.0,
                    spread=gain.std(ddof=1) / repeats**0.5,
                )
            )
        self._pictures(outcome, sizes, found)
        crf = ChainCRF(l2=1.0, fit_intercept=True, ends=True, n_jobs=setup.n_jobs).fit(X, y)
        self._transitions(outcome, chain, hmm, crf)
        return outcome

    def _learned(
        self,
        sizes: list[int],
        repeats: int,
        chain: _Source,
        test: tuple[Sequence[Any], Sequence[Any]],
        setup: Setup,
    ) -> dict[str, Any]:
        scores = {name: np.zeros((repeats, len(sizes))) for name in ("HMM", "CRF", "CRF from HMM")}
        for r in range(repeats):
            X, y = chain.draw(max(sizes), np.random.default_rng(self.seed + 1 + r))
            for s, size in enumerate(sizes):
                setup.say(f"learning curves, {r + 1} of {repeats}: {size} sequences")
                hmm = HMM("multinomial").fit(X[:size], y[:size])
                crf = ChainCRF(l2=1.0, fit_intercept=True, ends=True, n_jobs=setup.n_jobs)
                crf.fit(X[:size], y[:size])
                warm = hmm.to_crf(l2=1.0, n_jobs=setup.n_jobs)
                warm.partial_fit(hmm.statistics(X[:size]), y[:size])
                found = (
                    hmm.predict(test[0]),
                    crf.predict(test[0]),
                    warm.predict(hmm.statistics(test[0])),
                )
                for name, labels in zip(scores, found, strict=True):
                    scores[name][r, s] = token_accuracy(test[1], labels)
        return scores

    def _pictures(self, outcome: Outcome, sizes: list[int], found: dict[str, Any]) -> None:
        means, errors = _means(found)
        outcome.pictures.append(
            curves(
                "Learning curves",
                "Means of repeated draws, with standard errors.",
                means,
                sizes,
                xlabel="training sequences",
                ylabel="labels right",
                errors=errors,
                log="x",
            )
        )
        gains, errors = _means({"CRF": found["CRF"] - found["HMM"]})
        outcome.pictures.append(
            curves(
                "What the CRF gains over the HMM",
                "Differences on the same draws, with standard errors: below zero on little data, "
                "above on much.",
                gains,
                sizes,
                xlabel="training sequences",
                ylabel="labels right, CRF − HMM",
                errors=errors,
                log="x",
            )
        )
        rows = [[name, *(float(v) for v in mean)] for name, mean in means.items()]
        outcome.tables.append(Table("Labels right", ["model", *map(str, sizes)], rows))

    def _transitions(self, outcome: Outcome, chain: _Source, hmm: HMM, crf: ChainCRF) -> None:
        """Centred by row: weights that differ by a constant in a row mean the same."""
        for title, caption, table in (
            ("Transitions of the source", "Logarithms of probabilities.", chain.transitions),
            (
                "Transitions of the HMM",
                "Learned by counting, from 100 sequences.",
                np.exp(hmm.to_crf().transitions_),
            ),
            (
                "Transitions of the CRF",
                "Learned by likelihood, from the same sequences.",
                np.exp(crf.transitions_),
            ),
        ):
            weights = np.log(np.maximum(table, 1e-3))
            weights = weights - weights.mean(axis=1, keepdims=True)
            outcome.pictures.append(
                heat_map(title, f"{caption} Rows are centred.", weights, range(N_LABELS))
            )


def _means(found: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Means over repetitions, and their standard errors."""
    means = {name: values.mean(axis=0) for name, values in found.items()}
    errors = {name: v.std(axis=0, ddof=1) / len(v) ** 0.5 for name, v in found.items()}
    return means, errors


class _Source:
    """An HMM to draw from, and what is seen of its symbols."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.transitions = rng.dirichlet(np.full(N_LABELS, 0.5), size=N_LABELS)
        self.emissions = rng.dirichlet(np.full(N_SYMBOLS, 0.6), size=N_LABELS)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[list[Any], list[list[int]]]:
        X, Y = [], []
        for _ in range(n):
            y = [int(rng.integers(N_LABELS))]
            for _ in range(LENGTH - 1):
                y.append(int(rng.choice(N_LABELS, p=self.transitions[y[-1]])))
            counts = np.zeros((LENGTH, N_SYMBOLS))
            for t, label in enumerate(y):
                symbol = rng.choice(N_SYMBOLS, p=self.emissions[label])
                counts[t, symbol] += 1.0
                if t % 2:  # a copy, one in five times disturbed
                    counts[t, symbol if rng.random() < 0.8 else rng.integers(N_SYMBOLS)] += 1.0
            X.append(counts)
            Y.append(y)
        return X, Y
