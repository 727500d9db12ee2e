"""Notes which blocks of statements run: a copy of the source whose bytecode sets one byte for each of them.

A block is a run of statements of a function that run one after another, up to the next one that may branch. The bytes
are in a file that all processes map, so that a block counts whatever process runs it, and however that process ends.
The source itself stays as it is, only what is compiled from it changes: compiled kernels still fit it.
"""

from __future__ import annotations

import ast
import importlib.util
import marshal
import mmap
import shutil
import types
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.mutants.changes import SOURCE

_MODULE = """
import mmap
from pathlib import Path

with Path(__file__).with_name("hits").open("r+b") as file:
    hits = mmap.mmap(file.fileno(), 0)
"""
_IMPORT = ast.parse("from fairway_hits import hits as __hits__").body
_UNCHECKED = (1).to_bytes(4, "little")  # of bytecode that counts whatever the source says


def write_bytecode(source: Path, code: types.CodeType) -> Path:
    """Let a module be this code for every process that imports it from there."""
    target = Path(importlib.util.cache_from_source(str(source)))
    target.parent.mkdir(exist_ok=True)
    head = importlib.util.MAGIC_NUMBER + _UNCHECKED + importlib.util.source_hash(source.read_bytes())
    target.write_bytes(head + marshal.dumps(code))
    return target


@dataclass(slots=True)
class Probes:
    """A copy of the source, the lines of each of its blocks by file, and which blocks have run."""

    place: Path
    blocks: list[tuple[str, list[int]]]
    _hits: mmap.mmap

    @classmethod
    def below(cls, place: Path) -> Probes:
        """Make the copy."""
        shutil.copytree(SOURCE, place)
        blocks: list[tuple[str, list[int]]] = []
        for path in sorted(place.rglob("*.py")):
            file = str(path.relative_to(place))
            tree = ast.parse(path.read_text())
            found: list[list[int]] = []
            _probe_functions(tree, found, len(blocks))
            blocks += [(file, lines) for lines in found]
            if found:
                tree.body[_after_head(tree.body) : _after_head(tree.body)] = _IMPORT
                write_bytecode(path, compile(ast.fix_missing_locations(tree), str(path), "exec", dont_inherit=True))
        (place / "fairway_hits.py").write_text(_MODULE)
        (place / "hits").write_bytes(bytes(len(blocks) + 1))
        with (place / "hits").open("r+b") as file:
            return cls(place, blocks, mmap.mmap(file.fileno(), 0))

    def taken(self) -> list[int]:
        """The blocks that have run since they were last asked for."""
        found: list[int] = np.flatnonzero(np.frombuffer(self._hits[:], np.uint8)).tolist()
        self._hits[:] = bytes(len(self._hits))
        return found


def _after_head(body: Sequence[ast.stmt]) -> int:
    """Where the first statement may stand that is neither the docstring nor an import from the future."""
    at = int(_is_docstring(body))
    while at < len(body) and isinstance(one := body[at], ast.ImportFrom) and one.module == "__future__":
        at += 1
    return at


def _is_docstring(body: Sequence[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)


def _probe_functions(node: ast.AST, found: list[list[int]], first: int) -> None:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            head = int(_is_docstring(child.body))
            child.body[head:] = _probed(child.body[head:], found, first)
        else:
            _probe_functions(child, found, first)


def _probed(body: Sequence[ast.stmt], found: list[list[int]], first: int) -> list[ast.stmt]:
    """The statements with a probe before each block, also inside them."""
    probed: list[ast.stmt] = []
    lines: list[int] | None = None
    for one in body:
        if lines is None:
            lines = []
            probed += _probe(first + len(found), one)
            found.append(lines)
        probed.append(one)
        parts = _parts(one)
        lines += range(one.lineno, (parts[0][0].lineno if parts else (one.end_lineno or one.lineno) + 1))
        lines += [one.lineno]
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            _probe_functions(ast.Module([one], []), found, first)
            continue
        for inner in (*getattr(one, "handlers", ()), *getattr(one, "cases", ())):
            lines += range(getattr(inner, "lineno", one.lineno), inner.body[0].lineno)
            if isinstance(inner, ast.match_case):
                lines += range(inner.pattern.lineno, max(inner.body[0].lineno, inner.pattern.lineno + 1))
        for part in parts:
            part[:] = _probed(part, found, first)
        if parts or isinstance(one, ast.Return | ast.Raise | ast.Continue | ast.Break):
            lines = None
    return probed


def _parts(one: ast.stmt) -> list[list[ast.stmt]]:
    """The lists of statements inside one, where it runs some of them itself."""
    if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return []
    lists = [getattr(one, "body", []), getattr(one, "orelse", []), getattr(one, "finalbody", [])]
    lists += [inner.body for inner in (*getattr(one, "handlers", ()), *getattr(one, "cases", ()))]
    return [part for part in lists if part]


def _probe(number: int, before: ast.stmt) -> list[ast.stmt]:
    made = ast.parse(f"__hits__[{number}] = 1").body
    for node in ast.walk(made[0]):
        ast.copy_location(node, before)
    return made
