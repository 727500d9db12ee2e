"""Whether a Fairway starts or runs in a directory: who it is, and how to wait for it.

`fairway up` writes the number of its process to `process` before it does anything that takes time, and its address to
`address` once it answers. A number alone is not enough, since the system gives the numbers of ended processes to
others; so the file also has the time at which the process began.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

PROCESS_FILE = "process"
ADDRESS_FILE = "address"

_SECONDS_BETWEEN_LOOKS = 0.05


def announce(directory: Path) -> None:
    """Write down that this process is starting; where that is not possible, what comes later will say why."""
    with suppress(OSError):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if process_in(directory) is None:
            (directory / PROCESS_FILE).write_text(f"{os.getpid()} {_began(os.getpid())}\n", encoding="utf-8")


def withdraw(directory: Path) -> None:
    """This process is about to end."""
    with suppress(OSError):
        if process_in(directory) == os.getpid():
            (directory / PROCESS_FILE).unlink()


def process_in(directory: Path) -> int | None:
    """The process that starts or runs there, if it is still alive."""
    try:
        number, began = (directory / PROCESS_FILE).read_text(encoding="utf-8").split()
        process = int(number)
        os.kill(process, 0)
    except (OSError, ValueError, OverflowError):
        return None
    return process if _began(process) == began else None


def wait_until_it_answers(directory: Path, seconds: float, *, grace: float = 0.0) -> bool:
    """Wait as long as a process starts there, for so many seconds at most; whether it has said where it answers.

    `grace` is how long to wait for one that has not even begun to start.
    """
    now = time.monotonic()
    until, begins_by = now + seconds, now + grace
    while not (directory / ADDRESS_FILE).exists():
        now = time.monotonic()
        if now >= until or (process_in(directory) is None and now >= begins_by):
            return False
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    return True


def _began(process: int) -> str:
    """When a process began, in the system's own count; nothing where it does not say."""
    try:
        return (
            Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
        )
    except (OSError, IndexError):
        return "-"
