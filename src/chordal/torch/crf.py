"""The CRF layer for chains: log-likelihood, decoding, marginals and more."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import torch
from torch import Tensor, nn

from chordal._validate import check_choice
from chordal.torch import _checks, _kernel_answers, _recursions
from chordal.torch._graph_checks import check_answer, check_scores
from chordal.torch._operators import MOST_TAGS, kernels_serve
from chordal.torch._scores import (
    FORBIDDEN,
    Scores,
    agreeing,
    common_dtype,
    expected_score,
    path_score,
)
from chordal.torch.constraints import AllowedTransitions, checked

BACKENDS = ("auto", "kernels", "torch")
ADVICE = "scale the emissions"


class CRF(nn.Module):
    """A linear-chain conditional random field on top of a network's scores.

    Calls, shapes, reductions and errors are those of pytorch-crf; all other arguments and methods
    are additions.

    Parameters
    ----------
    num_tags : int
        Number of tags.
    batch_first : bool
        Whether tensors are [batch, steps, …]; if not, they are [steps, batch, …].
    ignore_index : int
        Value in `tags` for an unobserved tag; the likelihood sums over all tags there.
    allowed_transitions : AllowedTransitions or Tensor, optional
        Which tags may begin, follow each other and end (see `allowed_transitions`), or a boolean
        matrix [from, to]. Everything else has probability zero.
    any_mask : bool
        Whether masks may be off at the first step, for padding on the left and empty sequences. By
        default that is an error, as in pytorch-crf. Other steps may always be off; they are
        skipped, so that the steps around them become neighbours.
    backend : {"auto", "kernels", "torch"}
        "auto" uses kernels where available: compiled ones on the CPU, Triton on CUDA for up to 128
        tags. Elsewhere, and for ONNX export, it uses plain PyTorch. "torch" has derivatives of any
        order, "kernels" of second order.

    Attributes
    ----------
    start_transitions, end_transitions : nn.Parameter
        Scores of the first and of the last tag, [num_tags].
    transitions : nn.Parameter
        Scores of a tag (column) after another (row), [num_tags, num_tags].

    Notes
    -----
    Scores may be −inf (forbidden). Kernels sum in float64; plain PyTorch in the widest given dtype,
    at least float32, which is the dtype of results. The argument `transitions` of most methods
    replaces the parameter: [batch, num_tags, num_tags] or [batch, steps, num_tags, num_tags]. An
    entry belongs to the step it leads into, so that of the first step is not used. Without
    `batch_first`, steps come first there too.

    Examples
    --------
    >>> import torch
    >>> crf = CRF(num_tags=2, batch_first=True)
    >>> emissions = torch.tensor([[[2.0, 0.0], [0.0, 3.0], [1.0, 0.0]]])
    >>> mask = torch.tensor([[True, True, False]])
    >>> crf.decode(emissions, mask)
    [[0, 1]]
    >>> crf.marginals(emissions, mask).shape
    torch.Size([1, 3, 2])
    """

    def __init__(
        self,
        num_tags: int,
        batch_first: bool = False,
        *,
        ignore_index: int = -100,
        allowed_transitions: AllowedTransitions | Tensor | None = None,
        any_mask: bool = False,
        backend: str = "auto",
    ) -> None:
        if isinstance(num_tags, int) and num_tags <= 0:  # pytorch-crf's words
            raise ValueError(f"invalid number of tags: {num_tags}")
        _checks.check_count("num_tags", num_tags)
        _checks.check_count("ignore_index", ignore_index, -_checks.LARGEST)
        if 0 <= ignore_index < num_tags:
            raise ValueError(f"ignore_index must not be one of {num_tags} tags, got {ignore_index}")
        check_choice("backend", backend, BACKENDS)
        super().__init__()
        self.num_tags = num_tags
        self.batch_first = batch_first
        self.ignore_index = ignore_index
        self.any_mask = any_mask
        self.backend = backend
        self.start_transitions = nn.Parameter(torch.empty(num_tags))
        self.end_transitions = nn.Parameter(torch.empty(num_tags))
        self.transitions = nn.Parameter(torch.empty(num_tags, num_tags))
        self.constrained = allowed_transitions is not None
        if allowed_transitions is not None:
            allowed = checked(allowed_transitions, num_tags)
            for name, tensor in zip(allowed._fields, allowed, strict=True):
                # Not in the state: that is pytorch-crf's.
                self.register_buffer(f"forbidden_{name}", ~tensor, persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters from a uniform distribution between -0.1 and 0.1."""
        nn.init.uniform_(self.start_transitions, -0.1, 0.1)
        nn.init.uniform_(self.end_transitions, -0.1, 0.1)
        nn.init.uniform_(self.transitions, -0.1, 0.1)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}(num_tags={self.num_tags})"

    def forward(
        self,
        emissions: Tensor,
        tags: Tensor,
        mask: Tensor | None = None,
        reduction: str = "sum",
        *,
        transitions: Tensor | None = None,
    ) -> Tensor:
        """The log-likelihood of tags.

        Parameters
        ----------
        emissions : Tensor
            Scores, [steps, batch, num_tags], or [batch, steps, num_tags] if `batch_first`.
        tags : Tensor
            Integers in the shape of the steps; `ignore_index` for unobserved tags. Or, in the shape
            of emissions: booleans (sets; gives the probability that every tag is in its set) or
            floats (distributions; gives the expected log-likelihood of independent tags).
        mask : Tensor, optional
            Which steps are on; boolean or uint8.
        reduction : {"none", "sum", "mean", "token_mean"}
            "mean" is over sequences, "token_mean" over the steps that are on.
        transitions : Tensor, optional
            Scores that replace the parameter.

        Returns
        -------
        Tensor
            [batch] for "none", else a number.
        """
        _checks.check_tensor("tags", tags)
        scores = self._scores(emissions, mask, transitions, tags)
        _checks.check_reduction(reduction)
        return _reduced(self._log_likelihood(scores, self._batched(tags)), reduction, scores)

    def decode(
        self, emissions: Tensor, mask: Tensor | None = None, *, transitions: Tensor | None = None
    ) -> list[list[int]]:
        """The best tags of each sequence, as lists of numbers."""
        _checks.check_tensor("emissions", emissions)
        scores = self._scores(emissions.detach(), mask, transitions)
        return _lists(self._engine(scores).best_tags(scores), scores.mask)

    def viterbi(
        self,
        emissions: Tensor,
        mask: Tensor | None = None,
        *,
        transitions: Tensor | None = None,
        pad: int = -1,
    ) -> tuple[Tensor, Tensor]:
        """The best tags as a tensor in the shape of the steps, and their scores [batch].

        Steps that are off get the tag `pad`.
        """
        _checks.check_count("pad", pad, -_checks.LARGEST)
        scores = self._scores(emissions, mask, transitions)
        tags, score = self._engine(scores).viterbi(scores, pad)
        return self._unbatched(tags), score

    def log_partition(
        self, emissions: Tensor, mask: Tensor | None = None, *, transitions: Tensor | None = None
    ) -> Tensor:
        """log Z of each sequence, [batch]."""
        scores = self._scores(emissions, mask, transitions)
        value = self._engine(scores).log_partition(scores)
        return check_answer(value, "log_partition", ADVICE)

    def marginals(
        self, emissions: Tensor, mask: Tensor | None = None, *, transitions: Tensor | None = None
    ) -> Tensor:
        """The probability of every tag at every step, in the shape of emissions; 0 at steps off."""
        scores = self._scores(emissions, mask, transitions)
        found = self._engine(scores).expectations(scores)[0]
        return self._unbatched(check_answer(found, "marginals", ADVICE))

    def transition_marginals(
        self, emissions: Tensor, mask: Tensor | None = None, *, transitions: Tensor | None = None
    ) -> Tensor:
        """The probability of every pair of tags, [batch, steps, from, to] (or steps first).

        An entry belongs to the step it leads into; it is 0 at the first step and at steps off.
        """
        scores = self._scores(emissions, mask, transitions)
        shape = (*scores.emissions.shape, self.num_tags)
        scores = scores._replace(transitions=scores.transitions.expand(shape))
        found = self._engine(scores).expectations(scores)[1]
        return self._unbatched(check_answer(found, "transition_marginals", ADVICE))

    def k_best(
        self,
        emissions: Tensor,
        k: int,
        mask: Tensor | None = None,
        *,
        transitions: Tensor | None = None,
        pad: int = -1,
    ) -> tuple[Tensor, Tensor]:
        """The k best taggings, [batch, k, steps], and their scores, [batch, k], best first.

        If there are fewer than k, scores are −inf and tags `pad`; steps that are off have `pad`
        too.
        """
        _checks.check_tensor("emissions", emissions)
        _checks.check_count("k", k)
        _checks.check_count("pad", pad, -_checks.LARGEST)
        scores = self._scores(emissions.detach(), mask, transitions)
        tags, score = self._engine(scores).k_best(scores, k, pad)
        return tags, check_answer(score, "k_best", ADVICE)

    def sample(
        self,
        emissions: Tensor,
        n: int = 1,
        mask: Tensor | None = None,
        *,
        transitions: Tensor | None = None,
        generator: torch.Generator | None = None,
        pad: int = -1,
    ) -> Tensor:
        """Sample tags from the model, [n, batch, steps]; `pad` at steps that are off."""
        _checks.check_tensor("emissions", emissions)
        _checks.check_count("n", n)
        _checks.check_count("pad", pad, -_checks.LARGEST)
        scores = self._scores(emissions.detach(), mask, transitions)
        device = scores.emissions.device
        shape = (n, *scores.emissions.shape[:2])
        uniform = torch.rand(shape, generator=generator, dtype=torch.float64, device=device)
        return self._engine(scores).sample(scores, uniform, pad)

    def entropy(
        self, emissions: Tensor, mask: Tensor | None = None, *, transitions: Tensor | None = None
    ) -> Tensor:
        """The entropy of each sequence's tags, in nats, [batch]."""
        scores = self._scores(emissions, mask, transitions).with_ends_in_emissions()
        engine = self._engine(scores)
        tables = scores.transitions.expand(len(scores.emissions), *scores.transitions.shape[1:])
        log_z = engine.log_partition(scores)
        marginals, pairs = engine.expectations(scores._replace(transitions=tables))
        emissions = scores.emissions.masked_fill(marginals == 0.0, 0.0)
        tables = tables.masked_fill(pairs == 0.0, 0.0)  # 0 × −inf would be NaN
        mean = (marginals * emissions).sum((1, 2)) + (pairs * tables).sum((1, 2, 3))
        return check_answer(log_z - mean, "entropy", ADVICE)

    def span_probability(
        self,
        emissions: Tensor,
        spans: Sequence[tuple[int, int, Sequence[int]]],
        mask: Tensor | None = None,
        *,
        transitions: Tensor | None = None,
    ) -> Tensor:
        """The probability of each span, [len(spans)]: that its steps have its tags, in order.

        A span is (sequence, first step, tags); all of its steps must be on.
        """
        scores = self._scores(emissions, mask, transitions)
        batch, steps = scores.emissions.shape[:2]
        on = scores.on
        tags = torch.full((len(spans), steps), self.ignore_index, device=on.device)
        for k, (b, first, wanted) in enumerate(spans):
            end = first + len(wanted)
            if not (0 <= b < batch and 0 <= first < end <= steps and bool(on[b, first:end].all())):
                raise ValueError(
                    f"spans[{k}] must be steps that are on, of one of {batch} sequences with "
                    f"{steps} steps; got sequence {b}, steps {first} to {end - 1}"
                )
            for tag in wanted:
                if not 0 <= tag < self.num_tags:
                    raise ValueError(
                        f"spans[{k}] has the invalid tag {tag}; tags are 0 to {self.num_tags - 1}"
                    )
            tags[k, first:end] = torch.as_tensor(wanted, device=on.device)
        index = torch.tensor([b for b, _, _ in spans], dtype=torch.long, device=on.device)
        tables = scores.transitions
        picked = scores._replace(
            emissions=scores.emissions[index],
            mask=None if scores.mask is None else scores.mask[index],
            transitions=tables[index] if len(tables) > 1 else tables,
        )
        return self._log_likelihood(picked, tags).exp()

    def hinge_loss(
        self,
        emissions: Tensor,
        tags: Tensor,
        mask: Tensor | None = None,
        reduction: str = "sum",
        *,
        cost: float | Tensor = 1.0,
        transitions: Tensor | None = None,
    ) -> Tensor:
        """The structured hinge loss: by how much the gold tags fail to win by their cost.

        `cost` is the cost of a wrong tag, or a matrix [gold, predicted]. If some tags were not
        observed, the gold tagging is the best one that agrees with the others.
        """
        _checks.check_tensor("tags", tags)
        scores = self._scores(emissions, mask, transitions, tags, hard=True)
        _checks.check_reduction(reduction)
        tags, engine = self._batched(tags).long(), self._engine(scores)
        augmented = self._augmented(scores, tags, cost)
        with torch.no_grad():
            best, _ = engine.viterbi(augmented, 0)
            gold, _ = engine.viterbi(scores.held(self._agree(tags)), 0)
        highest = check_answer(path_score(augmented, best), "hinge_loss", ADVICE)
        gain = check_answer(path_score(scores, gold) - highest, "hinge_loss", ADVICE)
        return -_reduced(gain, reduction, scores)

    def softmax_margin_loss(
        self,
        emissions: Tensor,
        tags: Tensor,
        mask: Tensor | None = None,
        reduction: str = "sum",
        *,
        cost: float | Tensor = 1.0,
        transitions: Tensor | None = None,
    ) -> Tensor:
        """The negative log-likelihood with the cost of each wrong tag added to its score.

        `cost` is as in `hinge_loss`.
        """
        _checks.check_tensor("tags", tags)
        scores = self._scores(emissions, mask, transitions, tags, hard=True)
        _checks.check_reduction(reduction)
        tags = self._batched(tags).long()
        augmented = self._augmented(scores, tags, cost)
        return _reduced(-self._log_likelihood(augmented, tags), reduction, scores)

    def _scores(
        self,
        emissions: Tensor,
        mask: Tensor | None,
        transitions: Tensor | None,
        tags: Tensor | None = None,
        hard: bool = False,
    ) -> Scores:
        """All scores, checked, with the batch first."""
        _checks.check_emissions(emissions, self.num_tags, self.transitions)
        if tags is not None:
            _checks.check_tags(tags, emissions)
            if hard and tags.dim() == 3:
                raise ValueError("tags must be numbers for this loss, not sets or distributions")
        if mask is not None:
            _checks.check_tensor("mask", mask)
            first = mask[:, :1] if self.batch_first else mask[:1].transpose(0, 1)
            _checks.check_mask(mask, emissions, first, self.any_mask)
            mask = self._batched(mask).bool()
        steps = emissions.shape[1 if self.batch_first else 0]
        if steps == 0 and not self.any_mask:
            raise ValueError(
                "emissions must have at least one step, got 0; any_mask=True allows it"
            )
        start, end = self.start_transitions, self.end_transitions
        table = self._table(transitions, emissions)
        if self.constrained:
            start = start.masked_fill(self.forbidden_start, FORBIDDEN)
            end = end.masked_fill(self.forbidden_end, FORBIDDEN)
            table = table.masked_fill(self.forbidden_between, FORBIDDEN)
        dtype = common_dtype(emissions, start, end, table)
        emissions = self._batched(emissions).to(dtype)
        scores = Scores(emissions, start.to(dtype), end.to(dtype), table.to(dtype), mask)
        on_cpu = scores.emissions.device.type == "cpu"
        if self._engine(scores) is _recursions or not on_cpu:  # compiled kernels look themselves
            _checks.check_numbers(scores)
            if tags is not None and tags.dim() == 2:
                _checks.check_range(self._batched(tags), mask, self.num_tags, self.ignore_index)
        return scores

    def _table(self, transitions: Tensor | None, emissions: Tensor) -> Tensor:
        """[1 or batch, 1 or steps, num_tags, num_tags]."""
        if transitions is None:
            return self.transitions[None, None]
        _checks.same_device("transitions", transitions, "emissions", emissions)
        if not transitions.is_floating_point():
            raise TypeError(f"transitions must be floating point, got {transitions.dtype}")
        batch, steps = emissions.shape[:2] if self.batch_first else emissions.shape[1::-1]
        square = (self.num_tags, self.num_tags)
        if transitions.shape == (batch, *square):
            return transitions.unsqueeze(1)
        shape = (batch, steps, *square) if self.batch_first else (steps, batch, *square)
        if transitions.shape == square:
            return transitions[None, None]
        if transitions.shape != shape:
            raise ValueError(
                f"transitions must have shape {square}, {(batch, *square)} or {shape}; got "
                f"{tuple(transitions.shape)}"
            )
        return self._batched(transitions)

    def _batched(self, tensor: Tensor) -> Tensor:
        return tensor if self.batch_first else tensor.transpose(0, 1)

    _unbatched = _batched

    def _engine(self, scores: Scores) -> ModuleType:
        """Where answers come from: the kernels or plain PyTorch, with the same functions."""
        device = scores.emissions.device
        if self.backend == "torch":
            return _recursions
        served = kernels_serve(device.type, self.num_tags)
        if self.backend == "kernels" and not served:
            raise ValueError(
                "backend 'kernels' is for tensors on the CPU, or on CUDA with Triton and at most "
                f"{MOST_TAGS} tags; got {device} and {self.num_tags} tags"
            )
        exported = self.backend == "auto" and torch.onnx.is_in_onnx_export()
        return _kernel_answers if served and not exported else _recursions

    def _log_likelihood(self, scores: Scores, tags: Tensor) -> Tensor:
        """[batch], of tags, sets or distributions with the batch first."""
        engine = self._engine(scores)
        if tags.dim() == 2:
            return engine.log_likelihood(scores, tags.long(), self.ignore_index)
        if tags.dtype == torch.bool:
            value = engine.log_partition(scores.held(tags)) - engine.log_partition(scores)
        else:
            _checks.check_distributions(tags, scores.mask)
            mean = expected_score(scores, tags.to(scores.emissions.dtype))
            value = mean - engine.log_partition(scores)
        return check_answer(value, "the log-likelihood", ADVICE)

    def _agree(self, tags: Tensor) -> Tensor:
        """[batch, steps, num_tags]: what agrees with the tags."""
        return agreeing(tags, self.num_tags, self.ignore_index)

    def _augmented(self, scores: Scores, tags: Tensor, cost: float | Tensor) -> Scores:
        """Scores with the cost of every tag that is not the gold one."""
        observed = tags != self.ignore_index
        if isinstance(cost, Tensor):
            square = (self.num_tags, self.num_tags)
            if tuple(cost.shape) != square:
                raise ValueError(
                    f"cost must be a number or a matrix {square}, got {tuple(cost.shape)}"
                )
            check_scores("cost", cost, ("gold tag", "tag"), finite=True)
            known = tags.clamp(0, self.num_tags - 1)
            price = cost.to(scores.emissions)[known] * observed.unsqueeze(2)
        else:
            _checks.check_cost(cost)
            price = float(cost) * (~self._agree(tags)).to(scores.emissions.dtype)
        return scores._replace(emissions=scores.emissions + price)


def _reduced(values: Tensor, reduction: str, scores: Scores) -> Tensor:
    if reduction == "none":
        return values
    if reduction == "sum":
        return values.sum()
    if reduction == "mean":
        return values.mean()
    return values.sum() / scores.on.to(values.dtype).sum()


def _lists(tags: Tensor, mask: Tensor | None) -> list[list[int]]:
    """The tags of steps that are on; a slice of each row where only its end is off."""
    rows: list[list[int]] = tags.tolist()
    if mask is None or bool(mask.all()):
        return rows
    lengths = mask.sum(1)
    if bool((mask == (torch.arange(mask.shape[1], device=mask.device) < lengths[:, None])).all()):
        return [row[:n] for row, n in zip(rows, lengths.tolist(), strict=True)]
    kept = zip(rows, mask.tolist(), strict=True)
    return [[tag for tag, on in zip(*pair, strict=True) if on] for pair in kept]
