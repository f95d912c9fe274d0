"""The models of a server, and how one is exchanged when its file is replaced."""

from __future__ import annotations

import copy
import hashlib
import logging
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from chordal._container import opened
from chordal._errors import not_fitted
from chordal._opening import open_model
from chordal._schemes import SCHEMES, misfit, scheme_of
from chordal.serve._inputs import Reads
from chordal.serve._legal import Legal

if TYPE_CHECKING:
    from chordal import ChainCRF

    Source = str | os.PathLike[str] | ChainCRF

log = logging.getLogger("chordal.serve")

Stamp = tuple[int, int, int]  # when a file was written, which it is, and its size


@dataclass(frozen=True, eq=False)
class Loaded:
    """A model as it was loaded once; never changed, so that a request sees one model throughout."""

    name: str
    version: str  # a fingerprint of the file
    model: ChainCRF
    reads: Reads
    labels: list[Any]  # in the order of `classes_`
    scheme: str | None
    legal: Legal | None  # tags of the scheme
    misfits: Mapping[str, str | None]  # why the labels are not of a scheme
    method: str | None  # how it predicts by itself, "map" or "mpm"; None if that is not known
    since: float  # when it was loaded, seconds since 1970

    @classmethod
    def of(cls, name: str, model: ChainCRF, version: str) -> Loaded:
        """A fitted model, made ready to answer."""
        model.set_params(n_jobs=1)
        labels = model.classes_.tolist()
        scheme = scheme_of(labels)
        legal = None if scheme is None else Legal(labels, scheme)
        misfits = {known: misfit(labels, known) for known in SCHEMES}
        reads = Reads.of(model)
        # The first call of each kind sets up what later ones use, and shows that there are answers.
        model.predict_codes([reads.example()])
        model.predict_marginals([reads.example()] * 2)
        return cls(
            name, version, model, reads, labels, scheme, legal, misfits, _method(model), time.time()
        )

    def facts(self) -> dict[str, Any]:
        """Facts about the model for clients, as JSON values."""
        return {
            "name": self.name,
            "version": self.version,
            "labels": self.labels,
            "scheme": self.scheme,
            "inputs": list(self.reads.inputs),
            "rows": self.reads.rows,
            "columns": self.reads.width or None,
            "loaded": round(self.since, 3),
        }


class Slot:
    """A name, the model behind it now, and the file that it came from."""

    def __init__(self, name: str, source: Source) -> None:
        self.name = name
        self.path = os.fspath(source) if isinstance(source, (str, os.PathLike)) else None
        self.error: str | None = None  # why the newest file is not in use
        self.loads, self.failures = 1, 0
        self._lock = threading.Lock()
        self._stamp: Stamp | None = None
        if isinstance(source, (str, os.PathLike)):
            self.current, self._stamp = _load(name, os.fspath(source))
        else:
            _check_fitted_chain(name, source)
            self.current = Loaded.of(name, copy.copy(source), _fingerprint(source))

    def check(self) -> bool:
        """Take the file again if it is another one now; whether the model was exchanged.

        A file that cannot be used changes nothing but `error`.
        """
        with self._lock:
            path = self.path
            if path is None or _stamp_of(path) == self._stamp:
                return False
            try:
                loaded, self._stamp = _load(self.name, path)
            except Exception as error:
                self._keep(path, error)
                return False
            self.error, exchanged = None, loaded.version != self.current.version
            if exchanged:
                self.loads += 1
                log.info("%s: version %s in use", self.name, loaded.version)
                self.current = loaded
            return exchanged

    def _keep(self, path: str, error: Exception) -> None:
        """Stay with the model in use, and say why; once for each state of the file."""
        self._stamp = _stamp_of(path)
        reason = str(error) or type(error).__name__
        if isinstance(error, OSError) and error.strerror:
            reason = f"{path}: {error.strerror}"
        if reason != self.error:
            self.failures += 1
            log.error("%s: version %s stays in use: %s", self.name, self.current.version, reason)
        self.error = reason


class Shelf:
    """All models of a server, by name; the first is the one that ``/tag`` asks."""

    def __init__(self, models: Mapping[str, Source]) -> None:
        if not models:
            raise ValueError("there is no model to serve: give at least one")
        for name in models:
            good = isinstance(name, str) and name and name.isprintable()
            if not good or set(name) & set("/?#%\\"):
                raise ValueError(f"the name of a model must fit in an address, got {name!r}")
        self.slots = {name: Slot(name, source) for name, source in models.items()}
        self.first = next(iter(self.slots))

    def __iter__(self) -> Iterator[Slot]:
        return iter(self.slots.values())

    def check(self) -> None:
        """Look at every file."""
        for slot in self:
            slot.check()


def _check_fitted_chain(name: str, source: object) -> None:
    """Raise an error for what is neither a path nor a fitted chain."""
    from chordal import ChainCRF

    if not isinstance(source, ChainCRF):
        raise TypeError(
            f"model {name!r} must be a fitted ChainCRF or the path of a model file, got "
            f"{type(source).__name__}"
        )
    if not hasattr(source, source.learned):
        raise not_fitted(source)


def _method(model: ChainCRF) -> str | None:
    """How a chain model predicts if the request does not say."""
    if model.inference not in ("auto", "chain"):
        return None
    report = getattr(model, "fit_report_", None)
    chosen = model.prediction if model.prediction != "auto" else report and report.prediction
    return chosen or "map"


def _stamp_of(path: str) -> Stamp | None:
    """What changes when a file does; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


def _load(name: str, path: str) -> tuple[Loaded, Stamp]:
    """The model of a file as it is now.

    It is opened as a copy: the version is that of the bytes that the model was made from, even if
    somebody overwrites the file at the same time.
    """
    with opened(path) as file:
        found = os.fstat(file.fileno())
        content = file.read()
    version = hashlib.blake2b(content, digest_size=8).hexdigest()
    with tempfile.TemporaryDirectory(prefix="chordal-", ignore_cleanup_errors=True) as folder:
        private = os.path.join(folder, os.path.basename(path))
        with open(private, "wb") as target:
            target.write(content)
        try:
            loaded = Loaded.of(name, open_model(private), version)
        except ValueError as error:
            raise ValueError(str(error).replace(private, path)) from None
    return loaded, (found.st_mtime_ns, found.st_ino, found.st_size)


def _fingerprint(model: ChainCRF) -> str:
    """A version of a model that has no file."""
    digest = hashlib.blake2b(digest_size=8)
    digest.update(repr(model.classes_.tolist()).encode(errors="backslashreplace"))
    digest.update(np.ascontiguousarray(model.weights_).tobytes())
    return digest.hexdigest()
