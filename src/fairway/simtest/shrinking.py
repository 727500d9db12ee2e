"""Finds a smaller plan that still breaks a promise, by leaving out steps: halves first, then ever smaller pieces.

This is Zeller and Hildebrandt's delta debugging (2002), on the steps of a plan. A history takes milliseconds, so
hundreds of attempts are affordable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fairway.simtest.plan import Plan


def shrunk(plan: Plan, fails: Callable[[Plan], bool], most_attempts: int = 500) -> Plan:
    """The smallest plan found that still fails; the plan itself has to."""
    steps, pieces, attempts = list(plan.steps), 2, 0
    while len(steps) > 1 and attempts < most_attempts:
        size = -(-len(steps) // pieces)
        for first in range(0, len(steps), size):
            if attempts == most_attempts:
                break
            attempts += 1
            rest = steps[:first] + steps[first + size :]
            if fails(replace(plan, steps=tuple(rest))):
                steps, pieces = rest, max(pieces - 1, 2)
                break
        else:
            if size == 1:
                break
            pieces = min(2 * pieces, len(steps))
    return replace(plan, steps=tuple(steps))
