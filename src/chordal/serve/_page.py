"""The page to try a model, and the headers that keep hostile text from doing anything on it."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

PAGE = (Path(__file__).parent / "page.html").read_text(encoding="utf-8")


def _hashes(tag: str) -> str:
    """What the policy says of the page's own scripts or styles: these, letter by letter."""
    found = re.findall(rf"<{tag}>(.*?)</{tag}>", PAGE, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(own.encode()).digest()).decode() for own in found]
    return " ".join(f"'sha256-{digest}'" for digest in digests)


HEADERS = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": (
        f"default-src 'none'; script-src {_hashes('script')}; style-src {_hashes('style')}; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
