"""Choose solver, objective and inference of a fit, and check that they fit together."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from chordal._errors import UnsupportedError
from chordal._optional import installed
from chordal._validate import check_choice, check_function, check_number, generator_from, is_sparse
from chordal.estimators._asking import WAYS
from chordal.estimators._training.groups import check_groups, members
from chordal.estimators._training.preparing import is_stored
from chordal.execution import effective_n_jobs
from chordal.features import Layout, Parts, Reader, Shard
from chordal.inference import INFERENCE, Inference, Pace, choose
from chordal.labels import SequenceLabels
from chordal.objectives import OBJECTIVES, Objective
from chordal.oracle import Problem, check_questions
from chordal.potentials import Floats
from chordal.solvers import SOLVERS, Solver
from chordal.structures import Matching
from chordal.targets import kind_of

if TYPE_CHECKING:
    from chordal.estimators._crf import BaseCRF

#: Looks at every table cell that an exact best labelling is worth in training; an approximation
#: takes some tens.
MAX_WORK = 300.0
MANY = 100_000  # weights: planes under the whole loss have one number for each


class Data(NamedTuple):
    """The data that were read, and the layout of their weights."""

    reader: Reader
    labels: SequenceLabels
    parts: Parts  # examples, and what y says
    weight: Floats | None  # of examples
    layout: Layout
    start: Floats  # weights at zero, or those that are known


#: Arrays in their place would fail where they are compared.
_NO_ARRAYS = frozenset(
    {"objective", "solver", "inference", "prediction", "random_state", "class_weight"}
    | {"ignore_label", "transitions", "contrast", "tables"}
)


def check_settings(estimator: BaseCRF) -> None:
    """Raise an error for settings that are not valid numbers or names."""
    for name, value in vars(estimator).items():
        if name in _NO_ARRAYS and (getattr(value, "ndim", 0) > 0 or is_sparse(value)):
            raise TypeError(f"{name} must not be an array, got {type(value).__name__}")
    check_number("l1", estimator.l1)
    if estimator.tol is not None:
        check_number("tol", estimator.tol)
    check_number("validation_interval", estimator.validation_interval, minimum=1, integer=True)
    for name in ("max_iter", "n_iter_no_change"):
        if getattr(estimator, name) is not None:
            check_number(name, getattr(estimator, name), minimum=1, integer=True)
    effective_n_jobs(estimator.n_jobs)
    check_number("verbose", estimator.verbose, integer=True)
    check_number("min_freq", estimator.min_freq, integer=True)
    check_choice("pairs", estimator.pairs, ["seen", "all"])
    check_choice("prediction", estimator.prediction, ["auto", *WAYS])
    check_groups(estimator.l2, estimator.freeze, estimator._groups())


def check_fit_arguments(callback: object, validation_data: object) -> None:
    """Raise an error for invalid arguments of `fit`."""
    check_function("callback", callback, "an Iteration")
    if validation_data is not None:
        validation_pair(validation_data)


def validation_pair(given: object) -> tuple[Any, Any]:
    """X and y of validation data; of prepared data sets, y is None."""
    if is_stored(given, None):
        return given, None
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise ValueError(
            "validation_data must be a pair (X, y) of examples and labels, or a prepared data set"
        )
    return given[0], given[1]


def solver_for(estimator: BaseCRF, problem: Problem | None = None, parted: bool = False) -> Solver:
    """The solver of this name with the estimator's settings, or the one given, seeded.

    "auto" is chosen by the problem, as far as it is known at this point.
    """
    solver, l1, random_state = estimator.solver, estimator.l1, estimator.random_state
    if isinstance(solver, str) and solver == "auto":
        problem = problem or problem_before_reading(estimator, asked_objective(estimator), parted)
        solver = choose_solver(problem, l1, estimator.preferred_solvers)
        if random_state is None:
            random_state = 0  # nobody asked for chance
    if solver == "lbfgs" and l1 > 0.0:
        solver = "owlqn"
    if isinstance(solver, str):
        settings: dict[str, Any] = {"max_iter": estimator.max_iter, "tol": estimator.tol}
        settings = {k: v for k, v in settings.items() if v is not None}
        if SOLVERS.get(solver).seeded:
            settings["random_state"] = generator_from(random_state)
        if SOLVERS.get(solver).handles_l1:
            settings["l1"] = l1
        elif l1 > 0.0:
            raise ValueError(f"solver {solver!r} does not support l1 > 0; use 'owlqn'")
        return SOLVERS.resolve(solver, **settings)
    given = SOLVERS.resolve(solver)
    if given.l1 != l1:
        raise ValueError(
            f"l1 must equal that of the solver object ({given.l1}), got {l1}; "
            f"give the solver by name, or set l1 in both places"
        )
    if given.seeded and given.random_state is None and random_state is not None:
        given = copy(given)
        given.random_state = generator_from(random_state)
    return given


def objective_for(estimator: BaseCRF, solver: Solver) -> Objective:
    """The requested objective; "auto" is the solver's own, else the estimator's default."""
    asked, own = estimator.objective, solver.default_objective()
    chosen = isinstance(estimator.solver, str) and estimator.solver == "auto"
    if own == "likelihood" or chosen or not isinstance(asked, str) or asked != "auto":
        return asked_objective(estimator)
    return OBJECTIVES.resolve(own)


def asked_objective(estimator: BaseCRF) -> Objective:
    """The requested objective; "auto" is the estimator's default for any solver."""
    asked = estimator.objective
    auto = isinstance(asked, str) and asked == "auto"
    return OBJECTIVES.resolve(estimator.default_objective if auto else asked)


