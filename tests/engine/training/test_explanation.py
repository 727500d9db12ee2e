"""Why a job waits: one situation for each code, who is ahead, prices, and changes that really start it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.allocate.policies import POLICIES
from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.explanation import explain, reasons, snapshot
from fairway.engine.training.messages import (
    ArrivalsResumed,
    Event,
    Grant,
    JobArrived,
    JobCancelled,
    PricesChanged,
    RateMeasured,
    RoundBegan,
    WorkersJoined,
    WorkersLeft,
)
from fairway.engine.training.options import EngineOptions
from fairway.engine.training.what_if import holds
from fairway.errors import InputError
from fairway.jobs import Job

ROUND = 60.0


def engine_of(
    cluster: str | Cluster, jobs: Sequence[Job], policy: str = "max-min-fairness", rounds: int = 1, restart: float = 0.0
) -> TrainingEngine:
    cluster = Cluster.parse(cluster) if isinstance(cluster, str) else cluster
    engine = TrainingEngine(cluster, policy_of(policy), EngineOptions(ROUND, restart))
    engine.handle(0.0, [JobArrived(job) for job in jobs])
    for number in range(rounds):
        engine.handle(number * ROUND, [RoundBegan()])
    return engine


def job(name: str, scale: int = 1, steps: float | None = 1e6, **fields: object) -> Job:
    fields.setdefault("throughputs", {"v100": 4.0, "k80": 1.0})
    return Job(name, scale_factor=scale, steps_left=steps, **fields)  # type: ignore[arg-type]


def busy(seed: int, policy: str = "max-min-fairness") -> TrainingEngine:
    """Fourteen jobs of all sizes on seven workers, after a few rounds."""
    draw = np.random.default_rng(seed)
    engine = TrainingEngine(Cluster({"v100": 3, "k80": 4}), policy_of(policy), EngineOptions(ROUND, 1.0))
    now = 0.0
    for number in range(14):
        now += float(draw.uniform(0, 10))
        rates = {"v100": float(draw.uniform(1, 4)), "k80": float(draw.choice([0.0, 0.5, 1.0]))}
        scale = 1 if policy == "allox" else int(draw.integers(1, 4))
        fields = {"throughputs": rates, "weight": float(draw.choice([1.0, 2.0])), "entity": "ab"[number % 2]}
        engine.handle(now, [JobArrived(job(f"j{number}", scale, **fields, preemptible=number % 6 > 0))])
    for number in range(int(draw.integers(1, 6))):
        engine.handle(now + number * ROUND, [RoundBegan()])
    return engine


def waiting(engine: TrainingEngine) -> list[str]:
    return [name for name in engine.jobs.ids if not holds(engine, name)]


# Codes


def test_a_job_that_runs_says_where() -> None:
    engine = engine_of("v100=2", [job("a", 2)], restart=5.0)
    assert explain(engine, "a").code == reasons(engine)["a"].code == "Starting"
    engine.handle(6.0, [WorkersJoined("v100", 1)])
    told = explain(engine, "a")
    assert (told.code, told.reason) == reasons(engine)["a"] == ("Running", "it runs on 2 v100")
    assert told.position is None
    assert told.changes == ()


def test_a_new_job_waits_for_the_round_in_which_it_gets_the_workers_of_another() -> None:
    engine = engine_of("v100=1", [job("old")], policy="max-throughput", rounds=40)
    engine.handle(39.5 * ROUND, [JobArrived(job("new", throughputs={"v100": 5.0}))])
    assert reasons(engine)["new"] == ("WaitingForRound", "nothing is decided about it yet; the next round does")
    told = explain(engine, "new", when=lambda seconds: f"minute {seconds / 60:.0f}")
    assert told.code == "WaitingForRound"
    assert told.reason == "it starts on 1 v100 when the round ends at minute 40, if nothing changes before"
    assert [(each.job, each.why) for each in told.ahead] == [("old", "holds them until the round ends at minute 40")]
    assert told.changes, "it could start now"
    assert all(change.at_once for change in told.changes)


def test_a_job_whose_turn_comes_next_waits_for_the_round() -> None:
    engine = engine_of("v100=1", [job("a"), job("b")])
    (later,) = waiting(engine)
    codes = []
    for number in range(1, 12):
        codes.append(reasons(engine)[later].code)
        grants = [command for command in engine.handle(number * ROUND, [RoundBegan()]) if isinstance(command, Grant)]
        if grants:
            break
    assert grants[0].jobs == (later,)
    assert codes == ["WaitingForShare"] * (len(codes) - 1) + ["WaitingForRound"]
    assert len(codes) > 1


def test_a_gang_is_pending_although_as_many_workers_are_free_on_different_types() -> None:
    on_v100, on_k80 = job("a", 8, throughputs={"v100": 4.0}), job("b", 8, throughputs={"k80": 1.0})
    engine = engine_of("v100=16,k80=16", [on_v100, on_k80, job("pending", 16)], policy="fifo")
    told = explain(engine, "pending")
    assert told.code == reasons(engine)["pending"].code == "NotEnoughWorkers"
    assert "16 workers of one type (v100 or k80) at once, but only 8 v100 and 8 k80 are free" in told.reason
    assert [(change.text, change.at_once) for change in told.changes] == [
        ("8 more v100", True),
        ("8 more k80", True),
        ("ask for 8 instead of 16 workers", True),
        ("cancel job 'a'", True),
    ]
    assert {each.job for each in told.ahead} == {"a", "b"}


def test_a_job_that_must_not_be_preempted_holds_what_another_needs() -> None:
    fixed = job("fixed", 2, throughputs={"v100": 1.0}, preemptible=False, entity="red")
    engine = engine_of("v100=3", [fixed], rounds=3)
    engine.handle(2 * ROUND + 1, [JobArrived(job("big", 2, throughputs={"v100": 1.0}))])
    told = explain(engine, "big")
    assert (told.code, told.reason) == reasons(engine)["big"]
    assert told.code == "Held"
    assert told.reason == "it asks for 2 v100, but 'fixed', not to be preempted, holds too many of them"
    assert [(each.job, each.team, each.workers, each.accelerator) for each in told.ahead] == [
        ("fixed", "red", 2, "v100")
    ]
    assert told.ahead[0].why == "holds them until it ends: it must not be preempted"
    assert [change.text for change in told.changes] == [
        "1 more v100",
        "ask for 1 instead of 2 workers",
        "cancel job 'fixed' of team red",
    ]


def test_many_holders_are_not_all_named() -> None:
    held = [job(f"h{number}", throughputs={"v100": 1.0}, preemptible=False) for number in range(5)]
    engine = engine_of("v100=5", [*held])
    engine.handle(1.0, [JobArrived(job("late", throughputs={"v100": 1.0}))])
    assert "'h0', 'h1', 'h2' and 2 more, not to be preempted, hold" in reasons(engine)["late"].sentence


@pytest.mark.parametrize("lost", [False, True])
def test_too_many_workers_are_drained_or_lost(lost: bool) -> None:
    engine = engine_of("v100=4,k80=2", [job("a", 4)], rounds=2)
    engine.handle(70.0, [WorkersLeft("v100", (1, 3), drain=not lost)])
    told = explain(engine, "a", drained={} if lost else {"v100": 2})
    assert (told.code, told.reason) == reasons(engine, drained={} if lost else {"v100": 2})["a"]
    assert told.code == ("WorkersLost" if lost else "WorkersDrained")
    says = f"it asks for 4 workers of one type (v100 or k80), but 2 of 4 v100 are {'lost' if lost else 'drained'}"
    assert told.reason == says
    texts = [change.text for change in told.changes]
    assert ("2 drained v100 back" in texts) is not lost
    assert ("2 more v100" in texts) is lost
    assert told.changes[0].at_once


def test_what_is_lost_counts_more_than_what_is_drained_and_one_is_one() -> None:
    engine = engine_of("v100=4", [job("a", 4, throughputs={"v100": 1.0})])
    engine.handle(1.0, [WorkersLeft("v100", (1,), drain=True), WorkersLeft("v100", (3,))])
    assert reasons(engine, drained={"v100": 1})["a"] == ("WorkersLost", "it asks for 4 v100, but 1 of 4 v100 is lost")


def test_a_job_that_turned_out_to_make_no_progress_is_unrunnable() -> None:
    engine = engine_of("v100=1", [job("a", throughputs={"v100": 1.0}), job("b", throughputs={"v100": 1.0})])
    (later,) = waiting(engine)
    engine.handle(1.0, [RateMeasured((later,), "v100", (0.0,))])
    told = explain(engine, later)
    assert (told.code, told.reason) == reasons(engine)[later]
    assert told.code == "Unrunnable"
    assert told.reason == "it makes no progress on any accelerator type of this cluster"


def test_a_job_waits_for_its_share() -> None:
    engine = engine_of("v100=1", [job("a", weight=3.0, entity="red"), job("b")])
    assert waiting(engine) == ["b"]
    told = explain(engine, "b", span=lambda seconds: f"{seconds / 60:.1f} min")
    assert told.code == reasons(engine)["b"].code == "WaitingForShare"
    assert told.shares == pytest.approx({"v100": 0.25})
    assert told.owed["v100"] == pytest.approx(5 * ROUND + 0.25 * ROUND)
    assert "all 1 v100 are held" in told.reason
    assert "its share is 25.0% of the time, and it is owed 5.5 min" in told.reason
    assert "number 1 of 1" in told.reason
    assert (told.position, told.waiting) == (1, 1)
    (ahead,) = told.ahead
    assert (ahead.job, ahead.team, ahead.workers, ahead.accelerator) == ("a", "red", 1, "v100")
    assert "to take them one must be owed" in ahead.why


def test_a_policy_that_gives_no_share_is_named() -> None:
    engine = engine_of("v100=1", [job("first"), job("second"), job("third")], policy="fifo")
    told = explain(engine, "third")
    assert reasons(engine)["third"] == ("WaitingForShare", "fifo gives it no share of v100 now; others come first")
    assert told.reason.startswith("fifo gives it no share of v100")
    assert (told.position, told.waiting) == (2, 2)
    assert told.prices is None
    assert "weight" not in " ".join(change.text for change in told.changes), "first in, first out knows no weights"


def test_a_job_that_is_not_here_is_refused() -> None:
    with pytest.raises(InputError, match="job 'x' neither waits nor runs here"):
        explain(engine_of("v100=1", [job("a")]), "x")


# Prices


def test_prices_tell_on_which_type_a_job_is_closest_to_running() -> None:
    quick = [job(f"quick{number}", throughputs={"v100": 8.0, "k80": 1.0}) for number in range(3)]
    slow = [job(f"slow{number}", throughputs={"v100": 2.0, "k80": 1.0}) for number in range(3)]
    engine = engine_of("v100=1,k80=1", [*quick, *slow])
    for name in waiting(engine):
        prices = explain(engine, name).prices
        assert prices is not None
        assert set(prices) == {"v100", "k80"}
        allocation = engine.allocation
        assert allocation is not None
        shares = allocation.job_shares[engine.jobs.position(name)]
        for column, there in enumerate(prices.values()):
            assert there.affordable == (shares[column] > 1e-6)
            assert there.worth <= there.price * (1 + 1e-6), "or it would have that type's time"
            if there.affordable:
                assert there.worth == pytest.approx(there.price)
    assert not all(there.affordable for there in explain(engine, "quick2").prices.values())  # type: ignore[union-attr]


def test_min_jct_says_what_an_hour_costs_the_other_jobs() -> None:
    # More comes than can be done: a second on the fast type saves two on the slow one, less the second itself.
    engine = TrainingEngine(Cluster({"v100": 1, "k80": 1}), policy_of("min-jct"), EngineOptions(ROUND))
    coming = ArrivalsResumed(("v100", "k80"), (("lm", 1, (2.0, 1.0), 100.0, 1e6),), 1000.0, 100)
    rates = {"v100": 2.0, "k80": 1.0}
    jobs = [JobArrived(job(name, throughputs=rates, job_type="lm")) for name in "abc"]
    engine.handle(0.0, [coming, *jobs, RoundBegan()])
    told = explain(engine, "c")
    assert "an hour costs the others 3600 s on a v100 and 0 s on a k80" in told.reason
    assert told.prices is not None
    assert {name: (there.price, there.worth) for name, there in told.prices.items()} == {
        "v100": pytest.approx((1.0, 1.0)),
        "k80": pytest.approx((0.0, 0.0)),
    }


def test_a_job_priced_out_everywhere_is_told_so() -> None:
    engine = engine_of("v100=1", [job("a"), job("b", throughputs={"v100": 1.0})], policy="max-throughput")
    prices = explain(engine, "b").prices
    assert prices is not None
    assert 1.0 <= prices["v100"].price <= 4.0
    assert not prices["v100"].affordable


# Changes


def test_the_other_type_is_the_smallest_change_where_it_is_idle() -> None:
    engine = engine_of("v100=1,k80=1", [job("a", throughputs={"v100": 1.0}), job("b", throughputs={"v100": 1.0})])
    (later,) = waiting(engine)
    assert "accept k80 too" not in {change.text for change in explain(engine, later).changes}
    told = explain(engine, later, other_rates={"k80": 0.5, "v100": 1.0, "tpu": 3.0})
    assert told.smallest_change == "accept k80 too (starts at once)"


def test_more_weight_can_start_a_job_with_the_next_round() -> None:
    engine = engine_of("v100=1", [job("a"), job("b")])
    for number in range(1, 12):
        told = explain(engine, "b")
        weights = [change for change in told.changes if "weight" in change.text]
        if weights:
            break
        assert told.code == "WaitingForShare"
        engine.handle(number * ROUND, [RoundBegan()])
    assert [(change.text, change.at_once) for change in weights] == [("1.5 times the weight", False)]
    untouched, heavier = snapshot(engine), snapshot(engine)
    heavier.jobs.weight[1] *= 1.5
    heavier.handle(heavier.now, [PricesChanged({"v100": 1.0})])  # something that makes the policy decide again
    for each in (untouched, heavier):
        each.handle(number * ROUND, [RoundBegan()])
    assert not holds(untouched, "b")
    assert holds(heavier, "b")


def applied(engine: TrainingEngine, event: Event, name: str, *, at_once: bool) -> bool:
    trial = snapshot(engine)
    trial.handle(trial.now, [event])
    if not at_once and not holds(trial, name):
        trial.handle(trial.round_end or 0.0, [RoundBegan()])
    return holds(trial, name)


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.sampled_from(["max-min-fairness", "fifo", "makespan", "hierarchical"]))
def test_every_change_starts_the_job_and_one_worker_less_does_not(seed: int, policy: str) -> None:
    engine = busy(seed, policy)
    for name in waiting(engine)[:4]:
        told = explain(engine, name)
        assert list(told.changes) == sorted(told.changes, key=lambda change: change.size)
        for change in told.changes:
            words = change.text.split()
            if words[1] == "more":
                count, accelerator = int(words[0]), words[2]
                assert applied(engine, WorkersJoined(accelerator, count), name, at_once=change.at_once)
            elif words[0] == "cancel":
                assert applied(engine, JobCancelled(words[2].strip("'")), name, at_once=change.at_once)
            if words[1] == "more" and count > 1:
                fewer = WorkersJoined(accelerator, count - 1)
                assert not applied(engine, fewer, name, at_once=told.code == "WaitingForRound")


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.sampled_from([*POLICIES]))
def test_asking_changes_nothing_and_both_answers_agree(seed: int, policy: str) -> None:
    engine, undisturbed = busy(seed, policy), busy(seed, policy)
    quick = reasons(engine)
    assert set(quick) == set(engine.jobs.ids)
    after = snapshot(engine)
    after.handle(after.round_end or 0.0, [RoundBegan()])
    for name in engine.jobs.ids:
        told = explain(engine, name)
        if engine._changed is False:
            assert told.code == quick[name].code
        assert told.reason
        if told.code == "WaitingForRound":
            assert holds(after, name)
        elif told.code in {"WaitingForShare", "NotEnoughWorkers"}:
            assert not holds(after, name)
            assert told.ahead
            assert 1 <= (told.position or 0) <= told.waiting == len(waiting(engine))
    end = math.inf if engine.round_end is None else engine.round_end
    for each in (engine, undisturbed):
        assert each.round_end == end
    assert engine.handle(end, [RoundBegan()]) == undisturbed.handle(end, [RoundBegan()])
    assert engine.story("job j0") == undisturbed.story("job j0") != engine.story("job x")


def test_positions_are_all_different() -> None:
    engine = busy(7)
    places = [explain(engine, name).position for name in waiting(engine)]
    assert sorted(place or 0 for place in places) == list(range(1, len(places) + 1))


def test_the_search_ends_when_it_is_enough() -> None:
    engine = busy(3)
    name = waiting(engine)[-1]
    asked = []

    def enough() -> bool:
        asked.append(True)
        return len(asked) > 2

    explain(engine, name, enough=enough)
    assert 3 <= len(asked) <= 40
    assert explain(engine, name, enough=lambda: True).changes == ()


# Time


def crowd(count: int) -> TrainingEngine:
    draw = np.random.default_rng(1)
    engine = TrainingEngine(Cluster({"v100": 300, "p100": 300, "k80": 400}), policy_of("max-min-fairness"))
    arrivals: list[Event] = []
    for number in range(count):
        rates = dict(zip(("v100", "p100", "k80"), draw.uniform(0.1, 9.0, 3).tolist(), strict=True))
        weight = float(draw.choice([1.0, 2.0]))
        arrivals.append(JobArrived(job(f"j{number}", int(draw.choice([1, 1, 2, 4])), throughputs=rates, weight=weight)))
    engine.handle(0.0, [*arrivals, RoundBegan()])
    engine.validate()
    return engine


def best_of(times: int, action: Callable[[], object]) -> float:
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def test_ten_thousand_jobs_get_their_reasons_quickly() -> None:
    engine = crowd(10_000)
    assert best_of(5, lambda: reasons(engine)) < 0.1


def test_one_job_among_a_thousand_is_explained_quickly() -> None:
    engine = crowd(1000)
    name = waiting(engine)[-1]
    assert best_of(3, lambda: explain(engine, name)) < 0.5
