"""Transformers that add features to tokens: dicts, lists of attributes or columns of text."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from chordal._estimator import Estimator
from chordal._optional import needed
from chordal._validate import check_sequences, listed
from chordal.text import Columns

if TYPE_CHECKING:
    from sklearn.utils import Tags

T = TypeVar("T", bound="TokenTransformer")

#: A kind of mark: its name, and the mark of every word, None where there is none.
Marks = tuple[str, list[str | None]]


class TokenTransformer(Estimator, metaclass=ABCMeta):
    """Adds marks to tokens, by their words; a subclass defines the marks.

    Use it in a `Pipeline` before an estimator.
    """

    learned: ClassVar[str] = "_loaded"
    key: str | int

    @abstractmethod
    def load(self) -> None:
        """Read the word lists."""

    @abstractmethod
    def marks(self, words: Sequence[str]) -> list[Marks]:
        """The marks of the words of one sequence."""

    @abstractmethod
    def cell(self, name: str, mark: str | None) -> str:
        """A mark as a column of text holds it."""

    def fit(self: T, X: object = None, y: object = None) -> T:
        """Read the lists; nothing is learned from X."""
        self._check_flags()
        if isinstance(self.key, bool) or not isinstance(self.key, (str, int)):
            raise TypeError(f"key must be a str or the number of a column, got {self.key!r:.60}")
        self.load()
        return self

    def fit_transform(self, X: object, y: object = None) -> Any:
        """`fit` and `transform`."""
        return self.fit(X, y).transform(X)

    def transform(self, X: Any) -> Any:
        """A copy of the sequences with marks; X does not change.

        Parameters
        ----------
        X : list of sequences of tokens, or Columns
            A token is a dict, a list of attribute strings, a row of cells or, with a `key` that is
            a str, the word itself, which becomes a dict.
        """
        if not hasattr(self, self.learned):
            self.fit()
        if not isinstance(X, Columns):
            X = check_sequences(X, empty=True)
        if isinstance(X, Columns):
            if not isinstance(self.key, int):
                raise ValueError(f"key must be the number of a column of text, got {self.key!r}")
            found = [self.marks(words) for words in X.column(self.key)]
            kinds = list(zip(*found, strict=True)) if found else []
            return X.with_columns(
                *([[self.cell(name, mark) for mark in own] for name, own in kind] for kind in kinds)
            )
        return [self._marked(x, f"X[{i}]") for i, x in enumerate(X)]

    def _marked(self, x: Any, place: str) -> list[Any]:
        tokens = listed(x, place)
        words = [self._word(token, f"{place}[{t}]") for t, token in enumerate(tokens)]
        found = self.marks(words)
        out = []
        for t, token in enumerate(tokens):
            marks = {name: own[t] for name, own in found}
            out.append(self._with_marks(token, marks, f"{place}[{t}]"))
        return out

    def _word(self, token: object, place: str) -> str:
        """The word of a token."""
        word, key = None, self.key
        if isinstance(key, int):
            if isinstance(token, (list, tuple)) and -len(token) <= key < len(token):
                word = token[key]
        elif isinstance(token, str):
            word = token
        elif isinstance(token, Mapping):
            word = token.get(key)
        elif isinstance(token, (list, tuple)):
            starts = (f"{key}=", f"{key}:")
            named = (a for a in token if isinstance(a, str) and a.startswith(starts))
            word = next((a[len(key) + 1 :] for a in named), None)
        if not isinstance(word, str):
            what = f"cell {key}" if isinstance(key, int) else f"str {key!r}"
            raise ValueError(f"{place} has no {what}; set key to the place of the word")
        return word

    def _with_marks(self, token: Any, marks: Mapping[str, str | None], place: str) -> Any:
        if isinstance(self.key, int):
            return [*token, *(self.cell(name, mark) for name, mark in marks.items())]
        given = {name: mark for name, mark in marks.items() if mark is not None}
        if isinstance(token, str):
            return {self.key: token, **given}
        if not isinstance(token, Mapping):
            return [*token, *(f"{name}:{mark}" for name, mark in given.items())]
        for name in given:
            if name in token:
                raise ValueError(f"{place} has {name!r} already; choose another name")
        return {**token, **given}

    def set_params(self: T, **params: object) -> T:
        """Set parameters; the lists are read again."""
        vars(self).pop(self.learned, None)
        return super().set_params(**params)

    def __sklearn_tags__(self) -> Tags:
        """The tags that scikit-learn's tools read."""
        with needed("sklearn", "__sklearn_tags__"):
            from sklearn.utils import Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            requires_fit=False,
        )
