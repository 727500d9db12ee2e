"""How long jobs take that do not say so: quantiles worked out by hand from those that came before."""

from __future__ import annotations

import numpy as np
import pytest

from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.lengths import LengthHistory
from fairway.engine.training.messages import JobArrived, JobFinished, RoundBegan
from fairway.engine.training.options import EngineOptions
from fairway.engine.training.what_if import snapshot
from fairway.jobs import Job
from fairway.sim.lengths import Lengths
from fairway.store.messages import event_document, event_of

CLASS = 1.5
"""Lengths are told apart that differ by more than this factor."""


def left(history: LengthHistory, job_type: str | None, team: str | None, done: float, quantile: float = 0.5) -> float:
    found = history.left([(job_type, team)], np.array([done]), quantile)
    assert found is not None
    return float(found[0])


def history_of(*jobs: tuple[str | None, str | None, float]) -> LengthHistory:
    history = LengthHistory()
    for job in jobs:
        history.learn(*job)
    return history


def test_nothing_is_said_before_a_few_jobs_were_seen() -> None:
    history = history_of(*[("lm", None, 100.0)] * 4)
    assert history.left([("lm", None)], np.zeros(1)) is None
    history.learn("lm", None, 100.0)
    assert history.left([("lm", None)], np.zeros(1)) is not None


def test_a_quantile_is_that_of_the_lengths_before_and_no_mean() -> None:
    history = history_of(*[("lm", None, 100.0), ("lm", None, 100.0), ("lm", None, 100.0), ("lm", None, 1e6)] * 10)
    assert 100.0 / CLASS < left(history, "lm", None, 0.0) < 100.0 * CLASS
    assert 1e6 / CLASS < left(history, "lm", None, 0.0, 0.9) < 1e6 * CLASS


def test_a_job_that_has_run_for_long_is_one_of_the_long_ones() -> None:
    history = history_of(*[("lm", None, 100.0)] * 30, *[("lm", None, 10000.0)] * 10)
    assert left(history, "lm", None, 0.0) < 200.0
    assert 9000.0 / CLASS < left(history, "lm", None, 1000.0) < 9000.0 * CLASS
    assert left(history, "lm", None, 1e6) == 1e6  # longer than any: as long again


def test_the_type_and_the_team_say_more_than_all_jobs() -> None:
    history = history_of(
        *[("lm", "a", 100.0)] * 40, *[("gan", "a", 10000.0)] * 40, *[("gan", "b", 100.0)] * 40, *[(None, "c", 3.0)] * 40
    )
    assert left(history, "lm", "a", 0.0) < 200.0
    assert left(history, "gan", "a", 0.0) > 5000.0
    assert left(history, "gan", "b", 0.0) < 200.0
    assert left(history, "new", "c", 0.0) < 5.0
    # Of a type and team that are both new, all jobs say as much: half of them are shorter than 101 s or so.
    assert 50.0 < left(history, "other", "other", 0.0) < 200.0


def test_a_few_jobs_of_a_team_weigh_less_than_many_of_all() -> None:
    many = [("lm", "a", 100.0)] * 100
    assert left(history_of(*many, ("lm", "b", 1e5)), "lm", "b", 0.0) < 200.0
    assert left(history_of(*many, *[("lm", "b", 1e5)] * 50), "lm", "b", 0.0) > 5e4


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("inf"), float("nan")])
def test_lengths_that_are_none_teach_nothing(seconds: float) -> None:
    history = history_of(*[("lm", None, seconds)] * 9)
    assert history.left([("lm", None)], np.zeros(1)) is None


def engine_after(lengths: list[float], job_type: str = "lm") -> TrainingEngine:
    """An engine with a worker on which jobs of a type have taken so long, and where a new one has just come."""
    engine = TrainingEngine(Cluster({"v100": 1}), policy_of("min-jct"), EngineOptions(10.0))
    now = 0.0
    for number, seconds in enumerate(lengths):
        engine.handle(now, [JobArrived(Job(f"old{number}", {"v100": 2.0}, job_type=job_type)), RoundBegan()])
        assert engine.jobs.on.tolist() == [0]
        now += seconds
        engine.handle(now, [JobFinished(f"old{number}")])
        engine.handle(now + 10.0, [RoundBegan()])
        now += 10.0
    engine.handle(now, [JobArrived(Job("new", {"v100": 2.0}, job_type=job_type))])
    return engine


def test_an_engine_learns_from_jobs_that_end_and_another_goes_on_from_that() -> None:
    engine = engine_after([100.0] * 10)
    (likely,) = engine.likely_steps() or [np.nan]
    assert 200.0 / CLASS < likely < 200.0 * CLASS
    other = TrainingEngine(engine.cluster, policy_of("min-jct"), EngineOptions(10.0))
    kept = [event_of(event_document(0.0, event))[1] for event in engine.resumption()]
    other.handle(engine.now, kept)
    assert other.likely_steps() == pytest.approx(likely)


def test_jobs_that_say_how_long_they_are_are_counted_as_they_come() -> None:
    engine = TrainingEngine(Cluster({"v100": 1}), policy_of("min-jct"), EngineOptions(10.0))
    jobs = [Job(f"j{number}", {"v100": 2.0}, steps_left=200.0) for number in range(5)]
    engine.handle(0.0, [JobArrived(job) for job in jobs])
    assert engine.likely_steps() is None
    engine.handle(0.0, [JobArrived(Job("new", {"v100": 2.0}))])
    likely = engine.likely_steps()
    assert likely is not None
    assert np.isnan(likely[:5]).all()
    assert 200.0 / CLASS < likely[5] < 200.0 * CLASS


def test_the_simulator_draws_the_lengths_of_samples_from_those_before() -> None:
    engine = snapshot(engine_after([100.0] * 15 + [10000.0] * 15))
    lengths = Lengths(engine)
    assert lengths.source == "the median of jobs like them before"
    draws = np.random.default_rng(0)
    seconds = np.array([lengths.left(draws)["new"] / 2.0 for _ in range(200)])
    short = (seconds > 100.0 / CLASS) & (seconds < 100.0 * CLASS)
    long = (seconds > 10000.0 / CLASS) & (seconds < 10000.0 * CLASS)
    assert (short | long).all()
    assert 0.35 < short.mean() < 0.65
    assert lengths.left(draws, certain="new") == lengths.left()
    assert Lengths(snapshot(engine_after([]))).source == "a guess"


def test_min_jct_prefers_the_job_whose_kind_is_soon_done() -> None:
    engine = TrainingEngine(Cluster({"v100": 1}), policy_of("min-jct"), EngineOptions(10.0))
    for number in range(20):
        kind, steps = ("long", 1e6) if number % 2 else ("short", 100.0)
        engine.handle(0.0, [JobArrived(Job(f"j{number}", {"v100": 1.0}, job_type=kind, steps_left=steps))])
    engine.handle(0.0, [JobFinished(f"j{number}") for number in range(20)])
    for kind in ("long", "short"):
        engine.handle(0.0, [JobArrived(Job(kind, {"v100": 1.0}, job_type=kind))])
    engine.handle(0.0, [RoundBegan()])
    assert dict(zip(engine.jobs.ids, engine.jobs.on.tolist(), strict=True)) == {"long": -1, "short": 0}
