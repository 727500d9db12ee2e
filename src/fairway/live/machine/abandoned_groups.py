"""Removes the control groups that others have left: those of an agent, or of serving workers, that never came back.

An agent holds a shared lock on the groups in which it makes those of its runs, for as long as it lives, and a serving
worker on those of its copies of models; the kernel lets go of it however the process ends. A group that carries the
name of an agent, whose lock is free and in which no process is, not even of a run that outlives its agent, is of no
use. Should its agent start again, it makes it anew. Between making groups and holding them, their maker holds the place
where it makes them, and nothing is removed there.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from fairway.live.machine.containment import NAME, RunGroup

_PATIENCE_SECONDS, _LOOK_SECONDS = 1.0, 0.01


@contextmanager
def undisturbed(places: Iterable[Path]) -> Iterator[None]:
    """Keep other agents from removing anything in these places; one that takes its time with it is not waited for."""
    held = []
    deadline = time.monotonic() + _PATIENCE_SECONDS
    try:
        for place in places:
            with suppress(OSError):
                held.append(_opened(place))
                while not _is_locked(held[-1], fcntl.LOCK_SH) and time.monotonic() < deadline:
                    time.sleep(_LOOK_SECONDS)
        yield
    finally:
        for descriptor in held:
            os.close(descriptor)


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
    """Remove the groups beside these that are abandoned, unless another agent is about to begin there."""
    for place in dict.fromkeys(parent.parent for parent in parents):
        with suppress(OSError):
            descriptor = _opened(place)
            try:
                if _is_locked(descriptor, fcntl.LOCK_EX):
                    for other in set(place.glob(f"{NAME}*")) - set(parents):
                        with suppress(OSError):
                            _remove_if_abandoned(other)
            finally:
                os.close(descriptor)


def _remove_if_abandoned(parent: Path) -> None:
    descriptor = _opened(parent)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        group = RunGroup((parent,))
        if group.is_empty():
            group.remove()
    finally:
        os.close(descriptor)


def _is_locked(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _opened(directory: Path) -> int:
    return os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
