"""Reservations: workers are a team's for some time, and the jobs of others are out of the way before it begins."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.explanation import explain, reasons
from fairway.engine.training.messages import (
    JobArrived,
    JobFinished,
    ReservationCancelled,
    Reserved,
    Revoke,
    RoundBegan,
)
from fairway.engine.training.options import EngineOptions
from fairway.errors import InputError
from fairway.jobs import Entity, Job
from tests.engine.training.test_fitting import Watched

CLUSTER = Cluster({"v100": 2, "k80": 2})


def job(name: str, team: str | None = "b", steps: float | None = 1e6, **fields: object) -> Job:
    fields.setdefault("throughputs", {"v100": 4.0, "k80": 1.0})
    return Job(name, entity=team, steps_left=steps, **fields)  # type: ignore[arg-type]


def reserved(begins: float, ends: float, count: int = 2, team: str = "a", name: str = "r") -> Reserved:
    return Reserved(name, team, {"v100": count}, begins, ends)


def on(world: Watched, accelerator: str) -> set[str]:
    return {one for grant in world.held.values() if grant.accelerator == accelerator for one in grant.jobs}


@pytest.mark.parametrize("policy", ["max-min-fairness", "fifo", "hierarchical", "makespan"])
def test_jobs_of_others_save_and_move_before_a_reservation_begins(policy: str) -> None:
    world = Watched(CLUSTER, policy)
    world.handle(JobArrived(job("x")), JobArrived(job("y")))
    world.rounds(1)
    assert on(world, "v100") == {"x", "y"}
    world.handle(reserved(150.0, 400.0))
    world.rounds(1)
    assert world.now == 60.0
    assert on(world, "v100") == {"x", "y"}
    world.now = 120.0  # this round would reach into it
    commands = world.handle(RoundBegan())
    assert all(one.restart for one in commands if isinstance(one, Revoke)), "they save"
    assert on(world, "v100") == set()
    assert on(world, "k80") == {"x", "y"}
    world.now = 170.0
    world.handle(JobArrived(job("mine", "a")))
    assert on(world, "v100") == {"mine"}
    world.rounds(3)
    assert on(world, "v100") == {"mine"}
    world.now = 420.0
    world.handle(RoundBegan())
    assert len(on(world, "v100")) == 2, "it is over"
    assert world.engine.reservations.known == {}, "and forgotten"


def first_for(world: Watched, seconds: float = 60.0) -> list[str]:
    """The jobs for which workers are reserved in the coming seconds."""
    jobs, now = world.engine.jobs, world.engine.now
    kept = world.engine.reservations.kept(jobs, now, seconds)
    assert kept is not None
    return [name for name, mine in zip(jobs.ids, kept.holders(now, seconds), strict=True) if mine]


def test_reserved_workers_are_for_jobs_of_the_team_in_their_order_that_fit_into_what_is_left() -> None:
    world = Watched(CLUSTER)
    world.handle(reserved(0.0, 900.0), reserved(100.0, 900.0, count=1, team="b", name="later"))
    world.handle(JobArrived(job("x")), JobArrived(job("k", "a", throughputs={"k80": 1.0})))
    world.handle(*(JobArrived(job(name, "a", scale_factor=size)) for name, size in (("m", 1), ("gang", 2), ("n", 1))))
    assert first_for(world) == ["m", "n"], "x is of another team, k cannot use them, the gang needs more than is left"
    assert first_for(world, 100.0) == ["m", "n"], "the other one has not begun by then"
    assert first_for(world, 101.0) == ["x", "m", "n"]


def test_jobs_that_run_on_reserved_workers_keep_them_before_others_of_the_team() -> None:
    world = Watched(CLUSTER)
    world.handle(JobArrived(job("early", "a", throughputs={"k80": 1.0, "v100": 0.1})), JobArrived(job("x")))
    world.handle(JobArrived(job("runs", "a")))
    world.rounds(1)
    assert on(world, "v100") >= {"runs"}
    world.handle(reserved(world.now, 900.0, count=1))
    assert first_for(world) == ["runs"]


def test_what_is_not_reserved_is_for_all_and_the_team_may_have_more_than_it_reserved() -> None:
    world = Watched(CLUSTER)
    world.handle(reserved(0.0, 1000.0, count=1), *(JobArrived(job(name, "a")) for name in "mn"), JobArrived(job("x")))
    world.rounds(1)
    assert world.running == {"m", "n", "x"}
    world.handle(JobFinished("m"), JobFinished("n"))
    world.handle(*(JobArrived(job(name, throughputs={"v100": 1.0})) for name in "yz"))
    world.rounds(10)
    assert len(on(world, "v100")) == 1


def test_teams_below_the_one_that_reserved_may_use_it() -> None:
    world = Watched(CLUSTER)
    entities = {"lab": Entity(), "a": Entity(parent="lab"), "b": Entity()}
    world.engine = TrainingEngine(CLUSTER, policy_of("hierarchical"), EngineOptions(60.0, entities=entities))
    rates = {"v100": 1.0}
    world.handle(reserved(0.0, 1000.0, team="lab"))
    world.handle(*(JobArrived(job(f"job-{team}", team, throughputs=rates)) for team in ("a", "b")))
    world.rounds(5)
    assert world.running == {"job-a"}


def test_a_job_not_to_be_preempted_keeps_its_workers_and_starts_only_if_it_ends_before() -> None:
    world = Watched(Cluster({"v100": 2}))
    rates = {"v100": 1.0}
    world.handle(JobArrived(job("keeps", steps=None, preemptible=False, throughputs=rates)))
    world.rounds(1)
    world.handle(reserved(500.0, 900.0))
    lengths = {"short": 300.0, "long": 600.0, "unknown": None}
    for name, steps in lengths.items():
        world.handle(JobArrived(job(name, steps=steps, preemptible=False, throughputs=rates)))
        assert (name in world.running) is (name == "short"), name
        if name == "short":
            world.now = 30.0
            world.handle(JobFinished("short"))
    world.rounds(9)
    assert "keeps" in world.running
    world.handle(JobArrived(job("mine", "a", throughputs=rates)))
    world.rounds(1)
    assert world.running == {"keeps", "mine"}


def test_the_reason_names_the_reservation() -> None:
    world = Watched(CLUSTER)
    world.handle(reserved(0.0, 1000.0), JobArrived(job("x", throughputs={"v100": 1.0})))
    world.rounds(1)
    found = reasons(world.engine)["x"]
    assert found.code == "Reserved"
    assert found.sentence == "it asks for 1 v100, but too few are not reserved: 2 v100 for team 'a' (r)"
    assert explain(world.engine, "x").code == "Reserved"
    world.handle(JobArrived(job("m", "a")), JobArrived(job("n", "a")))
    world.rounds(1)
    assert reasons(world.engine)["x"].code == "Reserved", "also while the team uses it"


def test_a_cancelled_reservation_is_free_at_once() -> None:
    world = Watched(CLUSTER)
    world.handle(reserved(0.0, 1000.0), JobArrived(job("x", throughputs={"v100": 1.0})))
    world.rounds(1)
    assert not world.running
    world.handle(ReservationCancelled("r"))
    assert world.running == {"x"}


def test_a_reservation_goes_on_in_another_engine() -> None:
    world = Watched(CLUSTER)
    world.handle(reserved(0.0, 1000.0), JobArrived(job("x")))
    again = TrainingEngine(CLUSTER, policy_of("max-min-fairness"), EngineOptions(60.0))
    again.handle(0.0, world.engine.resumption())
    assert again.reservations.known == world.engine.reservations.known


def test_a_reservation_of_a_type_that_there_is_not_is_refused() -> None:
    with pytest.raises(InputError, match="'h100' is not a type of this cluster"):
        Watched(CLUSTER).handle(Reserved("r", "a", {"h100": 1}, 0.0, 1.0))


@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_no_job_of_another_team_runs_on_what_is_reserved(data: st.DataObject) -> None:
    world = Watched(CLUSTER, data.draw(st.sampled_from(["max-min-fairness", "fifo", "min-jct"])))
    count = data.draw(st.integers(1, 2))
    begins = data.draw(st.sampled_from([0.0, 90.0, 200.0]))
    world.handle(reserved(begins, begins + 240.0, count))
    for number in range(12):
        for extra in range(data.draw(st.integers(0, 2))):
            team = data.draw(st.sampled_from(["a", "b", None]))
            rates = data.draw(st.sampled_from([{"v100": 1.0}, {"v100": 2.0, "k80": 1.0}]))
            world.handle(JobArrived(job(f"job-{number}-{extra}", team, throughputs=rates)))
        finishes: bool = data.draw(st.booleans())
        if world.running and finishes:
            world.handle(JobFinished(data.draw(st.sampled_from(sorted(world.running)))))
        if world.engine.round_end is not None:
            world.now = max(world.now, world.engine.round_end)
        world.handle(RoundBegan())
        if world.engine.round_end is not None and world.now < begins + 240.0 and world.engine.round_end > begins:
            others = [one for one in on(world, "v100") if world.jobs[one].entity != "a"]
            assert len(others) <= 2 - count
