"""The page of a report: one HTML file, pictures inside, legible on a phone, light and dark."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template
from struct import unpack

from chordal.experiments._base import Finished, Picture, Row, Samples, Setup, Table, Token

WIDEST = 720  # pixels of a picture that is legible on a phone as it is


def page(done: Sequence[Finished], setup: Setup) -> str:
    """The whole page."""
    frame = Template(files("chordal.experiments").joinpath("page.html").read_text("utf-8"))
    quick = (
        '<p class="note">A quick run: less data and fewer steps on the same path. Its figures '
        "show that everything works, not how well.</p>"
        if setup.quick
        else ""
    )
    return frame.substitute(
        quick=quick,
        summary="".join(_summary(finished) for finished in done),
        sections="".join(_section(finished) for finished in done),
    )


def _summary(finished: Finished) -> str:
    """One line of the table at the top."""
    link = f'<a href="#{escape(finished.name)}">{escape(finished.name)}</a>'
    if finished.outcome is None:
        verdicts = '<span class="absent">not run</span>'
    else:
        counts = finished.outcome.verdicts()
        verdicts = " ".join(_badge(f"{n} {v}", v) for v, n in counts.items())
    return (
        f"<tr><th>{link}</th><td>{escape(finished.experiment.title)}</td><td>{verdicts}</td>"
        f"<td>{finished.seconds:.0f} s</td></tr>"
    )


def _section(finished: Finished) -> str:
    e = finished.experiment
    facts = {
        "Data": e.data,
        "Split": e.split,
        "Model": e.model,
        "Published in": e.source,
        "Seed": str(e.seed),
    }
    listed = "".join(f"<dt>{k}</dt><dd>{escape(v)}</dd>" for k, v in facts.items())
    parts = [
        f'<section id="{escape(finished.name)}"><h2>{escape(e.title)}</h2>',
        f"<p>{escape(e.about)}</p><dl>{listed}</dl>",
    ]
    if finished.outcome is None:
        parts.append(f'<p class="absent">Not run: {escape(finished.problem)}</p>')
    else:
        outcome = finished.outcome
        if outcome.rows:
            parts.append(_figures(outcome.rows))
        parts += [f'<p class="note">{escape(note)}</p>' for note in outcome.notes]
        parts.append('<div class="pictures">')
        parts += [_picture(picture) for picture in outcome.pictures]
        parts.append("</div>")
        parts += [_samples(samples) for samples in outcome.samples]
        parts += [_table(table) for table in outcome.tables]
    return "".join(parts) + "</section>"


def _figures(rows: Sequence[Row]) -> str:
    """One line per row; without the column of published figures where there are none."""
    known = any(row.published is not None for row in rows)
    column = "<th>published</th>" if known else ""
    head = f"<tr><th></th>{column}<th>ours</th><th></th></tr>"
    body = "".join(
        f"<tr><th>{escape(row.what)}{_why(row)}</th>"
        + (f"<td>{row.shown(row.published)}</td>" if known else "")
        + f"<td>{escape(row.ours_shown)}</td><td>{_badge(row.verdict, row.verdict)}</td></tr>"
        for row in rows
    )
    return f'<div class="wide"><table><thead>{head}</thead><tbody>{body}</tbody></table></div>'


def _why(row: Row) -> str:
    return f"<small>{escape(row.reason)}</small>" if row.reason else ""


def _badge(text: str, verdict: str) -> str:
    return f'<span class="{verdict.replace(" ", "-")}">{text}</span>' if verdict else ""


def _picture(picture: Picture) -> str:
    """Two stand side by side; a wide one takes the whole line, and scrolls on a phone."""
    data = base64.b64encode(picture.png).decode("ascii")
    title, caption = escape(picture.title), escape(picture.caption)
    width, height = unpack(">II", picture.png[16:24])  # of PNG's first block
    wide = ' class="wide"' if width > WIDEST else ""
    return (
        f'<figure{wide}><img alt="{escape(picture.alt or picture.title)}" width="{width}" '
        f'height="{height}" src="data:image/png;base64,{data}">'
        f"<figcaption><b>{title}</b> {caption}</figcaption></figure>"
    )


def _samples(samples: Samples) -> str:
    sequences = "".join(
        f'<p class="sequence">{"".join(_token(token) for token in tokens)}</p>'
        for tokens in samples.sequences
    )
    title, caption = escape(samples.title), escape(samples.caption)
    return f'<div class="samples"><p><b>{title}</b> {caption}</p>{sequences}</div>'


def _token(token: Token) -> str:
    wrong = "".join(
        f'<small class="not-met">{escape(name)}: {escape(label)}</small>'
        for name, label in token.wrong.items()
    )
    return f"<span>{escape(token.text)} <small>{escape(token.true)}</small>{wrong}</span> "


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(str(name))}</th>" for name in table.head)
    body = "".join(
        "<tr>" + "".join(_cell(value, k == 0) for k, value in enumerate(row)) + "</tr>"
        for row in table.rows
    )
    return (
        f"<details><summary>{escape(table.title)}</summary>"
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div></details>"
    )


def _cell(value: object, first: bool) -> str:
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    return f"<th>{escape(text)}</th>" if first else f"<td>{escape(text)}</td>"
