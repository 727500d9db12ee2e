"""Predictions: exact where nothing is uncertain, honest about what is, and quick."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import numpy as np
import pytest

from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import JobArrived, RoundBegan, WorkersLeft
from fairway.engine.training.options import EngineOptions
from fairway.engine.training.what_if import holds, snapshot
from fairway.errors import InputError
from fairway.jobs import Job
from fairway.profiles import IsolatedRate, PairRate, ThroughputTable
from fairway.sim.prediction import predict
from fairway.sim.submissions import Submission, TrainingOptions
from fairway.sim.training import TrainingRun
from tests.engine.training.validated import validated_engines

CLUSTER = Cluster({"v100": 3, "k80": 4}, workers_per_node={"v100": 2})
SHARING = ThroughputTable(
    [IsolatedRate("x", 1, "v100", 2.0), IsolatedRate("x", 1, "k80", 1.0)],
    [PairRate("x", "x", 1, "v100", 1.4, 1.4), PairRate("x", "x", 1, "k80", 0.7, 0.7)],
    source="here",
)


@pytest.fixture(autouse=True, scope="module")
def _validated() -> Iterator[None]:
    with validated_engines():
        yield


def submissions(seed: int, count: int = 16, **fields: object) -> list[Submission]:
    draw = np.random.default_rng(seed)
    coming, now = [], 0.0
    for number in range(count):
        now += float(draw.uniform(0.0, 30.0))
        rates = {"v100": float(draw.uniform(1, 4)), "k80": float(draw.uniform(0.3, 1))}
        job = Job(
            f"j{number}",
            fields.get("throughputs", rates),  # type: ignore[arg-type]
            int(draw.integers(1, 4)) if "job_type" not in fields else 1,
            steps_left=float(draw.uniform(100, 4000)),
            preemptible=number % 5 > 0,
            job_type=fields.get("job_type"),  # type: ignore[arg-type]
            spread_throughputs=None if "job_type" in fields else {name: rate * 0.8 for name, rate in rates.items()},
        )
        coming.append(Submission(now, job))
    return coming


def world(
    coming: list[Submission], policy: str = "max-min-fairness", table: ThroughputTable | None = None
) -> TrainingRun:
    engine = TrainingEngine(CLUSTER, policy_of(policy), EngineOptions(60.0, 5.0), partners=table)
    return TrainingRun(engine, coming, CLUSTER, TrainingOptions(60.0, 5.0), table=table)


@pytest.mark.parametrize("policy", ["max-min-fairness", "fifo", "shortest-job-first", "max-min-fairness:space-sharing"])
@pytest.mark.parametrize("seed", range(3))
def test_what_is_predicted_happens_when_nothing_new_comes(policy: str, seed: int) -> None:
    """All jobs are there and say how long they are: the simulator goes on exactly as the world does."""
    sharing = "sharing" in policy
    kind = {"job_type": "x", "throughputs": {"v100": 2.0, "k80": 1.0}} if sharing else {}
    table = SHARING if sharing else None
    real = world(submissions(seed, **kind), policy, table)
    real.loop.run(until=517.0)  # in the middle of a round, with jobs that hold leases and jobs that are just starting
    engine = snapshot(real.engine)
    names = [name for name in engine.jobs.ids if not holds(engine, name)]
    running = [name for name in engine.jobs.ids if holds(engine, name)]
    assert names
    assert running
    predicted = {name: predict(engine, name, table=table, samples=1, seconds=60.0) for name in (*names, running[0])}
    granted: dict[str, float] = {}
    while len(granted) < len(names) and real.loop.now < 1e6:
        real.loop.run(until=real.loop.now + 0.25)
        for name in names:
            if name not in granted and (name not in real.engine.jobs or holds(real.engine, name)):
                granted[name] = real.loop.now
    real.loop.run()
    finish = {row.job.id: row.finish for row in real.recorder.jobs}
    for name, told in predicted.items():
        assert told.finish == pytest.approx(finish[name], abs=1e-6)
        if name in granted:
            assert told.start is not None
            assert 0.0 <= granted[name] - told.start <= 0.25
            assert told.earliest <= told.start <= told.latest  # type: ignore[operator]
    assert predicted[running[0]].start == predicted[running[0]].latest == pytest.approx(517.0, abs=60.0)
    assert predicted[running[0]].basis.startswith("it runs already")


def two_jobs(steps: float | None, waiting: float | None = 100.0, policy: str = "fifo") -> TrainingEngine:
    engine = TrainingEngine(Cluster({"v100": 1}), policy_of(policy), EngineOptions(10.0))
    jobs = [Job(name, {"v100": 2.0}, steps_left=length) for name, length in (("first", steps), ("second", waiting))]
    engine.handle(0.0, [*map(JobArrived, jobs), RoundBegan()])
    return engine


def test_times_worked_out_by_hand() -> None:
    told = predict(two_jobs(1000.0), "second", samples=20, seconds=60.0)
    assert told.start == pytest.approx(500.0)
    assert told.finish == pytest.approx(550.0)
    assert told.earliest is not None
    assert told.latest is not None
    assert 250.0 < told.earliest < 450.0, "the first job is 20 % longer or shorter"
    assert 550.0 < told.latest < 1000.0
    assert "the interval from 20 more runs in which other jobs take about 20% more or less" in told.basis
    assert "jobs that will come" in told.basis


def test_the_same_seed_gives_the_same_prediction_and_the_engine_is_left_alone() -> None:
    engine = two_jobs(1000.0)
    before = engine.resumption()
    one, same, other = (predict(engine, "second", seed=seed, seconds=60.0) for seed in (1, 1, 2))
    assert one == same
    assert one.latest != other.latest
    assert engine.resumption() == before


def test_a_job_that_takes_longer_than_it_said_does_not_put_the_start_into_the_past() -> None:
    engine = snapshot(two_jobs(1000.0), now=702.0)
    told = predict(engine, "second", seconds=60.0)
    assert told.start == told.earliest == told.latest == pytest.approx(702.0)
    assert predict(engine, Job("third", {"v100": 1.0}, steps_left=30.0), seconds=60.0).start == pytest.approx(752.0)


def test_a_job_that_is_not_submitted_yet_waits_behind_the_others() -> None:
    new = Job("third", {"v100": 1.0}, steps_left=30.0)
    told = predict(two_jobs(1000.0), new, seconds=60.0)
    assert told.start == pytest.approx(550.0)
    assert told.finish == pytest.approx(580.0)
    idle = TrainingEngine(Cluster({"v100": 1}), policy_of("fifo"), EngineOptions(10.0))
    told = predict(idle, new, seconds=60.0)
    assert (told.start, told.finish) == (0.0, 30.0)


def test_jobs_that_do_not_say_how_long_they_are_are_taken_for_typical() -> None:
    told = predict(two_jobs(None), "second", samples=20, seconds=60.0, span=lambda seconds: f"{seconds / 60:.2f} min")
    assert told.start == pytest.approx(50.0), "as long as the other"
    assert "1 that do not say how long they are taken to run 0.83 min (the median of the others)" in told.basis
    assert told.latest is not None
    assert told.latest > 100.0, "which is hardly more than a guess"
    told = predict(two_jobs(None, None), "second", seconds=60.0)
    assert told.start == pytest.approx(100.0)
    assert told.finish is None
    assert "(a guess)" in told.basis
    assert "no finish: it does not say how many steps it takes" in told.basis
    told = predict(two_jobs(1000.0), Job("third", {"v100": 1.0}), seconds=60.0)
    assert told.start == pytest.approx(550.0)
    assert told.finish is None


def test_what_cannot_be_predicted_is_not() -> None:
    engine = two_jobs(1000.0)
    told = predict(engine, Job("huge", {"v100": 1.0}, scale_factor=2, steps_left=1.0))
    assert (told.start, told.earliest, told.latest, told.finish) == (None, None, None, None)
    assert told.basis.startswith("no prediction: no accelerator type of this cluster has as many workers")
    engine.handle(1.0, [WorkersLeft("v100", (0,))])
    told = predict(engine, "second", seconds=0.2)
    assert told.start is None
    assert told.basis == "no prediction: it does not start within what can be simulated in 0.2 s"
    with pytest.raises(InputError, match="job 'x' neither waits nor runs here"):
        predict(engine, "x")
    with pytest.raises(InputError, match="job 'first' is here already"):
        predict(engine, Job("first", {"v100": 1.0}))


def crowd(count: int, workers: int) -> TrainingEngine:
    draw = np.random.default_rng(1)
    cluster = Cluster(dict.fromkeys(("v100", "p100", "k80"), workers))
    engine = TrainingEngine(cluster, policy_of("max-min-fairness"), EngineOptions(360.0, 30.0))
    jobs = []
    for number in range(count):
        rates = dict(zip(cluster.types, draw.uniform(0.1, 9.0, 3).tolist(), strict=True))
        scale, steps = int(draw.choice([1, 1, 2, 4])), float(draw.uniform(1e3, 1e5))
        jobs.append(Job(f"j{number}", rates, scale, steps_left=steps))
    engine.handle(0.0, [*map(JobArrived, jobs)])
    for number in range(3):
        engine.handle(360.0 * number, [RoundBegan()])
    return engine


def test_two_hundred_jobs_are_quick_and_many_are_bounded() -> None:
    engine = crowd(200, 20)
    waiting = [name for name in engine.jobs.ids if not holds(engine, name)]
    start = time.perf_counter()
    told = predict(engine, waiting[-1])
    assert time.perf_counter() - start < 10.0, "a second, and what a busy machine adds"
    assert told.start is not None
    assert math.isfinite(told.start)
    engine = crowd(5000, 100)
    start = time.perf_counter()
    told = predict(engine, engine.jobs.ids[-1], seconds=0.3)
    assert time.perf_counter() - start < 20.0
    assert told.basis
