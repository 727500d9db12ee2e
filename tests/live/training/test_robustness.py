"""A controller among failing stores, other controllers, impatient callers and its own mistakes."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairway.engine.protocol import TransitionError
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import Event, RoundBegan
from fairway.errors import FairwayError, InputError
from fairway.jobs.description import parse_job
from fairway.live.backend.answers import BackendGoneError, CommandAnswer, SupersededError
from fairway.live.backend.commands import RunCommand
from fairway.live.backend.reports import AcceleratorsChanged, BackendReport
from fairway.live.backend.status import BackendStatus
from fairway.live.local.agent.client import AgentClient
from fairway.live.local.backend import LocalBackend
from fairway.live.training.controller import Controller
from fairway.live.training.settings import ControllerSettings
from fairway.store import Store, counters, open_store
from fairway.store.errors import StoreError
from fairway.store.job_changes import request_cancel
from fairway.store.queries import count_jobs
from fairway.store.states import JobState
from fairway.store.submissions import Submission, submit
from tests.live.training.invariants import check_all_over, check_history, check_journal
from tests.live.training.site import Site, until

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc, as on Linux")


@contextmanager
def failing_writes(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """As if the disk were full, for the controller."""
    calls: list[int] = []

    def fail(*_: object, **__: object) -> Future[Any]:
        calls.append(1)
        raise StoreError("the store failed: database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(store, "begin_vital_write", fail)
        patched.setattr(store, "write", fail)
        yield calls


def test_nothing_is_decided_while_the_store_fails_and_all_goes_on_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Site(tmp_path, round_seconds=0.2) as site:
        go = tmp_path / "go"
        job = site.submit(f"while [ ! -e {go} ]; do sleep 0.02; done")
        site.wait_for(job, JobState.RUNNING)
        assert site.controller.healthy
        with failing_writes(site.store, monkeypatch) as calls:
            until(lambda: not site.controller.healthy, "for it to notice")
            go.touch()
            granted = site.controller.statistics().leases_granted_total
            with pytest.raises(StoreError, match="nothing can be changed at the moment"):
                site.controller.drain([("v100", 0)], on=True)
            assert site.controller.look(lambda engine: len(engine.jobs)) == 1, "questions are answered meanwhile"
            until(lambda: len(calls) > 2, "for it to try again")
            assert site.controller.statistics().leases_granted_total == granted
        assert site.wait_for(job, JobState.SUCCEEDED).attempts == 1
        until(lambda: site.controller.healthy)
        assert site.controller.statistics().recoveries_total >= 1
        site.wait_for(site.submit("true"), JobState.SUCCEEDED)
        check_history(site.store)


def test_a_drain_that_cannot_be_written_down_is_not_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Site(tmp_path, "v100=1", round_seconds=60.0) as site:
        with failing_writes(site.store, monkeypatch), pytest.raises(StoreError):
            site.controller.drain([("v100", 0)], on=True)
        until(lambda: site.controller.healthy)
        assert [worker.drained_at for worker in site.controller.workers] == [None]
        site.wait_for(site.submit("true"), JobState.SUCCEEDED)


def test_a_mistake_of_the_engine_is_told_and_scheduling_goes_on_from_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Site(tmp_path, round_seconds=0.3) as site:
        go = tmp_path / "go"
        job = site.submit(f"while [ ! -e {go} ]; do sleep 0.02; done")
        site.wait_for(job, JobState.RUNNING)
        handle, wrong = TrainingEngine.handle, [1]

        def confused(engine: TrainingEngine, now: float, events: Sequence[Event]) -> Any:
            if RoundBegan() in events and wrong:
                wrong.pop()
                raise TransitionError(f"confused by {events}:\n{engine.story(f'job {job}')}")
            return handle(engine, now, events)

        with caplog.at_level(logging.ERROR):
            monkeypatch.setattr(TrainingEngine, "handle", confused)
            until(lambda: site.controller.statistics().recoveries_total == 1)
            until(lambda: site.controller.healthy)
        assert f"Grant(lease=1, jobs=('{job}',)" in caplog.text, "the job's story is told"
        go.touch()
        assert site.wait_for(job, JobState.SUCCEEDED).attempts == 1


def test_a_second_controller_in_the_same_directory_is_refused(tmp_path: Path) -> None:
    with Site(tmp_path) as site:
        with pytest.raises(InputError, match="another controller works in this directory"):
            Controller(site.settings, site.store).start()
        assert site.controller.healthy
        site.controller.stop()
        site.start()


def test_a_controller_stops_when_another_one_has_started_on_its_store(tmp_path: Path) -> None:
    with Site(tmp_path, round_seconds=0.2) as site:
        go = tmp_path / "go"
        job = site.submit(f"while [ ! -e {go} ]; do sleep 0.02; done")
        site.wait_for(job, JobState.RUNNING)
        old = site.controller
        site.store.write(counters.take, counters.EPOCHS, 1)
        until(lambda: not old.healthy, "for it to notice")
        old.stop()
        with pytest.raises(FairwayError, match="the controller does not run"):
            old.look(lambda engine: engine.now)
        assert site.job(job).state is JobState.RUNNING
        site.start()
        go.touch()
        assert site.wait_for(job, JobState.SUCCEEDED).attempts == 1


def test_a_controller_stops_when_its_agent_listens_to_another_one(tmp_path: Path) -> None:
    with Site(tmp_path, round_seconds=60.0) as site:

        async def take_over() -> None:
            client, _ = await AgentClient.connect(site.settings.backend_directory, 1000)
            await client.close()

        asyncio.run(take_over())
        until(lambda: not site.controller.healthy)
        site.controller.stop()
        with pytest.raises(SupersededError, match="a controller of epoch 1000 has taken over"):
            site.start()
        site.store.write(counters.raise_to, counters.EPOCHS, 1000)
        site.start()


def test_who_asks_a_controller_that_stops_gets_an_answer(tmp_path: Path) -> None:
    with Site(tmp_path) as site:
        answers: list[str] = []
        begun = threading.Event()

        def ask() -> None:
            begun.set()
            while True:
                try:
                    site.controller.look(lambda engine: engine.now)
                except FairwayError as error:
                    answers.append(str(error))
                    return

        def drain() -> None:
            while True:
                try:
                    site.controller.drain([("v100", 0)], on=True)
                except FairwayError as error:
                    answers.append(str(error))
                    return

        with ThreadPoolExecutor(8) as pool:
            for _ in range(4):
                pool.submit(ask)
                pool.submit(drain)
            begun.wait()
            site.controller.stop()
        assert set(answers) <= {"the controller does not run", "the controller has stopped"}
        assert len(answers) == 8
        for late in (site.controller.notify, site.controller.stop, site.controller.shut_down):
            late()
        site.start()


def test_a_controller_that_never_started_says_so(tmp_path: Path) -> None:
    settings = ControllerSettings(tmp_path / "site", emulate="v100=1")
    with open_store(tmp_path / "site") as store:
        controller = Controller(settings, store)
        controller.notify()
        assert not controller.healthy
        with pytest.raises(FairwayError, match="the controller does not run"):
            controller.look(lambda engine: engine.now)
        controller.stop()
        with pytest.raises(InputError, match="'p100'; give one for every accelerator type"):
            Controller(ControllerSettings(tmp_path / "site", emulate="p100=1", prices={"v100": 1.0}), store).start()
        controller.start()  # what failed to start does not stand in the way
        try:
            store.write(submit, [Submission(spec={"run": "true"})], at=time.time())
            controller.notify()
            until(lambda: store.read(count_jobs) == {(None, JobState.SUCCEEDED): 1})
        finally:
            controller.shut_down()


def test_a_job_that_its_policy_cannot_decide_about_does_not_hold_up_the_others(tmp_path: Path) -> None:
    with Site(tmp_path, policy="shortest-job-first") as site:
        endless = site.submit("true")
        fine = site.submit("true", steps=3)
        failed = site.wait_for(endless, JobState.FAILED)
        assert failed.reason_code == "Unrunnable"
        assert failed.reason is not None
        assert "has no steps_left, which policy 'shortest-job-first' needs" in failed.reason
        site.wait_for(fine, JobState.SUCCEEDED)
        with pytest.raises(InputError, match="shortest-job-first"):
            site.controller.check(parse_job("run: 'true'", "job"))
        site.controller.check(parse_job("run: 'true'\nsteps: 5", "job"))
        nonsense = site.submit("true", steps=3, resources={"accelerators": "h100"})
        failed = site.wait_for(nonsense, JobState.FAILED)
        assert failed.reason is not None
        assert "h100" in failed.reason


def test_many_threads_submit_and_cancel_at_once(tmp_path: Path) -> None:
    with Site(tmp_path, "v100=4", round_seconds=0.3) as site:

        def one(number: int) -> None:
            (job,) = site.store.write(submit, [Submission(spec={"run": "sleep 0.05"})], at=time.time())
            site.controller.notify()
            if number % 3:
                time.sleep(number % 7 * 0.03)
                site.store.write(request_cancel, job.id, at=time.time())
                site.controller.notify()

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(one, range(40)))
        until(lambda: not any(job.active for job in site.jobs()), "for all of them to end")
        assert {job.state for job in site.jobs()} <= {JobState.SUCCEEDED, JobState.CANCELLED}
        assert sum(job.state is JobState.SUCCEEDED for job in site.jobs()) >= 14
        until(lambda: not site.agent().runs)
        check_history(site.store)
        assert site.controller.statistics().recoveries_total == 0


class ShrinkingBackend(LocalBackend):
    """Loses its last accelerator when it is told to, as a machine does whose GPU breaks or whose node leaves."""

    def __init__(self, site: Site) -> None:
        super().__init__(site.settings.backend_directory, emulate=site.settings.emulate)
        self.lost = False
        self._report: Callable[[BackendReport], None] | None = None

    async def run(self, epoch: int, report: Callable[[BackendReport], None]) -> None:
        self._report = report
        await super().run(epoch, report)

    async def status(self) -> BackendStatus:
        status = await super().status()
        return replace(status, accelerators=status.accelerators[:-1]) if self.lost else status

    def lose(self, site: Site) -> None:
        """To be called from another thread."""

        def change() -> None:
            self.lost = True
            assert self._report is not None
            self._report(AcceleratorsChanged(site.controller._work.accelerators[:-1]))

        site.controller._inbox.post(change)


def test_a_job_on_an_accelerator_that_is_lost_moves_to_another(tmp_path: Path) -> None:
    with Site(tmp_path, "v100=1,k80=1", round_seconds=0.3) as site:
        site.controller.stop()
        shrinking = ShrinkingBackend(site)
        site.start(through=shrinking)
        jobs = [site.submit("sleep 600", throughputs={"v100": 2.0, "k80": 1.0}) for _ in range(2)]
        for job in jobs:
            site.wait_for(job, JobState.RUNNING)
        shrinking.lose(site)
        until(lambda: {worker.accelerator for worker in site.controller.workers if worker.lost_at is not None})
        assert [worker.accelerator for worker in site.controller.workers if worker.lost_at is not None] == ["k80"]
        until(lambda: len(site.agent().runs) == 1, "for the run on what is lost to stop")
        assert {run.accelerator for run in site.agent().runs} == {"v100"}
        until(lambda: site.controller.healthy)
        assert [one.type for one in site.controller.devices().values()] == ["v100"]
        for job in jobs:
            site.cancel(job)
            site.wait_for(job, JobState.CANCELLED)
        check_history(site.store)


class FlakyBackend(LocalBackend):
    """Loses its connection at every so many-th command, before the agent has heard of it or after."""

    def __init__(self, site: Site, every: int) -> None:
        super().__init__(site.settings.backend_directory, emulate=site.settings.emulate)
        self._left, self._every = every, every
        self.lost = 0

    async def give(self, command: RunCommand) -> CommandAnswer:
        self._left -= 1
        if self._left or self._client is None:
            return await super().give(command)
        self.lost += 1
        self._left = self._every + self.lost % 3
        if self.lost % 2:
            await super().give(command)
        if self._client is not None:
            await self._client.close()
        raise BackendGoneError("the connection is lost")


@pytest.mark.parametrize("every", [2, 5])
def test_commands_that_get_lost_are_made_up_for(tmp_path: Path, every: int) -> None:
    with Site(tmp_path, "v100=2,k80=1", round_seconds=0.3) as site:
        site.controller.stop()
        flaky = FlakyBackend(site, every)
        site.start(through=flaky)
        gang = {"resources": {"accelerators": "v100:2"}}
        jobs = [site.submit("sleep 0.1", **(gang if number % 3 == 0 else {})) for number in range(6)]
        taken_back = site.submit("sleep 600")
        site.wait_for(taken_back, JobState.RUNNING)
        site.cancel(taken_back)
        site.wait_for(taken_back, JobState.CANCELLED)
        for job in jobs:
            assert site.wait_for(job, JobState.SUCCEEDED, JobState.FAILED).state is JobState.SUCCEEDED
        until(lambda: not site.agent().runs)
        assert flaky.lost > 3
        assert {site.job(job).failures for job in jobs} == {0}
        check_history(site.store)
        check_all_over(site.store)
        check_journal(site.store)
