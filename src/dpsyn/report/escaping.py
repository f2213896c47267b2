"""What comes from a table, made harmless for an HTML page."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from typing import Any


def text(words: str) -> str:
    """Text that is nothing but text, in elements and in quoted attributes."""
    return html.escape(words.encode("utf-8", "replace").decode("utf-8"), quote=True)


def json_text(data: Any) -> str:
    """JSON that cannot end the element it stands in, in plain ASCII."""
    plain = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return plain.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def inert(script: str) -> str:
    """A script of ours or a library's that cannot end its element: what looks like a tag can only be in a string."""
    return re.sub(r"<(?=/script|!--)", r"\\x3C", script, flags=re.IGNORECASE)


def policy(*scripts: str) -> str:
    """A content security policy: nothing from elsewhere, and no script but these, which it knows by their hashes."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:"
