"""A machine in virtual time, and a backend of it: the table of runs and its files are real, only processes are not.

A job here is a row of numbers that moves on with the clock and leaves the files that a keeper and a job would leave. It
does what its command says: one of the conformance kit (`CheckJob`), or a word. `steps` and `slow` do steps to the end,
`fail` fails after a second, `ignore` does not heed the wish to stop.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from fairway.errors import InputError
from fairway.live.backend import check_job
from fairway.live.backend.accelerators import emulated_accelerators
from fairway.live.backend.answers import BackendGoneError, CommandAnswer, Refusal, RefusedError, SupersededError
from fairway.live.backend.channel import STOPPED, RankProgress
from fairway.live.backend.check_job import CheckJob
from fairway.live.backend.codec import COMMANDS, REPORTS
from fairway.live.backend.commands import JobProgram, RunCommand
from fairway.live.backend.demand import Demand
from fairway.live.backend.logs import LogBlock
from fairway.live.backend.reports import BackendReport, Connected, RunReport, Superseded
from fairway.live.backend.status import BackendStatus
from fairway.live.local.agent.keepers import write_notice
from fairway.live.local.agent.run_table import RunTable
from fairway.live.local.log_files import log_path, read_log
from fairway.live.local.programs import refuse_what_cannot_run
from fairway.live.local.run_files import RunExit, RunFiles, RunOrder

START_SECONDS, SAVE_SECONDS, STOP_SECONDS = 0.3, 0.2, 0.1
WORDS = {("steps",), ("slow",), ("fail",), ("ignore",)}


@dataclass
class Process:
    """The processes of one run."""

    files: RunFiles
    order: RunOrder
    job: str
    places: frozenset[tuple[str, int]]
    lease: int
    begun: float
    step: float
    checkpoints: dict[str, int]
    share: float
    moved: float = 0.0
    stop_at: float | None = None
    stop: str | None = None
    alive: bool = True
    started: bool = False
    ended_at: float | None = None
    steps_done: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.first = int(self.step)
        self.check = CheckJob.of(list(self.order.run))
        self.word = tuple(self.order.run)
        self.cooperative = self.check is None or self.check.cooperative

    def poll(self) -> int | None:
        """As a process that was spawned."""
        return None if self.alive else 0

    @property
    def ranks(self) -> int:
        return len(self.order.ranks)

    @property
    def total(self) -> float:
        steps = self.order.environment.get("FAIRWAY_STEPS")
        return math.inf if steps is None or not self.cooperative else int(steps) * self.ranks

    @property
    def rate(self) -> float:
        lease = self.files.lease()
        assert lease is not None
        free = 1.0 if self.check is None else 1.0 / check_job.STEP_SECONDS
        return (lease.pace or free) * self.ranks

    @property
    def ends_at(self) -> float:
        """When it ends by itself, apart from its steps."""
        if self.word == ("fail",):
            return self.begun + START_SECONDS + 1.0
        if self.check is not None and not self.cooperative:
            return self.begun + START_SECONDS + self.check.seconds
        return math.inf

    def next_time(self) -> float:
        """When something happens to it next."""
        if not self.alive:
            return math.inf
        start, stop = self.begun + START_SECONDS, math.inf if self.stop_at is None else self.stop_at
        if not self.started:
            return min(start, stop)
        if self.ends_at < math.inf:
            return min(self.ends_at, stop)
        return min(self.moved + max(self.total - self.step, 0.0) / self.rate, stop)

    def advance(self, now: float) -> None:
        if not self.alive:
            return
        if not self.started and now >= self.begun + START_SECONDS and self.stop is None:
            self._start()
        if self.started and self.cooperative:
            self.step = min(self.step + (now - self.moved) * self.rate, self.total)
            self.moved = now
            self._report()
        if self.started and now >= self.ends_at:
            self._end(now)
        elif self.started and self.step >= self.total - 1e-9:
            self.step = float(self.total)
            self._save()
            self._end(now)
        elif self.stop_at is not None and now >= self.stop_at:
            self._leave(now)

    def _start(self) -> None:
        if self.check is None and self.word not in WORDS:
            error = f"command '{self.order.run[0]}': No such file or directory"
            self._exit(RunExit([], error=error, time=self.begun + START_SECONDS))
            return
        self.started, self.moved = True, self.begun + START_SECONDS
        self.files.write_started(self.moved)
        for rank, log in enumerate(self.order.logs):
            environment = {**self.order.environment, **self.order.ranks[rank]}
            lines = [f"=== {self.order.title}, rank {rank} of {self.ranks} ===", check_job.BEGINS]
            self._write(log, *lines, *(f"{name}={value}" for name, value in environment.items()))

    def _end(self, now: float) -> None:
        code = 1 if self.word == ("fail",) else self.check.code if self.check is not None else 0
        self._write_all(check_job.ENDS)
        first = 0 if code else None
        self._exit(RunExit([code] * self.ranks, first, failed=bool(code), asked=self.stop, time=now))

    def ask_to_stop(self, wish: str, now: float) -> None:
        """Give notice; it leaves by itself, or is killed after its grace."""
        if not self.alive or self.stop == wish:
            return
        self.stop = wish
        if self.check is None:
            seconds = math.inf if self.word == ("ignore",) else STOP_SECONDS if wish == "now" else SAVE_SECONDS
        else:
            at_notice = {"leave": STOP_SECONDS, "save": check_job.SAVE_SECONDS, "ignore": math.inf}
            seconds = at_notice[self.check.at_notice]
        self.stop_at = now + min(seconds, self.order.grace_seconds)

    def _leave(self, now: float) -> None:
        if not self.started:
            self._exit(RunExit([], asked=self.stop, time=now))
        elif self.check is not None and not self.cooperative:
            self._exit(self._terminated(self.check, now))
        elif self.stop == "save":
            self._save()
            self._report(stopped=True)
            self._exit(RunExit([STOPPED] * self.ranks, 0, asked="save", time=now))
        else:
            self._exit(RunExit([-15] * self.ranks, 0, asked="now", terminated=True, time=now))

    def _terminated(self, check: CheckJob, now: float) -> RunExit:
        """How a plain job ends after SIGTERM, with what it writes until then."""
        if check.at_notice == "leave":
            return RunExit([-15] * self.ranks, 0, asked=self.stop, terminated=True, time=now)
        if check.at_notice == "save":
            self._write_all(check_job.NOTICED, check_job.SAVED, check_job.ENDS)
            return RunExit([0] * self.ranks, asked=self.stop, terminated=True, time=now)
        lines = int(self.order.grace_seconds / check_job.LINE_SECONDS)
        self._write_all(check_job.NOTICED, *[check_job.STILL_HERE] * lines)
        return RunExit([-9] * self.ranks, 0, asked=self.stop, terminated=True, killed=True, time=now)

    def _write_all(self, *lines: str) -> None:
        for log in self.order.logs:
            self._write(log, *lines)

    def _write(self, log: str, *lines: str) -> None:
        with Path(log).open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def _save(self) -> None:
        self.step = int(self.step / self.ranks) * self.ranks
        self.checkpoints[self.job] = max(int(self.step), self.checkpoints.get(self.job, 0))
        self._report()

    def _report(self, *, stopped: bool = False) -> None:
        ranks = self.ranks
        saved = self.checkpoints.get(self.job)
        lease = self.files.lease()
        for rank in range(ranks):
            self.files.write_progress(
                RankProgress(rank, int(self.step / ranks), self.first // ranks, self.rate / ranks,
                         None if saved is None else saved // ranks, stopped=stopped, time=self.moved,
                         lease=lease.lease if lease is not None else 0)
            )  # fmt: skip

    def _exit(self, ended: RunExit) -> None:
        self.alive, self.ended_at = False, ended.time
        if self.started:
            self.steps_done.append((self.first, int(self.step)))
        self.files.write_exit(ended)

    def kill(self) -> None:
        """With its keeper: no process is left to write down how it ended."""
        self.alive = False
        if self.started:
            self.steps_done.append((self.first, int(self.step)))


class SimulatedMachine:
    """Accelerators, processes and a clock. It is also what the table of runs takes for its keepers and its clock.

    `clock_set_by` is by how much the system clock was set.
    """

    def __init__(self, directory: Path, emulate: str) -> None:
        self.directory, self.emulate = directory, emulate
        self.now = 1_000_000.0
        self.clock_set_by = 0.0
        self.processes: list[Process] = []
        self.checkpoints: dict[str, int] = {}
        self.reports: list[RunReport] = []
        self.agents = 0
        self.table: RunTable

    def start_agent(self) -> None:
        """Start the agent, which forgets what it has not written down."""
        self.agents += 1
        self.table = RunTable(
            self.directory,
            emulated_accelerators(self.emulate),
            emit=self.reports.append,
            keepers=self,
            outside={},
            clock=self,
            instance=f"agent {self.agents}",
        )
        self.table.tick()

    def carry_out(self, command: RunCommand) -> CommandAnswer:
        """Have a command carried out as if it had come over a wire."""
        return self.table.carry_out(COMMANDS.read(COMMANDS.document_of(command)))

    def alive(self) -> list[Process]:
        return [one for one in self.processes if one.alive]

    def advance_to(self, now: float) -> None:
        """Let time pass, and let the agent see what happened."""
        self.now = now
        for one in self.alive():
            one.advance(now)
        self.table.tick()

    def take_reports(self) -> list[RunReport]:
        """What was reported since the last time, as if it had come over a wire."""
        taken, self.reports[:] = list(self.reports), []
        return [REPORTS.read(REPORTS.document_of(report)) for report in taken]  # type: ignore[misc]

    # As a clock

    def time(self) -> float:
        return self.now + self.clock_set_by

    def monotonic(self) -> float:
        return self.now

    # As keepers

    def start(self, files: RunFiles) -> Process:
        run = next(run for run in self.table.state.runs if run.directory == files.directory.name)
        order = files.order()
        assert order is not None
        places = frozenset((run.accelerator, worker) for worker in run.workers)
        for other in self.alive():
            assert other.job != run.job, f"{run.job} is started while it runs"
            beside = (
                other.share + run.share <= 1 + 1e-6
            )  # of two that overlap; what three hold, the table's tests look at
            assert other.lease == run.lease or beside or not other.places & places, (
                f"{other.job} runs where {run.job} starts"
            )
        files.claim({"pid": 1, "start": 1, "boot": ""})
        step = float(self.checkpoints.get(run.job, 0))
        new = Process(files, order, run.job, places, run.lease, self.now, step, self.checkpoints, run.share)
        self.processes.append(new)
        return new

    def _of(self, files: RunFiles) -> Process | None:
        return next((one for one in self.processes if one.files.directory == files.directory), None)

    def has_keeper(self, files: RunFiles) -> bool:
        return self._of(files) is not None

    def is_alive(self, files: RunFiles) -> bool:
        process = self._of(files)
        return process is not None and process.alive

    def watch(self, files: RunFiles) -> None:
        """It is looked at often enough."""

    def ask_to_stop(self, files: RunFiles, *, save: bool) -> None:
        wish = write_notice(files, save=save)
        process = self._of(files)
        if process is not None:
            process.ask_to_stop(wish, self.now)

    def clear_up(self, files: RunFiles) -> bool:  # noqa: ARG002
        return True


class SimulatedBackend:
    """A backend of a simulated machine, on which time passes for as long as a controller keeps in touch."""

    def __init__(self, machine: SimulatedMachine, *, tick_seconds: float = 0.05) -> None:
        self.machine, self._tick_seconds = machine, tick_seconds
        self._epoch: int | None = None
        self._closed = False

    async def run(self, epoch: int, report: Callable[[BackendReport], None]) -> None:
        machine = self.machine
        if not hasattr(machine, "table"):
            machine.start_agent()
        if epoch >= machine.table.state.epoch:
            machine.table.new_epoch(epoch)
            self._epoch = epoch
            report(Connected(machine.table.status()))
        while not self._closed:
            if epoch < machine.table.state.epoch:
                report(Superseded(f"a controller of epoch {machine.table.state.epoch} has taken over"))
                return
            machine.advance_to(machine.now + self._tick_seconds)
            for each in machine.take_reports():
                report(each)
            await asyncio.sleep(0.001)

    async def give(self, command: RunCommand) -> CommandAnswer:
        self._require_connection()
        try:
            return self.machine.carry_out(command)
        except InputError as error:
            raise RefusedError(Refusal.BAD_INPUT, str(error)) from None

    async def status(self) -> BackendStatus:
        self._require_connection()
        return self.machine.table.status()

    async def need(self, demand: Demand) -> None:
        pass

    def check(self, program: JobProgram) -> None:
        refuse_what_cannot_run(program)

    def read_log(self, job: str, rank: int, position: int, most: int) -> LogBlock:
        return read_log(log_path(self.machine.directory, job, rank), position, most)

    async def shut_down(self) -> None:
        """The agent ends, and is started again when a controller needs it."""
        self._closed = True
        self.machine.reports.clear()
        self.machine.start_agent()

    def _require_connection(self) -> None:
        if self._epoch is None or self._closed:
            raise BackendGoneError("the machine is gone")
        if self._epoch < self.machine.table.state.epoch:
            raise SupersededError("another controller has taken over")
