"""Which process is meant: a number alone is not enough, since the system gives the numbers of the dead to others.

A process is known by its number, its start time and the boot of the machine. Signals go through a descriptor that is
opened first and checked afterwards, so that between check and signal no other process can take the number. This
reads /proc and therefore needs Linux.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process and no other; `start` is in ticks since the boot that `boot` names."""

    pid: int
    start: int
    boot: str

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> ProcessIdentity:
        """From the object that was written to a file."""
        return cls(int(content["pid"]), int(content["start"]), str(content["boot"]))

    @property
    def alive(self) -> bool:
        """Whether it still runs; a zombie does not."""
        return identify(self.pid) == self


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """A line of the process table."""

    pid: int
    state: str
    parent: int
    group: int
    session: int
    start: int


@cache
def boot() -> str:
    """The name of the machine's current boot."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def process_row(pid: int) -> ProcessRow | None:
    """What the process table says of a number."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()  # the command before it may contain anything
    return ProcessRow(pid, fields[0], int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]))


def process_table() -> Iterator[ProcessRow]:
    """Every living process; zombies are left out."""
    for name in os.listdir(_PROC):  # noqa: PTH208 - a path object for every process would take longer than reading it
        row = process_row(int(name)) if name.isdecimal() else None
        if row is not None and row.state not in "ZX":
            yield row


def identify(pid: int) -> ProcessIdentity | None:
    """The living process that has this number now, if there is one."""
    row = process_row(pid)
    return None if row is None or row.state in "ZX" else ProcessIdentity(pid, row.start, boot())


def open_process(identity: ProcessIdentity) -> int | None:
    """A descriptor of exactly this process, which becomes readable when it ends; None if it is gone."""
    try:
        descriptor = os.pidfd_open(identity.pid)
    except OSError:
        return None
    if identity.alive:
        return descriptor
    os.close(descriptor)
    return None


def send_signal(identity: ProcessIdentity, number: signal.Signals) -> bool:
    """Signal exactly this process; False if it is gone."""
    descriptor = open_process(identity)
    if descriptor is None:
        return False
    try:
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
    return True


def kill_remains(keeper: ProcessIdentity | None, mark: str, patience: float = 1.0) -> bool:
    """Kill a keeper and what it left behind: its session, and whatever carries `mark` in its environment.

    The number of a session cannot be given away while the session has members. Returns whether all are gone.
    """
    if keeper is not None and keeper.boot != boot():
        return True
    deadline = time.monotonic() + patience
    while True:
        session = None if keeper is None else _session_of(keeper)
        found = [row for row in process_table() if row.session == session or _carries(row.pid, mark.encode())]
        if not found:
            return True
        if time.monotonic() > deadline:
            return False
        for row in found:
            send_signal(ProcessIdentity(row.pid, row.start, boot()), signal.SIGKILL)
        time.sleep(0.01)


def _session_of(keeper: ProcessIdentity) -> int | None:
    """The session that a keeper leads or has led; None where its number belongs to another process now."""
    leader = process_row(keeper.pid)
    return keeper.pid if leader is None or leader.start == keeper.start else None


def _carries(pid: int, mark: bytes) -> bool:
    with suppress(OSError):
        return mark in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    return False


def any_process(wanted: Callable[[ProcessRow], bool]) -> bool:
    """Whether there is a living process of this kind."""
    return any(wanted(row) for row in process_table())
