"""scikit-learn's estimator protocol, without importing scikit-learn before it is needed.

Importing scikit-learn takes a second and 50 MB, too much for a tagger on the command line. `clone`,
`GridSearchCV`, `Pipeline` and others need these methods, not the base class.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from html import escape
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from chordal._docs import complete_docs
from chordal._errors import not_fitted
from chordal._optional import needed
from chordal._validate import check_flag

if TYPE_CHECKING:
    from sklearn.callback import FitCallback
    from sklearn.utils import Tags
    from sklearn.utils.metadata_routing import MetadataRequest

E = TypeVar("E", bound="Estimator")
T = TypeVar("T")

# The methods whose further arguments `GridSearchCV` and `Pipeline` pass on when asked to.
_ROUTED = ("fit", "partial_fit", "predict", "score")


def _request_setter(method: str) -> Callable[..., Any]:
    def set_request(self: E, **requests: bool | str | None) -> E:
        routing = self.get_metadata_routing()
        known = _metadata(type(self), method)
        if unknown := set(requests) - set(known):
            raise TypeError(
                f"{method} has no argument {', '.join(sorted(unknown))}; "
                f"it takes {', '.join(known) or 'none besides the data'}"
            )
        for name, request in requests.items():
            getattr(routing, method).add_request(param=name, alias=request)
        self._metadata_request = routing
        return self

    set_request.__name__ = f"set_{method}_request"
    set_request.__doc__ = (
        f"Say which arguments of `{method}` tools of scikit-learn pass on: True, False or an alias."
    )
    return set_request


def _metadata(cls: type, method: str) -> list[str]:
    """Arguments of a method besides the data."""
    function = getattr(cls, method, None)
    if function is None:
        return []
    _, *given = inspect.signature(function).parameters.values()
    packed = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [p.name for p in given if p.name not in ("X", "y") and p.kind not in packed]


class Estimator:
    """Parameters are the constructor's arguments; nothing else is set before `fit`."""

    #: The attribute that `fit` sets.
    learned: ClassVar[str] = "weights_"
    #: Whether each example has a single label.
    classifies: ClassVar[bool] = False
    #: Optional packages that it cannot do without.
    packages: ClassVar[tuple[str, ...]] = ()
    _metadata_request: MetadataRequest
    _skl_callbacks: list[FitCallback]

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        complete_docs(cls)

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        parameters = inspect.signature(cls).parameters
        return {name: p.default for name, p in parameters.items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; with `deep`, also the parameters of nested objects."""
        out = {name: getattr(self, name) for name in self._defaults()}
        if deep:
            for name, value in list(out.items()):
                if hasattr(value, "get_params") and not inspect.isclass(value):
                    out.update({f"{name}__{k}": v for k, v in value.get_params().items()})
        return out

    def set_params(self: E, **params: object) -> E:
        """Set parameters; `name__inner` sets a parameter of a nested object."""
        known = self._defaults()
        # Those of parameters come after the parameters, which may be set by the same call.
        for key, value in sorted(params.items(), key=lambda given: given[0].count("__")):
            name, nested, rest = key.partition("__")
            if name not in known:
                raise ValueError(
                    f"Invalid parameter {name!r} for estimator {self}. "
                    f"Valid parameters are: {sorted(known)!r}."
                )
            if nested:
                getattr(self, name).set_params(**{rest: value})
            else:
                setattr(self, name, value)
        return self

    set_fit_request = _request_setter("fit")
    set_partial_fit_request = _request_setter("partial_fit")
    set_predict_request = _request_setter("predict")
    set_score_request = _request_setter("score")

    def get_metadata_routing(self) -> MetadataRequest:
        """Which arguments of which methods scikit-learn's tools pass on.

        An argument that was not requested is an error, as in scikit-learn. Only `score` works
        without `sample_weight` unless `set_score_request` asks for it.
        """
        with needed("sklearn", "get_metadata_routing"):
            from sklearn.utils.metadata_routing import MetadataRequest

        if hasattr(self, "_metadata_request"):
            return deepcopy(self._metadata_request)
        # The name, not the object: clone and pickle copy the owner too.
        routing = MetadataRequest(owner=type(self).__name__)
        for method in _ROUTED:
            for name in _metadata(type(self), method):
                request = False if method == "score" else None
                getattr(routing, method).add_request(param=name, alias=request)
        return routing

    def set_callbacks(self: E, *callbacks: FitCallback) -> E:
        """Call these scikit-learn (1.9 or newer) callbacks during `fit`; none removes all."""
        try:
            with needed("sklearn", "set_callbacks"):
                from sklearn.callback import CallbackSupportMixin
        except ModuleNotFoundError:
            raise ImportError("callbacks need scikit-learn 1.9 or newer: upgrade it") from None
        CallbackSupportMixin.set_callbacks(self, *callbacks)
        return self

    def __repr__(self) -> str:
        changed = [f"{k}={v!r}" for k, v in sorted(self._changed().items())]
        return f"{type(self).__name__}({', '.join(changed)})"

    def _changed(self) -> dict[str, object]:
        """The parameters that differ from their defaults."""
        given = {name: (getattr(self, name), d) for name, d in self._defaults().items()}
        return {name: value for name, (value, d) in given.items() if repr(value) != repr(d)}

    def _repr_html_(self) -> str:
        """What notebooks show: scikit-learn's diagram, and what was learned."""
        with needed("sklearn", "the diagram of an estimator"):
            from sklearn.utils import estimator_html_repr

        return str(estimator_html_repr(self)) + self._learned_html()

    def _learned_html(self) -> str:
        """A summary of what was learned; empty before `fit`, or where there is none."""
        return ""

    def _repr_mimebundle_(self, **options: object) -> dict[str, str]:
        out = {"text/plain": repr(self)}
        with suppress(ImportError), needed("sklearn", "the diagram of an estimator"):
            from sklearn import get_config

            if get_config()["display"] == "diagram":
                out["text/html"] = self._repr_html_()
        return out

    def _get_params_html(self, deep: bool = True, doc_link: str = "") -> HTMLTable:
        """scikit-learn's diagrams ask for this."""
        return HTMLTable("Parameters", self.get_params(deep), self._changed())

    def _get_fitted_attr_html(self, doc_link: str = "") -> HTMLTable:
        """scikit-learn's diagrams ask for this once the estimator is fitted."""
        public = {k: v for k, v in vars(self).items() if k.endswith("_") and k[0] != "_"}
        return HTMLTable("Fitted attributes", public)

    def __sklearn_tags__(self) -> Tags:
        """The tags that scikit-learn's tools read."""
        with needed("sklearn", "__sklearn_tags__"):
            from sklearn.utils import ClassifierTags, Tags, TargetTags

        tags = Tags(estimator_type=None, target_tags=TargetTags(required=True))
        if self.classifies:
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        return tags

    def _check_flags(self) -> None:
        """Raise an error for a parameter that must be True or False, and is something else."""
        for name, default in self._defaults().items():
            if isinstance(default, bool):
                check_flag(name, getattr(self, name))

    def _check_fitted(self) -> None:
        if not hasattr(self, self.learned):
            raise not_fitted(self)


@dataclass(frozen=True)
class HTMLTable:
    """A folded table of names and values, in the classes of scikit-learn's style sheet."""

    title: str
    values: Mapping[str, object]
    changed: Collection[str] = ()

    def __len__(self) -> int:
        return len(self.values)

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr class="{"user-set" if name in self.changed else "default"}">'
            f'<td class="param">{escape(name)}</td>'
            f'<td class="value">{escape(_brief(value))}</td></tr>'
            for name, value in self.values.items()
        )
        return (
            f'<div class="estimator-table"><details><summary>{self.title}</summary>'
            f'<table class="parameters-table"><tbody>{rows}</tbody></table></details></div>'
        )

    _repr_html_inner = _repr_html_  # the name by which scikit-learn's diagrams ask


