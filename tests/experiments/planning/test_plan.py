"""Plans: the same as what happens where nothing is uncertain, differences that a calculation by hand confirms."""

from __future__ import annotations

import json
import math

import pytest

from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import JobArrived, JobResumed, Reserved, RoundBegan, WorkersJoined, WorkersLeft
from fairway.engine.training.options import EngineOptions
from fairway.engine.training.what_if import snapshot
from fairway.errors import InputError
from fairway.experiments.planning import Change, LiveQueue, Present, TraceWorld, plan
from fairway.experiments.planning.documents import plan_document
from fairway.jobs import Entity, Job
from fairway.sim.comparison import Pool
from fairway.sim.submissions import Submission, TrainingOptions
from fairway.sim.training import TrainingRun
from fairway.sim.workload import Workload
from fairway.traces import parse_generate

ROUND = 60.0
V100 = {"v100": 1.0}


def queue(
    *jobs: Job, cluster: Cluster | None = None, policy: str = "fifo", options: EngineOptions | None = None,
    deadlines: dict[str, float] | None = None, **present: object,
) -> LiveQueue:  # fmt: skip
    """A live queue, whose jobs have all come at 0, and that has decided once."""
    engine = TrainingEngine(cluster or Cluster({"v100": 1}), policy_of(policy), options or EngineOptions(ROUND))
    engine.handle(0.0, [JobArrived(job, (deadlines or {}).get(job.id)) for job in jobs])
    engine.handle(0.0, [RoundBegan()])
    return LiveQueue(Present.of(engine, policy, None, **present))  # type: ignore[arg-type]


def job(name: str, seconds: float = 600.0, **fields: object) -> Job:
    return Job(name, fields.pop("throughputs", V100), steps_left=seconds, **fields)  # type: ignore[arg-type]


@pytest.fixture
def pool() -> Pool:
    """One that simulates in this process."""
    return Pool(1)


@pytest.mark.parametrize("policy", ["fifo", "max-min-fairness", "shortest-job-first"])
def test_what_is_planned_without_a_change_happens(policy: str) -> None:
    """A running world is looked at between two rounds; what the plan says of its jobs is what then becomes of them."""
    cluster = Cluster({"v100": 2, "k80": 2})
    coming = [
        Submission(7.0 * number, job(f"j{number}", 200.0 + 130 * number, throughputs={"v100": 2.0, "k80": 0.5}))
        for number in range(8)
    ]
    engine = TrainingEngine(cluster, policy_of(policy), EngineOptions(ROUND))
    real = TrainingRun(engine, coming, cluster, TrainingOptions(ROUND))
    real.loop.run(until=4 * ROUND - 1e-6)
    now, present = real.loop.now, Present.of(snapshot(engine, now=real.loop.now), policy, None)
    told = LiveQueue(present).run(0)
    real.loop.run()
    finish = {row.job.id: row.finish for row in real.recorder.jobs}
    assert len(told.jobs) > 2
    for one in told.jobs:
        assert now + one.finish == pytest.approx(finish[one.job], abs=1e-3)


def test_the_state_survives_its_journey_as_json() -> None:
    present = queue(
        job("a", entity="vision"), job("b", weight=2.0), time_scale=4.0, elsewhere={"a": {"h100": 3.0}}, outside=2,
        options=EngineOptions(ROUND, 5.0, {"vision": Entity(2.0)}),
    ).present  # fmt: skip
    assert Present.of_document(json.loads(json.dumps(present.document()))) == present
    for broken in ({}, {"version": 9}, {"version": 1}, {**present.document(), "start": {"cluster": 3}}):
        with pytest.raises(InputError):
            Present.of_document(broken)


def test_a_second_worker_halves_the_wait(pool: Pool) -> None:
    world = queue(job("a"), job("b"))
    made = plan(world, [Change(add={"v100": 1}), Change(policy="fifo")], seeds=1, pool=pool)
    assert made.jobs == 2
    assert made.base["mean jct"].mean == pytest.approx(900.0)
    assert made.base["mean wait"].mean == pytest.approx(300.0)
    more, same = made.differences
    assert more.numbers["mean jct"].mean == pytest.approx(600.0)
    assert more.against["mean wait"].mean == pytest.approx(-300.0)
    assert more.gains == {"b": pytest.approx(600.0)}
    assert not more.losses
    assert same.changes_nothing
    assert not more.changes_nothing


def test_workers_that_are_removed_stop_their_jobs_and_free_ones_go_first(pool: Pool) -> None:
    world = queue(job("a"), cluster=Cluster({"v100": 3}))
    one, all_but_one = plan(world, [Change(remove={"v100": 2}), Change(remove={"v100": 3})], seeds=1,
                            pool=pool).differences  # fmt: skip
    assert one.changes_nothing
    assert all_but_one.numbers["unfinished"].mean == 1
    with pytest.raises(InputError, match="remove v100=4: there are 3; the cluster has v100=3"):
        world.changed(Change(remove={"v100": 4}), {})


def test_a_job_that_no_longer_fits_is_counted_and_the_others_go_on(pool: Pool) -> None:
    world = queue(job("gang", scale_factor=2), job("a"), cluster=Cluster({"v100": 2}))
    (less,) = plan(world, [Change(remove={"v100": 1})], seeds=1, pool=pool).differences
    assert less.numbers["unfinished"].mean == 1
    assert less.numbers["makespan"].mean == pytest.approx(600.0)


