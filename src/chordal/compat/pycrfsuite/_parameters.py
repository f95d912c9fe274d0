"""The training parameters of CRFsuite: which each algorithm has, their types and defaults."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple, SupportsFloat

ALIASES = {"ap": "averaged-perceptron", "pa": "passive-aggressive"}
LINE_SEARCHES = ("MoreThuente", "Backtracking", "StrongBacktracking")


class Parameter(NamedTuple):
    """A parameter: its type, default, help and limits."""

    kind: type
    default: str | float
    help: str
    minimum: float = 0.0
    maximum: float = math.inf
    strict: bool = False  # above the minimum, not at it


_FEATURES = {
    "feature.minfreq": Parameter(float, 0.0, "Features seen less often are left out.", -math.inf),
    "feature.possible_states": Parameter(
        bool, False, "State features for all pairs of attributes and labels, also unseen ones."
    ),
    "feature.possible_transitions": Parameter(
        bool, False, "Transition features for all pairs of labels, also unseen ones."
    ),
}
_EPOCHS = Parameter(int, 100, "The most passes over the data.", 1)
_MEAN_LOSS = Parameter(float, 0.0, "Stop when the mean loss of a pass is below this.")
_C2 = Parameter(float, 1.0, "Coefficient of the L2 regularization c2·‖w‖².")
_PERIOD = Parameter(int, 10, "Iterations over which the stopping criterion looks back.")
_DELTA = "Stop when the loss improved by a smaller share than this over the last `period`."

ALGORITHMS: dict[str, dict[str, Parameter]] = {
    "lbfgs": {
        **_FEATURES,
        "c1": Parameter(float, 0.0, "Coefficient of the L1 regularization c1·‖w‖₁."),
        "c2": _C2,
        "max_iterations": Parameter(int, 2**31 - 1, "The most iterations; 0 for no limit."),
        "num_memories": Parameter(int, 6, "Steps from which the Hessian is estimated.", 1),
        "epsilon": Parameter(float, 1e-5, "Stop when ‖gradient‖ < epsilon · max(1, ‖w‖)."),
        "period": _PERIOD,
        "delta": Parameter(float, 1e-5, _DELTA),
        "linesearch": Parameter(
            str,
            "MoreThuente",
            f"One of {', '.join(LINE_SEARCHES)}; accepted, but chordal has a search of its own.",
        ),
        "max_linesearch": Parameter(
            int, 20, "The most trials of a line search; without c1, it is chordal's own.", 1
        ),
    },
    "l2sgd": {
        **_FEATURES,
        "c2": _C2,
        "max_iterations": Parameter(int, 1000, "The most passes over the data.", 1),
        "period": _PERIOD,
        "delta": Parameter(float, 1e-6, _DELTA),
        "calibration.eta": Parameter(
            float, 0.1, "The learning rate that calibration tries first.", strict=True
        ),
        "calibration.rate": Parameter(
            float, 2.0, "By how much calibration raises or lowers it.", 1, strict=True
        ),
        "calibration.samples": Parameter(int, 1000, "Instances used for calibration.", 1),
        "calibration.candidates": Parameter(int, 10, "Learning rates that must do well.", 1),
        "calibration.max_trials": Parameter(int, 20, "The most learning rates tried.", 1),
    },
    "averaged-perceptron": {**_FEATURES, "max_iterations": _EPOCHS, "epsilon": _MEAN_LOSS},
    "passive-aggressive": {
        **_FEATURES,
        "type": Parameter(int, 1, "0: without slack; 1: PA-I; 2: PA-II.", 0, 2),
        "c": Parameter(float, 1.0, "How much the slack costs (types 1 and 2).", strict=True),
        "error_sensitive": Parameter(bool, True, "Whether the cost counts the wrong labels."),
        "averaging": Parameter(bool, True, "Whether the weights are averaged over all updates."),
        "max_iterations": _EPOCHS,
        "epsilon": _MEAN_LOSS,
    },
    "arow": {
        **_FEATURES,
        "variance": Parameter(
            float, 1.0, "The variance that every weight starts with.", strict=True
        ),
        "gamma": Parameter(
            float, 1.0, "How much the loss counts against changes of weights.", strict=True
        ),
        "max_iterations": _EPOCHS,
        "epsilon": _MEAN_LOSS,
    },
}


class Parameters:
    """The parameters of one algorithm and their values.

    >>> p = Parameters("ap")
    >>> p["max_iterations"] = 50
    >>> p["max_iterations"], p["epsilon"]
    (50, 0.0)
    """

    def __init__(self, algorithm: str, kind: str = "crf1d") -> None:
        name = str(algorithm).lower()
        name = ALIASES.get(name, name)
        if name not in ALGORITHMS:
            names = ", ".join(["lbfgs", "l2sgd", "ap", "pa", "arow"])
            raise ValueError(f"algorithm must be one of {names}; got {algorithm!r}")
        if not isinstance(kind, str) or kind != "crf1d":
            raise ValueError(f"type must be 'crf1d', a linear chain; got {kind!r}")
        self.algorithm = name
        self._known = ALGORITHMS[name]
        self._values = {key: parameter.default for key, parameter in self._known.items()}

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __contains__(self, name: object) -> bool:
        return name in self._known

    def __getitem__(self, name: str) -> Any:
        self.described(name)
        return self._values[name]

    def __setitem__(self, name: str, value: str | SupportsFloat) -> None:
        self._values[name] = cast(name, self.described(name), value)

    def described(self, name: str) -> Parameter:
        """Type, default and description of a parameter."""
        if not isinstance(name, str) or name not in self._known:
            raise ValueError(
                f"Parameter not found: {name}; {self.algorithm} has {', '.join(self._known)}"
            )
        return self._known[name]


def cast(name: str, parameter: Parameter, value: str | SupportsFloat) -> str | float:
    """The value in the parameter's type; numbers may come as text, flags as 0 and 1."""
    if parameter.kind is str:
        if value not in LINE_SEARCHES:
            raise ValueError(f"{name} must be one of {', '.join(LINE_SEARCHES)}; got {value!r}")
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if parameter.kind is bool:
        if number not in (0.0, 1.0):
            raise ValueError(f"{name} must be True or False, got {value!r}")
        return number == 1.0
    whole = parameter.kind is int
    good = math.isfinite(number) and parameter.minimum <= number <= parameter.maximum
    at_minimum = parameter.strict and number == parameter.minimum
    if not good or at_minimum or (whole and number != int(number)):
        noun = "an integer" if whole else "a number"
        bound = "above" if parameter.strict else "of at least"
        least = "" if parameter.minimum == -math.inf else f" {bound} {parameter.minimum:g}"
        most = "" if parameter.maximum == math.inf else f" and at most {parameter.maximum:g}"
        raise ValueError(f"{name} must be {noun}{least}{most}, got {value!r}")
    return int(number) if whole else number
