"""Jobs that may not be scheduled yet: the policy does not see them, and they come by themselves when they may."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairway.jobs.description import job_of
from fairway.jobs.expansion import expanded
from fairway.store.states import JobState
from fairway.store.submissions import Submission, submit
from tests.live.training.invariants import check_all_over, check_history
from tests.live.training.virtual import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path, "v100=4").running() as made:
        yield made


def submit_all(world: World, *documents: dict[str, Any]) -> list[str]:
    """Jobs of descriptions, as the service submits them."""
    described = [
        job_of({"run": ["steps"], "steps": 20, "throughputs": {"v100": 2.0}, **one}, "job") for one in documents
    ]
    members = [member for job in described for member in expanded(job)]
    submissions = [
        Submission.of(
            member.job,
            team=member.job.team,
            together=len(members),
            array_name=member.array_name,
            array_position=member.position,
        )
        for member in members
    ]
    jobs = world.store.write(submit, submissions, at=world.now)
    world.session.look_for_jobs()
    world.commit()
    return [job.id for job in jobs]


def scheduled(world: World) -> list[str]:
    """The jobs that the policy sees."""
    return list(world.session.scheduler.engine.jobs.ids)


def test_so_many_of_an_array_are_scheduled_at_a_time_as_it_says(world: World) -> None:
    array = submit_all(world, {"name": "a", "array": "0-5%2"})
    other = submit_all(world, {"name": "b", "array": "0-1"})
    assert scheduled(world) == [*array[:2], *other]
    assert world.job(array[2]).reason_code == "ArrayLimit"
    assert world.job(array[2]).reason == "2 other jobs of its array are scheduled, as many as may be at a time (%2)"
    most = 0
    while world.session.scheduler.jobs:
        world.step()
        most = max(most, sum(process.job in array for process in world.alive()))
    assert most == 2
    assert {job.state for job in world.jobs()} == {JobState.SUCCEEDED}
    check_all_over(world.store)
    check_history(world.store)


def test_one_that_waits_is_cancelled_and_one_that_is_cancelled_makes_room(world: World) -> None:
    array = submit_all(world, {"name": "a", "array": "0-3%1", "steps": 10_000})
    world.run_for(3.0)
    world.cancel(array[1])
    assert world.job(array[1]).state is JobState.CANCELLED
    world.cancel(array[0])
    world.run_until(lambda: world.job(array[2]).state is JobState.RUNNING)
    assert scheduled(world) == [array[2]]
    assert world.job(array[3]).reason_code == "ArrayLimit"


def test_a_controller_that_follows_lets_in_those_that_ran_and_then_the_first(world: World) -> None:
    array = submit_all(world, {"name": "a", "array": "0-4%2", "steps": 10_000})
    world.run_for(3.0)
    world.cancel(array[0])
    world.run_until(lambda: world.job(array[2]).state is JobState.RUNNING)
    for _ in range(2):
        world.start_controller()
        assert scheduled(world) == array[1:3]
        assert [world.job(name).reason_code for name in array[3:]] == ["ArrayLimit"] * 2
    world.cancel(array[2])
    world.start_controller()
    world.run_until(lambda: world.job(array[3]).state is JobState.RUNNING)
    assert scheduled(world) == [array[1], array[3]]


def test_two_arrays_of_one_name_have_a_limit_each(world: World) -> None:
    first = submit_all(world, {"name": "a", "array": "0-2%1"})
    second = submit_all(world, {"name": "a", "array": "0-2%1"})
    assert scheduled(world) == [first[0], second[0]]
