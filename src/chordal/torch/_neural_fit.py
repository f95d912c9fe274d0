"""How a `NeuralCRF` is fitted to examples in memory; the last stage may go on from a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from importlib.metadata import version
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import nn

from chordal._container import CheckpointError
from chordal._validate import generator_from
from chordal.estimators import (
    BaseCRF,
    Checkpoint,
    CheckpointFile,
    check_same_fit,
    described,
    digest,
)
from chordal.estimators.linked import (
    Known,
    Linked,
    check_observed,
    gold_codes,
    known_labels,
)
from chordal.execution import effective_n_jobs, execution_for
from chordal.labels import SequenceLabels
from chordal.model_file import ModelFileError, load, save
from chordal.oracle import Mapper
from chordal.potentials import Floats
from chordal.solvers import Callback
from chordal.torch._drawing import Stream
from chordal.torch._forms import Form, Raw, Seen, form_for
from chordal.torch._heads import ChainHead, ChainNetwork, Head, LinkedHead, LinkedNetwork, is_plain
from chordal.torch._learners import ChainLearner, Drawn, Learner, LinkedLearner, tags_of
from chordal.torch._networks import network_of
from chordal.torch._neural_stages import Material, Watch, of_file, run_stages
from chordal.torch._shown import Shown
from chordal.torch._threads import threads
from chordal.torch._training import UNSAVED, Steps, StepsInMemory, flat

if TYPE_CHECKING:
    from chordal.torch.neural_crf import NeuralCRF

#: Parameters that may differ where training goes on: they do not change what is learned.
FREE = ("verbose", "n_jobs", "warm_start")


class Given(NamedTuple):
    """What `fit` got, checked."""

    X: Raw
    y: Raw
    weight: Floats
    validation: tuple[Any, Any] | None


class Validation(NamedTuple):
    """Validation data, what a network sees of them, and their labels."""

    X: Raw
    y: object
    examples: list[Seen]
    gold: NDArray[np.int32]
    seen: NDArray[np.bool_]

    @classmethod
    def of(cls, form: Form, labels: SequenceLabels, X: Any, y: Any) -> Validation:
        """Checked, as far as possible without other parts of the data."""
        X = form.examples(form.crf, X, "validation X")
        examples = form.seen(X, "validation X")
        sizes = np.array([own.size for own in examples], dtype=np.int64)
        return cls(X, y, examples, *gold_codes(form.crf, labels, X, y, sizes, "validation "))

    def counts(self, head: Head, joint: bool) -> tuple[int, int]:
        """How many labels are right, and how many are observed; alone, those of the network."""
        scores = head.scores(self.examples)
        if joint:
            observed = head.form.observed(self.X, scores)
            return head.counts(observed, self.y, self.gold, self.seen)
        right = (np.concatenate(scores).argmax(axis=1) == self.gold)[self.seen]
        return int(right.sum()), len(right)


class InMemory(Material):
    """Examples in memory."""

    def __init__(self, learner: Learner, given: Given, batch_size: int, stream: Stream) -> None:
        self.head, self.learner, self.given = learner.head, learner, given
        self.batch_size, self.stream = batch_size, stream

    def steps(self, joint: bool) -> Steps:
        """By the learner's losses."""
        loss_of = self.learner.joint if joint else self.learner.alone
        return StepsInMemory(loss_of, self.learner.used, self.batch_size)

    def scorer(self, joint: bool) -> Callable[[], float] | None:
        """Of the validation data that were given."""
        if self.given.validation is None:
            return None
        own = validation_of(self.head, self.given.validation)

        def score() -> float:
            with self.stream.answer():
                right, n = own.counts(self.head, joint)
            return right / n

        return score

    def relinked(self) -> BaseCRF:
        """By the CRF's own `fit`."""
        crf, given = self.head.to_relink(), self.given
        return crf.fit(self._observed(), given.y, sample_weight=given.weight)

    def facts(self) -> dict[str, Any]:
        """Of the scores at the end."""
        learner = self.learner
        weight = learner.linked.weight if isinstance(learner, LinkedLearner) else None
        return self.head.facts(self._observed(), self.given.y, weight)

    def _observed(self) -> list[Any]:
        """What the CRF sees of the training examples."""
        form, X = self.head.form, self.given.X
        with self.stream.answer():
            return form.observed(X, self.head.scores(form.seen(X)))


def validation_of(head: Head, given: tuple[Any, Any]) -> Validation:
    """Validation data in memory, of which some labels are observed."""
    own = Validation.of(head.form, head.labels, *given)
    check_observed(int(own.seen.sum()), "validation ")
    return own


