"""The loop of a controller: every way from one of its states to another, gone once, and no other way."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from fairway.back_off import BackOff
from fairway.engine.protocol import TransitionError
from fairway.live.backend.accelerators import emulated_accelerators
from fairway.live.backend.answers import BackendGoneError, CommandAnswer, SupersededError
from fairway.live.backend.commands import EndRun, RunCommand, StartRun
from fairway.live.backend.demand import Demand, JobDemand
from fairway.live.backend.reports import BackendReport, Connected, Disconnected, Superseded
from fairway.live.backend.status import BackendStatus, RunState, RunStatus
from fairway.live.training import loop
from fairway.live.training.clock import Clock
from fairway.live.training.inbox import Inbox
from fairway.live.training.loop import Work
from fairway.live.training.loop_state import TRANSITIONS, Course, State
from fairway.live.training.session import Surroundings
from fairway.live.training.settings import ControllerSettings
from fairway.live.training.statistics import Statistics
from fairway.profiles import catalog
from fairway.store import Store, open_store
from fairway.store.errors import StoreError
from fairway.store.submissions import Submission, submit

WAITING, WAITING_TO_CLOSE, BEGINNING = State.WAITING, State.WAITING_TO_CLOSE, State.BEGINNING
ATTACHED, DOUBTFUL, DETACHED = State.ATTACHED, State.DOUBTFUL, State.DETACHED
FAILED, OVER = State.FAILED, State.OVER
BEGUN = (WAITING, BEGINNING, ATTACHED)


class Puppet:
    """A backend that runs nothing, and is there or not as the test wants; `stale` are commands that it answers so."""

    def __init__(self) -> None:
        self.emulate: str | None = "v100=1"
        self.is_there = self.speaks = True
        self.superseded = self.is_confused = self.was_shut_down = False
        self.stale: list[type] = []
        self.asked: list[type] = []
        self.needed: list[tuple[JobDemand, ...]] = []
        self.known: tuple[RunStatus, ...] = ()
        self.runs = asyncio.Event()
        self._report: Callable[[BackendReport], None]

    async def run(self, _: int, report: Callable[[BackendReport], None]) -> None:
        self._report = report
        self.runs.set()
        if self.speaks:
            self.say_hello()
        await asyncio.Event().wait()

    async def give(self, command: RunCommand) -> CommandAnswer:
        self._require()
        self.asked.append(type(command))
        if type(command) in self.stale:
            self.stale.remove(type(command))
            return CommandAnswer("stale")
        return CommandAnswer("accepted")

    async def status(self) -> BackendStatus:
        self._require()
        if self.is_confused:
            raise ValueError("this is no status")
        return self._status()

    async def need(self, demand: Demand) -> None:
        self.needed.append(tuple(demand))

    def _require(self) -> None:
        if not self.is_there:
            raise BackendGoneError("it is away")
        if self.superseded:
            raise SupersededError("another controller has taken over")

    async def shut_down(self) -> None:
        self.was_shut_down = True

    def say_hello(self) -> None:
        self.is_there = True
        self._report(Connected(self._status()))

    def say(self, report: BackendReport) -> None:
        self._report(report)

    def leave(self) -> None:
        self.is_there = False
        self._report(Disconnected("it has left"))

    def _status(self) -> BackendStatus:
        accelerators = tuple(emulated_accelerators(self.emulate)) if self.emulate else ()
        return BackendStatus("puppet", 1, accelerators, self.known)


class Stage:
    """A loop with a puppet for a backend and a store whose writes can be made to fail."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store, self.backend, self.inbox = store, Puppet(), Inbox()
        self.disk_is_full = False
        settings = ControllerSettings(Path("nowhere"), emulate="v100=1", round_seconds=60.0)
        around = Surroundings(settings, store, catalog.builtin(), Clock(), Statistics(time.time()))
        self.work = Work(around, self.backend, self.inbox)
        begin_vital_write = store.begin_vital_write

        def full_or_not(*arguments: Any, **options: Any) -> Future[Any]:
            if self.disk_is_full:
                raise StoreError("the store failed: database or disk is full")
            return begin_vital_write(*arguments, **options)

        monkeypatch.setattr(store, "begin_vital_write", full_or_not)

    async def until(self, *states: State) -> None:
        """Until the last states are these; nothing takes as long as this waits."""
        deadline = time.monotonic() + 60
        while self.work._course.past[-len(states) :] != states:
            assert time.monotonic() < deadline, f"still at {self.work._course.past}"
            await asyncio.sleep(0.005)

    def do(self, action: Callable[[], None]) -> None:
        self.inbox.put(action)

    def write_something(self) -> None:
        """Let the loop have something to make durable."""
        self.do(lambda: self.work.drain([("v100", 0)], Future(), on=True))

    def submit_a_job(self) -> None:
        self.store.write(submit, [Submission(spec={"run": "true"})], at=time.time())
        self.do(self.work.look_for_jobs)

    async def fail(self) -> None:
        self.disk_is_full = True
        self.write_something()
        await self.until(FAILED)


