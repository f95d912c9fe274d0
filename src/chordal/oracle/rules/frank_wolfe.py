"""Block-coordinate Frank–Wolfe: a plane under the loss of every example, one after another.

An example's loss is at least L_i + ⟨G_i, w⟩. Planes that were found are mixed: G_i and L_i are
means of them, with dual variables for weights. Then w = centre − Σ G_i / l2 minimises the planes'
sum plus the regularisation, and with G = −Σ G_i

    dual = Σ L_i − ⟨centre, G⟩ − ‖G‖² / (2 l2)

bounds the optimum from below. Chains keep the marginals of labels and transitions, few of which
are not zero, and a compiled loop changes them. Other structures keep the planes themselves
(`cached_planes`).

Reference: Lacoste-Julien et al. (2013), Block-coordinate Frank–Wolfe optimization for structural
SVMs.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal._saved import Kept, Saved, SavedError, State
from chordal.oracle._chain_arrays import ChainDuals, Chains
from chordal.oracle.examples import DualLearner, DualRule, StructuredExamples
from chordal.oracle.rules.cached_planes import CachedPlaneLearner
from chordal.potentials import Floats
from chordal.structures import offsets_of

Ints = NDArray[np.int64]

SNAPSHOT_CELLS = 64  # of weights per step between two snapshots for a mean over time
INNER = 4  # visits to all examples until the centre moves
HASTE = 0.1  # κ as a share of the mean curvature of single examples
EMPHASIS = 5.0  # the mean over time weighs visit j by about j to this power


class FrankWolfeRule(DualRule):
    """Each visit moves one example's dual variables by the step that raises the dual most."""

    def learner(self, examples: StructuredExamples, duals: ChainDuals | None = None) -> DualLearner:
        """A learner by this rule; compiled for chains."""
        return CachedPlaneLearner(examples) if duals is None else ChainFrankWolfe(examples, duals)


class DualState(Kept):
    """The highest dual value so far, from linear terms L and sums G: w = centre + G / l2.

    With `chains`, weights and sums are in their cells.
    """

    kept: ClassVar[tuple[str, ...]] = ("_highest",)

    def __init__(self, examples: StructuredExamples, chains: Chains | None = None) -> None:
        centre = np.zeros(examples.n_weights) if examples.centre is None else examples.centre
        self.centre = centre if chains is None else chains.spread(centre)
        self._l2, self._highest = examples.l2, -np.inf

    def reach(self, weights: Floats, linear: float) -> float:
        """The same for weights in place of the sum G."""
        return self.reach_by(self._l2 * (weights - self.centre), linear)

    def reach_by(self, G: Floats, linear: float) -> float:
        """The highest value so far, with L − ⟨centre, G⟩ − ‖G‖² / (2 l2) among them."""
        value = linear - float(self.centre @ G) - 0.5 * float(G @ G) / self._l2
        self._highest = max(self._highest, value)
        return self._highest