def watch_of(
    estimator: NeuralCRF,
    callback: Callback | None,
    checkpoint: str | PathLike[str] | Checkpoint | None,
) -> tuple[Watch, np.random.Generator]:
    """What follows a fit, and its random numbers; both are those of the checkpoint, if it is there.

    Without a `random_state`, the seed that was drawn is kept in the file.
    """
    if checkpoint is None:
        return Watch(callback), generator_from(estimator.random_state)
    file, seed = CheckpointFile(checkpoint, interval=1), None
    given = estimator.get_params(deep=False)
    settings = {name: described(value) for name, value in given.items() if name not in FREE}
    if isinstance(estimator.network, nn.Module):
        settings["the network's layers"] = digest(repr(estimator.network))
    settings["the version of chordal"] = version("chordal")
    earlier = earlier_of(estimator, file)
    if earlier is not None:
        kept = earlier._saved[0]
        with of_file(file):
            before, seed = dict(kept["fit"]), kept["seed"]
            check_same_fit(file.path, {name: before.get(name) for name in settings}, settings)
        file.written(earlier.n_iter_)
    if estimator.random_state is not None:
        generator = generator_from(estimator.random_state)
    else:
        seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
        with of_file(file):
            generator = np.random.default_rng(seed)
    return Watch(callback, file, earlier, {"fit": settings, "seed": seed}), generator


def fit(
    estimator: NeuralCRF, crf: BaseCRF, given: Given, watch: Watch, generator: np.random.Generator
) -> None:
    """Learn; the estimator stays as it was if anything goes wrong."""
    n_jobs, seed = effective_n_jobs(estimator.n_jobs), int(generator.integers(2**31))
    stream = Stream(seed, estimator.network, estimator.dropout)
    with threads(n_jobs), execution_for(n_jobs) as mapper:
        with stream.drawing():
            made, learner = _prepared(estimator, crf, given, generator, mapper)
        if watch.file is not None:
            examples, known = learner.head.form.seen(given.X), learner.known.by_class()
            data = digest_of(examples, known, given.weight)
            watch = of_data(watch, estimator, learner.head, [data], given.validation)
        material = InMemory(learner, given, made.batch_size, stream)
        train_material(estimator, made, material, generator, watch)


def of_data(
    watch: Watch,
    estimator: NeuralCRF,
    head: Head,
    parts: Sequence[str],
    validation: tuple[Any, Any] | str | None,
    **more: str,
) -> Watch:
    """With a fingerprint of what is learned from, which must be that of the checkpoint.

    Parameters
    ----------
    parts : list of str
        Digests of the parts of the training data.
    validation : (X, y), or a digest of validation data elsewhere
    **more
        Further facts on which the weights depend.
    """
    assert watch.file is not None
    if isinstance(validation, tuple):
        own = validation_of(head, validation)
        validation = digest_of(own.examples, (own.gold, own.seen))
    found: dict[str, Any] = {"the training data": digest([head.labels.labels, *parts])}
    found |= {"validation_data": validation, **more}
    if estimator.warm_start:
        found["the weights at the start"] = digest(flat(head.model))
    settings = watch.kept["fit"]
    if watch.earlier is not None:
        before = watch.earlier._saved[0]["fit"]
        rest = {name: own for name, own in before.items() if name not in settings}
        check_same_fit(watch.file.path, rest, found)
    return watch._replace(kept={**watch.kept, "fit": settings | found})


def train_material(
    estimator: NeuralCRF,
    made: NeuralCRF,
    material: Material,
    generator: np.random.Generator,
    watch: Watch,
) -> None:
    """Train the model, or resume from a checkpoint, and give it to the estimator."""
    earlier = watch.earlier
    if earlier is not None:
        if earlier._saved[0].get("ended"):
            vars(estimator).update(_fitted_attributes(earlier))
            return
        made.reports_ = list(earlier.reports_)
        with of_file(watch.file):
            material.head.model.load_state_dict(earlier.module_.state_dict())
    run_stages(made, material, generator, watch)
    if watch.file is not None:
        ended = copy(made)
        ended._saved = {**watch.kept, "ended": True}, {}
        watch.file.write(made.n_iter_, lambda path: save(ended, path))
    vars(estimator).update(vars(made))


def digest_of(examples: list[Seen], *more: object) -> str:
    """A fingerprint of examples and of further facts."""
    edges = [None if own.edges is None else own.edges.numpy() for own in examples]
    return digest([[own.values.numpy() for own in examples], edges, *more])


def _prepared(
    estimator: NeuralCRF,
    crf: BaseCRF,
    given: Given,
    generator: np.random.Generator,
    mapper: Mapper,
) -> tuple[NeuralCRF, Learner]:
    """A copy of the estimator that learns, and what it learns from."""
    X, y, weight = given.X, given.y, given.weight
    old = older(estimator)
    if old is None:
        form = form_for(crf).read(crf, X, estimator.min_freq)
    else:
        form = known_form(old, crf)
    examples = form.seen(X)
    sizes = np.array([own.size for own in examples], dtype=np.int64)
    if not (sizes[weight > 0.0] > 0).any():
        raise ValueError(NOTHING)
    known = known_labels(crf, X, y, sizes, None if old is None else old.crf_.labels_)
    shown = Shown(form, X, examples, estimator.augment)
    made, network = begun(estimator, old, form, known.labels)
    learner = _learner(
        made, old, network, lambda chosen: shown.drawn(chosen, generator), known, given, mapper
    )
    made.module_ = learner.head.model
    return made, learner


