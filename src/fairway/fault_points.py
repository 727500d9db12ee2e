"""Places in the code at which a simulation may let a fault happen: between two writes, before a sync, after a commit.

    reached("store.before-commit")

A place does nothing on a real machine. A simulation sets `on_reached`, which may raise (the process dies here), pause
or count; it knows by itself which of its processes runs.
"""

from __future__ import annotations

from collections.abc import Callable

on_reached: Callable[[str], None] | None = None


def reached(place: str) -> None:
    """The code has come to a place with this name."""
    if on_reached is not None:
        on_reached(place)
