"""Writes the part of the OpenAPI document that the page uses to openapi.json, from which its types are generated."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from fairway.service.app import create_app
from fairway.store import open_store

HERE = Path(__file__).parent
USED = (
    "/session", "/status", "/history", "/jobs", "/jobs/{job}", "/jobs/{job}/cancel", "/jobs/{job}/explain",
    "/jobs/{job}/logs", "/workers", "/usage", "/journal",
)  # fmt: skip
"""The routes that the page asks."""


class _Scheduler:
    """As much of a scheduler as its routes are described by."""

    def __init__(self, store: Any) -> None:
        self.store = store


def used_part() -> dict[str, Any]:
    """The document with only these routes and what they refer to."""
    with tempfile.TemporaryDirectory() as directory, open_store(directory) as store:
        whole = create_app(_Scheduler(store)).openapi()  # type: ignore[arg-type]
    paths = {path: whole["paths"][path] for path in USED}
    schemas: dict[str, Any] = {}
    wanted = _referred(paths)
    while wanted:
        name = wanted.pop()
        if name not in schemas:
            schemas[name] = whole["components"]["schemas"][name]
            wanted |= _referred(schemas[name])
    return {
        "openapi": whole["openapi"],
        "info": {"title": "Fairway", "version": "as used by the dashboard"},
        "paths": paths,
        "components": {"schemas": dict(sorted(schemas.items()))},
    }


def _referred(part: Any) -> set[str]:
    return set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(part)))


if __name__ == "__main__":
    target = HERE / "openapi.json"
    target.write_text(json.dumps(used_part(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.stdout.write(f"{target.name}\n")