def problem_before_reading(
    estimator: BaseCRF, objective: Objective, parted: bool = False
) -> Problem:
    """The problem as far as it is known before reading data."""
    return Problem(objective, l2=estimator.l2, partial=len(estimator.freeze) > 0, parted=parted)


def chosen_before_reading(estimator: BaseCRF, parted: bool = False) -> tuple[Solver, Objective]:
    """Solver and objective; raises an error if no data could make them work together."""
    solver = solver_for(estimator, parted=parted)
    objective = objective_for(estimator, solver)
    solver.check(problem_before_reading(estimator, objective, parted))
    if estimator.inference != "auto":
        method = INFERENCE.resolve(estimator.inference)
        objective.require_answers(method)
        asked = WAYS.get(estimator.prediction)
        if asked is not None and asked not in method.answers:
            raise UnsupportedError(
                f"prediction={estimator.prediction!r} needs {asked}, which inference "
                f"{method.name!r} cannot compute; leave one of them at 'auto'"
            )
    return solver, objective


def choose_solver(problem: Problem, l1: float = 0.0, first: Sequence[str] = ()) -> str:
    """The name of the first suitable solver that supports the problem and is installed.

    A smooth objective gets L-BFGS, or with l1 > 0 its orthant-wise variant. An objective estimated
    from samples gets Adam. A non-smooth one gets a solver with a duality gap, first those in
    `first`, else a subgradient method.

    >>> from chordal.objectives.hinge import Hinge
    >>> from chordal.objectives.likelihood import Likelihood
    >>> choose_solver(Problem(Likelihood())), choose_solver(Problem(Hinge()))
    ('lbfgs', 'block_frank_wolfe')
    """
    objective = problem.objective
    if l1 > 0.0 and not objective.smooth:
        raise UnsupportedError(
            f"no solver supports l1 > 0 with objective {objective.name!r}, which is not smooth; "
            "use l1=0, or a smooth objective such as 'likelihood' or 'softmax_margin'"
        )
    names = _candidates(problem, l1, first)
    for name in names[:-1]:
        kind = SOLVERS.get(name)
        if not all(map(installed, kind.packages)):
            continue
        try:
            kind().check(problem)
        except (UnsupportedError, ValueError):
            continue
        return name
    return names[-1]  # which says why not, if it does not take the problem either


