"""Which files of a work directory are not sent: those that its `.fairwayignore`, or else its `.gitignore`, names.

The patterns are Git's, of the file at the top: `*` and `?` stop at a slash, `**` does not, a pattern with a slash
counts from the top, one that ends in a slash is of directories, `!` takes an exclusion back, and the last that fits
decides.
`.git`, `.venv` and what Python has compiled are never wanted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

NAMES = (".fairwayignore", ".gitignore")
_ALWAYS = (".git/", ".venv/", "__pycache__/")


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    directories_only: bool
    excludes: bool


@dataclass(frozen=True, slots=True)
class IgnoredFiles:
    """The rules of a directory, the first first."""

    rules: tuple[_Rule, ...]

    @classmethod
    def of(cls, directory: Path) -> IgnoredFiles:
        """Those of a work directory."""
        found = next((path for name in NAMES if (path := directory / name).is_file()), None)
        text = "" if found is None else found.read_text(encoding="utf-8", errors="replace")
        return cls.read("\n".join((*_ALWAYS, text)))

    @classmethod
    def read(cls, text: str) -> IgnoredFiles:
        """From the lines of such a file."""
        lines = [line.rstrip() for line in text.splitlines()]
        return cls(tuple(_rule(line) for line in lines if line.strip("!/") and not line.startswith("#")))

    def __contains__(self, path: str) -> bool:
        """Whether a path below the directory, which ends in a slash for a directory, is left out."""
        is_directory, plain = path.endswith("/"), path.rstrip("/")
        fitting = [
            rule for rule in self.rules
            if (is_directory or not rule.directories_only) and rule.pattern.fullmatch(plain)
        ]  # fmt: skip
        return bool(fitting) and fitting[-1].excludes


def _rule(line: str) -> _Rule:
    excludes = not line.startswith("!")
    body = line.removeprefix("!")
    directories_only, body = body.endswith("/"), body.rstrip("/")
    from_the_top, body = "/" in body, body.lstrip("/")
    return _Rule(re.compile(("" if from_the_top else "(?:.*/)?") + _expression(body)), directories_only, excludes)


def _expression(pattern: str) -> str:
    parts = re.split(r"(\*\*/|/\*\*$|\*\*|\*|\?)", pattern)
    meaning = {"**/": "(?:.*/)?", "/**": "/.*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(meaning.get(part, re.escape(part)) for part in parts)
