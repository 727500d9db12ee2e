"""Worker processes in virtual time: programs that take their turns when something has come for them, or they are due.

A process can be killed at any moment between two turns, and be halted, as one that hangs: it lives, and does nothing
until it goes on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Protocol

from fairway.live.serving.seams.transport import Line
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
    """Processes by the number of their worker; `ended_one` is called when one has ended by itself or was killed."""

    def __init__(self, machine: SimulatedMachine, programs: Programs, start_seconds: float = START_SECONDS) -> None:
        self._machine, self._programs, self._start_seconds = machine, programs, start_seconds
        self._processes: dict[int, _Process] = {}
        self._pids = 0
        self._is_woken = False
        self.ended_one: Callable[[], None] = lambda: None

    def start(self, number: int, epoch: int) -> None:
        """Start a process, whose program begins a while later."""
        self._pids += 1
        process = self._processes[number] = _Process(self._machine, self._pids, self._end_of)
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

    def is_stopped(self, number: int) -> bool:  # noqa: ARG002 - a process that hangs is found out by its silence
        """No signals are simulated."""
        return False

    def stand_by(self) -> None:
        """Every process starts in the same time."""

    def halt(self, number: int) -> None:
        """Let a process hang."""
        self._processes[number].halt()

    def go_on(self, number: int) -> None:
        """Let a process that hangs go on."""
        self._processes[number].go_on()

    def stop(self, grace_seconds: float) -> None:  # noqa: ARG002 - a program has nothing to do before its end
        """End all processes."""
        for process in self._processes.values():
            process.end("0", "it was stopped")

    def close(self) -> None:
        """Nothing is needed for it."""

    def _end_of(self) -> None:
        self.ended_one()


class _Process:
    """One process: a program with seams of its own, which end with it."""

    def __init__(self, machine: SimulatedMachine, pid: int, ended: Callable[[], None]) -> None:
        self.pid = pid
        self.status: str | None = None
        self.last_words = "it said nothing"
        self._is_halted = False
        self._seams = SimulatedSeams(machine)
        self._turns = Turns(machine.time, self._turn)
        self._program: Program | None = None
        self._ended = ended

    def begin(self, programs: Programs, number: int, epoch: int) -> None:
        """Make the program, and start it."""
        if self.status is None:
            self._seams.ready = self._turns.take_now
            self._run(lambda: self._make(programs, number, epoch))
            self._turns.take_now()

    def is_stopped(self, number: int) -> bool:  # noqa: ARG002 - a process that hangs is found out by its silence
        """No signals are simulated."""
        return False

    def stand_by(self) -> None:
        """Every process starts in the same time."""

    def halt(self) -> None:
        """Take no turns for a while."""
        self._is_halted = True

    def go_on(self) -> None:
        """Take turns again."""
        self._is_halted = False
        self._turns.take_now()

    def end(self, status: str, last_words: str) -> None:
        """The process is no more."""
        if self.status is None:
            self.status, self.last_words = status, last_words
            self._turns.end()
            self._seams.close()
            self._ended()

    def _make(self, programs: Programs, number: int, epoch: int) -> None:
        self._program = programs(number, epoch, self._seams)
        self._program.start()

    def _turn(self) -> float:
        program = self._program
        if program is None or self._is_halted:
            return math.inf
        self._run(lambda: program.turn(0.0))
        return program.due

    def _run(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:  # as a process dies of what its program raises
            self.end("1", f"{type(error).__name__}: {error}")