Script = Callable[[Stage], Awaitable[None]]


async def comes_and_goes(stage: Stage) -> None:
    await stage.until(*BEGUN)
    stage.backend.leave()
    await stage.until(DETACHED)
    stage.backend.say_hello()
    await stage.until(DOUBTFUL, ATTACHED)
    stage.do(stage.work.stop)


async def says_hello_and_is_gone_again(stage: Stage) -> None:
    stage.backend.is_there = False
    stage.backend.say(Connected(stage.backend._status()))
    await stage.until(BEGINNING, DETACHED)
    stage.backend.say(Connected(stage.backend._status()))
    await stage.until(DOUBTFUL, DETACHED)
    stage.do(stage.work.stop)


async def is_gone_when_it_is_asked(stage: Stage) -> None:
    await stage.until(*BEGUN)
    stage.backend.is_there = False
    stage.submit_a_job()
    await stage.until(DETACHED)
    assert not stage.work.healthy
    stage.do(stage.work.stop)


async def does_not_know_a_run(stage: Stage) -> None:
    await stage.until(*BEGUN)
    stage.submit_a_job()
    await _is_started(stage)
    stage.backend.stale.append(EndRun)
    stage.do(lambda: stage.work.cancel("job-1"))
    await stage.until(ATTACHED, DOUBTFUL, ATTACHED)
    stage.do(stage.work.stop)


async def does_not_know_a_run_of_before(stage: Stage) -> None:
    await stage.until(*BEGUN)
    stage.submit_a_job()
    await _is_started(stage)
    await stage.fail()
    stage.backend.known = (RunStatus(1, "job-1", "v100", (0,), RunState.RUNNING),)
    stage.backend.stale.append(EndRun)
    stage.do(stage.work.close)
    stage.do(lambda: setattr(stage, "disk_is_full", False))
    await stage.until(BEGINNING, DOUBTFUL, ATTACHED)
    stage.do(stage.work.stop)


async def has_other_accelerators(stage: Stage) -> None:
    await stage.until(*BEGUN)
    stage.backend.emulate = "v100=1,k80=2"
    stage.backend.say_hello()
    await stage.until(DOUBTFUL, ATTACHED, BEGINNING, ATTACHED)
    assert stage.work.session.cluster.workers == {"v100": 1, "k80": 2}
    stage.backend.say_hello()  # with the same ones
    await stage.until(BEGINNING, ATTACHED, DOUBTFUL, ATTACHED)
    stage.do(stage.work.stop)


async def has_no_accelerators_for_a_while(stage: Stage) -> None:
    """As where nodes are started as they are needed: jobs wait, and what they need is still told."""
    await stage.until(*BEGUN)
    stage.backend.emulate = None
    stage.backend.say_hello()
    await stage.until(DOUBTFUL, ATTACHED, BEGINNING, ATTACHED)
    stage.submit_a_job()
    while stage.backend.needed[-1:] != [(JobDemand(("v100",)),)]:
        await asyncio.sleep(0.01)
    assert stage.work.healthy
    assert StartRun not in stage.backend.asked
    stage.backend.emulate = "v100=1"
    stage.backend.say_hello()
    await _is_started(stage)
    stage.do(stage.work.close)
    stage.do(stage.work.stop)


