"""The audit of dependencies fails for a known vulnerability, and says why it was skipped where nothing can be asked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import httpx

from tests.audit import audit

REACHED = {"vulnerabilities": []}


def _says(dependencies: list[dict[str, Any]]) -> Any:
    def run(arguments: Sequence[str]) -> tuple[int, str, str]:
        return (0, "", "") if arguments[0] == "pip" else (1, json.dumps({"dependencies": dependencies}), "")

    return run


def test_a_known_vulnerability_fails() -> None:
    bad = {"name": "jinja2", "version": "2.10", "vulns": [{"id": "PYSEC-2019-217", "fix_versions": ["2.10.1"]}]}
    good = {"name": "numpy", "version": "2.0", "vulns": []}
    code, lines = audit("lock", lambda: REACHED, _says([bad, good]))
    assert code == 1
    assert lines == [
        "jinja2 2.10: PYSEC-2019-217, fixed in 2.10.1",
        "audit: 1 known vulnerabilities in 2 releases",
    ]
    assert audit("lock", lambda: REACHED, _says([good]))[0] == 0


def test_releases_that_could_not_be_asked_about_are_not_called_sound() -> None:
    good = {"name": "numpy", "version": "2.0", "vulns": []}
    unknown = {"name": "scipy", "skip_reason": "Dependency not found on PyPI and could not be audited: scipy (1.12)"}
    assert audit("lock", lambda: REACHED, _says([unknown])) == (
        0,
        ["skipped: the index has no advisories about any of the 1 releases"],
    )
    assert audit("lock", lambda: REACHED, _says([good, unknown]))[1] == [
        "audit: 0 known vulnerabilities in 1 releases; of 1 others nothing is known"
    ]


def test_without_an_index_that_has_advisories_it_is_skipped_and_says_why() -> None:
    def unreachable() -> Any:
        raise httpx.ConnectError("no network")

    for probe, why in ((unreachable, "ConnectError"), (lambda: {}, "KeyError")):
        code, lines = audit("lock", probe, _says([]))
        assert (code, len(lines)) == (0, 1)
        assert lines[0].startswith("skipped: no advisories at https://")
        assert why in lines[0]


def test_a_tool_that_cannot_be_had_or_does_not_finish_is_no_vulnerability() -> None:
    assert audit("lock", lambda: REACHED, lambda _: (1, "", "x\nno such release\n")) == (
        0,
        ["skipped: pip-audit cannot be installed (no such release)"],
    )
    code, lines = audit("lock", lambda: REACHED, lambda given: (0 if given[0] == "pip" else 1, "", "timed out"))
    assert (code, lines) == (0, ["skipped: pip-audit could not finish (timed out)"])
