"""Plays one page from its first block to its last, as a reader would: `python -m tests.documentation.play PAGE`.

It runs in a directory of its own that has the examples in it. Python blocks share their names, so that a later block
can use what an earlier one made; what a page takes for granted (a training script, an image) is made by
`tests/documentation/given/PAGE.py`, which is executed first.
"""

from __future__ import annotations

import ast
import asyncio
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.documentation.blocks import ROOT, Block, blocks_of
from tests.documentation.commands import Shell, check_options
from tests.documentation.documents import check_document

_GIVEN = Path(__file__).parent / "given"
_SHELLS = ("console", "sh", "bash")
_TEXTS = ("text",)
"""Pictures and messages: nothing to run, and nothing that another program reads."""


def play(page: Path, directory: Path) -> None:
    """Run every block of a page; the first that fails is told by its line."""
    for linked in ("examples", "tests", "benchmarks", "src", "Makefile"):
        (directory / linked).symlink_to(ROOT / linked)
    sys.path.insert(0, str(directory))
    sys.modules["page"] = ModuleType("page")  # where dataclasses look for the names that they use
    names = vars(sys.modules["page"])
    given = _GIVEN / f"{page.stem.replace('-', '_')}.py"
    with Shell(directory) as shell:
        names["shell"] = shell
        if given.exists():
            exec(compile(given.read_text(encoding="utf-8"), str(given), "exec"), names)
        for block in blocks_of(page):
            try:
                play_block(block, shell, names)
            except BaseException as error:
                raise AssertionError(f"{block} ({block.language}): {error}") from error


def play_block(block: Block, shell: Shell, names: dict[str, Any]) -> None:
    """Run one block, or do with it what its marker says."""
    how = None if block.marker is None else block.marker[0]
    if how == "not run" or block.language in _TEXTS:
        return
    if block.file_name is not None:
        Path(block.file_name).write_text(block.text, encoding="utf-8")
    if block.language in _SHELLS:
        assert block.commands, "a block of commands without a command"
        for line in block.commands:
            (check_options if how == "options only" else shell.run)(line)
    elif block.language == "python":
        source = "\n" * (block.line - 1) + shell.real(block.text)
        code = compile(source, block.page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        waiting = eval(code, names)
        if waiting is not None:
            asyncio.run(waiting)
    else:
        check_document(block.language, block.text, str(block))


if __name__ == "__main__":
    play(ROOT / sys.argv[1], Path.cwd())
