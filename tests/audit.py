"""Asks pip-audit whether locked dependencies have known vulnerabilities: python -m tests.audit requirements/dev.lock

Where the index that has the advisories cannot be reached, one line says that the audit was skipped, and why, which is
no failure; a release with a known vulnerability is one. A release of which the index knows nothing was not audited, and
is not counted: pip-audit itself says "no known vulnerabilities" also where it could ask about none of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import httpx

INDEX = "https://pypi.org/pypi/pip/24.0/json"
"""A page of the index that pip-audit asks, about one release: mirrors that have no advisories do not have it."""

_PROBE_SECONDS = 5.0
_AUDIT_SECONDS = 300.0
_PIP = ["pip", "install", "--quiet", "--disable-pip-version-check", "pip-audit>=2.7"]
_AUDIT = ["pip_audit", "--require-hashes", "--disable-pip", "--progress-spinner", "off", "--format", "json", "-r"]

Run = Callable[[Sequence[str]], tuple[int, str, str]]
"""Runs a module of Python: its exit code, output and errors."""


def audit(lock: str, probe: Callable[[], Any], run: Run) -> tuple[int, list[str]]:
    """The exit code, and lines to print."""
    try:
        probe()["vulnerabilities"]
    except (httpx.HTTPError, OSError, ValueError, KeyError, TypeError) as error:
        return 0, [f"skipped: no advisories at {INDEX} ({type(error).__name__})"]
    code, _, errors = run(_PIP)
    if code:
        return 0, [f"skipped: pip-audit cannot be installed ({_last(errors)})"]
    _, output, errors = run([*_AUDIT, lock])
    try:
        releases = json.loads(output)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return 0, [f"skipped: pip-audit could not finish ({_last(errors)})"]
    known = [release for release in releases if "skip_reason" not in release]
    if not known:
        return 0, [f"skipped: the index has no advisories about any of the {len(releases)} releases"]
    found = [
        f"{release['name']} {release['version']}: {one['id']}, fixed in {', '.join(one['fix_versions']) or 'none yet'}"
        for release in known
        for one in release["vulns"]
    ]
    unknown = f"; of {len(releases) - len(known)} others nothing is known" if len(known) < len(releases) else ""
    return (1 if found else 0), [*found, f"audit: {len(found)} known vulnerabilities in {len(known)} releases{unknown}"]


def _last(text: str) -> str:
    return (text.strip().splitlines() or ["it said nothing"])[-1][:200]


def _module(arguments: Sequence[str]) -> tuple[int, str, str]:
    try:
        ended = subprocess.run(
            [sys.executable, "-m", *arguments], capture_output=True, text=True, timeout=_AUDIT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return 1, "", f"not done after {_AUDIT_SECONDS:.0f} s"
    return ended.returncode, ended.stdout, ended.stderr


def main(lock: str) -> int:
    """Audit a lock file."""
    code, lines = audit(lock, lambda: httpx.get(INDEX, timeout=_PROBE_SECONDS).raise_for_status().json(), _module)
    print("\n".join(lines))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
