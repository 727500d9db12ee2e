"""The seam between a controller and whatever runs its jobs: the processes of this machine, or those of many.

A controller gives commands about runs and gets reports of what happens to them. A backend may go away and come back at
any time; when it is there again it reports all that it knows. Beside these methods a backend makes three promises to
jobs, each with a module: their environment (`environment`), the channel of lease and progress (`channel`), and their
accelerators (`accelerators`). `check.check_backend` checks whether a backend keeps all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from fairway.live.backend.answers import CommandAnswer
from fairway.live.backend.commands import JobProgram, RunCommand
from fairway.live.backend.demand import Demand
from fairway.live.backend.logs import LogBlock
from fairway.live.backend.reports import BackendReport
from fairway.live.backend.status import BackendStatus


@runtime_checkable
class Backend(Protocol):
    """Runs jobs. `check` and `read_log` may be called from any thread and may block, the rest on one event loop."""

    async def run(self, epoch: int, report: Callable[[BackendReport], None]) -> None:
        """Keep in touch with what runs the jobs, as the controller of this epoch, until cancelled or superseded.

        Epochs grow with every start of a controller; only the newest gives commands. The first report is `Connected`.
        """

    async def give(self, command: RunCommand) -> CommandAnswer:
        """Give a command and wait for its answer; raises `RefusedError`, `BackendGoneError` or `SupersededError`.

        Another may be given before that; they are carried out in the order in which they were given.
        """
        ...

    async def status(self) -> BackendStatus:
        """All that the backend knows now; raises `BackendGoneError` or `SupersededError`."""
        ...

    async def need(self, demand: Demand) -> None:
        """Hear what the jobs that run or wait ask for, about once a second; returns soon.

        A backend whose machines are always the same does nothing.
        """

    def check(self, program: JobProgram) -> None:
        """Refuse a program that could run on none of the machines, by an `InputError` that says why.

        Whether certain accelerators can run a gang is checked when it is started: `Refusal.CANNOT_PLACE`.
        """

    def read_log(self, job: str, rank: int, position: int, most: int) -> LogBlock:
        """What a rank of a job has written, in all attempts, from a byte on; nothing where there is no log."""
        ...

    async def shut_down(self) -> None:
        """Let what runs the jobs end; jobs that still run go on by themselves, and are adopted later."""
