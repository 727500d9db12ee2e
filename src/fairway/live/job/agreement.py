"""What a rank does next: another step, a checkpoint, or stop. Alone it decides, in a gang all agree (`gang`)."""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

Next: TypeAlias = Literal["step", "save", "stop"]


class Agreement(Protocol):
    """What to do next, for a rank alone or in a gang."""

    def next(self, done: int, *, stop: bool, save: bool) -> Next:
        """What to do after so many steps: the next one, a checkpoint, or stop; with what this rank would like."""


class Alone:
    """The only rank of its job, which needs no agreement."""

    def next(self, done: int, *, stop: bool, save: bool) -> Next:  # noqa: ARG002 - it does not matter alone
        """As it likes."""
        return "stop" if stop else "save" if save else "step"
