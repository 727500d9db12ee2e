"""What a page holds: the saved run inside it."""

from __future__ import annotations

import base64
import re
from typing import Any

from fairway.dashboard.run_file import unpacked


def inside(html: str) -> dict[str, Any]:
    """The document in a page, checked."""
    (found,) = re.findall(r'<script type="application/octet-stream" id="run"[^>]*>([^<]*)</script>', html)
    return unpacked(base64.b64decode(found))
