"""The audit of dependencies finds known vulnerabilities, and says why it was skipped where nothing can be asked."""

from __future__ import annotations

import json
from typing import Any

from tests.audit import Ask, audit

GOOD = {"name": "numpy", "version": "2.0", "vulns": []}


def _says(*dependencies: dict[str, Any]) -> Ask:
    return lambda _: (json.dumps({"dependencies": dependencies}), "")


def test_a_known_vulnerability_is_named_with_the_release_that_mends_it() -> None:
    bad = {"name": "jinja2", "version": "2.10", "vulns": [{"id": "PYSEC-2019-217", "fix_versions": ["2.10.1"]}]}
    assert audit("lock", _says(bad, GOOD)) == (
        False,
        ["jinja2 2.10: PYSEC-2019-217, fixed in 2.10.1", "audit: 1 known vulnerabilities in 2 releases"],
    )
    assert audit("lock", _says(GOOD)) == (True, ["audit: 0 known vulnerabilities in 1 releases"])


def test_releases_that_could_not_be_asked_about_are_not_called_sound() -> None:
    unknown = {"name": "scipy", "skip_reason": "Dependency not found on PyPI and could not be audited: scipy (1.12)"}
    assert audit("lock", _says(unknown))[1] == [
        "audit skipped: the index has no advisories about any of the 1 releases"
    ]
    assert audit("lock", _says(GOOD, unknown))[1] == [
        "audit: 0 known vulnerabilities in 1 releases; of 1 others nothing is known"
    ]


def test_without_an_answer_it_is_skipped_and_says_why() -> None:
    for output in ("", "{}", "[]", "{"):
        assert audit("lock", lambda _, output=output: (output, "Traceback\nno network\n")) == (
            True,
            ["audit skipped: pip-audit has no answer (no network)"],
        )