async def has_other_accelerators_and_is_gone(stage: Stage) -> None:
    await stage.until(*BEGUN)
    stage.backend.emulate = "k80=2"
    stage.backend.say_hello()
    stage.backend.leave()
    await stage.until(DETACHED, BEGINNING, DETACHED)
    assert stage.work.session.cluster.workers == {"v100": 1, "k80": 2}
    stage.do(stage.work.stop)


async def store_fails_for_a_while(stage: Stage) -> None:
    await stage.until(*BEGUN)
    await stage.fail()
    assert not stage.work.healthy
    await stage.until(FAILED, BEGINNING, FAILED)
    stage.do(lambda: setattr(stage, "disk_is_full", False))
    await stage.until(FAILED, BEGINNING, ATTACHED)
    assert stage.work.healthy
    stage.do(stage.work.stop)


async def store_fails_while_the_backend_is_away(stage: Stage) -> None:
    await stage.until(*BEGUN)
    stage.backend.leave()
    await stage.until(DETACHED)
    await stage.fail()
    stage.do(stage.work.stop)


async def backend_makes_no_sense(stage: Stage) -> None:
    await stage.until(*BEGUN)
    stage.backend.is_confused = True
    stage.backend.say_hello()
    await stage.until(DOUBTFUL, FAILED)
    stage.do(stage.work.stop)


async def is_stopped_before_the_backend_is_there(stage: Stage) -> None:
    stage.do(stage.work.stop)


async def is_closed_before_the_backend_is_there(stage: Stage) -> None:
    stage.do(stage.work.close)
    await stage.until(WAITING_TO_CLOSE)
    stage.backend.say_hello()
    await stage.until(OVER)
    while not stage.backend.was_shut_down:
        await asyncio.sleep(0.005)


async def is_closed_and_stopped_before_the_backend_is_there(stage: Stage) -> None:
    stage.do(stage.work.close)
    stage.do(stage.work.close)
    stage.do(stage.work.stop)
    stage.do(stage.work.close)


async def is_superseded_at_once(stage: Stage) -> None:
    stage.backend.superseded = True
    stage.backend.say_hello()


async def is_superseded_later(stage: Stage) -> None:
    await stage.until(*BEGUN)
    stage.backend.superseded = True
    stage.backend.say_hello()


async def hears_that_it_is_superseded(stage: Stage) -> None:
    await stage.until(*BEGUN)
    stage.backend.say(Superseded("another controller has taken over"))


async def _is_started(stage: Stage) -> None:
    """Until the lease of a job is durable, and the backend was asked to start it."""
    while StartRun not in stage.backend.asked:
        await asyncio.sleep(0.005)