def test_a_type_that_is_new_runs_the_jobs_whose_rate_there_is_known(pool: Pool) -> None:
    world = queue(job("a"), job("b"), elsewhere={"b": {"h100": 4.0}})
    (more,) = plan(world, [Change(add={"h100": 1})], seeds=1, pool=pool).differences
    assert more.numbers["p95 jct"].mean == pytest.approx(0.95 * 600 + 0.05 * 150)
    priced = queue(job("a"), cluster=Cluster({"v100": 1}, {"v100": 2.0}))
    with pytest.raises(InputError, match="add h100: no price is known"):
        priced.changed(Change(add={"h100": 1}), {})
    (more,) = plan(priced, [Change(add={"h100": 1})], seeds=1, prices={"h100": 9.0}, pool=pool).differences
    assert more.numbers["cost"].mean == pytest.approx(600 / 3600 * 2.0)


def test_weights_of_jobs_and_teams_and_deadlines_are_changed(pool: Pool) -> None:
    entities = {"x": Entity(), "y": Entity()}
    world = queue(
        job("a", entity="x"), job("b", entity="y"), policy="hierarchical", options=EngineOptions(ROUND, 0.0, entities),
        deadlines={"a": 700.0, "b": 700.0},
    )  # fmt: skip
    team, deadlines = plan(
        world, [Change(weights={"y": 1000.0}), Change(slo_scale=2.0)], seeds=1, pool=pool
    ).differences
    assert team.teams["y"] < 0 <= team.teams["x"]
    assert deadlines.numbers["slo"].mean == 1.0
    plain = queue(job("a"), job("b"), policy="max-min-fairness")
    (heavy,) = plan(plain, [Change(weights={"b": 1000.0})], seeds=1, pool=pool).differences
    assert set(heavy.gains) == {"b"}
    with pytest.raises(InputError, match="weight: 'z' is no team and no job here"):
        plain.changed(Change(weights={"z": 2.0}), {})


def test_times_are_those_of_the_wall_clock(pool: Pool) -> None:
    made = plan(queue(job("a"), time_scale=10.0), [Change(add={"v100": 1})], seeds=1, pool=pool)
    assert made.base["mean jct"].mean == pytest.approx(60.0)


def test_seeds_draw_lengths_and_pair_them(pool: Pool) -> None:
    world = queue(job("a"), job("b"))
    made = plan(world, [Change(add={"v100": 1})], seeds=6, pool=pool)
    assert made.base["mean jct"].half > 0
    assert made.differences[0].against["mean jct"].half < made.base["mean jct"].half
    again = plan(world, [Change(add={"v100": 1})], seeds=6, pool=pool)
    assert plan_document(again) == plan_document(made)
    with pytest.raises(InputError, match="seeds: 0 given"):
        plan(world, [], seeds=0, pool=pool)


def test_processes_give_what_one_gives() -> None:
    world = queue(job("a"), job("b"))
    changes = [Change(add={"v100": 1})]
    with Pool(2) as several:
        found = plan(world, changes, seeds=2, pool=several)
    assert plan_document(found) == plan_document(plan(world, changes, seeds=2, pool=Pool(1)))


def test_jobs_that_wait_for_a_reservation_to_end_do_finish() -> None:
    present = queue(job("a", entity="x")).present
    reserved = Reserved("r", "y", {"v100": 1}, 0.0, 100_000.0)
    events = [(0.0, event) for _, event in present.start.events if not type(event).__name__.startswith("Lease")]
    start = type(present.start)(
        present.start.cluster, "fifo", present.start.options, None, (*events[:1], (0.0, reserved), *events[1:])
    )
    outlook = LiveQueue(Present(start)).run(0)
    assert outlook.jobs[0].finish >= 100_000.0


def test_workers_that_have_joined_and_left_are_counted() -> None:
    engine = TrainingEngine(Cluster({"v100": 2}), policy_of("fifo"), EngineOptions(ROUND))
    engine.handle(0.0, [WorkersJoined("v100", 2), WorkersLeft("v100", (0,), drain=True)])
    world = LiveQueue(Present.of(engine, "fifo", None))
    assert world.cluster.workers == {"v100": 3}
    less = world.changed(Change(remove={"v100": 3}), {})
    assert less.cluster.workers == {"v100": 0}
    assert not any(isinstance(event, JobResumed) for _, event in less.present.start.events)


def test_a_trace_is_planned_on_an_empty_cluster(pool: Pool) -> None:
    world = TraceWorld(
        Workload(generator=parse_generate("jobs=12,rate=20")), Cluster({"v100": 2, "k80": 2}), "fifo", TrainingOptions()
    )
    made = plan(world, [Change(add={"v100": 4}), Change(remove={"k80": 2}), Change(slo_scale=2.0)], seeds=2, pool=pool)
    assert made.jobs == 12
    more, less, _ = made.differences
    assert more.against["mean jct"].mean < 0 < less.against["mean jct"].mean
    assert math.isnan(made.base["slo"].mean)
    with pytest.raises(InputError, match="remove h100=1: there are 0; the cluster has v100=2, k80=2"):
        world.changed(Change(remove={"h100": 1}), {})
    with pytest.raises(InputError, match="weight: 'x' is no team here"):
        world.changed(Change(weights={"x": 2.0}), {})
