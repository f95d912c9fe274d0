"""The CRF layer on trees, grids, graphs and factor graphs: one structure for all examples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from chordal.structures import Structure
from chordal.torch import _graph_checks
from chordal.torch._approximate import Approximate
from chordal.torch._checks import (
    LARGEST,
    check_cost,
    check_count,
    check_reduction,
    looks_at_numbers,
    same_device,
)
from chordal.torch._graph_choices import Method, answers_of, offsets, table_numbers
from chordal.torch._scores import agreeing, common_dtype
from chordal.torch._topology import GraphScores, Topology


class StructuredCRF(nn.Module):
    """A conditional random field on top of a network's scores, on any structure.

    Every example of a batch has the same variables and cliques. Methods are those of the chain
    layer, `CRF`.

    Parameters
    ----------
    structure : Structure
        One example of `chordal.structures`: `Tree`, `Grid`, `Graph`, `FactorGraph` or another. All
        variables have the same number of labels, L.
    inference : str, MeanField or LoopyBP
        "tree" and "junction_tree" are exact, compiled for the CPU, with second derivatives; "auto"
        chooses between them. "mean_field" and "loopy_bp" are approximate, in plain PyTorch, for
        graphs of edges; `MeanField(…)` and `LoopyBP(…)` have settings.
    tying : {"all", "each", "direction"} or sequence of int
        Which cliques share a table: "all"; "each" has its own; "direction": edges of a `Grid` with
        the same direction; or the table number of each clique, from 0.
    learned : bool
        Whether tables are a parameter. If not, pass `tables` to every call.
    ignore_index : int
        Value in `labels` for an unobserved label; the likelihood sums over all labels there.

    Attributes
    ----------
    tables : nn.Parameter or None
        Scores of cliques' labellings, [number of tables, L, L]; cliques of three have one L more.
        Where cliques differ in size: all tables one after another, [cells].

    Notes
    -----
    The argument `tables` of every method replaces the parameter: [L, L] for all cliques, [n, L, L]
    or [batch, n, L, L]. Here n is the number of tables or of cliques, in the order of the
    structure. Scores may be −inf (forbidden), except in tables of approximate methods. Answers have
    the widest given dtype, at least float32; exact methods compute in float64.

    Examples
    --------
    >>> import torch
    >>> from chordal.structures import Grid
    >>> crf = StructuredCRF(Grid([(3, 4)], n_labels=2), tying="direction")
    >>> unary = torch.randn(5, 12, 2, requires_grad=True)  # from any network
    >>> labels = torch.randint(2, (5, 12))
    >>> loss = -crf(unary, labels, reduction="mean")
    >>> loss.backward()
    >>> crf.tables.grad.shape, crf.decode(unary).shape
    (torch.Size([2, 2, 2]), torch.Size([5, 12]))
    """

    table_of_clique: Tensor
    table_offsets: Tensor
    tables: nn.Parameter | None

    def __init__(
        self,
        structure: Structure,
        inference: Method = "auto",
        tying: str | Sequence[int] = "all",
        *,
        learned: bool = True,
        ignore_index: int = -100,
    ) -> None:
        _graph_checks.check_structure(structure)
        super().__init__()
        self.topology = Topology(structure)
        self.n_variables, self.num_labels = self.topology.n_variables, self.topology.n_labels
        self._n_cliques = self.topology.n_cliques
        check_count("ignore_index", ignore_index, -LARGEST)
        if 0 <= ignore_index < self.num_labels:
            raise ValueError(
                f"ignore_index must not be one of {self.num_labels} labels, got {ignore_index}"
            )
        self.ignore_index = ignore_index
        self.answers = answers_of(structure, self.topology, inference)
        index, n_tables = table_numbers(structure, tying)
        orders = np.full(n_tables, max(self.topology.sizes, default=2))
        orders[index] = structure.orders
        if (orders[index] != structure.orders).any():
            raise ValueError(
                f"tying: cliques of {self.topology.sizes} variables cannot share a table; use "
                "'each', or the number of each clique's table"
            )
        offsets = np.append(0, np.cumsum(self.num_labels**orders))
        self._n_cells = int(offsets[-1])
        self.register_buffer("table_of_clique", torch.tensor(index), persistent=False)
        self.register_buffer("table_offsets", torch.tensor(offsets), persistent=False)
        shape = self._shape(n_tables)
        self.tables = nn.Parameter(torch.empty(shape)) if learned else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters from a uniform distribution between -0.1 and 0.1."""
        if self.tables is not None:
            nn.init.uniform_(self.tables, -0.1, 0.1)

    def extra_repr(self) -> str:
        """What the layer is made for."""
        return (
            f"n_variables={self.n_variables}, num_labels={self.num_labels}, "
            f"n_cliques={self.topology.n_cliques}"
        )

    def forward(
        self,
        unary: Tensor,
        labels: Tensor,
        reduction: str = "sum",
        *,
        tables: Tensor | None = None,
    ) -> Tensor:
        """The log-likelihood of labels.

        Parameters
        ----------
        unary : Tensor
            Scores, [batch, n_variables, num_labels].
        labels : Tensor
            Integers [batch, n_variables], with `ignore_index` for unobserved labels. Or booleans in
            the shape of unary (sets): the probability that every label is in its set.
        reduction : {"none", "sum", "mean", "token_mean"}
            "mean" is over examples, "token_mean" over variables.
        tables : Tensor, optional
            Scores that replace the parameter.

        Returns
        -------
        Tensor
            [batch] for "none", else a number.
        """
        check_reduction(reduction)
        scores = self._scores(unary, tables)
        _graph_checks.check_labels(labels, unary, self.ignore_index)
        gold = self._gold(scores, labels)
        value = gold - self.answers.log_partition(scores)
        return self._reduced(self._sound(value, "the log-likelihood"), reduction)

    def pseudo_log_likelihood(
        self,
        unary: Tensor,
        labels: Tensor,
        reduction: str = "sum",
        *,
        tables: Tensor | None = None,
    ) -> Tensor:
        """Σ over variables of the log probability of its label, given the labels of all others.

        It needs no inference, and works on any structure. Labels are integers, all observed.
        """
        check_reduction(reduction)
        scores = self._scores(unary, tables)
        labels = self._observed(labels, unary, "pseudo_log_likelihood")
        local = self.topology.conditionals(scores, labels)
        _graph_checks.check_possible(local, 2)
        chosen = local.log_softmax(2).gather(2, labels.unsqueeze(2))
        return self._reduced(self._sound(chosen.sum((1, 2)), "pseudo_log_likelihood"), reduction)

    def hinge_loss(
        self,
        unary: Tensor,
        labels: Tensor,
        reduction: str = "sum",
        *,
        cost: float = 1.0,
        tables: Tensor | None = None,
    ) -> Tensor:
        """The structured hinge loss: by how much the gold labels fail to win by their cost.

        `cost` is the cost of each wrong label. Labels are integers, all observed.
        """
        check_reduction(reduction)
        scores = self._scores(unary, tables)
        labels = self._observed(labels, unary, "hinge_loss")
        check_cost(cost)
        price = float(cost) * (~self._agree(labels)).to(scores.unary.dtype)
        augmented = scores._replace(unary=scores.unary + price)
        best = self.answers.decode(augmented)
        highest = self._sound(self.topology.score(augmented, best), "hinge_loss")
        gain = self._sound(self.topology.score(scores, labels) - highest, "hinge_loss")
        return -self._reduced(gain, reduction)

    def decode(self, unary: Tensor, *, tables: Tensor | None = None) -> Tensor:
        """The best labels [batch, n_variables]; for approximate methods, the most probable
        label of each variable.
        """
        return self.answers.decode(self._scores(unary, tables))

    def score(self, unary: Tensor, labels: Tensor, *, tables: Tensor | None = None) -> Tensor:
        """The score of labels, [batch]: log-probability up to log Z."""
        scores = self._scores(unary, tables)
        labels = self._observed(labels, unary, "score")
        return self._sound(self.topology.score(scores, labels), "score")

    def log_partition(self, unary: Tensor, *, tables: Tensor | None = None) -> Tensor:
        """log Z of each example, [batch]."""
        value = self.answers.log_partition(self._scores(unary, tables))
        return self._sound(value, "log_partition")

    def marginals(self, unary: Tensor, *, tables: Tensor | None = None) -> Tensor:
        """The probability of every label of every variable, in the shape of unary."""
        return self.answers.marginals(self._scores(unary, tables))

    def clique_marginals(self, unary: Tensor, *, tables: Tensor | None = None) -> Tensor:
        """The probability of each clique's labellings, [batch, cliques, L, L].

        Where cliques differ in size: one after another, [batch, cells].
        """
        scores = self._scores(unary, tables).untied(self.topology.orders, self.topology.n_cells)
        shape = self._shape(self.topology.n_cliques)
        found = self._sound(self.answers.clique_marginals(scores), "clique_marginals")
        return found.reshape(unary.shape[0], *shape)

    def k_best(
        self, unary: Tensor, k: int, *, tables: Tensor | None = None, pad: int = -1
    ) -> tuple[Tensor, Tensor]:
        """The k best labellings, [batch, k, n_variables], and their scores, [batch, k].

        If there are fewer than k, scores are −inf and labels `pad`.
        """
        check_count("k", k)
        check_count("pad", pad, -LARGEST)
        labels, score = self.answers.k_best(self._scores(unary, tables), k, pad)
        return labels, self._sound(score, "k_best")

    def sample(
        self,
        unary: Tensor,
        n: int = 1,
        *,
        tables: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Sample labels from the model, [n, batch, n_variables]."""
        check_count("n", n)
        return self.answers.sample(self._scores(unary, tables), n, generator)

    def entropy(self, unary: Tensor, *, tables: Tensor | None = None) -> Tensor:
        """The entropy of each example's labelling, in nats, [batch]."""
        entropy = self.answers.entropy(self._scores(unary, tables))
        return self._sound(entropy, "entropy")

    def _shape(self, n_tables: int) -> tuple[int, ...]:
        """The shape of `n_tables` tables; if cliques differ in size, of all the layer's tables."""
        sizes = self.topology.sizes
        if len(sizes) > 1:
            whole = n_tables == self.topology.n_cliques
            return (self.topology.n_cells if whole else self._n_cells,)
        return (n_tables, *[self.num_labels] * (sizes[0] if sizes else 2))

    def _scores(self, unary: Tensor, tables: Tensor | None) -> GraphScores:
        """All scores, checked."""
        _graph_checks.check_unary(unary, self.n_variables, self.num_labels, self.table_offsets)
        scores = self._with_tables(unary, tables)
        dtype = common_dtype(unary, scores.tables)
        return scores._replace(unary=unary.to(dtype), tables=scores.tables.to(dtype))

    def _with_tables(self, unary: Tensor, tables: Tensor | None) -> GraphScores:
        if tables is None:
            if self.tables is None:
                raise ValueError("tables must be given with each call, as learned is False")
            tables = self.tables
        same_device("tables", tables, "unary", unary)
        if not tables.is_floating_point():
            raise TypeError(f"tables must be floating point, got {tables.dtype}")
        layers, each = self._shape(len(self.table_offsets) - 1), self._shape(self._n_cliques)
        with_batch = tables.dim() > len(layers)
        shape = tuple(tables.shape[1:] if with_batch else tables.shape)
        if with_batch and tables.shape[0] != unary.shape[0]:
            shape = ()
        if shape == layers:
            tying = self.table_of_clique, self.table_offsets
        elif shape == each:
            sizes = self.num_labels**self.topology.orders
            tying = torch.arange(self._n_cliques, device=sizes.device), offsets(sizes)
        elif shape == layers[1:] and len(shape) > 0 and not with_batch:
            size = torch.full_like(self.table_offsets[:1], tables.numel())
            tying = torch.zeros_like(self.table_of_clique), offsets(size)
        else:
            raise self._wrong_shape(tables, unary, layers, each)
        axes = ("table", *["label"] * (len(layers) - 1)) if len(layers) > 1 else ("cell",)
        axes = ("example", *axes)[len(layers) + 1 - tables.dim() :]
        finite = isinstance(self.answers, Approximate)
        _graph_checks.check_scores("tables", tables, axes, finite)
        rows = tables.flatten(1) if with_batch else tables.reshape(1, -1)
        return GraphScores(unary, rows, *tying)

    def _wrong_shape(
        self, tables: Tensor, unary: Tensor, layers: tuple[int, ...], each: tuple[int, ...]
    ) -> ValueError:
        batch = (unary.shape[0],)
        wanted = list(dict.fromkeys([layers[1:], layers, each, batch + layers, batch + each]))
        wanted = [shape for shape in wanted if shape]
        return ValueError(
            f"tables must have shape {', '.join(map(str, wanted[:-1]))} or {wanted[-1]}; got "
            f"{tuple(tables.shape)}"
        )

    def _gold(self, scores: GraphScores, labels: Tensor) -> Tensor:
        """[B]: log of the sum over labellings that agree with the labels."""
        if labels.dim() == 3:
            return self.answers.log_partition(scores.held(labels))
        # Summing is right with all labels observed too; while tracing, nobody knows.
        if not looks_at_numbers(labels) or bool((labels == self.ignore_index).any()):
            return self.answers.log_partition(scores.held(self._agree(labels)))
        return self.topology.score(scores, labels.long())

    def _agree(self, labels: Tensor) -> Tensor:
        """[batch, n_variables, num_labels]: what agrees with the labels."""
        return agreeing(labels, self.num_labels, self.ignore_index)

    def _observed(self, labels: Tensor, unary: Tensor, question: str) -> Tensor:
        """Labels as int64; all of them must be observed."""
        _graph_checks.check_labels(labels, unary, self.ignore_index)
        if labels.dim() == 3:
            raise ValueError(f"labels must be numbers for {question}, not sets")
        if looks_at_numbers(labels) and bool((labels == self.ignore_index).any()):
            b, v = (labels == self.ignore_index).nonzero()[0].tolist()
            raise ValueError(
                f"labels: example {b}, variable {v} was not observed ({self.ignore_index}), but "
                f"{question} needs all labels; the likelihood does not"
            )
        return labels.long()

    @staticmethod
    def _sound(answer: Tensor, name: str) -> Tensor:
        """An answer that did not overflow."""
        return _graph_checks.check_answer(answer, name, "scale the scores")

    def _reduced(self, values: Tensor, reduction: str) -> Tensor:
        if reduction == "none":
            return values
        if reduction == "sum":
            return values.sum()
        mean = values.mean()
        return mean if reduction == "mean" else mean / self.n_variables