SCRIPTS: list[tuple[Script, bool, tuple[State, ...]]] = [
    (comes_and_goes, True, (*BEGUN, DETACHED, DOUBTFUL, ATTACHED, OVER)),
    (says_hello_and_is_gone_again, False, (WAITING, BEGINNING, DETACHED, DOUBTFUL, DETACHED, OVER)),
    (is_gone_when_it_is_asked, True, (*BEGUN, DETACHED, OVER)),
    (does_not_know_a_run, True, (*BEGUN, DOUBTFUL, ATTACHED, OVER)),
    (does_not_know_a_run_of_before, True, (*BEGUN, FAILED, BEGINNING, DOUBTFUL, ATTACHED, OVER)),
    (has_other_accelerators, True, (*BEGUN, DOUBTFUL, ATTACHED, BEGINNING, ATTACHED, DOUBTFUL, ATTACHED, OVER)),
    (has_other_accelerators_and_is_gone, True, (*BEGUN, DOUBTFUL, DETACHED, BEGINNING, DETACHED, OVER)),
    (
        has_no_accelerators_for_a_while,
        True,
        (*BEGUN, *2 * (DOUBTFUL, ATTACHED, BEGINNING, ATTACHED), OVER),
    ),
    (store_fails_for_a_while, True, (*BEGUN, FAILED, BEGINNING, FAILED, BEGINNING, ATTACHED, OVER)),
    (store_fails_while_the_backend_is_away, True, (*BEGUN, DETACHED, FAILED, OVER)),
    (backend_makes_no_sense, True, (*BEGUN, DOUBTFUL, FAILED, OVER)),
    (is_stopped_before_the_backend_is_there, False, (WAITING, OVER)),
    (is_closed_before_the_backend_is_there, False, (WAITING, WAITING_TO_CLOSE, BEGINNING, ATTACHED, OVER)),
    (is_closed_and_stopped_before_the_backend_is_there, False, (WAITING, WAITING_TO_CLOSE, OVER)),
    (is_superseded_at_once, False, (WAITING, BEGINNING, OVER)),
    (is_superseded_later, True, (*BEGUN, DOUBTFUL, OVER)),
    (hears_that_it_is_superseded, True, (*BEGUN, OVER)),
]
"""What is done to a loop, whether the backend says at once that it is there, and the way that the loop then goes."""


@pytest.mark.parametrize(("script", "speaks", "way"), SCRIPTS, ids=lambda each: getattr(each, "__name__", ""))
def test_every_way_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: Script, speaks: bool, way: tuple[State, ...]
) -> None:
    monkeypatch.setattr(loop, "_BACK_OFF", BackOff(0.1, 0.1))
    with open_store(tmp_path) as store:
        stage = Stage(store, monkeypatch)
        stage.backend.speaks = speaks

        async def play() -> None:
            running = asyncio.create_task(stage.work.run(lambda: None))
            await stage.backend.runs.wait()
            await script(stage)
            if "superseded" in script.__name__:
                with pytest.raises(SupersededError):
                    await running
            else:
                await running

        asyncio.run(play())
        assert _once_failed(stage.work._course.past) == _once_failed(way)
        assert stage.backend.was_shut_down == (script is is_closed_before_the_backend_is_there)
        assert not stage.work.healthy


def _once_failed(way: tuple[State, ...]) -> list[State]:
    """A way on which every failure is there once, however often it was then tried in vain to begin."""
    short: list[State] = []
    for state in way:
        short.append(state)
        for vain in ([FAILED, BEGINNING, FAILED], [FAILED, BEGINNING, DETACHED, FAILED]):
            if short[-len(vain) :] == vain:
                del short[1 - len(vain) :]
    return short


LEGAL = {(before, after) for before, following in TRANSITIONS.items() for after in following}


def test_the_scripts_go_every_way_that_there_is() -> None:
    gone = {step for _, _, way in SCRIPTS for step in pairwise(way)}
    assert gone == LEGAL
    assert set(TRANSITIONS) == set(State)


def at(state: State) -> Course:
    """A course that has come to a state by some way."""
    courses = [(WAITING,)]
    for way in courses:
        if way[-1] is state:
            course = Course()
            for each in way:
                course.to(each)
            return course
        courses += [(*way, after) for after in sorted(TRANSITIONS[way[-1]], key=lambda each: each.value)]
    raise AssertionError(f"no way leads to {state}")


@pytest.mark.parametrize("before", State)
@pytest.mark.parametrize("after", State)
def test_other_ways_are_refused_and_change_nothing(before: State, after: State) -> None:
    course = at(before)
    past = course.past
    if (before, after) in LEGAL:
        course.to(after)
        assert (course.state, course.past) == (after, (*past, after))
    elif before is after:
        course.to(after)
        assert course.past == past
    else:
        expected = f"cannot go from '{before.value}' to '{after.value}'; so far: waiting"
        with pytest.raises(TransitionError, match=expected):
            course.to(after)
        assert course.past == past
    assert course.schedules == (course.state in {ATTACHED, DOUBTFUL, DETACHED})
    assert course.over == (course.state is OVER)
