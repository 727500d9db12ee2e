"""Batches in the serving simulator: more requests in the same time, and everything about them recorded."""

from __future__ import annotations

import numpy as np
import pytest

from fairway import Model, Stage, Worker, Workflow
from fairway.report.serving.metrics import summarize_serving
from fairway.report.serving.record import RequestOutcome, ServingRecord
from fairway.sim.arrivals import Arrivals, poisson
from fairway.sim.failures import Failure
from fairway.sim.scenario import Scenario
from fairway.sim.serving import ServingOptions, simulate_serving
from tests.sim.test_serving import PLACERS, Watched, drained, requests

MODELS = {"opt": Model("opt", 4_000_000_000), "nli": Model("nli", 2_000_000_000)}


def scenario(slo: float | None = None, workers: int = 2, *, batches: bool = True) -> Scenario:
    def times(seconds: float) -> dict[str, dict[int, float]]:
        sizes = {1: seconds, 2: 1.2 * seconds, 4: 1.6 * seconds, 8: 2.4 * seconds}
        return {"gpu": sizes if batches else {1: seconds}}

    workflow = Workflow(
        (
            Stage.of("draft", times(0.4), "opt", output_bytes=2048),
            Stage.of("check", times(0.1), "nli", output_bytes=64),
            Stage.of("score", times(0.2), output_bytes=64),
            Stage.of("tell", times(0.05)),
        ),
        (("draft", "check"), ("draft", "score"), ("check", "tell"), ("score", "tell")),
        MODELS,
        "answer",
    )
    gpus = tuple(Worker(f"w{number}", 14_000_000_000) for number in range(workers))
    return Scenario("batches", (workflow,), gpus, slo_seconds={} if slo is None else {"answer": slo})


def arrivals(number: int, rate: float, seed: int = 0) -> Arrivals:
    return poisson(number, rate, np.ones(1), seed)


def run(given: Scenario, asked: Arrivals, scheduler: str = "compass", **options: object) -> ServingRecord:
    chosen = {"discard": 0.0, "keep_runs": True, **options}
    return simulate_serving(given, asked, scheduler, ServingOptions(**chosen))  # type: ignore[arg-type]


def batches(record: ServingRecord) -> np.ndarray:
    assert record.runs.batch is not None
    return record.runs.batch


@pytest.mark.parametrize("scheduler", ["compass", "jit", "heft", "hash"])
def test_batches_serve_more_requests_in_the_same_time(scheduler: str) -> None:
    asked = arrivals(400, 6.0)  # twice of what two workers can do one by one
    together, alone = (run(scenario(), asked, scheduler + options) for options in ("", ":no-batching"))
    one, other = summarize_serving(together), summarize_serving(alone)
    assert one["completed"] == other["completed"] == 400
    assert together.end_seconds < 0.75 * alone.end_seconds
    assert one["latency_seconds"]["mean"] < 0.3 * other["latency_seconds"]["mean"]  # type: ignore[operator]
    assert other["mean_batch"] == 1.0
    assert one["mean_batch"] > 1.5  # type: ignore[operator]


def test_without_batch_sizes_nothing_is_different() -> None:
    asked = arrivals(150, 4.0)
    with_option, without = (run(scenario(batches=False), asked, name) for name in ("compass:no-batching", "compass"))
    np.testing.assert_array_equal(with_option.requests.finish, without.requests.finish)
    assert batches(without).max() == 1
    assert with_option.events == without.events


def test_every_member_of_a_batch_is_recorded_with_its_own_times() -> None:
    """Four requests come while the first runs; nothing is to be loaded and no other worker is there."""
    stage = Stage.of("only", {"gpu": {1: 1.0, 2: 1.2, 4: 1.6}})
    alone = Scenario("one", (Workflow((stage,), ()),), (Worker("w0", 1),))
    record = run(alone, requests((0.0, 0), (0.1, 0), (0.2, 0), (0.3, 0), (0.4, 0)))
    runs = record.runs
    assert batches(record).tolist() == [1, 4, 4, 4, 4]
    assert runs.request.tolist() == [0, 1, 2, 3, 4]
    assert runs.queued[1:] == pytest.approx([0.1, 0.2, 0.3, 0.4], abs=1e-4)
    assert np.ptp(runs.start[1:]) == np.ptp(runs.end[1:]) == 0.0
    assert runs.end[1] - runs.start[1] == pytest.approx(1.6)
    assert record.requests.finish[1:] == pytest.approx(2.6, abs=1e-4)
    summary = summarize_serving(record)
    assert record.workers.busy_seconds.tolist() == pytest.approx([2.6]), "a batch keeps its worker busy once"
    assert (record.workers.tasks.tolist(), summary["mean_batch"]) == ([5], 2.5)


def test_an_slo_bounds_the_batches_and_its_scale_does_too() -> None:
    """The draft does 0.4 of 0.65 seconds, and may take as much of the SLO."""
    asked = arrivals(300, 12.0)

    def largest(slo: float | None, scale: float = 1.0) -> int:
        record = run(scenario(slo), asked, slo_scale=scale)
        return int(batches(record)[record.runs.stage == 0].max())

    assert [largest(slo) for slo in (None, 1.2, 1.0, 0.6)] == [8, 4, 2, 1]
    assert largest(0.4, scale=3.0) == 4


def test_noise_and_long_requests_count_with_their_mean() -> None:
    stage = Stage.of("only", {"gpu": {1: 1.0, 2: 1.2}})
    alone = Scenario("one", (Workflow((stage,), ()),), (Worker("w0", 1),))
    asked = Arrivals(np.array([0.0, 0.1, 0.2]), np.zeros(3, np.int64), np.zeros(3), np.array([1.0, 2.0, 4.0]))
    record = run(alone, asked)
    assert record.requests.finish[1:] == pytest.approx([1.0 + 1.2 * 3.0] * 2, abs=1e-4)


def test_the_same_seed_gives_the_same_run() -> None:
    first, again = (run(scenario(), arrivals(200, 6.0), noise=0.2, seed=5) for _ in range(2))
    np.testing.assert_array_equal(first.requests.finish, again.requests.finish)
    np.testing.assert_array_equal(batches(first), batches(again))
    assert first.events == again.events


@pytest.mark.parametrize("scheduler", PLACERS)
@pytest.mark.parametrize("failures", [(), (Failure(1, 8.0, 20.0), Failure(0, 25.0))])
def test_every_request_is_answered_once_and_nothing_stays(scheduler: str, failures: tuple[Failure, ...]) -> None:
    options = ServingOptions(seed=1, noise=0.3, discard=0.0, keep_runs=True, failures=failures)
    world = Watched(scenario(workers=3), arrivals(250, 8.0), scheduler, options)
    world.run()
    assert (np.array(world.recorder.outcome) == RequestOutcome.COMPLETED).all()
    assert set(world.replies.values()) == {1}
    drained(world)
    recorder = world.recorder
    runs = recorder._run_columns()
    assert runs.batch.max() > 1
    assert sum(map(sum, recorder.found)) == len(runs)
    own = (runs.end - runs.start) / runs.batch
    assert own.sum() == pytest.approx(sum(recorder.busy_seconds))
    assert np.all(np.array(recorder.cut_short) >= 0)
    more = len(runs) - round((1 / runs.batch).sum())
    assert sum(recorder.along) <= more if failures else sum(recorder.along) == more
