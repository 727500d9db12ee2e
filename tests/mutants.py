"""Changes one operator at a time in the code, and sees whether any test of it notices.

    python -m tests.mutants src/fairway/store --count 60 --seed 1

Which changes are tried is drawn by the seed, so that a run can be repeated. A mutant is killed when a test fails, when
the tests take far longer than without it, or when the module cannot even be imported; it survives when all tests pass.
The tests are those in the folder that mirrors the file's, those of the file itself first, or what `--tests` names. The
code of the working tree is not touched: every mutant lives in a copy of it.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change in the `text` of a file: the position of the node among all of them, and the way to change it."""

    file: Path
    text: str
    line: int
    node: int
    way: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line}: {self.before}  =>  {self.after}"


def mutants_of(file: Path) -> Iterator[Mutant]:
    """All that can be changed in a file."""
    text = file.read_text()
    tree = ast.parse(text)
    for number, node in enumerate(_nodes(tree)):
        for way, change in enumerate(_changes(node)):
            changed = copy.deepcopy(node)
            _changes(changed)[way](changed)
            before, after = (" ".join(ast.unparse(one).split())[:100] for one in (node, changed))
            assert change is not None
            yield Mutant(file, text, getattr(node, "lineno", 0), number, way, before, after)


def mutated(mutant: Mutant) -> str:
    """The text of the file with the change."""
    tree = ast.parse(mutant.text)
    node = next(node for number, node in enumerate(_nodes(tree)) if number == mutant.node)
    _changes(node)[mutant.way](node)
    return ast.unparse(tree)


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run: no annotations, no messages of errors and logs."""
    for name, value in ast.iter_fields(tree):
        if name in {"annotation", "returns", "decorator_list"}:
            continue
        for node in value if isinstance(value, list) else [value]:
            if not isinstance(node, ast.AST) or isinstance(
                node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom
            ):
                continue
            if isinstance(node, ast.Expr) and "_LOG" in ast.unparse(node):
                continue
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                continue
            yield node
            yield from _nodes(node)


def _changes(node: ast.AST) -> list[Callable[[ast.AST], None]]:
    """The ways to change one node, in place."""
    match node:
        case ast.Compare(ops=ops):
            return [_replace_item(node.ops, at, _COMPARISONS[type(op)]()) for at, op in enumerate(ops)]
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in _ARITHMETIC:
            return [_set("op", _ARITHMETIC[type(op)]())]
        case ast.BoolOp(op=op):
            return [_set("op", ast.Or() if isinstance(op, ast.And) else ast.And())]
        case ast.IfExp(test=test) | ast.If(test=test) | ast.While(test=test) if not isinstance(
            test, ast.Compare | ast.BoolOp
        ):
            return [_set("test", ast.UnaryOp(ast.Not(), test))]
        case ast.Constant(value=bool() as value):
            return [_set("value", not value)]
        case ast.Constant(value=int() | float() as value):
            return [_set("value", value + 1)]
        case ast.Call(func=ast.Name(id=name)) if name in _NAMES:
            return [_set("func", ast.Name(_NAMES[name], ast.Load()))]
        case ast.Return(value=value) if value is not None and not isinstance(value, ast.Constant):
            return [_set("value", ast.Constant(None))]
        case ast.Expr(value=ast.Call()) | ast.Expr(value=ast.Await()):
            return [_set("value", ast.Constant(None))]
        case ast.comprehension(ifs=[_, *_]):
            return [_set("ifs", [])]
    return []


def _set(name: str, value: object) -> Callable[[ast.AST], None]:
    return lambda node: setattr(node, name, value)


def _replace_item(_: list[ast.cmpop], at: int, op: ast.cmpop) -> Callable[[ast.AST], None]:
    def change(node: ast.AST) -> None:
        assert isinstance(node, ast.Compare)
        node.ops[at] = op

    return change


def tests_of(file: Path, named: Sequence[str]) -> list[str]:
    """The tests that should notice: those that were named, or those of the file first, then those of its folder."""
    if named:
        return list(named)
    folder = ROOT / "tests" / file.parent.relative_to(SOURCE / "fairway")
    own = folder / f"test_{file.stem}.py"
    others = sorted(path for path in folder.glob("test_*.py") if path != own)
    return [*([str(own)] if own.exists() else []), *map(str, others)]


def survives(mutant: Mutant, copy_of_source: Path, options: argparse.Namespace) -> bool:
    """Whether no test notices."""
    target = copy_of_source / mutant.file.relative_to(SOURCE)
    target.write_text(mutated(mutant))
    tests = tests_of(mutant.file, options.tests)
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    if options.keyword:
        command += ["-k", options.keyword]
    environment = {**os.environ, "PYTHONPATH": str(copy_of_source), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, timeout=options.seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    finally:
        target.write_text(mutant.text)
    return done.returncode == 0


def main(arguments: Sequence[str]) -> int:
    """Try the mutants of a draw; 1 if any survives."""
    parser = argparse.ArgumentParser(description="Changes one operator at a time and sees whether any test notices.")
    parser.add_argument("paths", nargs="+", type=Path, help="files and folders below src/fairway")
    parser.add_argument("--count", type=int, default=50, help="how many to try")
    parser.add_argument("--seed", type=int, default=0, help="which to try")
    parser.add_argument("--tests", nargs="+", default=[], help="the tests that should notice, in place of the folder's")
    parser.add_argument("--keyword", default="not postgresql and not kill and not speed", help="pytest's -k")
    parser.add_argument("--seconds", type=float, default=300.0, help="after which a mutant counts as killed")
    parser.add_argument("--jobs", type=int, default=1, help="how many to try at the same time")
    options = parser.parse_args(arguments)
    files = [file.absolute() for path in options.paths for file in ([path] if path.is_file() else path.rglob("*.py"))]
    everything = [mutant for file in sorted(files) for mutant in mutants_of(file)]
    drawn = random.Random(options.seed).sample(everything, min(options.count, len(everything)))
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fairway-mutants-") as directory:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(options.jobs):
            copies.put(Path(shutil.copytree(SOURCE, Path(directory) / str(number))))

        def tried(mutant: Mutant) -> bool:
            place = copies.get()
            try:
                found = survives(mutant, place, options)
            finally:
                copies.put(place)
            print(f"{'SURVIVES' if found else 'killed  '} {mutant}", flush=True)
            return found

        with ThreadPoolExecutor(options.jobs) as pool:
            survivors = sum(pool.map(tried, drawn))
    killed = len(drawn) - survivors
    print(
        f"seed {options.seed}: {killed} of {len(drawn)} mutants killed (drawn from {len(everything)}), "
        f"{time.monotonic() - began:.0f} s"
    )
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