def _brief(value: object, limit: int = 100) -> str:
    """One short line about a value.

    >>> _brief(np.zeros((3, 4)))
    'float64 array [3, 4]'
    """
    if isinstance(value, np.ndarray) and value.size > 8:
        return f"{value.dtype} array {list(value.shape)}"
    if isinstance(value, (list, tuple, dict)) and len(value) > 8:
        return f"{type(value).__name__} of {len(value)}"
    text = " ".join(repr(value).split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


class ExampleList(list[T]):
    """A list with one entry per example that `cross_val_predict` can join.

    scikit-learn joins the predictions of its folds by `np.concatenate`, which refuses lists of
    different lengths. This class joins them to an object array with one entry per example.

    >>> np.concatenate([ExampleList([[1, 2]]), ExampleList([[3]])])
    array([list([1, 2]), list([3])], dtype=object)
    >>> np.shape(ExampleList([[1, 2], [3, 4]]))
    (2, 2)
    """

    def __array_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> object:
        parts = args[0] if args else ()
        if function is np.concatenate and all(isinstance(part, ExampleList) for part in parts):
            return np.fromiter(chain.from_iterable(parts), dtype=object)
        return function(*_as_lists(args), **_as_lists(kwargs))


def _as_lists(value: object) -> Any:
    """Arguments of a NumPy function, with plain lists for lists of examples."""
    if isinstance(value, ExampleList):
        return list(value)
    if isinstance(value, (list, tuple)):
        return type(value)(map(_as_lists, value))
    return {k: _as_lists(v) for k, v in value.items()} if isinstance(value, dict) else value