class DualMarginals:
    """Marginals of all examples, few of which are not zero: lists of keys and values.

    At first an example has these keys, as many as `sizes` says, with the value 1. Keys of
    an example are below its `limits`.
    """

    def __init__(self, keys: Ints, sizes: Ints, limits: Ints) -> None:
        self._limits = limits
        self._sizes, self._room = sizes, offsets_of(sizes)
        self._used = sizes.astype(np.int32)
        self._keys, self._values = keys.astype(np.uint32), np.ones(len(keys))
        self._merge()

    def to_state(self) -> State:
        """The lists, one after another, without room to grow."""
        at = self._places()
        return {"used": self._used, "keys": self._keys[at], "values": self._values[at]}

    def from_state(self, saved: Saved) -> None:
        """Take over lists of as many examples."""
        used = saved.array("used", np.int32, self._used.shape)
        if len(used) and used.min() < 0:
            raise SavedError("an example must have some dual variables, or none")
        keys = saved.array("keys", np.uint32, (int(used.sum(dtype=np.int64)),))
        if (keys >= np.repeat(self._limits, used)).any():
            raise SavedError("a dual variable must be of a label or a transition of its example")
        self._used, self._room, self._keys = used, offsets_of(used.astype(np.int64)), keys
        self._values = saved.array("values", np.float64, keys.shape)

    def lists(self) -> _kernels.DualLists:
        """What a kernel changes."""
        return _kernels.DualLists(self._room, self._used, self._keys, self._values)

    def make_room(self, visits: Ints) -> None:
        """Let every list grow by its first size, so many times."""
        needed, room = self._used + visits * self._sizes, np.diff(self._room)
        if (needed <= room).all():
            return
        at = self._places()
        keys, values = self._keys[at], self._values[at]
        self._room = offsets_of(np.maximum(room, needed + needed // 2))
        self._keys = np.zeros(self._room[-1], dtype=np.uint32)
        self._values = np.zeros(self._room[-1])
        at = self._places()
        self._keys[at], self._values[at] = keys, values

    def _places(self) -> Ints:
        used = self._used.astype(np.int64)
        inner = np.arange(used.sum()) - np.repeat(offsets_of(used)[:-1], used)
        return np.repeat(self._room[:-1], used) + inner

    def _merge(self) -> None:
        """A key that an example has twice, such as a tied transition, counts twice."""
        example = np.repeat(np.arange(len(self._sizes)), self._sizes)
        order = np.lexsort((self._keys, example))
        both = np.stack([example[order], self._keys[order]])
        first = np.flatnonzero(np.append(True, (np.diff(both) != 0).any(axis=0))[: len(order)])
        values = np.add.reduceat(np.ones(len(order)), first) if len(first) else self._values
        counts = np.bincount(example[order][first], minlength=len(self._sizes))
        self._used = counts.astype(np.int32)
        at = self._places()
        self._keys[at], self._values[at] = self._keys[order][first], values


class ChainFrankWolfe(Kept):
    """Chains, in a compiled loop, which is accelerated where l2 is small.

    Where l2 is small beside the curvature of single examples, their best steps are short, and all
    have to be visited very often. Steps are then taken on the objective plus (κ/2) ‖w − z‖². This
    is the same problem with l2 + κ and another centre. After a few visits to all examples, z moves
    to x + β (x − the previous x), where x is the mean of the weights since z last moved. See Lin,
    Mairal and Harchaoui (2015), A universal catalyst for first-order optimization. The dual
    variables are valid for the original problem, and so are their means over time, which `state`
    gives.
    """

    kept: ClassVar[tuple[str, ...]] = (
        *("_labels", "_transitions", "_linear", "_dual", "_centre", "_x"),
        *("_mean", "_mean_G", "_mean_linear", "_sums", "_kappa", "_visits"),
    )
    filled: ClassVar[tuple[str, ...]] = ("_w", "_recent")

    def __init__(self, examples: StructuredExamples, duals: ChainDuals) -> None:
        self._examples, self._duals, chains = examples, duals, duals.chains
        (labels, label_limits), (transitions, limits) = duals.gold_keys()
        self._labels = DualMarginals(labels, chains.lengths, label_limits)
        steps = np.maximum(chains.lengths - 1, 0)
        self._transitions = DualMarginals(transitions, steps, limits)
        self._linear = np.zeros(examples.n_examples)  # the expected cost of every example
        # All in cells: w = centre + G / (l2 + κ), G = Σ ω ψ; means over the last visit and all.
        # Each spread by itself: the kernel works on whole cache lines of w and recent.
        self._dual = DualState(examples, chains)
        centre = np.zeros(examples.n_weights) if examples.centre is None else examples.centre
        self._w, self._recent = chains.spread(centre), chains.spread(centre)
        self._centre = self._x = self._dual.centre
        self._mean = self._w.copy()
        self._mean_G, self._mean_linear = np.zeros_like(self._w), 0.0
        self._sums = np.zeros(6)  # steps, snapshots, Σ ω ℓ, its mean, curvature, moves
        self._kappa, self._visits = 0.0, 0

    @property
    def _l2(self) -> float:
        """That of the steps."""
        return self._examples.l2 + self._kappa

    def visit(self, order: Ints) -> None:
        """Improve the dual variables of these examples in turn."""
        duals, order = self._duals, self._examples.checked(order)
        visits = np.bincount(order, minlength=self._examples.n_examples)
        self._labels.make_room(visits)
        self._transitions.make_room(visits)
        arrays = _kernels.FrankWolfe(
            w=self._w,
            mean=self._recent,
            linear=self._linear,
            labels=self._labels.lists(),
            transitions=self._transitions.lists(),
            sums=self._sums,
            gram=duals.gram,
            gram_offsets=duals.gram_offsets,
        )
        every = max(1, min(len(self._w) // SNAPSHOT_CELLS, len(order) // 4))
        self._sums[1] = 0.0  # snapshots: the mean begins anew
        _kernels.chain_frank_wolfe(duals.chains.arrays, duals.costs, order, self._l2, every, arrays)
        self._sums[2] = float(duals.sample_weight @ self._linear)  # without the rounding of steps
        if self._sums[1] > 0.0:
            self._take_mean()
        if self._visits % INNER == 0:
            self._move_centre()

    def state(self) -> tuple[Floats, float]:
        """The mean weights, and the highest dual value so far."""
        G = self._l2 * (self._w - self._centre)
        dual = self._dual.reach_by(G, float(self._sums[2]))
        return self._duals.chains.gather(self._mean if self._visits else self._w), dual

    def _take_mean(self) -> None:
        self._visits += 1
        share, linear = (EMPHASIS + 1.0) / (EMPHASIS + self._visits), float(self._sums[3])
        G = self._l2 * (self._recent - self._centre)
        self._mean += share * (self._recent - self._mean)
        self._mean_G += share * (G - self._mean_G)
        self._mean_linear += share * (linear - self._mean_linear)
        self._dual.reach_by(G, linear)
        self._dual.reach_by(self._mean_G, self._mean_linear)

    def _move_centre(self) -> None:
        """Let z go on; κ is chosen once, after the first visits have shown the curvature."""
        l2, old = self._examples.l2, self._l2
        if self._kappa == 0.0:
            kappa = HASTE * self._sums[4] / max(self._sums[5], 1.0)
            if kappa <= l2:  # nothing to gain
                return
            self._kappa = kappa
        root = np.sqrt(l2 / self._l2)
        z = self._recent + (1.0 - root) / (1.0 + root) * (self._recent - self._x)
        G, self._x = old * (self._w - self._centre), self._recent.copy()
        self._centre = (l2 * self._dual.centre + self._kappa * z) / self._l2
        self._w[:] = self._centre + G / self._l2
