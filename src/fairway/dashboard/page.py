"""The page itself: as `fairway up` and `fairway serve` send it, and as one file with runs inside.

Script and style are built from `dashboard/` in the repository (`make dashboard`) into `static/` beside this module.
The page loads nothing but these two, and no other script may run in it: the content policy says so, for a server by
the server's own address, for a file by the hashes of what stands in it.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

from fairway.dashboard.run_file import packed

ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath d='M1 3h9v3H1zM4 "
    "7h11v3H4zM2 11h7v3H2z' fill='%232f7d6d'/%3E%3C/svg%3E"
)
ASSETS: Mapping[str, str] = {"app.js": "text/javascript", "app.css": "text/css"}
"""The files beside the page, with the kind of each."""

SERVED_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)

_LEAVES_RAW_TEXT = re.compile(r"<(?=!--|/?script|/?style)", re.IGNORECASE)


def served_page(kind: str, *, needs_token: bool = True) -> str:
    """The page of a server; `kind` is what it serves: `up` or `serve`."""
    open_to_all = "" if needs_token else " data-open"
    return _frame(
        "Fairway",
        '<link rel="stylesheet" href="dashboard/app.css">\n<script type="module" src="dashboard/app.js"></script>',
        f'<div id="app" data-server="{html.escape(kind)}"{open_to_all}></div>',
    )


def page_with(content: Mapping[str, Any], *, title: str) -> str:
    """One HTML file that shows a saved run, and needs nothing else."""
    script, style = _LEAVES_RAW_TEXT.sub(r"\\u003c", asset("app.js").decode()), asset("app.css").decode()
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    run = base64.b64encode(packed(content)).decode()
    return _frame(
        f"{title}: Fairway",
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>',
        f'<div id="app"></div>\n<script type="application/octet-stream" id="run" data-name="{html.escape(title)}">'
        f'{run}</script>\n<script type="module">{script}</script>',
    )


@functools.cache
def asset(name: str) -> bytes:
    """One of the built files."""
    return (resources.files("fairway.dashboard") / "static" / name).read_bytes()


def _frame(title: str, head: str, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'{head}\n<title>{html.escape(title)}</title>\n<link rel="icon" href="{ICON}">\n'
        f"</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
