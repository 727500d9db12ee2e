"""Jobs that may not be scheduled yet: the policy does not see them, and they come by themselves when they may."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairway.errors import InputError
from fairway.jobs import Entity
from fairway.jobs.description import job_of
from fairway.jobs.expansion import expanded
from fairway.live.backend.status import MachineSize
from fairway.live.training.admission.priorities import PriorityClass
from fairway.store.reservations import cancel_reservation, reserve
from fairway.store.states import JobState
from fairway.store.submissions import Submission, submit
from tests.live.training.invariants import check_all_over, check_history
from tests.live.training.virtual import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path, "v100=4").running() as made:
        yield made


def submit_all(world: World, *documents: dict[str, Any], sees: str | None = None) -> list[str]:
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
            sees_team=sees,
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


def test_a_job_runs_after_those_that_it_names_have_ended(world: World) -> None:
    first, fails, last = submit_all(
        world,
        {"name": "first"},
        {"name": "fails", "run": ["fail"], "retries": 0},
        {"name": "last", "after": ["first", "fails"]},
    )
    assert scheduled(world) == [first, fails]
    assert (world.job(last).reason_code, world.job(last).reason) == (
        "WaitingForJobs",
        f"waits for {first} to end, {fails} to end",
    )
    world.run_until(lambda: not world.job(fails).active)
    world.run_until(lambda: world.job(last).reason == f"waits for {first} to end")
    world.finish()
    assert [world.job(name).state for name in (first, fails, last)] == [
        JobState.SUCCEEDED, JobState.FAILED, JobState.SUCCEEDED,
    ]  # fmt: skip
    assert (world.job(last).started_at or 0.0) > (world.job(first).ended_at or 0.0)


def test_a_job_whose_dependency_did_not_succeed_is_cancelled_and_so_are_those_behind_it(world: World) -> None:
    fails, good, child, grandchild, any_way = submit_all(
        world,
        {"name": "fails", "run": ["fail"], "retries": 0},
        {"name": "good"},
        {"name": "child", "afterok": ["good", "fails"]},
        {"name": "grandchild", "afterok": ["child"]},
        {"name": "any-way", "after": ["child"]},
    )
    world.finish()
    assert world.job(good).state is world.job(any_way).state is JobState.SUCCEEDED
    for name, why in [(child, f"{fails} had succeeded, which failed"),
                      (grandchild, f"{child} had succeeded, which was cancelled")]:  # fmt: skip
        job = world.job(name)
        assert (job.state, job.reason_code, job.attempts) == (JobState.CANCELLED, "DependencyFailed", 0)
        assert job.reason == f"it was to run after {why}"
    late = submit_all(world, {"afterok": [fails]})[0]
    assert world.job(late).state is JobState.CANCELLED
    soon = submit_all(world, {"afterok": [good]})[0]
    assert scheduled(world) == [soon]
    world.finish()
    check_all_over(world.store)
    check_history(world.store)


def test_who_is_cancelled_while_it_waits_is_forgotten_and_others_wait_for_it_no_more(world: World) -> None:
    long, middle, last = submit_all(
        world, {"name": "long", "steps": 10_000}, {"name": "middle", "after": ["long"]}, {"after": ["middle"]}
    )
    world.run_for(2.0)
    world.cancel(middle)
    world.run_until(lambda: world.job(last).state is JobState.RUNNING)
    world.cancel(long)
    world.finish()
    assert not world.session.scheduler.gate.needed


def test_what_jobs_wait_for_outlives_the_controller(world: World) -> None:
    first, second, third = submit_all(
        world, {"name": "a", "steps": 40}, {"name": "b", "steps": 10_000}, {"after": ["a"], "afterok": ["b"]}
    )
    world.run_for(2.0)
    world.start_controller()
    assert scheduled(world) == [first, second]
    assert world.job(third).reason == f"waits for {first} to end, {second} to succeed"
    world.run_until(lambda: not world.job(first).active)
    world.start_controller()  # it may have ended while no controller looked
    assert world.job(third).reason == f"waits for {second} to succeed"
    world.cancel(second)
    world.start_controller()
    world.finish()
    assert world.job(third).reason_code == "DependencyFailed"


def test_a_name_means_the_newest_and_that_of_an_array_all_of_it(world: World) -> None:
    submit_all(world, {"name": "x"})
    newest, *_ = submit_all(world, {"name": "x"})
    array = submit_all(world, {"name": "sweep", "array": "0-2", "after": "x"})
    (last,) = submit_all(world, {"after": ["sweep"]})
    assert world.job(array[0]).reason == f"waits for {newest} to end"
    assert world.job(last).reason == f"waits for {array[0]} to end, {array[1]} to end, {array[2]} to end"
    again = submit_all(world, {"name": "sweep", "array": "0-1", "after": "sweep"})  # of the one before
    assert world.job(again[0]).reason == world.job(again[1]).reason == world.job(last).reason
    world.finish()
    assert {job.state for job in world.jobs()} == {JobState.SUCCEEDED}


@pytest.mark.parametrize(
    ("documents", "said"),
    [
        ([{"after": ["no-such"]}], 'after: no job "no-such"; only jobs that exist can be waited for'),
        ([{"afterok": ["job-99"]}], 'afterok: no job "job-99"'),
        ([{"name": "self", "after": ["self"]}], 'after: no job "self"'),
        ([{"name": "a", "after": ["b"]}, {"name": "b"}], 'after: no job "b"'),  # one behind it: no cycle can be made
        ([{"name": "of-red", "team": "red"}, {"team": "blue", "after": ["of-red"]}], 'after: no job "of-red"'),
        ([{"name": "a", "array": "0-999"}, {"name": "b", "array": "0-99", "after": ["a"]}], "more than 10000 jobs"),
    ],
)
def test_what_cannot_be_waited_for_is_refused_with_all_that_came_with_it(
    world: World, documents: list[dict[str, Any]], said: str
) -> None:
    with pytest.raises(InputError) as refused:
        submit_all(world, *documents, sees="blue" if "team" in documents[0] else None)
    assert str(refused.value).startswith(said) or said in str(refused.value)
    assert world.jobs() == []


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, "v100=4,k80=2", policy="hierarchical")
    entities = {"lab": Entity(), "red": Entity(parent="lab"), "blue": Entity()}
    made.settings = replace(made.settings, entities=entities, quotas={"red": {"v100": 2}, "lab": {"": 3}})
    with made.running():
        yield made


def asking(count: int, kind: str = "v100", team: str = "red", **fields: Any) -> dict[str, Any]:
    resources = {"accelerators": f"{kind}:{count}"}
    return {"resources": resources, "team": team, "throughputs": {"v100": 2.0, "k80": 1.0}, "steps": 100, **fields}


def test_a_team_has_no_more_than_its_quota_and_others_are_not_held_up(limited: World) -> None:
    red = submit_all(limited, *[asking(1) for _ in range(4)])
    blue = submit_all(limited, *[asking(1, team="blue") for _ in range(2)])
    nobody = submit_all(limited, asking(1, team="blue") | {"team": None})
    assert scheduled(limited) == [*red[:2], *blue, *nobody]
    assert limited.job(red[2]).reason_code == "OverQuota"
    assert limited.job(red[2]).reason == (
        "team 'red' may have 2 v100 at a time, its jobs have 2 and this one asks for 1"
    )
    assert limited.job(red[3]).reason == "other jobs of team 'red' are before it and wait for room in its quota"
    most = 0
    while limited.session.scheduler.jobs:
        limited.step()
        most = max(most, sum(process.job in red for process in limited.alive()))
    assert most == 2
    assert {job.state for job in limited.jobs()} == {JobState.SUCCEEDED}


def test_a_large_job_is_not_passed_by_smaller_ones_of_its_team_and_teams_above_count(limited: World) -> None:
    first, large, small, slow = submit_all(limited, asking(1), asking(2), asking(1), asking(1, "k80", "lab"))
    assert scheduled(limited) == [first, slow]  # the others of the lab are not held up by what red has no room for
    over = submit_all(limited, asking(2, "k80", "lab"))[0]
    assert "team 'lab' may have 3 accelerators at a time" in (limited.job(over).reason or "")
    limited.start_controller()
    assert scheduled(limited) == [first, slow]
    limited.cancel(first)
    limited.cancel(slow)
    limited.run_until(lambda: limited.job(large).state is JobState.RUNNING)
    assert small not in scheduled(limited)
    limited.finish()
    check_history(limited.store)


def test_a_job_larger_than_the_quota_is_refused_at_the_door(limited: World) -> None:
    for asked, said in [
        (asking(3), "3 asked for, but team 'red' may have 2 v100 at a time"),
        (asking(4, team="lab"), "4 asked for, but team 'lab' may have 3 accelerators at a time"),
    ]:
        description = job_of({"run": "a", **asked}, "job")
        with pytest.raises(InputError, match=said):
            limited.session.check(description, description.team)
    limited.session.check(job_of({"run": "a", **asking(4, team="blue")}, "job"), "blue")


def test_a_team_whose_job_over_quota_is_cancelled_is_not_held_up_by_it(limited: World) -> None:
    first, second = submit_all(limited, asking(2), asking(2))
    assert scheduled(limited) == [first]
    limited.cancel(second)
    limited.run_for(60.0)
    assert not limited.session.scheduler.jobs
    (third,) = submit_all(limited, asking(1))
    assert scheduled(limited) == [third]


def test_cpus_and_memory_are_counted_over_all_types_of_the_machine_and_after_a_restart(tmp_path: Path) -> None:
    size = MachineSize(cpus=4.0, memory_bytes=8 * 2**30)
    with World(tmp_path, "v100=2,k80=2", machines=[size]).running() as world:
        rates = {"throughputs": {"v100": 2.0, "k80": 2.0}}
        first, second, third = submit_all(
            world, *({"resources": {"cpus": cpus}, "steps": 2000, **rates} for cpus in (3, 2, 1))
        )
        world.run_for(5.0)
        running = {job for lease in world.session.scheduler.leases for job in lease.runs}
        assert running == {first, third}
        assert world.job(second).reason_code == "NotEnoughResources"
        world.start_controller()
        world.run_for(1.0)
        assert world.job(second).reason_code == "NotEnoughResources"
        world.cancel(first)
        world.run_for(5.0)
        assert second in {job for lease in world.session.scheduler.leases for job in lease.runs}


def test_a_job_that_no_machine_has_room_for_is_refused_at_the_door(tmp_path: Path) -> None:
    with World(tmp_path, "v100=2", machines=[MachineSize(4.0, 8 * 2**30)]).running() as world:
        for asked, said in (({"cpus": 5}, "resources.cpus: 5 CPUs"), ({"memory": "9GiB"}, "resources.memory: 9 GiB")):
            spec = job_of({"run": "true", "resources": asked}, "job")
            with pytest.raises(InputError, match=said) as refused:
                world.session.check(spec, None)
            assert "has 4 CPUs and 8 GiB of memory" in str(refused.value)


@pytest.fixture
def classed(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, "v100=2")
    classes = {"urgent": PriorityClass(10, teams=("red",)), "later": PriorityClass(-10)}
    entities = {"lab": Entity(), "red": Entity(parent="lab"), "blue": Entity()}
    made.settings = replace(
        made.settings, entities=entities, quotas={"red": {"v100": 2}}, priority_classes=classes
    )  # fmt: skip
    with made.running() as world:
        yield world


def test_a_job_of_a_higher_class_goes_first_at_the_gate_and_takes_the_workers(classed: World) -> None:
    usual = submit_all(classed, *[{**asking(1), "steps": 400} for _ in range(4)])
    assert scheduled(classed) == usual[:2]
    (urgent,) = submit_all(classed, {**asking(2), "priority_class": "urgent", "steps": 40})
    assert classed.job(urgent).reason_code == "OverQuota"
    classed.cancel(usual[0])
    classed.cancel(usual[1])
    classed.run_for(5.0)
    assert scheduled(classed) == [urgent], "before the usual ones, which came earlier"
    (blue,) = submit_all(classed, {**asking(1, team="blue"), "steps": 4000})
    classed.run_for(5.0)
    assert {process.job for process in classed.alive()} == {urgent}
    classed.run_until(lambda: classed.job(urgent).state is JobState.SUCCEEDED)
    assert classed.job(blue).state is not JobState.SUCCEEDED


def test_a_class_that_a_team_may_not_use_or_that_there_is_not_is_refused(classed: World) -> None:
    def check(name: str, team: str | None) -> None:
        classed.session.check(job_of({"run": "a", "priority_class": name}, "job"), team)

    check("urgent", "red")
    check("later", None)
    with pytest.raises(InputError, match="priority_class: 'urgent' given for a job of team 'blue', but it is for red"):
        check("urgent", "blue")
    with pytest.raises(InputError, match="job of no team"):
        check("urgent", None)
    with pytest.raises(InputError, match="priority_class: 'soon' given, but there is no such class; known: urgent, l"):
        check("soon", "red")


def test_reserved_workers_are_the_teams_also_after_a_restart(tmp_path: Path) -> None:
    with World(tmp_path, "v100=2").running() as world:
        others = submit_all(world, *[{"steps": 4000, "team": "blue"} for _ in range(2)])
        world.run_for(5.0)
        assert {process.job for process in world.alive()} == set(others)
        world.store.write(
            reserve, "red", {"v100": 1}, begins_at=world.now + 20.0, ends_at=world.now + 60.0, at=world.now, by="ann"
        )
        world.session.look_for_jobs()
        world.run_for(10.0)
        world.start_controller()
        (mine,) = submit_all(world, {"steps": 4000, "team": "red"})
        world.run_for(15.0)
        for _ in range(10):
            world.run_for(1.0)
            assert mine in {process.job for process in world.alive()}, "not even for the share of others"
        world.cancel(mine)
        world.run_for(5.0)
        (running,) = {process.job for process in world.alive()}
        (waits,) = {*others} - {running}
        assert world.job(waits).reason_code == "Reserved"
        world.store.write(cancel_reservation, "reservation-1", at=world.now)
        world.session.look_for_jobs()
        world.run_for(5.0)
        assert {process.job for process in world.alive()} == set(others)
