"""Worker processes in virtual time: programs that take their turns when something has come for them, or they are due.

A process can be killed at any moment, also in the middle of a turn (`life`), and be halted, as one that hangs or that a
signal has stopped: it lives, and does nothing until it goes on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Protocol

from fairway.live.serving.seams.transport import Line
from fairway.live.serving.simulated.life import Life, ProcessEnded
from fairway.live.serving.simulated.machine import SimulatedMachine, SimulatedSeams
from fairway.live.serving.simulated.network import SimulatedLine
from fairway.live.serving.simulated.turns import Turns

START_SECONDS = 0.5


class Program(Protocol):
    """What a process does, by turns."""

    def start(self) -> None:
        """The first thing that it does."""
        ...

    def turn(self, seconds: float | None) -> None:
        """Take in what has come, without waiting if `seconds` is 0, and do what follows."""
        ...

    @property
    def due(self) -> float:
        """When it wants its next turn, if nothing comes before."""
        ...


Programs = Callable[[int, int, SimulatedSeams], Program]
"""Makes the program of a worker, by number and epoch, over seams of its own."""


class SimulatedPool:
    """Processes by the number of their worker; `ended_one` is called when one has ended by itself or was killed.

    `on_end` is called with its number and its status then; `after_turn` with the number of a worker that has taken a
    turn; `crashes` are what programs died of that raised something by themselves.
    """

    def __init__(self, machine: SimulatedMachine, programs: Programs, start_seconds: float = START_SECONDS) -> None:
        self._machine, self._programs, self._start_seconds = machine, programs, start_seconds
        self._processes: dict[int, _Process] = {}
        self._pids = 0
        self._is_woken = False
        self.ended_one: Callable[[], None] = lambda: None
        self.on_end: Callable[[int, str], None] = lambda *_: None
        self.after_turn: Callable[[int], None] | None = None
        self.crashes: list[str] = []

    def start(self, number: int, epoch: int) -> None:
        """Start a process, whose program begins a while later."""
        self._pids += 1
        process = self._processes[number] = _Process(self, self._machine, self._pids, number)
        self._machine.time.after(self._start_seconds, lambda: process.begin(self._programs, number, epoch))

    def ended(self, number: int) -> str | None:
        """How a process has ended."""
        process = self._processes.get(number)
        return None if process is None else process.status

    def pid(self, number: int) -> int:
        """The number of a process; none is given twice."""
        return self._processes[number].pid

    def last_words(self, number: int) -> str:
        """What a process has died of."""
        return self._processes[number].last_words

    def wait(self, seconds: float, lines: Iterable[Line]) -> None:
        """Let virtual time pass until a process ends, or something comes over a line."""
        living = [process for process in self._processes.values() if process.status is None]
        simulated = [line for line in lines if isinstance(line, SimulatedLine)]
        self._machine.time.advance(
            seconds,
            lambda: (
                self._is_woken
                or any(process.status is not None for process in living)
                or any(line.is_ready() for line in simulated)
            ),
        )
        self._is_woken = False

    def wake(self) -> None:
        """Let `wait` return."""
        self._is_woken = True

    def kill(self, number: int) -> None:
        """End a process at once."""
        self._processes[number].end("-9", "it was killed")

    def is_stopped(self, number: int) -> bool:
        """Whether a signal keeps a process from running; one that hangs is found out by its silence."""
        return self._processes[number].is_stopped

    def stand_by(self) -> None:
        """Every process starts in the same time."""

    def is_serving(self, number: int) -> bool:
        """Whether the program of a process has begun, and goes on."""
        process = self._processes.get(number)
        return process is not None and process.status is None and process.has_begun and not process.life.is_halted

    def life(self, number: int) -> Life:
        """A process as its seams see it."""
        return self._processes[number].life

    def halt(self, number: int, *, by_signal: bool = False) -> None:
        """Let a process hang, or stop it."""
        self._processes[number].halt(by_signal=by_signal)

    def go_on(self, number: int) -> None:
        """Let a process that hangs go on."""
        self._processes[number].go_on()

    def stop(self, grace_seconds: float) -> None:  # noqa: ARG002 - a program has nothing to do before its end
        """End all processes."""
        for process in self._processes.values():
            process.end("0", "it was stopped")

    def close(self) -> None:
        """Nothing is needed for it."""


class _Process:
    """One process: a program with seams of its own, which end with it."""

    def __init__(self, pool: SimulatedPool, machine: SimulatedMachine, pid: int, number: int) -> None:
        self.pid, self._number = pid, number
        self.status: str | None = None
        self.last_words = "it said nothing"
        self.is_stopped = False
        self.life = Life(f"worker-{number}", number, machine.on_place)
        self.life.end_process, self.life.freeze_process = self.end, self.freeze
        self._pool, self._machine = pool, machine
        self._seams = SimulatedSeams(machine, self.life)
        self._turns = Turns(machine.time, self._turn, machine.lateness)
        self._program: Program | None = None

    @property
    def has_begun(self) -> bool:
        """Whether its program is there."""
        return self._program is not None

    def begin(self, programs: Programs, number: int, epoch: int) -> None:
        """Make the program, and start it."""
        if self.life.is_halted:
            self.life.later.append(lambda: self.begin(programs, number, epoch))
        elif self.status is None:
            self._seams.ready = self._turns.take_now
            self._run(lambda: self._make(programs, number, epoch))
            self._turns.take_now()

    def halt(self, *, by_signal: bool = False) -> None:
        """Take no turns for a while."""
        self.life.is_halted, self.is_stopped = True, by_signal

    def go_on(self) -> None:
        """Take turns again."""
        if self.life.is_over or self.status is not None:
            return
        self.life.is_halted = self.is_stopped = False
        later, self.life.later = self.life.later, []
        for each in later:
            each()
        self._turns.take_now()

    def freeze(self) -> None:
        """Stop in the middle of a turn, for good."""
        self.life.is_halted = True
        self.life.over()

    def end(self, status: str, last_words: str) -> None:
        """The process is no more."""
        if self.status is None:
            self.status, self.last_words = status, last_words
            self._turns.end()
            self._seams.close()
            self._pool.on_end(self._number, status)
            self._pool.ended_one()

    def _make(self, programs: Programs, number: int, epoch: int) -> None:
        self._program = programs(number, epoch, self._seams)
        self._program.start()

    def _turn(self) -> float:
        program = self._program
        if program is None or self.life.is_halted:
            return math.inf
        self._run(lambda: self._take_turn(program))
        return math.inf if self.life.is_over else program.due

    def _take_turn(self, program: Program) -> None:
        self.life.reach("turn")
        program.turn(0.0)
        if self._pool.after_turn is not None:
            self._pool.after_turn(self._number)

    def _run(self, action: Callable[[], None]) -> None:
        self._machine.running = self.life
        try:
            action()
        except ProcessEnded:  # killed in the middle of it, or it hangs there
            assert self.life.is_over
        except Exception as error:  # as a process dies of what its program raises
            if not self.life.is_over:
                said = f"{type(error).__name__}: {error}"
                self._pool.crashes.append(f"worker {self._number}: {said}")
                self.end("1", said)
        finally:
            self._machine.running = None
