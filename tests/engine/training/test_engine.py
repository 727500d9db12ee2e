"""The training engine: what holds whatever happens, and the cases that schedulers get wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.allocate.policies import POLICIES
from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.engine.protocol import TransitionError, like
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import (
    BeginRound,
    Extend,
    Grant,
    JobArrived,
    JobCancelled,
    JobFailed,
    JobFinished,
    PricesChanged,
    RateMeasured,
    Refuse,
    Retire,
    Revoke,
    RoundBegan,
    StepsCounted,
    WorkersJoined,
    WorkersLeft,
)
from fairway.engine.training.options import EngineOptions
from fairway.errors import InputError
from fairway.jobs import Entity, Job
from tests.engine.training.driver import CheckedDriver

CLUSTER = Cluster({"fast": 4, "slow": 4}, prices={"fast": 2.0, "slow": 1.0}, workers_per_node={"fast": 2, "slow": 4})


class EveryoneShares:
    """Any two jobs of the same size can share, at 0.7 of their rate of 2 and 1."""

    def pair_rates(self, job_type: str, partner: str, scale_factor: int) -> dict[str, tuple[float, float]]:  # noqa: ARG002
        return {"fast": (1.4, 1.4), "slow": (0.7, 0.7)}


def job(name: str, steps: float = 1000.0, scale: int = 1, **fields: object) -> Job:
    fields.setdefault("throughputs", {"fast": 2.0, "slow": 1.0})
    return Job(name, scale_factor=scale, steps_left=steps, **fields)  # type: ignore[arg-type]


@st.composite
def workloads(draw: st.DrawFn) -> list[tuple[float, Job]]:
    arrivals = draw(st.lists(st.sampled_from([0.0, 10.0, 333.3, 360.0, 5000.0]), min_size=1, max_size=12))
    workload = []
    for number, arrival in enumerate(sorted(arrivals)):
        rates = draw(st.sampled_from([(2.0, 1.0), (1.0, 1.5), (3.0, 0.0), (0.0, 0.7)]))
        workload.append(
            (
                arrival,
                job(
                    f"j{number}",
                    steps=draw(st.sampled_from([1.0, 500.0, 3000.0])),
                    scale=draw(st.sampled_from([1, 1, 2, 4])),
                    throughputs={"fast": rates[0], "slow": rates[1]},
                    weight=draw(st.sampled_from([1.0, 3.0])),
                    entity=draw(st.sampled_from(["a", "b"])),
                    job_type=draw(st.sampled_from(["x", "y"])),
                    spread_throughputs={"fast": rates[0] / 2, "slow": rates[1]},
                ),
            )
        )
    return workload


@settings(max_examples=15)
@pytest.mark.parametrize("policy", [*POLICIES, "max-min-fairness:agnostic"])
@given(workloads())
def test_every_policy_runs_every_job_to_its_end_without_idling_or_giving_a_worker_twice(
    policy: str, workload: list[tuple[float, Job]]
) -> None:
    if policy == "allox" and any(job.scale_factor > 1 for _, job in workload):
        workload = [(time, job) for time, job in workload if job.scale_factor == 1]
    driver = CheckedDriver(CLUSTER, policy, EngineOptions(entities={"a": Entity(2.0), "b": Entity()}))
    driver.submit(workload)
    driver.run()
    assert set(driver.finished) == {job.id for _, job in workload}
    assert not driver.held
    assert len(driver.engine.jobs) == 0


@settings(max_examples=25)
@given(workloads(), st.sampled_from(["max-min-fairness:space-sharing", "gandiva", "makespan:space-sharing"]))
def test_jobs_that_share_keep_all_promises(workload: list[tuple[float, Job]], policy: str) -> None:
    alike = [(time, job(each.id, each.steps_left or 1.0, each.scale_factor, job_type="x")) for time, each in workload]
    driver = CheckedDriver(CLUSTER, policy, EngineOptions(restart_seconds=5.0), EveryoneShares())
    driver.submit(alike)
    driver.run()
    assert len(driver.finished) == len(workload)


@settings(max_examples=25)
@given(workloads(), st.integers(0, 2**31))
def test_workers_that_leave_and_join_lose_no_job(workload: list[tuple[float, Job]], seed: int) -> None:
    draws = np.random.default_rng(seed)
    driver = CheckedDriver(CLUSTER, "max-min-fairness")
    driver.submit(workload)
    lost = tuple(draws.choice(4, size=draws.integers(1, 4), replace=False).tolist())
    driver.push(400.0, WorkersLeft("fast", lost))
    driver.push(500.0, WorkersLeft("slow", (0,)))
    driver.push(6000.0, WorkersJoined("fast", 4))
    driver.push(6000.0, WorkersJoined("slow", 1))
    driver.run()
    assert set(driver.finished) | set(driver.refused) == {job.id for _, job in workload}


@settings(max_examples=10)
@given(workloads(), st.sampled_from(["max-min-fairness", "gandiva", "fifo:agnostic"]))
def test_the_same_events_give_the_same_commands(workload: list[tuple[float, Job]], policy: str) -> None:
    logs = []
    for _ in range(2):
        driver = CheckedDriver(CLUSTER, policy, EngineOptions(seed=3), EveryoneShares())
        driver.submit(workload)
        driver.run()
        logs.append(driver.log)
    assert logs[0] == logs[1]


@settings(max_examples=20)
@given(workloads())
def test_steps_are_neither_lost_nor_found(workload: list[tuple[float, Job]]) -> None:
    driver = CheckedDriver(CLUSTER, "max-min-fairness", EngineOptions(restart_seconds=20.0))
    driver.submit(workload)
    driver.run(until=900.0)
    engine = driver.engine
    engine.handle(driver.now, [RoundBegan()])  # brings the engine's own count up to date
    for name in engine.jobs.ids:
        lease = next((lease for lease, grant in driver.held.items() if name in grant.jobs), None)
        left = driver.left[name] - (0.0 if lease is None else driver._done(lease, name))
        assert engine.jobs.left[engine.jobs.position(name)] == pytest.approx(left, abs=1e-6)


def test_a_large_gang_is_not_starved_by_a_stream_of_small_jobs() -> None:
    driver = CheckedDriver(Cluster({"fast": 4}), "max-min-fairness")
    rates = {"fast": 1.0}
    driver.submit((160.0 * number, job(f"s{number}", steps=600.0, throughputs=rates)) for number in range(400))
    # Small jobs keep 3.75 of 4 workers busy for 64,000 s: four are never free by chance.
    driver.push(1000.0, JobArrived(job("gang", steps=3600.0, scale=4, weight=4.0, throughputs=rates)))
    driver.run()
    assert driver.finished["gang"] < 40_000.0


def test_a_gang_that_needs_a_whole_type_gets_most_of_its_share_beside_a_job_that_always_runs() -> None:
    # The first job is entitled to run all the time, but cannot while the gang does: that debt must not count for ever.
    driver = CheckedDriver(Cluster({"fast": 8}), "water-filling")
    rates = {"fast": 1.0}
    driver.submit((0.0, job(name, 1e9, throughputs=rates)) for name in "abcdefghij")
    driver.push(0.0, JobArrived(job("gang", 1e9, scale=8, throughputs=rates)))
    driver.run(until=1000 * 360.0)
    engine = driver.engine
    position = engine.jobs.position("gang")
    entitled = engine.jobs.shares[position, 0] * driver.now
    assert 1e9 - engine.jobs.left[position] > 0.75 * entitled


def test_shares_come_out_as_the_policy_says() -> None:
    driver = CheckedDriver(Cluster({"fast": 1}), "max-min-fairness")
    work = [("heavy", 3.0), ("light", 1.0)]
    driver.submit((0.0, job(name, 1e9, throughputs={"fast": 1.0}, weight=weight)) for name, weight in work)
    driver.run(until=400 * 360.0)
    done = {name: 1e9 - driver.engine.jobs.left[driver.engine.jobs.position(name)] for name, _ in work}
    assert done["heavy"] / done["light"] == pytest.approx(3.0, rel=0.05)


def test_a_job_that_keeps_its_workers_runs_on_without_a_stop() -> None:
    driver = CheckedDriver(CLUSTER, "max-min-fairness")
    driver.submit([(0.0, job("only", 10_000.0))])
    driver.run()
    assert sum(isinstance(entry, Grant) for entry in driver.log) == 1
    assert sum(isinstance(entry, Extend) for entry in driver.log) > 10
    assert driver.finished["only"] == pytest.approx(5_000.0)


def test_a_job_moves_to_a_faster_type_when_one_becomes_free() -> None:
    driver = CheckedDriver(Cluster({"fast": 1, "slow": 1}), "fifo")
    driver.submit([(0.0, job("first", 1000.0)), (0.0, job("second", 5000.0))])
    driver.run()
    grants = [entry for entry in driver.log if isinstance(entry, Grant)]
    assert [(grant.jobs, grant.accelerator) for grant in grants] == [
        (("first",), "fast"), (("second",), "slow"), (("second",), "fast")
    ]  # fmt: skip


def test_a_restart_cost_makes_turns_longer() -> None:
    grants = []
    for restart in (0.0, 180.0):
        driver = CheckedDriver(Cluster({"fast": 1}), "max-min-fairness", EngineOptions(restart_seconds=restart))
        driver.submit((0.0, job(name, 200_000.0, throughputs={"fast": 1.0})) for name in "abc")
        driver.run()
        grants.append(sum(isinstance(entry, Grant) for entry in driver.log))
    assert grants[1] < grants[0] / 3  # a turn is five rounds of 360 s, or fifty restarts: five times as long


def test_a_gang_is_put_on_one_node_and_runs_spread_only_where_it_must() -> None:
    driver = CheckedDriver(CLUSTER, "max-min-fairness")
    rates = {"fast": 2.0}
    driver.submit(
        [
            (0.0, job("one", 1e6, 1, throughputs=rates)),
            (1.0, job("two", 1e6, 2, throughputs=rates)),
            (2.0, job("four", 1e6, 4, throughputs=rates, spread_throughputs={"fast": 1.0})),
        ]
    )
    driver.run(until=3.0)
    (one,), two = (next(iter(g.workers for g in driver.held.values() if g.jobs == (name,))) for name in ("one", "two"))
    assert one // 2 != two[0] // 2 == two[1] // 2
    driver.run(until=40 * 360.0)
    spread = [entry for entry in driver.log if isinstance(entry, Grant) and entry.jobs == ("four",)]
    assert spread
    assert all(grant.spread for grant in spread)


def test_a_pair_of_which_one_finishes_runs_on_alone_on_the_same_workers() -> None:
    cluster = Cluster({"fast": 1})
    driver = CheckedDriver(cluster, "max-min-fairness:space-sharing", partners=EveryoneShares())
    driver.submit((0.0, job(name, steps, job_type="x")) for name, steps in [("short", 100.0), ("long", 2000.0)])
    driver.run()
    first, second = (entry for entry in driver.log if isinstance(entry, Grant))
    assert first.jobs == ("short", "long")
    assert (second.jobs, second.workers, second.restart) == (("long",), first.workers, False)
    assert driver.finished["short"] == pytest.approx(100 / 1.4)
    assert driver.finished["long"] == pytest.approx(100 / 1.4 + 1900 / 2.0)


def test_a_job_that_can_never_run_is_refused_with_the_reason() -> None:
    engine = TrainingEngine(CLUSTER, policy_of("max-min-fairness"))
    assert engine.handle(
        0.0, [JobArrived(job("huge", scale=8)), JobArrived(job("alien", throughputs={"tpu": 1.0}))]
    ) == [
        Refuse("huge", "job 'huge' asks for 8 workers of one type, but there are at most 4"),
        Refuse("alien", "job 'alien' has no rate above 0 on any accelerator type of this cluster"),
    ]


def test_a_cancelled_and_a_failed_job_free_their_workers_at_once() -> None:
    engine = TrainingEngine(Cluster({"fast": 1}), policy_of("fifo"))
    rates = {"fast": 1.0}
    assert engine.handle(0.0, [JobArrived(job("a", throughputs=rates))]) == [BeginRound(0.0)]
    assert engine.handle(0.0, [RoundBegan()]) == [like(Grant, jobs=("a",)), Extend(360.0), BeginRound(360.0)]
    assert engine.handle(1.0, [JobArrived(job("b", throughputs=rates))]) == []
    assert engine.handle(2.0, [JobArrived(job("c", throughputs=rates))]) == []
    # On an equal share its 10 steps take 1 s alone, 1 × 2 s beside one other and 8 × 3 s beside two.
    assert engine.handle(10.0, [JobCancelled("a")]) == [
        Revoke(1, ("a",), restart=False),
        Retire("a", pytest.approx(27.0)),
        like(Grant, lease=2, jobs=("b",)),
    ]
    assert engine.handle(20.0, [JobFailed("b", retry=True)]) == [like(Revoke, lease=2), like(Grant, lease=3)]
    assert "b" in engine.jobs
    (holder,) = [name for name in engine.jobs.ids if engine.jobs.lease[engine.jobs.position(name)] == 3]
    assert engine.handle(30.0, [JobFailed(holder)]) == [like(Revoke, lease=3), like(Retire, job=holder), like(Grant)]


def test_impossible_events_are_refused_with_the_story_of_the_job() -> None:
    engine = TrainingEngine(CLUSTER, policy_of("fifo"))
    engine.handle(5.0, [JobArrived(job("a"))])
    with pytest.raises(TransitionError, match=r"is here already:\n  5\.000000 s: JobArrived\("):
        engine.handle(6.0, [JobArrived(job("a"))])
    for earlier in (1.0, float("nan")):
        with pytest.raises(TransitionError, match="time went back"):
            engine.handle(earlier, [RoundBegan()])
    engine.handle(6.0, [RoundBegan()])
    engine.handle(7.0, [JobFinished("a")])
    with pytest.raises(TransitionError, match=r"no such job[\s\S]*Grant\(lease=1, jobs=\('a',\)"):
        engine.handle(8.0, [JobFinished("a")])
    with pytest.raises(InputError, match="'tpu' is not a type"):
        engine.handle(9.0, [WorkersJoined("tpu", 1)])
    for worker in (-1, 4):
        with pytest.raises(TransitionError, match="but there are only 4 fast"):
            engine.handle(9.0, [WorkersLeft("fast", (0, worker))])
    engine.validate()


def test_measured_rates_replace_what_was_believed() -> None:
    engine = TrainingEngine(
        Cluster({"fast": 2, "slow": 2}), policy_of("max-min-fairness:space-sharing"), partners=EveryoneShares()
    )
    engine.handle(0.0, [*[JobArrived(job(name, job_type=name)) for name in "ab"], RoundBegan()])
    engine.handle(1.0, [RateMeasured(("a",), "fast", (3.5,))])
    assert engine.jobs.rates[0].tolist() == [3.5, 1.0]
    assert engine.jobs.rate[0] == 3.5
    engine.handle(1.0, [RateMeasured(("b", "a"), "slow", (0.2, 0.1))])
    engine.handle(360.0, [RoundBegan()])
    assert engine.allocation is not None
    assert engine.allocation.problem.pairs is not None
    assert engine.allocation.problem.pairs.rates.tolist() == [[[1.4, 1.4], [0.1, 0.2]]]
    engine.handle(361.0, [StepsCounted("a", 12.0)])
    assert engine.jobs.left[0] == 12.0


def test_prices_that_change_move_jobs_to_what_is_cheap_now() -> None:
    cluster = Cluster({"fast": 1, "slow": 1}, prices={"fast": 10.0, "slow": 1.0})
    engine = TrainingEngine(cluster, policy_of("min-cost"))
    engine.handle(0.0, [JobArrived(job("a", 1e9)), RoundBegan()])
    assert engine.allocation is not None
    cheap = engine.allocation.shares[0].argmax()
    engine.handle(10.0, [PricesChanged({"fast": 0.5, "slow": 1.0})])
    engine.handle(360.0, [RoundBegan()])
    assert (cluster.types[cheap], cluster.types[engine.allocation.shares[0].argmax()]) == ("slow", "fast")


def test_a_job_that_is_not_preemptible_keeps_its_workers_to_the_end() -> None:
    driver = CheckedDriver(Cluster({"fast": 2}), "max-min-fairness:space-sharing", partners=EveryoneShares())
    driver.submit([(0.0, job("fixed", 20_000.0, job_type="x", preemptible=False))])
    driver.submit((1.0, job(f"other{number}", 20_000.0, job_type="x")) for number in range(5))
    driver.run()
    grants = [entry for entry in driver.log if isinstance(entry, Grant) and "fixed" in entry.jobs]
    assert [grant.jobs for grant in grants] == [("fixed",)]
    assert driver.finished["fixed"] == pytest.approx(10_000.0)
    assert len(driver.finished) == 6


def test_an_engine_that_goes_on_where_another_stopped_uses_new_lease_numbers() -> None:
    engine = TrainingEngine(CLUSTER, policy_of("fifo"), EngineOptions(last_lease=41))
    commands = engine.handle(0.0, [JobArrived(job("a")), RoundBegan()])
    assert commands == [like(BeginRound), like(Grant, lease=42), like(Extend), like(BeginRound)]


def test_a_job_with_a_deadline_gets_what_it_needs_to_meet_it() -> None:
    cluster = Cluster({"fast": 1, "slow": 1}, prices={"fast": 10.0, "slow": 1.0})
    finished = []
    for deadline in (None, 3600.0):
        driver = CheckedDriver(cluster, "min-cost-slo")
        driver.submit([(0.0, job(f"cheap{number}", 20_000.0)) for number in range(3)])
        driver.push(0.0, JobArrived(job("urgent", 6_000.0), deadline))
        driver.run()
        finished.append(driver.finished["urgent"])
    assert finished[1] <= 3600.0 < finished[0]


def test_teams_get_their_weights_however_many_jobs_they_have() -> None:
    options = EngineOptions(entities={"red": Entity(2.0), "blue": Entity(1.0)})
    driver = CheckedDriver(Cluster({"fast": 3}), "hierarchical", options)
    work = [("r", "red"), *((f"b{number}", "blue") for number in range(5))]
    driver.submit((0.0, job(name, 1e9, scale=1, throughputs={"fast": 1.0}, entity=team)) for name, team in work)
    driver.run(until=600 * 360.0)
    # Red can use one worker at most; what it leaves goes to blue.
    done = {name: 1e9 - driver.engine.jobs.left[driver.engine.jobs.position(name)] for name, _ in work}
    assert done["r"] == pytest.approx(600 * 360.0, rel=0.02)
    assert sum(done[name] for name, team in work if team == "blue") == pytest.approx(2 * 600 * 360.0, rel=0.02)
    assert max(done[f"b{n}"] for n in range(5)) < 1.15 * min(done[f"b{n}"] for n in range(5))


def test_time_on_an_equal_share_is_counted() -> None:
    driver = CheckedDriver(Cluster({"fast": 1}), "max-min-fairness")
    driver.submit((0.0, job(name, 3600.0, throughputs={"fast": 1.0})) for name in "ab")
    driver.run()
    # While both are there an equal share is half a worker; the one left over then has it alone.
    first = min(driver.finished, key=lambda name: driver.finished[name])
    assert driver.isolated[first] == pytest.approx(2 * 3600.0)


def test_rounds_stop_when_nothing_is_left_and_start_again() -> None:
    driver = CheckedDriver(CLUSTER, "max-min-fairness")
    driver.submit([(0.0, job("a", 100.0)), (100_000.0, job("b", 100.0))])
    driver.run()
    begun = [entry for entry in driver.log if isinstance(entry, BeginRound)]
    assert len(begun) <= 4
    assert driver.finished["b"] == pytest.approx(100_050.0)


@pytest.mark.parametrize("field", ["round_seconds", "restart_seconds"])
def test_options_out_of_range_are_refused(field: str) -> None:
    with pytest.raises(InputError, match=f"{field}: -1.0 given"):
        EngineOptions(**{field: -1.0})
