"""The processes that workers are: started, noticed when they end, ended.

A pool knows nothing of what its processes do. Which worker is to be started again when, and what the other workers must
know before, is decided above it (`supervise.monitor`). A worker goes by its number over all of its lives, and `epoch`
counts those.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from fairway.live.serving.seams.transport import Line

MACHINE_LOST = "its machine is gone"
"""How a worker has ended that was lost with its machine, whatever it did."""


class WorkerPool(Protocol):
    """Starts and ends worker processes; only `wake`, `ended`, `pid` and `last_words` may be called from any thread."""

    def start(self, number: int, epoch: int) -> None:
        """Start the process of a worker, whose last one, if there was one, has ended."""
        ...

    def ended(self, number: int) -> str | None:
        """How the process of a worker has ended: its status, or `MACHINE_LOST`; None while it lives, or is none."""
        ...

    def pid(self, number: int) -> int:
        """The number of the process that a worker is or was."""
        ...

    def last_words(self, number: int) -> str:
        """The last line that a worker wrote in its log, to say why it has ended."""
        ...

    def wait(self, seconds: float, lines: Iterable[Line]) -> None:
        """Wait until a process ends, something comes over one of these lines, or `wake`; but no longer than this."""
        ...

    def wake(self) -> None:
        """Let `wait` return, the one that waits now or else the next one."""
        ...

    def is_stopped(self, number: int) -> bool:
        """Whether the process of a worker lives, but a signal keeps it from doing anything."""
        ...

    def stand_by(self) -> None:
        """Have a process ready that can become any worker, if that makes the next start faster."""
        ...

    def kill(self, number: int) -> None:
        """End the process of a worker at once, wherever it is."""
        ...

    def stop(self, grace_seconds: float) -> None:
        """Ask all processes to end, and kill those that have not after this time; when it returns, all have ended."""
        ...

    def close(self) -> None:
        """Let go of what the pool itself needs, once no thread waits in it any more."""
        ...
