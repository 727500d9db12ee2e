"""Problems and allocations on their way between the controller and the process that decides, as plain values.

What a problem or an allocation has computed of itself so far stays behind: the other side computes it again if needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from fairway.allocate.allocation import Allocation
from fairway.allocate.problem import Problem

Message = dict[str, Any]


def problem_message(problem: Problem) -> Message:
    """A problem as plain values, with the decision before it."""
    message = _members(problem)
    previous: Allocation | None = message["previous"]
    if previous is not None:
        message["previous"] = allocation_message(previous) | {"problem": problem_message(previous.problem)}
    return message


def problem_of(message: Mapping[str, Any]) -> Problem:
    """The problem that a message holds."""
    previous = message["previous"]
    if previous is not None:
        previous = allocation_of(previous, problem_of(previous["problem"]))
    return Problem(**{**message, "previous": previous})


def allocation_message(allocation: Allocation) -> Message:
    """An allocation as plain values, without its problem, which the other side has."""
    message = _members(allocation)
    del message["problem"]
    return message | {"details": dict(allocation.details)}


def allocation_of(message: Mapping[str, Any], problem: Problem) -> Allocation:
    """The allocation that a message holds, of this problem."""
    return Allocation(**{**message, "problem": replace(problem)})


def _members(value: Problem | Allocation) -> Message:
    return {field.name: getattr(value, field.name) for field in fields(value)}
