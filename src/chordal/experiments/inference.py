"""Approximate inference beside exact: where each method fails as neighbours couple more."""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np

from chordal import plots
from chordal.experiments._base import Experiment, Outcome, Row, Setup, Table
from chordal.inference import INFERENCE, Inference
from chordal.potentials import Potentials
from chordal.structures import Grid

METHODS = ("loopy_bp", "tree_reweighted", "mean_field", "gibbs")
SIDE = 10


@final
class InferenceMethods(Experiment):
    """Errors of marginals and of log Z on grids."""

    title: ClassVar[str] = "Approximate inference, by coupling"
    about: ClassVar[str] = (
        "Grids of two labels with random fields. Where neighbours hardly matter, every method is "
        "right. As the coupling rises, they fail one after another, each in its own way; with "
        "couplings of both signs, no labelling pleases all neighbours, and sooner."
    )
    data: ClassVar[str] = f"grids of {SIDE} × {SIDE}, fields N(0, 1), couplings J or ±J"
    split: ClassVar[str] = "none; five grids for each coupling"
    model: ClassVar[str] = "exact answers by the junction tree"
    source: ClassVar[str] = "no published figure; the bounds are theorems"

    def run(self, setup: Setup) -> Outcome:
        couplings = [0.25, 1.0] if setup.quick else [0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0]
        repeats = 2 if setup.quick else 5
        outcome = Outcome()
        figure, axes = plots.subplots(2, 2, size=(9.6, 6.4))
        for column, mixed in zip(axes.T, (False, True), strict=True):
            kind = "couplings of both signs" if mixed else "neighbours attract"
            errors = {name: np.zeros((len(couplings), repeats, 2)) for name in METHODS}
            for k, coupling in enumerate(couplings):
                setup.say(f"{kind}, J = {coupling:g}")
                for r in range(repeats):
                    rng = np.random.default_rng([self.seed, k, r, mixed])
                    potentials = _grid(coupling, mixed, rng)
                    for name, found in _errors(potentials).items():
                        errors[name][k, r] = found
            self._draw(column, kind, couplings, errors)
            self._rows(outcome, kind, couplings, errors)
        outcome.draw(
            "Errors as the coupling rises",
            "Above, the mean absolute error of marginals; below, of log Z per variable: the "
            "tree-reweighted bound is above, mean field's below. Gibbs sampling gives no log Z.",
            figure,
        )
        return outcome

    def _draw(self, axes: Any, kind: str, couplings: list[float], errors: dict[str, Any]) -> None:
        for name, values in errors.items():
            mean = np.abs(values[..., 0]).mean(axis=1)
            axes[0].plot(couplings, np.maximum(mean, 1e-6), "o-", ms=3, label=name)
            if not np.isnan(values[..., 1]).any():
                axes[1].plot(couplings, values[..., 1].mean(axis=1), "o-", ms=3, label=name)
        axes[0].set(title=kind, ylabel="error of marginals", yscale="log")
        axes[1].axhline(0.0, color="#8b929c", lw=0.8)
        axes[1].set(xlabel="coupling J", ylabel="error of log Z per variable")
        axes[0].legend(frameon=False)

    def _rows(
        self, outcome: Outcome, kind: str, couplings: list[float], errors: dict[str, Any]
    ) -> None:
        rows = [
            [name, *(float(v) for v in np.abs(values[..., 0]).mean(axis=1))]
            for name, values in errors.items()
        ]
        head = ["method", *(f"J = {c:g}" for c in couplings)]
        outcome.tables.append(Table(f"Mean error of marginals, {kind}", head, rows))
        weak = np.abs(errors["loopy_bp"][0, :, 0]).mean()
        outcome.rows.append(
            Row(f"{kind}: error of loopy BP at J = {couplings[0]:g}", weak, must=0.01, lower=True)
        )
        for name, sign in (("tree_reweighted", 1.0), ("mean_field", -1.0)):
            worst = float((sign * errors[name][..., 1]).min())
            side = "above" if sign > 0 else "below"
            outcome.rows.append(
                Row(f"{kind}: {name}'s bound lies {side} log Z by at least", worst, must=0.0)
            )


def _grid(coupling: float, mixed: bool, rng: np.random.Generator) -> Potentials:
    grid = Grid([(SIDE, SIDE)], n_labels=2)
    signs = rng.choice([-1.0, 1.0], grid.n_cliques) if mixed else np.ones(grid.n_cliques)
    pair = np.array([1.0, -1.0, -1.0, 1.0])
    field = rng.normal(size=(grid.n_variables, 1)) * [0.5, -0.5]
    return Potentials(grid, field, np.outer(coupling * signs, pair))


def _errors(potentials: Potentials) -> dict[str, tuple[float, float]]:
    """The mean error of marginals, and the error of log Z per variable."""
    exact = INFERENCE.resolve("junction_tree").marginals(potentials)
    n = potentials.structure.n_variables
    found = {}
    for name in METHODS:
        method: Inference = INFERENCE.resolve(name)
        answer = method.marginals(potentials)
        error = np.abs(answer.parts.unary - exact.parts.unary).mean()
        log_partition = float((answer.log_partition - exact.log_partition)[0]) / n
        found[name] = (float(error), log_partition)
    return found
