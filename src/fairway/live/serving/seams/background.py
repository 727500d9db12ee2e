"""Work beside a worker's loop: stages that take a while, and loads of models.

On a real machine this is a thread (`runtime.background_thread`); in virtual time the work is done at once, and counts
as ended after the time that it was expected to take.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

Done: TypeAlias = Callable[[Any, BaseException | None], None]
"""Gets what a function has returned, or what it has raised; called in the loop."""


class Background(Protocol):
    """Does one thing after the other; when one has ended, the loop is woken, and `deliver` says so to it."""

    def run(self, function: Callable[[], Any], done: Done, seconds: float) -> None:
        """Run a function, after those before; it is expected to take so long."""
        ...

    def report(self, done: Done, value: Any) -> None:
        """From within a function that runs: hand the loop something before it ends."""
        ...

    def sleep(self, seconds: float) -> None:
        """From within a function that runs: wait."""
        ...

    def give_back_memory(self) -> None:
        """From within a function that runs: let the system have the memory of what was just let go."""
        ...

    def deliver(self) -> None:
        """In the loop: call `done` of all that has ended or was reported."""
        ...
