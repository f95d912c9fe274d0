"""scikit-learn's estimator protocol, without importing scikit-learn before it is needed.

Importing scikit-learn takes a second and 50 MB, which a tagger on the command line should not pay.
`clone`, `GridSearchCV`, `Pipeline` and the rest ask for these methods, not for the base class.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

E = TypeVar("E", bound="Estimator")


class Estimator:
    """Parameters are the constructor's arguments; nothing else is set before `fit`."""

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        parameters = inspect.signature(cls).parameters
        return {name: p.default for name, p in parameters.items()}

    def _store(self, given: Mapping[str, Any]) -> None:
        """Keep the constructor's arguments, which it gives as its `locals()`, as they are."""
        for name in self._defaults():
            setattr(self, name, given[name])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; with `deep`, those of parameters that have some too."""
        out = {name: getattr(self, name) for name in self._defaults()}
        if deep:
            for name, value in list(out.items()):
                if hasattr(value, "get_params") and not inspect.isclass(value):
                    out.update({f"{name}__{k}": v for k, v in value.get_params().items()})
        return out

    def set_params(self: E, **params: Any) -> E:
        """Set parameters; `name__inner` sets one of a parameter's own."""
        known = self._defaults()
        inner: dict[str, dict[str, Any]] = {}
        for key, value in params.items():
            name, nested, rest = key.partition("__")
            if name not in known:
                raise ValueError(
                    f"Invalid parameter {name!r} for estimator {self}. "
                    f"Valid parameters are: {sorted(known)!r}."
                )
            if nested:
                inner.setdefault(name, {})[rest] = value
            else:
                setattr(self, name, value)
        for name, values in inner.items():
            getattr(self, name).set_params(**values)
        return self

    def __repr__(self) -> str:
        changed = [
            f"{name}={getattr(self, name)!r}"
            for name, default in sorted(self._defaults().items())
            if repr(getattr(self, name)) != repr(default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def _repr_html_(self) -> str:
        """What notebooks show."""
        from sklearn.utils import estimator_html_repr

        return str(estimator_html_repr(self))

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn's tools want to know."""
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=True))

    def _check_fitted(self) -> None:
        if not hasattr(self, "weights_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet; call 'fit' first"
            )


def generator_from(random_state: Any) -> np.random.Generator:
    """A Generator from a seed, a Generator, a RandomState or None.

    >>> [int(generator_from(0).integers(100)) for _ in range(2)]
    [36, 36]
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    try:
        if not isinstance(random_state, np.random.RandomState):
            random_state = np.random.RandomState(random_state)
        return np.random.default_rng(random_state.randint(2**31))
    except (TypeError, ValueError):
        raise ValueError(
            "random_state must be an integer of at least 0, a numpy Generator or RandomState, or "
            f"None; got {random_state!r}"
        ) from None
