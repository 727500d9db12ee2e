"""The system clock is set by an hour, while jobs run and while no controller does: no round and no lease notices."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from fairway.live.training.clock import Clock
from fairway.store.job_changes import request_cancel
from fairway.store.queries import snapshot
from fairway.store.states import JobState
from tests.live.training.site import Site, until
from tests.live.training.virtual import World

HOUR = 3600.0

steps = pytest.mark.parametrize("step", [HOUR, -HOUR], ids=["forwards", "back"])


def _three_jobs_for_two_workers(world: World) -> list[str]:
    return [world.submit(steps=40, throughputs={"v100": 2.0}) for _ in range(3)]


def _seconds_taken(directory: Path, *, step: float, restart: bool) -> float:
    """How long three jobs take if the clock is set in the middle of it."""
    with World(directory, "v100=2").running() as world:
        begun = world.now
        jobs = _three_jobs_for_two_workers(world)
        world.run_for(5.0)
        world.machine.clock_set_by += step
        if restart:
            world.start_agent()
            world.clock = Clock(machine=world.machine)
            world.start_controller()
        world.finish()
        assert {world.job(name).state for name in jobs} == {JobState.SUCCEEDED}
        assert {world.job(name).failures for name in jobs} == {0}
        return world.now - begun


@pytest.mark.parametrize("restart", [False, True], ids=["running", "restarted"])
def test_jobs_take_turns_as_if_the_clock_had_not_been_set(tmp_path: Path, restart: bool) -> None:
    back, undisturbed, forwards = (
        _seconds_taken(tmp_path / f"set-by-{step:.0f}", step=step, restart=restart) for step in (-HOUR, 0.0, HOUR)
    )
    assert back == pytest.approx(undisturbed, abs=2.0)
    assert forwards == pytest.approx(undisturbed, abs=2.0)


@steps
def test_a_real_controller_goes_on_with_its_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    with Site(tmp_path, "v100=2", round_seconds=0.3) as site:
        running = site.submit("sleep 600")
        until(lambda: site.controller.statistics().rounds >= 2, "for the first rounds")
        wall = time.time
        monkeypatch.setattr(time, "time", lambda: wall() + step)
        rounds = site.controller.statistics().rounds
        until(lambda: site.controller.statistics().rounds >= rounds + 5, "for rounds after the clock was set")
        later = site.wait_for(site.submit("true"), JobState.SUCCEEDED)
        assert later.submitted_at == pytest.approx(wall() + step, abs=60.0)
        site.cancel(running)
        site.wait_for(running, JobState.CANCELLED)


@steps
def test_a_job_rests_no_longer_after_a_failure_than_it_has_to(tmp_path: Path, step: float) -> None:
    with World(tmp_path, "v100=1").running() as world:
        job = world.submit(steps=None, run=["fail"], retries=3)
        world.run_until(lambda: world.job(job).reason_code == "BackOff")
        world.machine.clock_set_by += step
        world.clock = Clock(machine=world.machine)
        world.start_controller()
        world.run_until(lambda: world.job(job).attempts == 2, seconds=30.0)


def test_a_job_that_seems_to_come_from_the_future_has_just_arrived(tmp_path: Path) -> None:
    with World(tmp_path, "v100=1").running() as world:
        job = world.submit(steps=1000, deadline=600)
        world.machine.clock_set_by -= HOUR
        world.clock = Clock(machine=world.machine)
        world.start_controller()
        engine = world.session.scheduler.engine
        position = engine.jobs.position(job)
        assert engine.jobs.arrival[position] == pytest.approx(engine.now, abs=1.0)
        assert engine.jobs.deadline[position] == pytest.approx(engine.now + 600.0, abs=1.0)


@steps
def test_a_job_that_waits_and_is_taken_back_while_the_clock_is_set_leaves_the_engine(
    tmp_path: Path, step: float
) -> None:
    """Of a job that was cancelled in the store alone, the controller learns by looking at what changed lately."""
    with World(tmp_path, "v100=1", round_seconds=1e6).running() as world:
        holder, waiting = world.submit(steps=10**6), world.submit(steps=10**6)
        world.run_until(lambda: world.job(holder).state is JobState.RUNNING)
        world.run_for(3.0)
        before = world.machine.time() if step > 0 else world.machine.time() + step
        world.store.write(request_cancel, waiting, at=before)
        world.machine.clock_set_by += step
        world.session.look_for_jobs()
        world.run_for(3.0)
        assert waiting not in world.session.scheduler.engine.jobs


@steps
def test_the_backend_hears_in_every_round_until_when_a_lease_goes_on_as_the_clock_is_set_then(
    tmp_path: Path, step: float
) -> None:
    with World(tmp_path, "v100=1", round_seconds=5.0).running() as world:
        world.submit(steps=10**6)
        world.run_for(1.0)
        world.machine.clock_set_by += step
        for _ in range(3):
            world.run_for(5.0)
            (run,) = world.status().runs
            (lease,) = world.store.read(snapshot).leases
            end = world.session.scheduler.engine.round_end
            assert end is not None
            assert run.until == lease.until == pytest.approx(world.clock.wall(end))
            assert 0.0 < lease.until - world.machine.time() <= 5.0
