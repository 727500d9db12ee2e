"""What the conformance kits of the serving seams share: how a check fails, and how long it waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar

from fairway.errors import FairwayError

PATIENCE_SECONDS = 20.0
"""How long a check waits for what must happen, by the clock of what is checked."""

T = TypeVar("T")


class SeamError(FairwayError):
    """What is behind a seam breaks a rule that everything there must keep."""


def fail(check: Callable[..., None], what: str) -> NoReturn:
    """Report a failed check: its name, its rule, and what happened instead."""
    rule = (check.__doc__ or "").strip().splitlines()[0]
    raise SeamError(f"check '{check.__name__}' ({rule}) fails: {what}")


def require(check: Callable[..., None], condition: bool, what: str) -> None:
    """Fail unless a condition holds."""
    if not condition:
        fail(check, what)


def require_equal(check: Callable[..., None], found: T, expected: T, what: str) -> None:
    """Fail unless two things are equal."""
    if found != expected:
        fail(check, f"{what}: {str(found)[:200]}, expected {str(expected)[:200]}")
