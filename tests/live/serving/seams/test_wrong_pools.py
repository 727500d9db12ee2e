"""Every check of the kit for worker pools finds the mistake that it is there for, and the kit ends what it started."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from fairway.live.serving.seams import check_worker_pool
from fairway.live.serving.seams.conformance import PATIENCE_SECONDS, SeamError
from fairway.live.serving.seams.transport import Line
from fairway.live.serving.simulated.machine import SimulatedMachine
from fairway.live.serving.simulated.worker_pool import SimulatedPool


class Idle:
    """A program that does nothing."""

    due = float("inf")

    def start(self) -> None: ...
    def turn(self, seconds: float | None) -> None: ...


class Pool(SimulatedPool):
    """A simulated pool of idle processes."""

    def __init__(self, machine: SimulatedMachine) -> None:
        super().__init__(machine, lambda *_: Idle())
        machine.time.advance(1000.0)  # clocks begin anywhere


class EndedBefore(Pool):
    """Says of workers that were never started that they have ended."""

    def ended(self, number: int) -> str | None:
        return super().ended(number) if number in self._processes else "0"


class Dying(Pool):
    """The third process ends soon, by itself."""

    number = 2
    epoch = 0
    seconds = 0.05

    def start(self, number: int, epoch: int) -> None:
        super().start(number, epoch)
        if (number, epoch) == (self.number, self.epoch):
            process = self._processes[number]
            self._machine.time.after(self.seconds, lambda: process.end("1", "it fell"))


class DyingAfterAWhile(Dying):
    seconds = 0.25


class DyingTheSecondTime(DyingAfterAWhile):
    number, epoch = 0, 1


class OnePid(Pool):
    def pid(self, number: int) -> int:  # noqa: ARG002
        return 1


class SamePid(Pool):
    """A process has the number of its worker."""

    def pid(self, number: int) -> int:
        return number


class TwoPids(Pool):
    def pid(self, number: int) -> int:
        return min(super().pid(number), 2)


class NoticesLate(Pool):
    """That a process has ended is found out after a long while."""

    def kill(self, number: int) -> None:
        self._machine.time.after(PATIENCE_SECONDS * 0.6, lambda: super(NoticesLate, self).kill(number))


class NoticesNever(Pool):
    def ended(self, number: int) -> str | None:  # noqa: ARG002
        return None


class NoticesNoSecondDeath(Pool):
    def ended(self, number: int) -> str | None:
        return None if number == 0 and self._pids > 1 and self.pid(0) > 1 else super().ended(number)


class Wordless(Pool):
    def last_words(self, number: int) -> str:  # noqa: ARG002
        return ""


class Unsaid(Pool):
    """That a process has ended is said, but not how."""

    def ended(self, number: int) -> str | None:
        return None if super().ended(number) is None else ""


class KillsAll(Pool):
    def kill(self, number: int) -> None:  # noqa: ARG002
        self.stop(0.0)


class Immortal(Pool):
    def kill(self, number: int) -> None: ...


class Restless(Pool):
    """No wait lasts once a process has ended."""

    def wait(self, seconds: float, lines: Iterable[Line]) -> None:
        if any(process.status is not None for process in self._processes.values()):
            self._machine.time.advance(seconds / 10)
        else:
            super().wait(seconds, lines)


class Hasty(Pool):
    def wait(self, seconds: float, lines: Iterable[Line]) -> None:
        super().wait(seconds / 2 if seconds == 0.05 else seconds, lines)


class Slow(Pool):
    """A wait lasts much longer than it may."""

    def wait(self, seconds: float, lines: Iterable[Line]) -> None:
        super().wait(seconds if seconds > 0.06 else PATIENCE_SECONDS, lines)


class Sleepy(Pool):
    def wake(self) -> None: ...


class StopsSome(Pool):
    """Lets the process of one worker live on."""

    spared = 2

    def stop(self, grace_seconds: float) -> None:
        spared = self._processes.pop(self.spared, None)
        super().stop(grace_seconds)
        if spared is not None:
            self._processes[self.spared] = spared


class StopsTheOthers(StopsSome):
    spared = 0


@pytest.mark.parametrize(
    ("check", "wrong", "found"),
    [
        ("processes_live_until_they_are_ended", EndedBefore, "a worker has ended that was never started"),
        ("processes_live_until_they_are_ended", Dying, r"how they have ended: \[None, None, '1'\]"),
        ("processes_live_until_they_are_ended", DyingAfterAWhile, "how they have ended"),
        ("processes_live_until_they_are_ended", OnePid, "processes: 1, expected 3"),
        ("processes_live_until_they_are_ended", TwoPids, "processes: 2, expected 3"),
        ("a_death_is_noticed_at_once", NoticesLate, "the death of a worker was noticed after 12"),
        ("a_death_is_noticed_at_once", NoticesNever, "the death of a worker was noticed after 20"),
        ("a_death_is_noticed_at_once", Immortal, "the death of a worker was noticed after 20"),
        ("a_death_is_noticed_at_once", Unsaid, "how it ended is not said"),
        ("a_death_is_noticed_at_once", KillsAll, "another worker has ended"),
        ("a_death_is_noticed_at_once", Wordless, "its last words are empty"),
        ("a_death_is_noticed_at_once", Restless, "a wait ends at once for a death that is known"),
        ("a_new_process_takes_its_place", DyingTheSecondTime, "the new process has ended: 1"),
        ("a_new_process_takes_its_place", SamePid, "the new process is the old one"),
        ("a_new_process_takes_its_place", NoticesNoSecondDeath, "the death of the new process was not noticed"),
        ("waits_end", Hasty, "0.05 s took 0.02"),
        ("waits_end", Slow, "0.05 s took 20"),
        ("waits_end", Sleepy, "a wait did not end when the pool was woken"),
        ("stopping_ends_all", StopsSome, r"which have ended: \[True, True, False\]"),
        ("stopping_ends_all", StopsTheOthers, r"which have ended: \[False, True, True\]"),
    ],
)
def test_a_check_finds_the_pool_that_it_is_there_for(check: str, wrong: type[Pool], found: str) -> None:
    run: Callable[..., None] = getattr(check_worker_pool, check)
    machine = SimulatedMachine()
    with pytest.raises(SeamError, match=f"(?s){check}.*{found}"):
        run(wrong(machine), machine.time.now)
    with pytest.raises(SeamError):
        check_worker_pool.check_worker_pool(lambda: wrong(machine), machine.time.now)
    run(Pool(machine), machine.time.now)


def test_the_kit_stops_and_closes_every_pool() -> None:
    machine, made = SimulatedMachine(), []

    class Listening(Pool):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            self.told: list[Any] = []
            made.append(self)

        def stop(self, grace_seconds: float) -> None:
            self.told.append(grace_seconds)
            super().stop(grace_seconds)

        def close(self) -> None:
            self.told.append("close")

    check_worker_pool.check_worker_pool(lambda: Listening(machine), machine.time.now)
    assert len(made) == len(check_worker_pool.CHECKS)
    assert all(pool.told[-2:] == [0.0, "close"] for pool in made)
    assert all(process.status is not None for pool in made for process in pool._processes.values())


def test_what_a_pool_raises_is_said_with_the_check() -> None:
    machine = SimulatedMachine()

    class Broken(Pool):
        def kill(self, number: int) -> None:  # noqa: ARG002
            raise RuntimeError("cannot kill")

    with pytest.raises(SeamError, match=r"a_death_is_noticed_at_once.*RuntimeError: cannot kill"):
        check_worker_pool.check_worker_pool(lambda: Broken(machine), machine.time.now)


def test_a_kill_that_does_nothing_is_waited_for_with_patience_and_no_longer() -> None:
    machine = SimulatedMachine()
    pool = Immortal(machine)
    pool.start(0, 0)
    began = machine.time.now()
    check_worker_pool._kill(pool, machine.time.now, 0)
    assert PATIENCE_SECONDS <= machine.time.now() - began < PATIENCE_SECONDS + 0.1
