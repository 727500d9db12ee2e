"""Removes the control groups that others have left: those of an agent, or of serving workers, that never came back.

An agent holds a shared lock on the groups in which it makes those of its runs, for as long as it lives, and a serving
worker on those of its copies of models; the kernel lets go of it however the process ends. A group that carries the
name of an agent, whose lock is free and in which no process is, not even of a run that outlives its agent, is of no
use. Should its agent start again, it makes it anew.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from fairway.live.machine.containment import NAME, RunGroup


def hold(parents: Sequence[Path]) -> list[int]:
    """Show that these groups are in use, for as long as the descriptors that this returns are open."""
    held = []
    for parent in parents:
        with suppress(OSError):
            descriptor = _opened(parent)
            held.append(descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return held


def remove_abandoned(parents: Sequence[Path]) -> None:
    """Remove the groups beside these that are abandoned."""
    for parent in parents:
        for other in parent.parent.glob(f"{NAME}*"):
            if other not in parents:
                with suppress(OSError):
                    _remove_if_abandoned(other)


def _remove_if_abandoned(parent: Path) -> None:
    descriptor = _opened(parent)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        group = RunGroup((parent,))
        if group.is_empty():
            group.remove()
    finally:
        os.close(descriptor)


def _opened(directory: Path) -> int:
    return os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
