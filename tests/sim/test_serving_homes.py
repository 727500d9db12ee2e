"""What homes of models are worth where memory is short: pages to read and recordings to listen to, on two workers."""

from __future__ import annotations

import numpy as np
import pytest

from fairway.report.serving.metrics import summarize_serving
from fairway.sim.serving import ServingOptions
from fairway.sim.serving_workload import ServingRun, ServingWorkload

_SCENARIO = """
models:
  detector: {bytes: 62000000, load_seconds: 0.13}
  page-turner: {bytes: 73000000, load_seconds: 0.04}
  line-turner: {bytes: 14000000, load_seconds: 0.04}
  recogniser: {bytes: 125000000, load_seconds: 0.13}
  listener: {bytes: 89000000, load_seconds: 0.06}
workflows:
  read:
    stages:
    - {name: detect, model: detector, seconds: 0.06}
    - {name: turn-page, model: page-turner, seconds: 0.01}
    - {name: turn-lines, model: line-turner, seconds: 0.01}
    - {name: recognise, model: recogniser, seconds: 0.25}
    edges: [[detect, turn-lines], [turn-page, turn-lines], [turn-lines, recognise]]
  listen:
    stages:
    - {name: hear, model: listener, seconds: 0.015}
    edges: []
workers:
- {name: worker, count: 2, memory_bytes: 214000000}
"""


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("homes") / "documents.yaml"
    path.write_text(_SCENARIO)
    return str(path)


def _results(scenario: str, scheduler: str) -> tuple[float, float]:
    """Mean latency and cache hit rate, over four seeds."""
    workload = ServingWorkload(scenario, "poisson", requests=1500, rate=5.0)
    runs = [summarize_serving(ServingRun(workload, scheduler, ServingOptions(seed=seed))()) for seed in range(4)]
    latency = float(np.mean([run["latency_seconds"]["mean"] for run in runs]))
    return latency, float(np.mean([run["cache_hit_rate"] for run in runs]))


def test_with_homes_less_is_loaded_and_requests_are_answered_sooner(scenario: str) -> None:
    latency, hits = _results(scenario, "compass")
    latency_without, hits_without = _results(scenario, "compass:no-homes")
    assert hits > 0.9 > hits_without
    assert latency < 0.95 * latency_without
