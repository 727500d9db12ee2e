"""What the conformance kit of backends does things with: controllers, jobs, patience, and failures that name the facts.

A trial is on a backend that is used for nothing else. Its jobs have names and leases that never come twice, so that
checks do not disturb each other; `clear` ends and retires all that a check has left.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias, TypeVar

from fairway.errors import FairwayError
from fairway.live.backend.answers import CommandAnswer, Refusal, RefusedError
from fairway.live.backend.check_job import BEGINS, CheckJob
from fairway.live.backend.commands import EndRun, ForgetRun, HandOverRun, JobProgram, RetireJob, RunCommand, StartRun
from fairway.live.backend.protocol import Backend
from fairway.live.backend.reports import BackendReport, Connected, RunEnded, RunReport, RunStarted, Superseded
from fairway.live.backend.status import BackendStatus, RunState, RunStatus

R = TypeVar("R", bound=RunReport)
T = TypeVar("T")
StartedRun: TypeAlias = StartRun | HandOverRun
"""A run, by the command that gave it its job and its lease."""

_LOOK_SECONDS = 0.01


class BackendError(FairwayError):
    """A backend breaks a rule that every backend must keep."""


@dataclass(slots=True)
class TrialController:
    """One controller's backend object, its epoch, and all that was reported to it."""

    backend: Backend
    epoch: int
    reports: list[BackendReport] = field(default_factory=list)
    keeping: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Keep in touch from now on."""
        self.keeping = asyncio.create_task(self.backend.run(self.epoch, self.reports.append))

    async def leave(self) -> None:
        """As if the controller were killed."""
        if self.keeping is not None:
            self.keeping.cancel()
            with suppress(asyncio.CancelledError):
                await self.keeping

    def of(self, kind: type[R], run: StartedRun) -> list[R]:
        """The reports of a kind about a run."""
        found = [report for report in self.reports if isinstance(report, kind)]
        return [report for report in found if (report.lease, report.job) == (run.lease, run.job)]


class Trial:
    """A backend under the checks; `make_backend` makes another object for the same machines."""

    def __init__(self, make_backend: Callable[[], Backend], *, python: str, patience: float) -> None:
        self._make_backend, self._python, self._patience = make_backend, python, patience
        self._epochs = itertools.count(int(time.time()))  # more than any controller of before has had
        self._jobs = itertools.count(1)
        self._leases = itertools.count(1)
        self._name = "backend"
        self.check = "answers"
        self.controller: TrialController
        self.accelerator = ""
        self.numbers: tuple[int, ...] = ()

    # Controllers

    async def connect(self, epoch: int | None = None) -> TrialController:
        """Start a controller, newer than those before unless its epoch is given."""
        backend = self._make_backend()
        self._name = type(backend).__name__
        controller = TrialController(backend, next(self._epochs) if epoch is None else epoch)
        controller.start()
        return controller

    async def begin(self) -> None:
        """Wait for the first controller to connect, and choose accelerators: two at least of one type."""
        status = await self.connected(self.controller)
        self._leases = itertools.count(status.last_lease + 1)
        by_type: dict[str, list[int]] = {}
        for one in status.accelerators:
            by_type.setdefault(one.type, []).append(one.number)
        self.accelerator = max(by_type, key=lambda name: len(by_type[name]), default="")
        self.numbers = tuple(sorted(by_type.get(self.accelerator, [])))
        if len(self.numbers) < 2:
            self.fail(f"it has {status.accelerators}, but the checks need two accelerators of one type")

    async def connected(self, controller: TrialController) -> BackendStatus:
        """Wait until the backend is there, and give the status that it then reported."""

        def found() -> BackendStatus | None:
            if controller.keeping is not None and controller.keeping.done():
                controller.keeping.result()
            return next((report.status for report in controller.reports if isinstance(report, Connected)), None)

        return await self.until(found, lambda: f"for the backend to connect, reported: {controller.reports}")

    async def superseded(self, controller: TrialController) -> None:
        """Wait until a controller hears that a newer one has taken over."""
        reports = controller.reports
        await self.until(
            lambda: next((each for each in reports if isinstance(each, Superseded)), None),
            lambda: f"for the controller of epoch {controller.epoch} to hear of a newer one, reported: {reports}",
        )

    async def restart(self) -> None:
        """Let what runs the jobs end, and start it again under a newer controller."""
        await self.controller.backend.shut_down()
        await self.controller.leave()
        self.controller = await self.connect()
        await self.connected(self.controller)

    # Jobs

    @property
    def backend(self) -> Backend:
        """The backend as the present controller has it."""
        return self.controller.backend

    def lease(self) -> int:
        """The number of a new lease."""
        return next(self._leases)

    def command(self, does: CheckJob | None = None, *, ranks: int = 1, first: int = 0, **fields: Any) -> StartRun:
        """The command that starts a job on so many accelerators from the `first` on; fields of it and its program."""
        of_program = {name: value for name, value in fields.items() if name in JobProgram.__dataclass_fields__}
        others = {name: value for name, value in fields.items() if name not in of_program}
        program: Any = {
            "run": (does or CheckJob()).command(self._python),
            "checkpoint_seconds": self._patience,
            "grace_seconds": self._patience,
            **of_program,
        }
        run: Any = {
            "lease": self.lease() if "lease" not in others else others["lease"],
            "job": f"check-{next(self._jobs)}",
            "accelerator": self.accelerator,
            "workers": self.numbers[first : first + ranks],
            **others,
        }
        return StartRun(program=JobProgram(**program), **run)

    async def start(self, does: CheckJob | None = None, **fields: Any) -> StartRun:
        """Have a job started that has to be accepted."""
        command = self.command(does, **fields)
        await self.give(command)
        return command

    async def give(self, command: RunCommand, expected: str = "accepted") -> CommandAnswer:
        """Give a command whose answer has to be this one."""
        answer = await self.backend.give(command)
        if answer.result != expected:
            self.fail(f"{command} was answered by '{answer.result}', expected '{expected}'")
        return answer

    async def refused(self, command: RunCommand, code: Refusal) -> None:
        """Give a command that has to be refused for this reason."""
        try:
            answer = await self.backend.give(command)
        except RefusedError as refused:
            if refused.code != code:
                self.fail(f"{command} was refused as '{refused.code}', expected '{code}': {refused}")
            return
        self.fail(f"{command} was answered by '{answer.result}', expected a refusal as '{code}'")

    async def started(self, run: StartedRun) -> RunStarted:
        """Wait until the processes of a run run."""
        return await self.report(RunStarted, run)

    async def ended(self, run: StartedRun) -> RunEnded:
        """Wait until a run is over."""
        return await self.report(RunEnded, run)

    async def report(self, kind: type[R], run: StartedRun, wanted: Callable[[R], bool] = lambda _: True) -> R:
        """Wait for a report about a run, such as is wanted; gives the first."""
        controller = self.controller

        def found() -> R | None:
            return next((report for report in controller.of(kind, run) if wanted(report)), None)

        def what() -> str:
            about = [report for report in controller.reports if getattr(report, "job", None) == run.job]
            return f"for {kind.__name__} of {run.job}, reported: {about}"

        return await self.until(found, what)

    async def run(self, run: StartedRun) -> RunStatus | None:
        """How a run stands; None if the backend does not know it."""
        runs = (await self.backend.status()).runs
        return next((each for each in runs if (each.lease, each.job) == (run.lease, run.job)), None)

    async def log(self, run: StartedRun, rank: int = 0) -> list[str]:
        """The lines that a rank has written."""
        block = await asyncio.to_thread(self.backend.read_log, run.job, rank, 0, 2**20)
        return block.content.decode().splitlines()

    async def logged(self, run: StartedRun, line: str) -> None:
        """Wait until a job has written a line."""
        deadline = time.monotonic() + self._patience
        while line not in (lines := await self.log(run)):
            if time.monotonic() > deadline:
                self.fail(f"waited {self._patience:g} s for the line '{line}' of {run.job}: {lines}")
            await asyncio.sleep(_LOOK_SECONDS)

    async def began_once(self, run: StartedRun) -> None:
        """A job has to have begun once, whatever was done to it."""
        if (times := (await self.log(run)).count(BEGINS)) != 1:
            self.fail(f"'{run.job}' has begun {times} times")

    async def clear(self) -> None:
        """End, forget and retire all that there is."""
        status = await self.backend.status()
        for run in status.runs:
            if run.state is not RunState.ENDED:
                await self.backend.give(EndRun(run.lease, run.job, save=False))
        deadline = time.monotonic() + self._patience
        while any(run.state is not RunState.ENDED for run in status.runs):
            if time.monotonic() > deadline:
                self.fail(f"waited {self._patience:g} s for runs that were asked to end at once: {status.runs}")
            await asyncio.sleep(_LOOK_SECONDS)
            status = await self.backend.status()
        for run in status.runs:
            await self.backend.give(ForgetRun(run.lease, run.job))
        for job in {*status.former, *(run.job for run in status.runs)}:
            await self.backend.give(RetireJob(job))

    # Waiting and failing

    async def until(self, condition: Callable[[], T | None], what: Callable[[], str]) -> T:
        """Wait until a condition has a value, and give it; `what` says, after all patience, what was waited for."""
        deadline = time.monotonic() + self._patience
        while (value := condition()) is None:
            if time.monotonic() > deadline:
                self.fail(f"waited {self._patience:g} s {what()}")
            await asyncio.sleep(_LOOK_SECONDS)
        return value

    def fail(self, facts: str) -> NoReturn:
        """Report a failed check."""
        raise self.failure(facts)

    def failure(self, facts: str) -> BackendError:
        """What to say of a failed check."""
        return BackendError(f"backend '{self._name}' fails check '{self.check}': {facts}")
