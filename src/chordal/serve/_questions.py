"""What a request asks: its inputs, and what the answer has to hold."""

from __future__ import annotations

from typing import Any, NamedTuple

from chordal._schemes import SCHEMES
from chordal.serve._inputs import Sample
from chordal.serve._refusal import Refusal, key, refuse
from chordal.serve._shelf import Loaded
from chordal.serve.limits import Limits

INPUTS = ("text", "tokens", "rows")
FLAGS = {"spans": True, "probabilities": False, "marginals": False}
METHODS = ("map", "mpm")
CONSTRAINTS = ("auto", "none", *SCHEMES)
_KEYS = {*INPUTS, *FLAGS, "inputs", "method", "constrain", "k_best"}


class Question(NamedTuple):
    """A request, checked against the model that answers it."""

    samples: list[Sample]
    single: bool  # one input, and not an array of one
    method: str | None  # None is the model's own
    constrain: str | None  # a scheme
    spans: bool
    probabilities: bool
    marginals: bool
    k_best: int
    n_tokens: int  # of all inputs

    @property
    def size(self) -> int:
        """How much work it is, about."""
        return self.n_tokens + len(self.samples)


def question_of(value: object, loaded: Loaded, limits: Limits) -> Question:
    """The question that the JSON of a request asks of a model."""
    if not isinstance(value, dict):
        refuse("the body", "an object", value)
    for name in value.keys() - _KEYS:
        raise Refusal(422, f"unknown key {key(name)}; known are {', '.join(sorted(_KEYS))}")
    single = "inputs" not in value
    samples = [_sample(value, loaded, "", INPUTS)] if single else _several(value, loaded)
    question = Question(
        samples,
        single,
        _method(value, loaded),
        _constraint(_choice(value, "constrain", CONSTRAINTS) or "auto", loaded),
        _flag(value, "spans"),
        _flag(value, "probabilities"),
        _flag(value, "marginals"),
        _count(value, limits.max_k_best),
        sum(sample.n_tokens for sample in samples),
    )
    _check_size(question, len(loaded.labels), limits)
    return question


def _check_size(question: Question, n_labels: int, limits: Limits) -> None:
    n = question.n_tokens
    if n > limits.max_tokens:
        message = f"the request has {n} tokens, and {limits.max_tokens} are the most"
        raise Refusal(413, f"{message}: send several requests")
    cells = n * n_labels * max(question.marginals, question.k_best)
    if cells > limits.max_cells:
        what = "marginals" if question.marginals >= question.k_best else "k_best"
        raise Refusal(413, f"{what} of {n} tokens and {n_labels} labels is too much at once", what)


def _several(value: dict[str, Any], loaded: Loaded) -> list[Sample]:
    """The inputs of an array of them."""
    beside = next((name for name in INPUTS if name in value), None)
    if beside is not None:
        raise Refusal(422, f"give {beside} or inputs, not both")
    inputs = value["inputs"]
    if not isinstance(inputs, list):
        refuse("inputs", "an array of objects", inputs)
    out = []
    for k, item in enumerate(inputs):
        if not isinstance(item, dict):
            refuse(f"inputs[{k}]", "an object with text, tokens or rows", item)
        for name in item.keys() - set(INPUTS):
            place = f"inputs[{k}]"
            message = f"unknown key {key(name)} in {place}; it has one of {', '.join(INPUTS)}"
            raise Refusal(422, message, place)
        out.append(_sample(item, loaded, f"inputs[{k}].", INPUTS))
    return out


def _sample(item: dict[str, Any], loaded: Loaded, where: str, kinds: tuple[str, ...]) -> Sample:
    given = [name for name in kinds if name in item]
    if len(given) != 1:
        place = where.rstrip(".") or "the body"
        got = " and ".join(given) or "none"
        wanted = "text, tokens, rows" + ("" if where else " or inputs")
        raise Refusal(422, f"{place} must have exactly one of {wanted}; got {got}", place)
    return loaded.reads.sample(given[0], item[given[0]], where + given[0])


def _choice(value: dict[str, Any], name: str, choices: tuple[str, ...]) -> str | None:
    given = value.get(name)
    if given is not None and (not isinstance(given, str) or given not in choices):
        raise Refusal(422, f"{name} must be one of {', '.join(choices)}", name)
    return given


def _method(value: dict[str, Any], loaded: Loaded) -> str | None:
    given = _choice(value, "method", METHODS)
    return None if given == loaded.method else given


def _flag(value: dict[str, Any], name: str) -> bool:
    given = value.get(name, FLAGS[name])
    if not isinstance(given, bool):
        refuse(name, "a boolean", given)
    return given


def _count(value: dict[str, Any], most: int) -> int:
    """The number of best labellings; 0 if none are asked for."""
    given = value.get("k_best", 0)
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        refuse("k_best", "a whole number", given)
    if given != given // 1 or not 0 <= given <= most:  # 3.0 is whole, as in JSON Schema
        raise Refusal(422, f"k_best must be a whole number from 0 to {most}", "k_best")
    return int(given)


def _constraint(asked: str, loaded: Loaded) -> str | None:
    """The scheme whose legal tags alone are allowed, if any."""
    if asked == "none":
        return None
    if asked == "auto":
        return loaded.scheme
    reason = loaded.misfits[asked]
    if reason is not None:
        raise Refusal(422, f"constrain: {asked} is not the scheme of the labels: {reason}")
    return asked
