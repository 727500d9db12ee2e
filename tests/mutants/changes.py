"""What can be changed in a file: one operator, constant, condition, call or returned value at a time."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
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
    """One change in the `text` of a file: the position of the node among all of them, and the way to change it.

    The change is noticed, if at all, by a test that executes one of the `lines`: those of the statement that is
    changed, without the statements inside it. `within` names the functions and classes around it; at the top level of
    a module or of a class, what is changed runs when the module is imported (`imported`). What stands in a compiled
    function (`kernel`) can be tried with kernels as plain Python only.
    """

    file: Path
    text: str
    line: int
    lines: range
    within: str
    imported: bool
    kernel: bool
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
    places = _places(tree)
    for number, node in enumerate(_nodes(tree)):
        for way in range(len(_changes(node))):
            changed = copy.deepcopy(node)
            _changes(changed)[way](changed)
            before, after = (" ".join(ast.unparse(one).split())[:100] for one in (node, changed))
            place = places[node]
            line = getattr(node, "lineno", place.lines.start)
            yield Mutant(
                file, text, line, place.lines, place.within, place.imported, place.kernel, number, way, before, after
            )


def mutated(mutant: Mutant) -> str:
    """The text of the file with the change."""
    return ast.unparse(changed_tree(mutant))


def changed_tree(mutant: Mutant) -> ast.Module:
    """The file with the change, its lines where they are."""
    tree = ast.parse(mutant.text)
    node = next(node for number, node in enumerate(_nodes(tree)) if number == mutant.node)
    _changes(node)[mutant.way](node)
    return ast.fix_missing_locations(tree)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a node stands: the lines of its statement, the names around it, when it runs and how."""

    lines: range
    within: str
    imported: bool
    kernel: bool


def _places(tree: ast.AST) -> dict[ast.AST, _Place]:
    """For every node where it stands."""
    found: dict[ast.AST, _Place] = {}

    def walk(node: ast.AST, lines: range, names: tuple[str, ...], imported: bool, kernel: bool) -> None:
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            body = getattr(node, "body", None)
            first = node.pattern.lineno if isinstance(node, ast.match_case) else node.lineno
            last = max(body[0].lineno - 1, first) if body else getattr(node, "end_lineno", first)
            lines = range(first, last + 1)
        found[node] = _Place(lines, ".".join(names), imported, kernel)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = (*names, node.name)
            kernel = kernel or any("compiled" in ast.unparse(one) for one in node.decorator_list)
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            runs_later = inside and (isinstance(child, ast.stmt) or isinstance(node, ast.Lambda))
            walk(child, lines, names, imported and not runs_later, kernel)

    walk(tree, range(1, 2), (), True, False)
    return found


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run: no annotations, no messages of errors and logs, no `strict=True`, which only asserts.

    Nor whether `repr` shows a field.
    """
    for name, value in ast.iter_fields(tree):
        if name in {"annotation", "returns", "decorator_list"}:
            continue
        for node in value if isinstance(value, list) else [value]:
            if not isinstance(node, ast.AST) or isinstance(
                node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom
            ):
                continue
            if isinstance(node, ast.keyword) and node.arg in {"strict", "repr"}:
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
