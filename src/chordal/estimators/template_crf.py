"""TemplateCRF: a conditional random field over cliques of any shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, final

from chordal._validate import RandomState, check_sequences
from chordal.estimators._crf import BaseCRF
from chordal.features import CliqueTemplate, Reader, check_templates
from chordal.inference import Inference
from chordal.objectives import Objective
from chordal.solvers import Solver


@final
class TemplateCRF(BaseCRF):
    """Conditional random field made of clique templates.

    The score of a labelling is the sum over all cliques of all templates; weights are shared
    within a template. Whatever a function can list is a model: chains, skip-chains, triplets,
    grids, trees, and all of them at once.

    Parameters
    ----------
    templates : list of CliqueTemplate
        One of them must have features of "each" variable: it tells how many there are.
    objective : str or Objective, default="auto"
        What training minimises: "auto" is what the solver is made for, else the likelihood.
        "pseudo_likelihood" and "piecewise" need no inference and are quick on any graph;
        "stochastic_likelihood" samples.
    solver : str or Solver, default="lbfgs"
        How. With l1 > 0, "lbfgs" means its orthant-wise form "owlqn". For the hinge, "one_slack",
        "block_frank_wolfe" and "sgd".
    inference : str or Inference, default="auto"
        "auto" looks at the graphs: exact where that is affordable (trees, and graphs of low
        treewidth), else an approximation. `inference_` is what training used, and
        `fit_report_.exact` says whether it was exact; predictions choose for their own graphs.
    l1, l2 : float
        Regularisation; l2 may be a dict by the names of templates, 1 for others.
    freeze : tuple of str
        Names of templates whose weights keep their starting values.
    pairs : {"seen", "all"}
        For named attributes: weights for labellings seen in training with them, or for all.
    min_freq : int
        Named attributes: leave out pairs seen less often (with pairs="all": attributes).
    ignore_label : label, optional
        A label in y that stands for "not observed", as None does. The likelihood sums over such
        variables; other objectives learn from the graph without them.
    max_iter, tol : int, float, optional
        Of the solver, which has defaults of its own.
    validation_interval : int
        With `validation_data`, score it every so many iterations.
    n_iter_no_change : int, optional
        Stop early after so many scores without improvement, and keep the best weights.
    n_jobs : int, optional
        Threads; −1 for all cores. The result is the same, bit for bit.
    random_state : int, RandomState or None
        Seed of `sample`, and of the order in which a solver visits examples.
    warm_start : bool
        `fit` starts from the weights of the fit before; new attributes and labels are added.
    class_weight : dict, "balanced" or None
        What an error costs by the gold label, for objectives with a cost of errors.
    verbose : int
        1 shows progress in a terminal, 2 prints a line per iteration.

    Attributes
    ----------
    classes_ : array of labels
    weights_ : array; see `template_weights`
    objective_, n_iter_ : final objective, iterations
    inference_ : the inference method that training used
    fit_report_ : FitReport

    Examples
    --------
    A chain with triplets, in three lines:

    >>> import numpy as np
    >>> def runs(x, n):
    ...     return np.arange(len(x) - n + 1)[:, None] + np.arange(n)
    >>> templates = [
    ...     CliqueTemplate("words", features=lambda x: [[word] for word in x]),
    ...     CliqueTemplate("pairs", "steps"),
    ...     CliqueTemplate("triplets", lambda x: runs(x, 3), order=3),
    ... ]
    >>> X = [["the", "cat", "sleeps"], ["a", "dog"]]
    >>> y = [["D", "N", "V"], ["D", "N"]]
    >>> crf = TemplateCRF(templates, l2=0.1).fit(X, y)
    >>> crf.predict([["a", "cat", "sleeps"]])
    [['D', 'N', 'V']]
    >>> crf.template_weights("triplets")["intercept"].shape
    (3, 3, 3)

    A skip-chain adds edges between equal words; a grid of 2 × n is its rows and columns:

    >>> skip = CliqueTemplate(
    ...     "skip", lambda x: [(i, j) for j in range(len(x)) for i in range(j) if x[i] == x[j]]
    ... )
    >>> rows = CliqueTemplate("rows", lambda x: [(i, i + 2) for i in range(len(x) - 2)])
    >>> columns = CliqueTemplate("columns", lambda x: [(i, i + 1) for i in range(0, len(x), 2)])
    """

    templates: Sequence[CliqueTemplate]
    functions: ClassVar[tuple[str, ...]] = ("templates",)

    def __init__(
        self,
        templates: Sequence[CliqueTemplate],
        objective: str | Objective = "auto",
        solver: str | Solver = "lbfgs",
        inference: str | Inference = "auto",
        *,
        l1: float = 0.0,
        l2: float | Mapping[str, float] = 1.0,
        freeze: Sequence[str] = (),
        pairs: str = "seen",
        min_freq: int = 0,
        ignore_label: object = None,
        max_iter: int | None = None,
        tol: float | None = None,
        validation_interval: int = 10,
        n_iter_no_change: int | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        warm_start: bool = False,
        class_weight: Mapping[Any, float] | str | None = None,
        verbose: int = 0,
    ) -> None:
        self._store(locals())

    def _examples(self, X: object, name: str = "X", known: bool = False) -> Sequence[Any]:
        return check_sequences(X, name, empty=True)

    def _new_reader(self, X: Sequence[Any], keep: bool = False) -> Reader:
        return Reader.like(check_templates(self.templates), X)
