"""Serve models over HTTP with JSON. ``chordal serve`` runs it; `app` is for other servers.

A request passes through these files: `_app` (routes), `_tagging` (one request), `_json`,
`_questions` and `_inputs` (its content). Then come `_queue` (waiting requests are taken together),
`_predicting` (one model call for all of them) and `_results` (the answer). `_shelf` holds the
models, and reloads one when its file is replaced.
"""

from __future__ import annotations

from chordal._optional import needed

with needed("starlette", "chordal.serve"):
    from chordal.serve._app import app
    from chordal.serve._hosts import hosts_at
from chordal.serve.limits import Limits

__all__ = ["Limits", "app", "hosts_at"]
