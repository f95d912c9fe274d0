"""Approximate inference beside exact: where each method fails as neighbours couple more."""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np

from chordal.experiments._base import Array, Experiment, Outcome, Row, Setup, Table
from chordal.experiments._pictures import curves, image_rows
from chordal.inference import INFERENCE
from chordal.potentials import Potentials
from chordal.structures import Grid

METHODS = {
    "loopy BP": "loopy_bp",
    "TRW": "tree_reweighted",
    "mean field": "mean_field",
    "Gibbs": "gibbs",
}
SIDE = 10
WRONG = 0.05  # the mean error of marginals that counts as failing


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
        """Everything, from the data to the figures."""
        couplings = [0.25, 1.0] if setup.quick else [0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0]
        repeats = 2 if setup.quick else 5
        outcome = Outcome()
        limits: list[list[Any]] = []
        for mixed in (False, True):
            kind = "both signs" if mixed else "attraction"
            errors = {name: np.zeros((len(couplings), repeats, 2)) for name in METHODS}
            for k, coupling in enumerate(couplings):
                setup.say(f"{kind}, J = {coupling:g}")
                for r in range(repeats):
                    rng = np.random.default_rng([self.seed, k, r, mixed])
                    potentials = _grid(coupling, mixed, rng)
                    for name, found in _errors(potentials).items():
                        errors[name][k, r] = found
            self._curves(outcome, kind, couplings, errors)
            self._rows(outcome, kind, couplings, errors)
            limits += [
                [f"{name}, {kind}", *_fails(values, couplings)] for name, values in errors.items()
            ]
        head = ["method", f"error above {WRONG:g} from J =", "largest error", "at J ="]
        outcome.tables.append(Table("Where each method fails", head, limits))
        self._marginals(outcome, couplings[-3:][0])
        return outcome

    def _curves(
        self, outcome: Outcome, kind: str, couplings: list[float], errors: dict[str, Any]
    ) -> None:
        marginals = {
            name: np.maximum(np.abs(values[..., 0]).mean(axis=1), 1e-6)
            for name, values in errors.items()
        }
        partitions = {
            name: values[..., 1].mean(axis=1)
            for name, values in errors.items()
            if not np.isnan(values[..., 1]).any()
        }
        for title, caption, series, ylabel, log in (
            ("Marginals", "Mean absolute error.", marginals, "error of marginals", "y"),
            (
                "log Z",
                "Per variable: the tree-reweighted bound (TRW) is above zero, mean field's below. "
                "Gibbs sampling gives none.",
                partitions,
                "error of log Z",
                "",
            ),
        ):
            outcome.pictures.append(
                curves(
                    f"{title}, {kind}",
                    caption,
                    series,
                    couplings,
                    xlabel="coupling J",
                    ylabel=ylabel,
                    log=log,
                )
            )

    def _marginals(self, outcome: Outcome, coupling: float) -> None:
        """One grid of each kind: the exact marginals, and what each method says."""
        rows = []
        for mixed in (False, True):
            potentials = _grid(coupling, mixed, np.random.default_rng([self.seed, 99, mixed]))
            answers = [
                INFERENCE.resolve(name).marginals(potentials).parts.unary
                for name in ("junction_tree", *METHODS.values())
            ]
            rows.append([unary.reshape(SIDE, SIDE, 2)[..., 0] for unary in answers])
        n = len(METHODS) + 1
        outcome.pictures.append(
            image_rows(
                f"Two grids at J = {coupling:g}",
                "The probability of the first label in every cell, dark for 1.",
                rows,
                ["exact", *METHODS],
                cmaps=["Greys"] * n,
                limits=[(0.0, 1.0)] * n,
                names=["attraction", "both signs"],
            )
        )

    def _rows(
        self, outcome: Outcome, kind: str, couplings: list[float], errors: dict[str, Any]
    ) -> None:
        rows = [
            [name, *(float(v) for v in np.abs(values[..., 0]).mean(axis=1))]
            for name, values in errors.items()
        ]
        head = ["method", *(f"J = {c:g}" for c in couplings)]
        outcome.tables.append(Table(f"Mean error of marginals, {kind}", head, rows))
        for name, asked in (("loopy BP", 0.001), ("TRW", 0.01), ("mean field", 0.01)):
            weak = np.abs(errors[name][0, :, 0]).mean()
            what = f"{kind}, J = {couplings[0]:g}: error of marginals, {name}"
            outcome.rows.append(Row(what, weak, must=asked, lower=True, digits=4))
        for name, sign in (("TRW", 1.0), ("mean field", -1.0)):
            worst = float((sign * errors[name][..., 1]).min())
            side = "above" if sign > 0 else "below"
            what = f"{kind}: how far {name} lies {side} log Z, at least"
            why = "per variable; a theorem"
            outcome.rows.append(Row(what, worst, must=0.0, digits=5, why=why))


def _fails(values: Array, couplings: list[float]) -> list[Any]:
    """The coupling from which on marginals are wrong, the largest error, and where."""
    mean = np.abs(values[..., 0]).mean(axis=1)
    wrong = np.flatnonzero(mean > WRONG)
    worst = int(mean.argmax())
    first = f"{couplings[wrong[0]]:g}" if len(wrong) else "none"
    return [first, float(mean[worst]), f"{couplings[worst]:g}"]


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
    for name, method in METHODS.items():
        answer = INFERENCE.resolve(method).marginals(potentials)
        error = np.abs(answer.parts.unary - exact.parts.unary).mean()
        log_partition = float((answer.log_partition - exact.log_partition)[0]) / n
        found[name] = (float(error), log_partition)
    return found
