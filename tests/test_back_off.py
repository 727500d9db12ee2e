"""Waits that grow with each failure in a row."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import fairway
from fairway.back_off import BackOff


def test_waits_double_from_the_first_to_the_longest() -> None:
    back_off = BackOff(0.5, 5.0)
    assert [back_off.seconds(failures) for failures in range(7)] == [0.0, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0]


def test_another_factor_and_very_many_failures() -> None:
    back_off = BackOff(1.0, 4.0, factor=1.5)
    assert [back_off.seconds(failures) for failures in (1, 2, 3)] == [1.0, 1.5, 2.25]
    assert back_off.seconds(10**9) == 4.0
    assert BackOff(2.0, 1.0).seconds(1) == 1.0, "the limit holds from the start"


@pytest.mark.parametrize("module", ["client", "live"])
def test_no_other_wait_is_doubled_by_hand(module: str) -> None:
    """A wait that becomes the least of itself times a number and a limit is a back-off."""
    found = [
        f"{path}:{node.lineno}"
        for path in (Path(fairway.__file__).parent / module).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Assign) and _is_least_of_multiple(node)
    ]
    assert found == []


def _is_least_of_multiple(node: ast.Assign) -> bool:
    value, target = node.value, ast.unparse(node.targets[0])
    return (
        isinstance(value, ast.Call)
        and ast.unparse(value.func) == "min"
        and any(
            isinstance(argument, ast.BinOp)
            and isinstance(argument.op, ast.Mult)
            and target in {ast.unparse(argument.left), ast.unparse(argument.right)}
            for argument in value.args
        )
    )
