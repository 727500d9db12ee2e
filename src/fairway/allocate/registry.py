"""Policies by name: `name[:option,...]`, as in `max-min-fairness:agnostic` or `makespan:agnostic,reference=v100`.

An option is a field of the policy's class: a flag stands for a field that is False otherwise, `field=value` sets one
that holds a word.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import Field, fields
from typing import Any

from fairway.allocate.allocation import Allocation
from fairway.allocate.policies import POLICIES
from fairway.allocate.policy import Policy
from fairway.allocate.problem import Problem
from fairway.errors import InputError


def allocate(policy: str | Policy, problem: Problem) -> Allocation:
    """Decide a problem with a policy, given as an object or by its name."""
    return (policy_of(policy) if isinstance(policy, str) else policy).allocate(problem)


def policy_of(text: str) -> Policy:
    """The policy that a name with options stands for."""
    name, _, rest = text.strip().partition(":")
    if name not in POLICIES:
        raise InputError(f"policy '{name}' is not known{_nearest(name, POLICIES)}; known: {', '.join(POLICIES)}")
    policy = POLICIES[name]
    known: dict[str, Field[Any]] = {field.name.replace("_", "-"): field for field in fields(policy)}  # type: ignore[arg-type]
    chosen: dict[str, Any] = {}
    for part in rest.split(",") if rest else ():
        option, equals, value = part.strip().partition("=")
        if option not in known:
            options = ", ".join(sorted(known)) or "none"
            raise InputError(f"policy '{name}' has no option '{option}'{_nearest(option, known)}; options: {options}")
        is_flag = known[option].default is False
        if is_flag == bool(equals):
            form = option if is_flag else f"{option}=VALUE"
            raise InputError(f"policy '{name}': '{part.strip()}' given, expected '{form}'")
        chosen[known[option].name] = True if is_flag else value
    return policy(**chosen)


def _nearest(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f", did you mean '{close[0]}'?" if close else ""
