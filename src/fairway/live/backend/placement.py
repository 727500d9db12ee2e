"""The placement check: whether the accelerators that a run is to have are there, and can run its gang together.

A backend whose gangs need more than that, such as one network or one file system, refuses the rest with the same code.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairway.errors import InputError
from fairway.live.backend.accelerators import Accelerator
from fairway.live.backend.answers import Refusal, RefusedError
from fairway.live.backend.commands import StartRun

Accelerators = Mapping[tuple[str, int], Accelerator]
"""What a backend has, by type and number."""


def placed(command: StartRun, there: Accelerators) -> list[Accelerator]:
    """The accelerators of a run, one for each rank; refuses a gang that cannot run on what is there."""
    if len(set(command.workers)) < len(command.workers):
        raise InputError(f"start-run.workers: {list(command.workers)} given, expected each worker once")
    missing = [number for number in command.workers if (command.accelerator, number) not in there]
    if missing:
        message = f"there is no worker '{command.accelerator}' {missing[0]} to place a rank on"
        raise RefusedError(Refusal.CANNOT_PLACE, message)
    return [there[command.accelerator, number] for number in command.workers]
