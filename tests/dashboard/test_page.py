"""The page as one file: it holds the run, loads nothing, and its policy knows its own script and no other."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import sys
from pathlib import Path

from fairway.dashboard.of_training import saved_training
from fairway.dashboard.page import asset, page_with, served_page
from fairway.dashboard.run_file import document, unpacked
from tests.report.records import four_jobs

ROOT = Path(__file__).parents[2]
HOSTILE = "</script><script>alert(1)</script>"


def test_the_run_inside_can_be_read_again() -> None:
    content = document([saved_training(four_jobs())])
    html = page_with(content, title="run")
    (inside,) = re.findall(r'<script type="application/octet-stream" id="run"[^>]*>([^<]*)</script>', html)
    assert unpacked(base64.b64decode(inside)) == content


def test_the_policy_names_the_script_and_the_style_that_are_there() -> None:
    html = page_with(document([saved_training(four_jobs())]), title="run")
    (script,) = re.findall(r'<script type="module">(.*?)</script>', html, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    policy = re.findall(r'Content-Security-Policy" content="([^"]*)"', html)[0]
    for text in (script, style):
        assert f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


def test_a_hostile_title_stays_text() -> None:
    html = page_with(document([saved_training(four_jobs())]), title=HOSTILE)
    assert HOSTILE not in html


def test_nothing_is_loaded_from_elsewhere() -> None:
    for html in (served_page("up"), page_with(document([saved_training(four_jobs())]), title="run")):
        assert not re.search(r'(?:src|href)="(?:https?:)?//', html)


def test_the_code_of_the_page_is_small() -> None:
    assert sum(len(gzip.compress(asset(name))) for name in ("app.js", "app.css")) < 300_000


def test_the_page_was_built_from_these_sources() -> None:
    sys.path.insert(0, str(ROOT / "dashboard"))
    try:
        import sources  # noqa: PLC0415 - beside the sources of the page, which are no package
    finally:
        sys.path.pop(0)
    assert sources.RECORD.read_text().strip() == sources.digest(), "the page is older than its sources: make dashboard"


def test_the_api_has_all_that_the_page_was_typed_by() -> None:
    sys.path.insert(0, str(ROOT / "dashboard"))
    try:
        import generate_types  # noqa: PLC0415 - as above
    finally:
        sys.path.pop(0)
    now = generate_types.used_part()["components"]["schemas"]
    then = json.loads((ROOT / "dashboard" / "openapi.json").read_text())["components"]["schemas"]
    changed = [
        f"{name}.{field}"
        for name, schema in then.items()
        for field, form in schema.get("properties", {}).items()
        if _without_words(now.get(name, {}).get("properties", {}).get(field)) != _without_words(form)
    ]
    assert not changed, "fields that the page may read are different: make dashboard"


def _without_words(form: object) -> object:
    if isinstance(form, dict):
        return {key: _without_words(value) for key, value in form.items() if key not in {"description", "examples"}}
    if isinstance(form, list):
        return [_without_words(value) for value in form]
    return form
