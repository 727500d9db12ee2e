"""A monitor over workers that do what a test says: processes and lines that stand, and a clock that the test moves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fairway.live.serving.seams.run_record import LaneKind, RunRecord
from fairway.live.serving.seams.transport import Line, Message
from fairway.live.serving.supervise.blame import Blame
from fairway.live.serving.supervise.monitor import Monitor
from fairway.live.serving.supervise.supervised_worker import SupervisedWorker

MARK = bytes(range(16))


class StandingLine:
    """The supervisor's end of a line to a worker that answers at once, unless it is silent."""

    def __init__(self) -> None:
        self.told: list[Message] = []
        self.coming: list[Message] = []
        self.is_silent = False
        self.waiting = 0
        self.is_broken = False
        self.is_closed = False
        self.unwritten = False

    def send(self, message: Message) -> bool:
        if self.is_broken:
            raise BrokenPipeError
        self.told.append(message)
        if message[0] == "ping" and not self.is_silent:
            self.coming.append(("pong", message[1], self.waiting))
        return False

    def flush(self) -> bool:
        self.unwritten = False
        return False

    def receive(self, seconds: float | None = 0.0) -> Sequence[Message] | None:  # noqa: ARG002 - nothing is waited for
        if self.is_broken:
            return None
        came, self.coming = self.coming, []
        return came

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        self.is_closed = True

    def words(self) -> list[Any]:
        """What the worker was told since the last call, without the wishes for signs."""
        told, self.told = self.told, []
        return [message for message in told if message[0] != "ping"]


class StandingPool:
    """Processes that end when the test says so."""

    def __init__(self) -> None:
        self.started: list[tuple[int, int]] = []
        self.killed: list[int] = []
        self.status: dict[int, str | None] = {}
        self.stopped: set[int] = set()
        self.stands_by = False

    def start(self, number: int, epoch: int) -> None:
        self.started.append((number, epoch))
        self.status[number] = None

    def ended(self, number: int) -> str | None:
        return self.status[number]

    def pid(self, number: int) -> int:
        return number

    def last_words(self, number: int) -> str:
        return f"{number}"

    def wait(self, seconds: float, lines: Iterable[Line]) -> None: ...

    def wake(self) -> None: ...

    def is_stopped(self, number: int) -> bool:
        return number in self.stopped

    def stand_by(self) -> None:
        self.stands_by = True

    def kill(self, number: int) -> None:
        self.killed.append(number)
        self.status[number] = "-9"

    def stop(self, grace_seconds: float) -> None: ...

    def close(self) -> None: ...


class StandingMarks:
    def __init__(self) -> None:
        self.left: list[int] = []
        self.busy: list[tuple[int, float]] = []

    def leave(self, worker: int) -> None:
        self.left.append(worker)

    def call_busy(self, worker: int, until: float) -> None:
        self.busy.append((worker, until))

    def greeting(self, others: Sequence[int]) -> Sequence[Message]:
        return [("present", tuple(others))]


class Supervised:
    """A monitor over three workers, and a planner that has no row."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.pool, self.marks = StandingPool(), StandingMarks()
        self.lines: dict[int, StandingLine] = {}
        self.unreachable: set[int] = set()
        self.record = RunRecord(bytearray(RunRecord.size(4)))
        self.blame = Blame(["workflow"], ["model"])
        self.cleared: list[tuple[int, int]] = []
        self.cleared_clients = 0
        workers = [SupervisedWorker(n, f"worker {n}", self._connect, has_row=n < 3) for n in range(4)]
        self.monitor = Monitor(
            workers, self.pool, lambda _: self.marks, lambda: self.time, lambda *life: self.cleared.append(life),
            self._clear_clients, self.record, self.blame, doors=[1, 2],
        )  # fmt: skip
        self.monitor.start()

    def _clear_clients(self) -> None:
        self.cleared_clients += 1

    def _connect(self, number: int) -> Line:
        if number in self.unreachable:
            raise ConnectionRefusedError
        self.lines[number] = StandingLine()
        return self.lines[number]

    def turns(self, seconds: float, step: float = 0.25) -> None:
        """Turns for so long."""
        ends = self.time + seconds
        while self.time < ends - 1e-9:
            self.time += step
            self.monitor.turn()

    def serve(self) -> Supervised:
        """Until all have started."""
        self.turns(1.0)
        assert self.monitor.is_complete
        for line in self.lines.values():
            line.words()
        return self

    def fall_silent(self, worker: int) -> None:
        """From its next sign on, which is wanted now."""
        self.lines[worker].is_silent = True
        while self.monitor.workers[worker].given == self.monitor.workers[worker].wanted:
            self.turns(0.25)

    def begin(self, worker: int, kind: LaneKind, limit: float, *marks: bytes) -> None:
        self.record.lanes(worker)[kind].begin(0, 0, self.time, self.time + limit, marks)

    def culprits(self) -> dict[Any, Any]:
        return self.blame.notice(0).culprits
