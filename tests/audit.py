"""Asks pip-audit whether locked dependencies have known vulnerabilities: python -m tests.audit requirements/dev.lock

Where the index that has the advisories cannot be reached, one line says that the audit was skipped, and why, which is
no failure. A release with a known vulnerability is one, unless `--only-tell` is given: an advisory of this morning is
no reason to refuse a change that has nothing to do with it. A release of which the index knows nothing was not audited,
and is not counted: pip-audit itself says "no known vulnerabilities" also where it could ask about none of them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable

_SECONDS = 120.0
_AUDIT = ["--require-hashes", "--disable-pip", "--progress-spinner", "off", "--timeout", "5", "--format", "json", "-r"]

Ask = Callable[[str], tuple[str, str]]
"""Has pip-audit look at a lock file: its output and errors."""


def audit(lock: str, ask: Ask) -> tuple[bool, list[str]]:
    """Whether no vulnerability is known, and lines to print."""
    output, errors = ask(lock)
    try:
        releases = json.loads(output)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return True, [f"audit skipped: pip-audit has no answer ({_last(errors)})"]
    known = [release for release in releases if "skip_reason" not in release]
    if not known:
        return True, [f"audit skipped: the index has no advisories about any of the {len(releases)} releases"]
    found = [
        f"{release['name']} {release['version']}: {one['id']}, fixed in {', '.join(one['fix_versions']) or 'none yet'}"
        for release in known
        for one in release["vulns"]
    ]
    unknown = f"; of {len(releases) - len(known)} others nothing is known" if len(known) < len(releases) else ""
    return not found, [*found, f"audit: {len(found)} known vulnerabilities in {len(known)} releases{unknown}"]


def _last(text: str) -> str:
    return (text.strip().splitlines() or ["it said nothing"])[-1][:200]


def _asked(lock: str) -> tuple[str, str]:
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "pip_audit", *_AUDIT, lock],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "", f"not done after {_SECONDS:.0f} s"
    return ended.stdout, ended.stderr


def main() -> int:
    """Audit the lock file that the command line names."""
    parser = argparse.ArgumentParser(description="Look for known vulnerabilities of locked dependencies.")
    parser.add_argument("lock")
    parser.add_argument("--only-tell", action="store_true", help="end with 0, whatever is known")
    given = parser.parse_args()
    sound, lines = audit(given.lock, _asked)
    print("\n".join(lines))
    return 0 if sound or given.only_tell else 1


if __name__ == "__main__":
    sys.exit(main())
