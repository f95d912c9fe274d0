"""Prepared data on disk: writing them, and opening them for `fit`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from copy import copy, deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal._validate import check_sample_weight
from chordal.estimators._state import check_inputs, input_facts, input_from
from chordal.estimators._training.batches import checked, looked_at, numbered
from chordal.estimators._training.fingerprint import described as in_json
from chordal.estimators._training.row_forms import PLAIN, RowForm
from chordal.features import (
    Batch,
    CliqueTemplate,
    Reader,
    fitted_to,
    head_of,
    joined_batches,
    joined_targets,
    length_of,
    outlined,
    renumbered_batch,
)
from chordal.labels import (
    NothingObservedError,
    SequenceLabels,
    as_kind,
    learned_facts,
    observed,
    renumbered,
    take_learned,
    targets_of,
)
from chordal.prepared import Dataset, DatasetError, Writer, target_to_arrays, to_arrays
from chordal.progress import Progress
from chordal.targets import PartialLabels, Target, kind_of

if TYPE_CHECKING:
    from chordal.estimators._crf import BaseCRF

Flags = NDArray[np.bool_]

PART = 250_000  # variables of a part
CHUNK = 20_000  # examples that are read at a time from what is in memory

#: The properties of a template on which prepared data depend.
SHAPED_BY = ("cliques", "features", "order", "labelwise", "types")


class Read(NamedTuple):
    """Some examples as they were read: not a part yet."""

    batch: Batch
    target: Target | None  # None where nothing is observed
    observed: Flags
    weight: NDArray[np.float64] | None
    n_labels: int  # that were known then
    shapes: NDArray[np.int64] | None  # of images


def _as_given(X: Any, y: Any) -> tuple[Any, Any]:
    return X, y


class Keeping(NamedTuple):
    """How the examples of another estimator become those that a CRF reads and a data set keeps.

    kept : function of X and y, which returns those that the CRF reads
    form : the form of the rows that it reads
    name : the name of the other estimator
    """

    kept: Callable[[Any, Any], tuple[Any, Any]] = _as_given
    form: RowForm = PLAIN
    name: str = ""


#: The CRF reads what the user gave.
AS_GIVEN = Keeping()


class Preparing:
    """Reads chunks with an estimator's reader, and writes parts of a given size.

    `keeping` says how examples become those that the estimator reads. With `known`, the estimator
    already knows what it has to know about all of them.
    """

    def __init__(
        self, estimator: BaseCRF, writer: Writer, keeping: Keeping, known: bool = False
    ) -> None:
        self.estimator, self.writer, self.keeping = estimator, writer, keeping
        self.known = known and estimator._glances
        self._begun = known or writer.old is not None
        self.reader: Reader | None = None
        self.labels = estimator._unlearned_labels()
        if writer.old is not None:
            self.reader = deepcopy(reader_of(estimator, writer.old, keeping.form))
            self.labels = labels_of(estimator, writer.old)
        self._waiting: list[Read] = []
        self._writers = ThreadPoolExecutor(1)  # one part is written while the next is read
        self._writing: Future[None] | None = None
        self.progress = Progress(
            "prepare", None, "variables", measure=True, verbose=estimator.verbose
        )

    def __enter__(self) -> Preparing:
        self.progress.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.__exit__(None, None, None)
        self._writers.shutdown()

    def begin(self, X: object, y: object, weight: object) -> None:
        """Let the estimator look at the first examples, unless it knows them or has begun."""
        if not self._begun:
            self.estimator._begin_parts(X, y, weight)
            self._begun = True

    def take(self, X: object, y: object, weight: object = None, like: Any = None) -> None:
        """Read a chunk; the reader is built from `like`, by default from the chunk."""
        estimator = self.estimator
        X, y = self.keeping.kept(X, y)
        self.begin(X, y, weight)
        examples = estimator._examples(X)
        if length_of(examples) == 0:
            return
        if self.reader is None:
            self.reader = estimator._new_reader(examples if like is None else like, self.known)
        estimator._check_alike(examples, self.reader)
        batch = self.reader.read(examples, grow=True)
        flat = estimator._flat(y, examples)
        estimator._check_lengths(batch.sizes, flat)
        n = int(batch.sizes.sum())
        target = observed_targets(self.labels, flat, n, estimator.ignore_label)
        known = np.full(n, target is not None)
        if isinstance(target, PartialLabels):
            known = observed(flat, estimator.ignore_label)
        own = check_sample_weight(weight, len(batch.sizes))
        shapes = estimator._shapes(examples)
        self._waiting.append(Read(batch, target, known, own, len(self.labels), shapes))
        n_read = self.progress.done + n
        pace = n_read / max(self.progress.elapsed, 1e-3)
        self.progress.update(n_read, f"{pace:,.0f} variables/s")
        if sum(len(part.observed) for part in self._waiting) >= PART:
            self.flush()

    def flush(self) -> None:
        """Write what was read as a part."""
        if self._writing is not None:
            self._writing.result()
        if self._waiting and self.reader is not None:
            waiting, self._waiting = self._waiting, []
            self._writing = self._writers.submit(self._write, waiting, len(self.labels))

    def _write(self, waiting: list[Read], n_labels: int) -> None:
        assert self.reader is not None
        none: list[Any] = [None] * len(self.reader.templates)
        batches = [renumbered_batch(own.batch, self.reader, none) for own in waiting]
        outline = outlined([head_of(batch) for batch in batches])
        batch = joined_batches([fitted_to(own, outline) for own in batches])
        facts, arrays = to_arrays(batch)
        known = np.concatenate([own.observed for own in waiting])
        target = _joined(waiting, n_labels)
        facts["target"], facts["n_labels"] = "none", n_labels
        if target is not None:
            facts["target"], stored = target_to_arrays(target, known)
            arrays |= stored
        if any(own.weight is not None for own in waiting):
            ones = (np.ones(len(w.batch.sizes)) if w.weight is None else w.weight for w in waiting)
            arrays["weight"] = np.concatenate(list(ones))
        shapes = [own.shapes for own in waiting if own.shapes is not None]
        if shapes:
            arrays["shapes"] = np.concatenate(shapes).ravel()
        self.writer.add(facts, arrays, len(batch.sizes), len(known))

    def finish(self) -> None:
        """Write the last part, what the reader knows, and the index."""
        self.flush()
        if self._writing is not None:
            self._writing.result()
        if self.reader is None or not len(self.labels):
            raise ValueError("nothing to prepare: X is empty, or y has no label")
        described: list[dict[str, Any]] = []
        arrays: dict[str, NDArray[Any]] = {}
        for template, source in zip(self.reader.templates, self.reader.inputs, strict=True):
            rows = None
            if source is not None:
                rows, own = input_facts(source)
                arrays |= {f"{template.name}.{name}": array for name, array in own.items()}
            described.append({**template.description(), "rows": rows})
        facts = {
            "class": self.keeping.name or type(self.estimator).__name__,
            "templates": described,
            "labels": learned_facts(self.labels),
            "settings": reading_settings(self.estimator),
            **self.estimator._own_facts(),
            **self.keeping.form.to_facts(),
        }
        self.writer.finish(facts, arrays)


def observed_targets(
    labels: SequenceLabels, y: Sequence[Any], n: int, ignored: object
) -> Target | None:
    """The targets of the n variables of some of the examples; None if no label is observed."""
    if n:
        with suppress(NothingObservedError):
            return targets_of(labels, y, ignored)
    labels.as_list = isinstance(y[0], (list, tuple))
    return None


def _joined(parts: Sequence[Read], n: int) -> Target | None:
    """All targets as one kind; None if no label is known."""
    found: list[Target] = []
    if all(own.target is None for own in parts):
        return None
    kinds = {kind_of(own.target) for own in parts if own.target is not None}
    if any(own.target is None and len(own.observed) for own in parts):
        kinds.add("partial")
    kind = common_kind(kinds)
    for own in parts:
        if own.target is None:
            size = len(own.observed)
            found.append(whole_sets(size, n) if kind != "hard" else np.zeros(0, np.int32))
        else:
            found.append(widened(own.target, own.n_labels, n, own.observed, kind))
    return joined_targets(found)


def common_kind(kinds: set[str]) -> str:
    """The kind of targets that holds all of these."""
    if {"soft", "partial"} <= kinds:
        raise ValueError(
            "y must not mix sets or None with distributions: give distributions for unobserved "
            "variables too, or sets everywhere"
        )
    return next((kind for kind in ("soft", "partial") if kind in kinds), "hard")


def whole_sets(size: int, n: int) -> PartialLabels:
    """Variables that may have any label."""
    return PartialLabels(np.ones(size * n, dtype=bool), np.full(size, n))


def widened(target: Target, known: int, n: int, seen: Flags | None, kind: str) -> Target:
    """A target by the same numbers of labels, of which there are more now."""
    if isinstance(target, np.ndarray):
        return as_kind(target, kind, n)
    return target if known == n else renumbered(target, np.arange(known), n, seen)


def prepare(
    estimator: BaseCRF,
    path: str | os.PathLike[str],
    X: object,
    y: object = None,
    sample_weight: object = None,
    append: bool = False,
    keeping: Keeping = AS_GIVEN,
    known: bool = False,
) -> Dataset:
    """Write examples as an estimator reads them; see `BaseCRF.prepare`.

    With `known`, a fitted estimator reads them as in its fit.
    """
    estimator = copy(estimator)  # what it learns from the data is not that of a fit
    estimator._check_parameters()
    with Writer(path, append) as writer, ExitStack() as held:
        stream = y is None and is_stream(X)
        batches = checked(X) if stream else iter(())  # type: ignore[arg-type]
        if stream and not known and writer.old is None and estimator._looks_first():
            batches, known = held.enter_context(looked_at(estimator, batches)), True
        preparing = held.enter_context(Preparing(estimator, writer, keeping, known))
        for number, batch in enumerate(batches):
            with numbered(number):
                preparing.take(*batch)
        if not stream:
            for chunk, labels, weight, like in chunks(preparing, X, y, sample_weight):
                preparing.take(chunk, labels, weight, like)
        preparing.finish()
    return Dataset(path)


def is_stream(X: object) -> bool:
    """Whether X is an iterator of batches."""
    return isinstance(X, Iterator)


def chunks(
    preparing: Preparing, X: Any, y: Any, weight: Any
) -> Iterator[tuple[Any, Any, Any, Any]]:
    """What is in memory, some examples at a time where it can be cut."""
    cut = isinstance(X, (list, tuple, np.ndarray)) and isinstance(y, (list, tuple, np.ndarray))
    cut = cut and len(X) == len(y) and (weight is None or hasattr(weight, "__getitem__"))
    if not cut:
        yield X, y, weight, None
        return
    check_sample_weight(weight, len(X))
    like = None
    if preparing.keeping is AS_GIVEN:
        preparing.begin(X, y, weight)
        like = preparing.estimator._examples(X)
    for a in range(0, max(1, len(X)), CHUNK):
        own = slice(a, a + CHUNK)
        yield X[own], y[own], None if weight is None else weight[own], like


def reader_of(estimator: BaseCRF, data: Dataset, form: RowForm = PLAIN) -> Reader:
    """The reader of a data set; an error if this estimator reads examples differently.

    `form` is the form that its rows should have.
    """
    try:
        stored = RowForm.of(data.facts)
        if stored != form:
            raise ValueError(f"its rows are {stored.described}, not {form.described}")
        described = data.facts["templates"]
        check_settings(estimator, data.facts)
        reader = estimator._stored_reader(data.facts)
        check_same(reader.templates, described)
        for k, own in enumerate(described):
            prefix = f"{own['name']}."
            arrays = {
                name.removeprefix(prefix): array
                for name, array in data.vocabulary.items()
                if name.startswith(prefix)
            }
            reader.inputs[k] = input_from(own["rows"], arrays)
        check_inputs(reader)
        estimator._check_reader(reader)
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        if isinstance(error, DatasetError):
            raise
        what = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        made_for = data.facts.get("class")
        raise DatasetError(
            data.path,
            f"was prepared for another model, a {made_for}: {what}; prepare the data again with "
            f"this {type(estimator).__name__}",
        ) from error
    return reader


def reading_settings(estimator: BaseCRF) -> dict[str, object]:
    """The parameters by which an estimator reads examples, as JSON can hold them."""
    return {name: in_json(getattr(estimator, name)) for name in estimator.read_by}


def check_settings(estimator: BaseCRF, facts: Mapping[str, Any]) -> None:
    """Raise an error for data that were read by other settings."""
    stored = facts.get("settings", {})
    for name, own in reading_settings(estimator).items():
        if name in stored and stored[name] != own:
            raise ValueError(f"it was read with {name}={stored[name]!r}, not {name}={own!r}")


def check_same(templates: Sequence[CliqueTemplate], described: Sequence[Mapping[str, Any]]) -> None:
    """Raise an error for templates that read other data than described."""
    names, expected = [own.name for own in templates], [own["name"] for own in described]
    if names != expected:
        raise ValueError(
            f"its templates are {', '.join(map(repr, expected))}, not {', '.join(map(repr, names))}"
        )
    for template, own in zip(templates, described, strict=True):
        mine = template.description()
        for what in SHAPED_BY:
            if mine[what] != own[what]:
                raise ValueError(
                    f"template {template.name!r} has {what}={own[what]!r} in the data set, but "
                    f"{what}={mine[what]!r} in this model"
                )


def check_own_facts(expected: Mapping[str, Any], data: Dataset, whose: str) -> None:
    """Raise an error if rows of a data set depend on facts that differ from the expected ones.

    They are what an estimator has found by looking at all of some data.
    """
    for name, value in expected.items():
        own = data.facts.get(name)
        if None not in (own, value) and own != value:
            numbers = f" of {own:.6g}, not {value:.6g}" if isinstance(value, float) else ""
            raise DatasetError(
                data.path,
                f"was prepared with other {name.replace('_', ' ')} than {whose} has{numbers}; "
                "prepare both with the same setting, or together as one data set",
            )


def labels_of(estimator: BaseCRF, data: Dataset) -> SequenceLabels:
    """The labels of a data set by the numbers that its parts have."""
    labels = estimator._unlearned_labels()
    try:
        take_learned(labels, data.facts["labels"])
    except (LookupError, TypeError, ValueError, ArithmeticError) as error:
        raise DatasetError(data.path, f"its labels are not valid: {error}") from error
    return labels


def datasets_of(X: object, y: object = None) -> list[Dataset] | None:
    """The data sets that X names; None for examples in memory."""
    if not is_stored(X, y):
        return None
    several = isinstance(X, (list, tuple))
    named: Sequence[Any] = X if several else [X]  # type: ignore[assignment]
    for own in named:
        if not isinstance(own, Dataset) and not os.path.exists(own):
            raise FileNotFoundError(
                f"there is no prepared data set {os.fspath(own)!r}: X must be a list of examples, "
                f"or the path of a folder written by `prepare`; got {type(own).__name__}"
            )
    return [own if isinstance(own, Dataset) else Dataset(own) for own in named]


def is_stored(X: object, y: object) -> bool:
    """Whether X names prepared data sets, which include labels."""
    if isinstance(X, Dataset):
        return True
    places = (str, os.PathLike, Dataset)
    if y is not None or isinstance(X, places):
        return y is None
    return isinstance(X, (list, tuple)) and bool(X) and all(isinstance(v, places) for v in X)
