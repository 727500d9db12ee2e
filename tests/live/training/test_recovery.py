"""A controller that follows another: places in the queue, debts, waits, drains, and leases as they were."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import update

from fairway.errors import InputError
from fairway.live.backend.accelerators import Accelerator
from fairway.live.training.places import Places, devices_of
from fairway.live.training.recovery import cluster_of
from fairway.store import Store
from fairway.store.database.schema import jobs, leases
from fairway.store.job_changes import request_cancel
from fairway.store.journal import read_journal, trim_decisions
from fairway.store.queries import job_history
from fairway.store.records import Worker
from fairway.store.states import JobState
from fairway.store.workers import register_agent
from tests.live.training.invariants import check_all_over, check_history, check_journal
from tests.live.training.virtual import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path, "v100=2,k80=1").running() as made:
        yield made


def test_who_runs_runs_on_and_who_waits_is_owed_what_it_was(world: World) -> None:
    names = [world.submit(200, team=f"team-{number % 2}") for number in range(7)]
    world.run_for(15.0)
    engine = world.session.scheduler.engine
    before = {name: engine.jobs.owed[engine.jobs.position(name)].copy() for name in names if name in engine.jobs}
    running = {process.job: process for process in world.alive()}
    assert len(running) == 3
    world.session.scheduler.save_standing()
    world.commit()
    world.start_controller()
    engine = world.session.scheduler.engine
    assert list(engine.jobs.ids) == names, "in the order of submission"
    for name, owed in before.items():
        np.testing.assert_allclose(engine.jobs.owed[engine.jobs.position(name)], owed)
    assert {process.job: process for process in world.alive()} == running
    assert all(process.stop is None for process in running.values())
    assert engine.jobs.arrival[0] == pytest.approx(0.0), "as long ago as they came"


def test_a_wait_after_a_failure_is_not_cut_short_and_debts_survive_it(world: World) -> None:
    job = world.submit(20, run=["fail"], retries=9)
    for _ in range(3):
        world.run_until(lambda: world.job(job).state is JobState.RUNNING)
        world.run_until(lambda: world.job(job).reason_code == "BackOff")
    ended = world.now
    assert world.job(job).failures == 3
    world.submit(2)
    world.run_for(2.5)  # a round begins meanwhile, and what everybody is owed is written down
    world.start_controller()
    assert world.session.scheduler.jobs[job].waiting is not None
    world.run_until(lambda: len([process for process in world.processes if process.job == job]) == 4)
    assert world.now - ended >= 4.0
    assert world.now - ended < 7.0
    world.cancel(job)
    world.finish()


def test_a_drain_outlives_the_controller(world: World) -> None:
    world.drain([("v100", 0), ("v100", 1)], on=True)
    job = world.submit(4, throughputs={"v100": 2.0})
    world.start_controller()
    world.run_for(3.0)
    assert world.job(job).reason_code == "WorkersDrained"
    world.drain([("v100", 1)], on=False)
    world.finish()
    assert world.store.read(job_history, job).leases[0].workers == (1,)


def test_workers_that_are_gone_stay_gone_when_they_are_undrained(tmp_path: Path) -> None:
    with World(tmp_path, "v100=2").running() as world:
        long = world.submit(100, throughputs={"v100": 2.0})
        other = world.submit(100, throughputs={"v100": 2.0})
        world.run_for(3.0)
        world.machine.emulate = "v100=1"
        world.start_agent()
        world.start_controller()
        world.drain([("v100", 1)], on=True)
        world.drain([("v100", 1)], on=False)
        assert world.session.scheduler.engine.workers.present.tolist() == [1]
        world.run_for(5.0)
        assert len(world.alive()) == 1, "whoever ran on the lost worker has saved and stopped"
        big = world.submit(10, resources={"accelerators": "v100:2"}, throughputs={"v100": 2.0})
        world.run_for(3.0)
        assert world.job(big).reason_code == "WorkersLost"
        world.machine.emulate = "v100=2"
        world.start_agent()
        world.start_controller()
        world.finish()
        assert {world.job(job).state for job in (long, other, big)} == {JobState.SUCCEEDED}
        check_history(world.store)


def test_a_job_that_cannot_be_scheduled_any_more_waits_until_it_can(world: World) -> None:
    job, waits, fine = world.submit(100), world.submit(100, throughputs={"k80": 1.0}), world.submit(100)
    world.submit(100, throughputs={"k80": 1.0})
    world.run_for(3.0)
    spec = world.job(job).spec
    for name in (job, waits):
        _describe(world.store, name, {"run": "true", "nonsense": 1})
    world.start_controller()
    for name in (job, waits):
        aside = world.job(name)
        assert (aside.state, aside.reason_code) == (JobState.QUEUED, "Unrunnable")
        assert aside.reason is not None
        assert "nonsense" in aside.reason
    world.run_for(1.0)
    assert job not in {process.job for process in world.alive()}
    assert fine in {process.job for process in world.alive()}
    assert world.machine.checkpoints[job] > 0, "it was asked to save"
    world.store.write(request_cancel, waits, at=world.now)
    _describe(world.store, job, spec)
    world.start_controller()
    world.finish()
    assert (world.job(job).state, world.job(job).attempts) == (JobState.SUCCEEDED, 2)
    assert world.job(waits).state is JobState.CANCELLED
    check_history(world.store)
    check_all_over(world.store)


def _describe(store: Store, job: str, spec: Mapping[str, Any]) -> None:
    store.write(lambda connection: connection.execute(update(jobs).where(jobs.c.id == job).values(spec=spec)) and None)


def test_another_policy_fails_no_job_that_it_cannot_decide_about(world: World) -> None:
    endless = world.submit(None)
    fine = world.submit(10)
    world.run_for(3.0)
    world.settings = replace(world.settings, policy="shortest-job-first")
    world.start_controller()
    world.run_for(20.0)
    assert world.job(fine).state is JobState.SUCCEEDED
    assert world.job(endless).reason_code == "Unrunnable"
    assert not world.alive()
    world.settings = replace(world.settings, policy="fifo")
    world.start_controller()
    world.run_for(3.0)
    assert [process.job for process in world.alive()] == [endless]


def test_leases_that_contradict_each_other_do_not_keep_a_controller_from_starting(world: World) -> None:
    first, second = world.submit(100), world.submit(100)
    world.run_for(3.0)
    taken = {lease.grant.jobs[0]: lease.grant for lease in world.session.scheduler.leases}
    place = {"accelerator": taken[first].accelerator, "workers": taken[first].workers}
    world.store.write(
        lambda connection: (
            connection.execute(update(leases).where(leases.c.number == taken[second].lease).values(place)) and None
        )
    )
    world.start_controller()
    world.finish()
    assert {world.job(job).state for job in (first, second)} == {JobState.SUCCEEDED}
    assert world.job(first).attempts == 1


def test_numbers_of_leases_go_on_above_all_that_the_agent_has_seen(world: World, tmp_path: Path) -> None:
    job = world.submit(4)
    world.table.state.floors[job] = 500
    world.start_controller()
    world.finish()
    assert world.job(job).state is JobState.SUCCEEDED
    assert world.store.read(job_history, job).leases[0].number > 500


def test_the_journal_tells_what_the_engine_was_made_from_and_stays_small(world: World) -> None:
    for _ in range(4):
        world.submit(30, team="red")
    world.run_for(6.0)
    world.start_controller()
    world.finish()
    starts = world.store.read(read_journal, kinds=["start"])
    assert len(starts) == 2
    body = starts[-1].body
    assert body.keys() == {"cluster", "policy", "options", "profiles", "resumption"}
    assert {event["type"] for event in body["resumption"]} >= {"JobResumed", "LeaseResumed"}
    check_journal(world.store)
    decisions = len(world.store.read(read_journal, kinds=["decision"]))
    assert decisions > 3
    assert world.store.write(trim_decisions, keep=2) == decisions - 2
    assert world.store.write(trim_decisions, keep=2) == 0
    world.session.trim()
    world.commit()
    assert len(world.store.read(read_journal, kinds=["decision"])) == 2


def test_a_worker_keeps_its_number_when_those_before_it_are_lost(world: World) -> None:
    gpus = [Accelerator("a100", number, device=f"GPU-{number}") for number in range(3)]
    world.store.write(register_agent, "gpus", devices_of(gpus), at=1.0)
    left = [gpus[0], replace(gpus[2], number=1)]
    workers = world.store.write(register_agent, "gpus", devices_of(left), at=2.0)
    places = Places.of(workers, left)
    assert places.at_the_backend == {("a100", 0): 0, ("a100", 2): 1}
    assert places.of_workers == {("a100", 0): 0, ("a100", 1): 2}


def test_prices_are_needed_for_all_types_or_for_none() -> None:
    workers = [Worker("v100", 1, "local", "x", True, 0.0), Worker("k80", 0, "local", "y", True, 0.0)]
    assert cluster_of(workers, {}).workers == {"v100": 2, "k80": 1}
    assert cluster_of(workers, {"v100": 2.0, "k80": 1.0, "h100": 9.0}).prices == {"v100": 2.0, "k80": 1.0}
    with pytest.raises(InputError, match="prices: none given for 'k80'"):
        cluster_of(workers, {"v100": 2.0})


@pytest.mark.parametrize(
    ("devices", "sizes"),
    [
        (["emulated-0", "emulated-1"], {}),
        (["a/GPU-1", "a/GPU-2"], {}),
        (["a/GPU-1", "a/GPU-2", "b/GPU-1", "b/GPU-2"], {"v100": 2}),
        (["a/GPU-1", "b/GPU-1", "c/GPU-1"], {"v100": 1}),
        (["a/GPU-1", "a/GPU-2", "b/GPU-1"], {"v100": 2}),
        (["a/GPU-1", "b/GPU-1", "b/GPU-2"], {}),
        (["a/GPU-1", "b/GPU-1", "a/GPU-2", "b/GPU-2"], {}),
    ],
)
def test_nodes_of_equal_size_are_known_to_the_engine(devices: list[str], sizes: dict[str, int]) -> None:
    workers = [Worker("v100", number, "local", device, True, 0.0) for number, device in enumerate(devices)]
    assert cluster_of(workers, {}).workers_per_node == sizes
