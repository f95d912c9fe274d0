"""Serve models over HTTP with JSON. ``chordal serve`` runs it; `app` is for other servers.

A request goes through these files: `_app` (routes), `_tagging` (one request), `_json`, `_questions`
and `_inputs` (what it says), `_queue` (requests wait here and are taken together), `_predicting`
(one call of the model for all of them) and `_results` (the answer). `_shelf` keeps the models, and
exchanges one when its file is replaced.
"""

from __future__ import annotations

from chordal._optional import needed

with needed("starlette", "chordal.serve"):
    from chordal.serve._app import app
    from chordal.serve._hosts import hosts_at
from chordal.serve.limits import Limits

__all__ = ["Limits", "app", "hosts_at"]