def _candidates(problem: Problem, l1: float, first: Sequence[str]) -> list[str]:
    objective = problem.objective
    if objective.stochastic:
        return ["adam"]
    if objective.smooth:
        return ["owlqn" if l1 > 0.0 else "lbfgs"]
    # Compiled loops pass over chains; elsewhere planes under the whole loss need fewer passes.
    # Steps of single examples are short where scaled weights stand for an intercept.
    margin = ["one_slack", *["cutting_plane"] * problem.exempt, "block_frank_wolfe"]
    if problem.n_weights > MANY or (problem.chains and problem.one_l2):
        margin.reverse()
    return ["averaged_perceptron", *first, *margin, "frank_wolfe", "sgd", "adam"]


def problem_of(
    estimator: BaseCRF, objective: Objective, data: Data, some_stay: bool, centre: bool
) -> Problem:
    """The problem to minimise on these data; `some_stay`: some weights are frozen."""
    gold = data.parts[0].gold  # that of all is of one kind
    objective.require_targets(gold)
    kind = kind_of(gold)
    without = () if centre else estimator.unpenalised
    return Problem(
        objective,
        "hard" if kind == "partial" and objective.completes else kind,
        estimator.l2,
        some_stay,
        data.layout.n_weights,
        exempt=len(members(without, data.layout.slices)) > 0,
        chains=data.parts.outline.is_chain and not data.layout.shares_transitions,
        warm=not centre and bool(data.start.any()),
    )


def check_before_compiling(
    estimator: BaseCRF, problem: Problem, solver: Solver, data: Data
) -> None:
    """Raise an error for settings that do not work together on these data."""
    solver.check(problem)
    if estimator.inference != "auto":
        method = INFERENCE.resolve(estimator.inference)
        for batch in data.parts.batches:
            structure, _ = batch.structure(0, len(batch.sizes), data.layout.counts)
            check_questions(solver.name, solver.asks, problem.objective, method, structure)


def inference_for(
    estimator: BaseCRF, objective: Objective, solver: Solver, shards: Sequence[Shard]
) -> Inference:
    """The inference method of training: it supports all structures, and is exact if possible."""
    if estimator.inference != "auto":
        return INFERENCE.resolve(estimator.inference)
    found = candidates(objective, shards)
    method = agreed([found], [supporting(found.methods, shards)])
    for shard in shards:
        check_questions(solver.name, solver.asks, objective, method, shard.frame.structure)
    return method.in_training()


class Candidates(NamedTuple):
    """Inference methods that can serve training on some shards."""

    methods: dict[str, Inference]  # by name: each is the best on some structure
    n_cliques: int  # of the largest structure
    on_largest: Inference


def candidates(objective: Objective, shards: Sequence[Shard]) -> Candidates:
    """The best methods for the structures of these shards."""
    question = min(objective.needs, default="map")
    # Planes through nearly best labellings are valid, and many are asked for. A likelihood with
    # approximate marginals has another optimum.
    most = MAX_WORK if question == "map" else inf
    chosen, n_cliques = [], []
    for shard in shards:  # in a file, they leave memory as the loop goes on
        structure = shard.frame.structure
        # The tables of a matching are known before any weights are, and some methods ask for them.
        model = shard.frame if isinstance(structure, Matching) else structure
        chosen.append(choose(model, question, Pace.MOMENTS, max_work=most))
        n_cliques.append(structure.n_cliques)
    largest = n_cliques.index(max(n_cliques))
    methods = {method.name: method for method in chosen}
    return Candidates(methods, n_cliques[largest], chosen[largest])


def supporting(methods: Mapping[str, Inference], shards: Sequence[Shard]) -> set[str]:
    """The names of the methods that work on the structures of all these shards."""
    return {
        name
        for name, method in methods.items()
        if all(method.supports(shard.frame.structure) for shard in shards)
    }


def agreed(found: Sequence[Candidates], supported: Sequence[Collection[str]]) -> Inference:
    """The first method that works everywhere, else that of the largest structure."""
    methods = {name: method for own in found for name, method in own.methods.items()}
    for name, method in methods.items():
        if all(name in names for names in supported):
            return method
    return max(found, key=lambda own: own.n_cliques).on_largest