def listed(y: Sequence[Any], n: int) -> Raw:
    """Labels of n examples."""
    if isinstance(y, (str, bytes)) or not hasattr(y, "__len__"):
        raise TypeError(f"y must be a list with the labels of each example, got {y!r}")
    if len(y) != n:
        raise ValueError(f"X and y must have the same length, got {n} examples and {len(y)} of y")
    return y


NOTHING = "there is nothing to learn from: all examples with a weight are empty"


def older(estimator: NeuralCRF) -> NeuralCRF | None:
    """The fitted estimator, if training continues from it."""
    return estimator if estimator.warm_start and hasattr(estimator, "module_") else None


def known_form(old: NeuralCRF, crf: BaseCRF) -> Form:
    """The form of the fitted estimator, with the CRF of the parameters."""
    form = copy(old._form)
    if type(form) is not form_for(crf):
        raise ValueError(
            f"warm_start continues from a {type(form.crf).__name__}, and crf is a "
            f"{type(crf).__name__}; give one of that kind, or warm_start=False"
        )
    form.crf = crf
    return form


def begun(
    estimator: NeuralCRF, old: NeuralCRF | None, form: Form, labels: SequenceLabels
) -> tuple[NeuralCRF, nn.Module]:
    """The model so far, and its network: nothing of the estimator changes before the end."""
    made = copy(estimator)
    made._form, made.reports_ = form, []
    made.classes_ = labels.classes
    made._saved = UNSAVED
    network = network_of(estimator.network, form, len(labels), estimator._sizes())
    if old is not None:
        network = deepcopy(old.module_.network)
    return made, network.to(estimator.device)


def chain_head(
    made: NeuralCRF, old: NeuralCRF | None, network: nn.Module, labels: SequenceLabels
) -> ChainHead:
    """A network with the links of chains, as they are at the start."""
    chain = ChainNetwork(network, len(labels)).to(made.device)
    if old is not None:
        chain.take(old.crf_)
    return ChainHead(chain, made._form, labels)


def crf_of_scores(form: Form, old: NeuralCRF | None) -> BaseCRF:
    """The CRF that reads scores; it has weights if training continues from them."""
    crf = form.reads
    if old is None:
        return crf
    return copy(old.crf_).set_params(**crf.get_params(deep=False))


def _learner(
    made: NeuralCRF,
    old: NeuralCRF | None,
    network: nn.Module,
    drawn: Drawn,
    known: Known,
    given: Given,
    mapper: Mapper,
) -> Learner:
    """Use the chain layer if it supports the settings, else the CRF's own inference."""
    form, weight, tags = made._form, given.weight, tags_of(known)
    if is_plain(form.crf):
        head = chain_head(made, old, network, known.labels)
        return ChainLearner(head, drawn, known, tags, weight)
    zeros = [np.zeros((n, known.n_classes)) for n in known.sizes]
    crf, X = crf_of_scores(form, old), form.observed(given.X, zeros)
    linked = Linked.of(crf, X, given.y, weight, known, old is not None)
    linear = LinkedNetwork(network, linked.links.links).to(made.device)
    own = LinkedHead(linear, form, known.labels, linked.links)
    return LinkedLearner(own, drawn, known, tags, weight, linked, mapper)


def earlier_of(estimator: NeuralCRF, file: CheckpointFile) -> NeuralCRF | None:
    """The model of the checkpoint, if there is one."""
    if not file.exists:
        return None
    again = {name: getattr(estimator, name) for name in _given_again(estimator)}
    try:
        found: NeuralCRF = load(file.path, type(estimator), **again)
    except ModelFileError as error:
        raise CheckpointError(file.path, str(error).removeprefix(f"{file.path}: ")) from error
    if not found._saved[0]:
        raise CheckpointError(
            file.path,
            "it is a model that was saved, not a checkpoint; delete it, or give another path",
        )
    return found


def _given_again(estimator: NeuralCRF) -> list[str]:
    """Parameters that a file does not hold."""
    names = [] if isinstance(estimator.network, str) else ["network"]
    holds = estimator.crf is not None and any(
        getattr(estimator.crf, name) is not None for name in estimator.crf.functions
    )
    return [*names, "crf"] if holds else names


def _fitted_attributes(model: NeuralCRF) -> dict[str, Any]:
    given = model.get_params(deep=False)
    fitted = {name: value for name, value in vars(model).items() if name not in given}
    return {**fitted, "_saved": UNSAVED}
