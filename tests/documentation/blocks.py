"""The code blocks of a page: where each stands, its language, and what the page says about running it.

A block is run unless the line above it is a comment that gives a reason not to:

    <!-- not run: it needs GPUs -->             nothing is done with it
    <!-- options only: it takes four minutes -->  its commands and their options have to exist, and are not run

A block whose first line is a comment with nothing but the name of a file is also written to that file.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(
    r"(?:^(?P<marker>[ ]*<!--[^\n]*-->)\n)?^(?P<indent>[ ]*)```(?P<language>[^\n]*)\n(?P<text>.*?)^(?P=indent)```[ ]*$",
    re.MULTILINE | re.DOTALL,
)
_MARKER = re.compile(r"<!-- (not run|options only): (.+) -->")
_FILE_NAME = re.compile(r"#\s*([\w./-]+\.\w+)\s*")


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a page; `line` is that of its first line of text, `marker` what is not done with it, and why."""

    page: str
    line: int
    language: str
    text: str
    marker: tuple[str, str] | None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def file_name(self) -> str | None:
        """The file that a reader is told to write this block to."""
        found = _FILE_NAME.fullmatch(self.text.partition("\n")[0])
        return None if found is None else found[1]

    @property
    def commands(self) -> list[str]:
        """What a reader types: every line, or those after a prompt where there is output too; `\\` goes on."""
        lines = self.text.replace("\\\n", " ").splitlines()
        if self.language == "console":
            lines = [line[2:] for line in lines if line.startswith(("$ ", "# "))]
        return [line for line in lines if shlex.split(line, comments=True)]


def pages() -> list[Path]:
    """Every page that people read, but for the changelog, which shows no code."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page in order, as people paste them: without the indentation of a list around them."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _FENCE.finditer(text):
        marker = None if match["marker"] is None else _MARKER.search(match["marker"])
        lines = [line.removeprefix(match["indent"]) for line in match["text"].splitlines(keepends=True)]
        found.append(
            Block(
                page=str(page.relative_to(ROOT)),
                line=text.count("\n", 0, match.start("text")) + 1,
                language=match["language"].strip().split(" ")[0],
                text="".join(lines),
                marker=None if marker is None else (marker[1], marker[2]),
            )
        )
    return found
