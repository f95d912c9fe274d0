"""What `explain` finds: frozen objects with a text form, HTML, a dict and a data frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from chordal import _html
from chordal._html import signed
from chordal._optional import needed
from chordal._shown import in_a_line

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 20  # contributions in the text form and in HTML
WIDTH = 160  # pixels of both sides of a bar in HTML


@dataclass(frozen=True)
class Contribution:
    """What one thing adds to the log-odds of the label against the rival.

    kind : {"attribute", "intercept", "link"}
    name : str, of the attribute or column; "intercept", "start" or "end"; or the link in words
    amount : float, the share of the log-odds; negative for what speaks for the rival
    value : float or None, of an attribute
    template : str, the clique template of an attribute
    meaning : str, what an attribute of a feature template is about
    neighbours : tuple, the variables of a link
    parts : tuple of Contribution, those of one link that has features of its own
    """

    kind: str
    name: str
    amount: float
    value: float | None = None
    template: str = ""
    meaning: str = ""
    neighbours: tuple[Any, ...] = ()
    parts: tuple[Contribution, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """What JSON can hold."""
        return {
            "kind": self.kind,
            "name": self.name,
            "amount": self.amount,
            "value": self.value,
            "template": self.template,
            "meaning": self.meaning,
            "neighbours": [_plain(own) for own in self.neighbours],
            "parts": [own.to_dict() for own in self.parts],
        }

    @property
    def title(self) -> str:
        """The name, with the value of an attribute where that is not 1."""
        return self.name if self.value in (None, 1.0) else f"{self.name} = {self.value:.4g}"


@dataclass(frozen=True)
class Flip:
    """The fewest attributes without which the other label is ahead.

    A number counts as removed when it is zero. The model was asked again without them.

    removed : tuple of Contribution, the largest first
    log_odds : float, what the model then says
    confirmed : bool, whether these favour the other label; inference that is not exact may differ
    prediction : the label that the model then predicts
    changes_prediction : bool, whether that is another label than before
    """

    removed: tuple[Contribution, ...]
    log_odds: float
    confirmed: bool
    prediction: Any
    changes_prediction: bool

    def to_dict(self) -> dict[str, Any]:
        """What JSON can hold."""
        return {
            "removed": [own.to_dict() for own in self.removed],
            "log_odds": self.log_odds,
            "confirmed": self.confirmed,
            "prediction": _plain(self.prediction),
            "changes_prediction": self.changes_prediction,
        }


@dataclass(frozen=True)
class Explanation:
    """Why a variable has one label and not another; see `explain`.

    estimator : str, the class of the model
    place, at : the variable: "position" and its number, "pixel" and its coordinates, …
    label, rival : the labels that are compared
    predicted : the label that the model predicts
    odds : {"marginal", "conditional"}, which log-odds these are
    exact : bool, whether the inference behind them is exact
    inference : str or None, the method that gave the marginals
    log_odds : float
    probability, rival_probability : float, of both labels
    contributions : tuple of Contribution, the largest first; their sum is `log_odds`
    flip : Flip or None, if no removal of attributes makes the other label win
    """

    estimator: str
    place: str
    at: Any
    label: Any
    rival: Any
    predicted: Any
    odds: str
    exact: bool
    inference: str | None
    log_odds: float
    probability: float
    rival_probability: float
    contributions: tuple[Contribution, ...]
    flip: Flip | None

    def to_dict(self) -> dict[str, Any]:
        """What JSON can hold; infinite numbers stay numbers."""
        plain = {
            name: _plain(getattr(self, name))
            for name in self.__dataclass_fields__
            if name not in ("contributions", "flip")
        }
        plain["contributions"] = [own.to_dict() for own in self.contributions]
        plain["flip"] = None if self.flip is None else self.flip.to_dict()
        return plain

    def to_frame(self) -> pd.DataFrame:
        """The contributions as a data frame of pandas, one in a row."""
        with needed("pandas", "to_frame"):
            import pandas as pd

        columns = ["kind", "name", "value", "amount", "template", "meaning"]
        rows = [[getattr(own, name) for name in columns] for own in self.contributions]
        return pd.DataFrame(rows, columns=columns)

    @property
    def title(self) -> str:
        """The question in one line."""
        where = "" if self.place == "row" else f", {self.place} {self.at!r}"
        return f"{self.estimator}{where}: {self.label!r} against {self.rival!r}"

    @property
    def summary(self) -> str:
        """The log-odds, the probabilities and how they were found, in one line."""
        kind = "of the marginals" if self.odds == "marginal" else "given the predicted neighbours"
        by = "" if self.inference is None else f", {self.inference}"
        other = f"; they favour {self.rival!r}" if self.log_odds < 0.0 else ""
        if self.predicted != self.label:
            other += f"; predicted is {self.predicted!r}"
        return (
            f"log-odds {kind} {signed(self.log_odds)}: P({self.label!r}) = "
            f"{self.probability:.3f}, P({self.rival!r}) = {self.rival_probability:.3f} "
            f"({'exact' if self.exact else 'approximate'}{by}){other}"
        )

    @property
    def advice(self) -> str:
        """What would flip it, in one line."""
        if self.flip is None:
            return "To flip it: removing attributes is not enough."
        names = ", ".join(own.title for own in self.flip.removed)
        what = f"{self.flip.prediction!r} is {'' if self.flip.changes_prediction else 'still '}"
        doubt = "" if self.flip.confirmed else " (the model, asked again, did not confirm it)"
        return (
            f"To flip it: without {names} the log-odds are {signed(self.flip.log_odds)}, and "
            f"{what}predicted{doubt}."
        )

    def _rows(self) -> tuple[list[Contribution], str]:
        """What is shown, and a line about the rest."""
        listed = [own for own in self.contributions if own.amount != 0.0]
        rest = listed[SHOWN:]
        if not rest:
            return listed, ""
        return listed[:SHOWN], f"{signed(sum(own.amount for own in rest))}  {len(rest)} more"

    def __str__(self) -> str:
        shown, rest = self._rows()
        lines = [self.title, self.summary]
        for own in shown:
            about = f"  ({own.meaning})" if own.meaning else ""
            lines.append(f"  {signed(own.amount)}  {own.title}{about}")
            lines += [f"    {signed(part.amount)}  {part.title}" for part in own.parts]
        lines += [f"  {rest}"] if rest else []
        return "\n".join(map(in_a_line, [*lines, self.advice]))

    def _repr_html_(self) -> str:
        """What notebooks show: a bar for each contribution; no scripts."""
        shown, rest = self._rows()
        finite = [abs(own.amount) for own in shown if np.isfinite(own.amount)]
        largest = max(finite, default=0.0) or 1.0
        rows = [
            (
                f'<div style="min-width:6.5em">{_html.text(own.title)}</div>',
                _bar(own.amount, largest),
                _html.unbroken(signed(own.amount)),
                _html.text(own.meaning),
            )
            for own in shown
        ]
        body = _html.table(["", _sides(self.rival, self.label), "", ""], rows)
        return (
            f'<div style="{_html.FONT}"><b>{_html.text(self.title)}</b>'
            f"<div>{_html.text(self.summary)}</div>{body}"
            + (f"<div>{_html.text(rest)}</div>" if rest else "")
            + f"<div>{_html.text(self.advice)}</div></div>"
        )


def _sides(rival: object, label: object) -> str:
    """What bars to the left and to the right of the middle speak for, above them."""
    half = "width:50%;box-sizing:border-box;padding:0 3px"
    return (
        f'<div style="width:{WIDTH}px;display:flex;align-items:end">'
        f'<div style="{half};text-align:right">{_html.text(repr(rival))} ←</div>'
        f'<div style="{half};text-align:left">→ {_html.text(repr(label))}</div></div>'
    )


def _bar(amount: float, largest: float) -> str:
    """A bar from the middle to the right, or to the left where it speaks for the rival."""
    width = 50.0 * min(1.0, abs(amount) / largest)
    left, colour = (50.0, "#2a9d5c") if amount > 0 else (50.0 - width, "#c8553d")
    return (
        f'<div style="position:relative;width:{WIDTH}px;height:10px">'
        f'<div style="position:absolute;left:{left:.2f}%;width:{width:.2f}%;height:10px;'
        f'background:{colour}"></div></div>'
    )


def _plain(value: object) -> Any:
    """A label or a place as JSON holds it."""
    if isinstance(value, np.generic):
        return value.item()
    return [_plain(own) for own in value] if isinstance(value, tuple) else value
