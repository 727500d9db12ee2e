"""The store's writer without its thread: what is queued is written a moment later in virtual time, as one group."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine

from fairway.simtest.virtual_loop import ProcessKilledError, VirtualProcess
from fairway.store.database.sqlite_files import StoreFiles
from fairway.store.database.writer import GroupWriter

T = TypeVar("T")


class SimulatedWriter(GroupWriter):
    """Writes for one process; `seconds` is how long a commit takes, `written` is called after each."""

    def __init__(
        self,
        engine: Engine,
        files: StoreFiles | None,
        *,
        process: VirtualProcess,
        seconds: Callable[[], float],
        written: Callable[[], None],
    ) -> None:
        super().__init__(engine, files)
        self._process, self._seconds, self._written = process, seconds, written
        self._due: asyncio.TimerHandle | None = None

    def run(self, operation: Callable[[Connection], T], *, vital: bool = False) -> T:
        """Run an operation at once, with what was queued before."""
        done = self.begin(operation, vital=vital)
        self._write_what_waits()
        return done.result()

    def close(self) -> None:
        """Finish what is queued, unless the process is dead."""
        if self._process.alive:
            self._write_what_waits()
        self._closed = True

    def _see_to_it(self) -> None:
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(self._seconds(), self._write_what_waits)

    def _write_what_waits(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None
        while not self._queue.empty():
            self._write_next_group()
            if not self._process.alive:  # killed inside, which the writer takes for a failure of its group
                raise ProcessKilledError
            self._written()

    def _serve(self) -> Any:
        raise AssertionError("there is no thread")
