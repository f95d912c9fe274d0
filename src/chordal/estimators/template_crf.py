"""TemplateCRF: a conditional random field over cliques of any shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, final

from chordal.estimators._crf import BaseCRF
from chordal.features import CliqueTemplate, Reader, check_templates, types_of


@final
@dataclass(eq=False, repr=False)
class TemplateCRF(BaseCRF):
    """Conditional random field made of clique templates.

    The score of a labelling is the sum over all cliques of all templates; cliques of a template
    share their weights. A template is any function that lists cliques: chains, skip-chains,
    triplets, grids, trees, or several at once. The groups of weights are the names of the
    templates.

    Parameters
    ----------
    templates : list of CliqueTemplate
        One template must have features of "each" variable; it defines the number of variables.

    Attributes
    ----------
    classes_ : array of labels

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
    _: KW_ONLY
    pairs: str = "seen"
    min_freq: int = 0
    ignore_label: object = None

    functions: ClassVar[tuple[str, ...]] = ("templates",)

    def _groups(self) -> Sequence[str]:
        return [template.name for template in check_templates(self.templates)]

    def _types(self) -> tuple[str, ...]:
        return types_of(self.templates)

    def _new_reader(self, X: Sequence[Any], keep: bool = False) -> Reader:
        return Reader.like(list(self.templates), X)
