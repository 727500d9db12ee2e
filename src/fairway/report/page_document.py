"""The frame of every page of a report: one file that loads nothing.

Plotly, the styles, the script and the data are inside, and the content policy forbids anything else, down to scripts
that are not the ones written here.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from html import escape
from importlib import resources
from typing import Any

from plotly.offline import get_plotlyjs

from fairway.report.training_charts import Figure


def parts(figure: Figure | None) -> Any:
    """A figure's traces and layout, without plotly's own template: the page has its own."""
    if figure is None:
        return None
    parts = json.loads(figure.to_json())
    parts["layout"].pop("template", None)
    return parts


def document(name: str, body: str, data: Mapping[str, Any]) -> str:
    """The whole page: `data` holds the figures, and the details of each run, that its script draws."""
    folder = resources.files("fairway.report") / "page"
    style = (folder / "style.css").read_text(encoding="utf-8")
    scripts = [get_plotlyjs(), (folder / "script.js").read_text(encoding="utf-8")]
    # In JSON, < can be written as a number, and then no text can end the element that holds it.
    payload = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    allowed = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'" for code in scripts
    )
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "form-action 'none'; base-uri 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(name)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n{body}\n"
        "<noscript><p class=empty>The charts need JavaScript; all of it is inside this page.</p></noscript>\n"
        f'</main>\n<script type="application/json" id="report">{payload}</script>\n'
        f"<script>{scripts[0]}</script>\n<script>{scripts[1]}</script>\n</body>\n</html>\n"
    )
