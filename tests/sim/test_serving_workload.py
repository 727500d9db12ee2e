"""A serving run in a few words: scenarios by name and file, arrivals by kind, traces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fairway.errors import InputError
from fairway.report.serving.metrics import summarize_serving
from fairway.sim.comparison import compare
from fairway.sim.serving import ServingOptions
from fairway.sim.serving_workload import ServingRun, ServingWorkload

TRACE = """gmt_create,predict_type,exec_time_seconds,checkpoint_model_version_id
2024-11-15 16:57:50,TXT_2_IMG,32.0,M0
2024-11-15 16:58:50,TXT_2_IMG,16.0,M1
2024-11-15 16:59:50,TXT_2_IMG,0.0,M1
2024-11-15 17:00:50,TXT_2_IMG,48.0,M1
"""


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "requests.csv"
    path.write_text(TRACE)
    return f"trace:{path}"


@pytest.mark.parametrize("kind", ["poisson", "uniform", "clients", "gamma:2"])
def test_every_kind_of_arrivals_runs(kind: str) -> None:
    record = ServingRun(ServingWorkload(arrivals=kind, requests=40, rate=3.0), "compass", ServingOptions())()
    assert summarize_serving(record)["completed"] == 40


def test_a_trace_names_the_models_and_the_time_of_each_request(trace: str) -> None:
    workload = ServingWorkload("trace-models", trace, workers=2)
    assert workload.number == 3
    scenario = workload.make_scenario()
    assert [workflow.name for workflow in scenario.workflows] == ["M0", "M1"]
    arrivals = workload.make_arrivals(scenario, 0)
    assert arrivals.time.tolist() == [0.0, 60.0, 180.0]
    assert arrivals.work.tolist() == pytest.approx([1.0, 0.5, 1.5])
    record = ServingRun(workload, "compass", ServingOptions(discard=0.0, keep_runs=True))()
    assert (record.runs.end - record.runs.start).tolist() == pytest.approx([32.0, 16.0, 48.0])
    assert record.skipped_rows == 1


def test_a_trace_of_other_names_asks_for_the_workflows_in_turn(trace: str) -> None:
    workload = ServingWorkload("compass-edge", trace, requests=2, rate=4.0)
    arrivals = workload.make_arrivals(workload.make_scenario(), 0)
    assert arrivals.workflow.tolist() == [0, 1]
    assert arrivals.work.tolist() == [1.0, 1.0]
    assert arrivals.time.tolist() == pytest.approx([0.0, 0.25])


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        (ServingWorkload("compass-egde"), "--scenario: 'compass-egde' is not known, did you mean 'compass-edge'?"),
        (ServingWorkload("esg-apps"), "--scenario: 'esg-apps' is not known"),
        (ServingWorkload("absent.yaml"), "absent.yaml: cannot be read: No such file"),
        (ServingWorkload("trace-models"), "--scenario: trace-models takes its models from a trace"),
        (ServingWorkload(arrivals="poison"), "--arrivals: 'poison' given, expected one of poisson"),
        (ServingWorkload(arrivals="gamma:0"), "--arrivals: 'gamma:0' given, expected a coefficient"),
        (ServingWorkload(arrivals="trace:absent.csv"), "absent.csv: cannot be read"),
        (ServingWorkload(requests=0), "--requests: 0 given"),
        (ServingWorkload(rate=-1.0), "--rate: -1.0 given"),
        (ServingWorkload(workers=0), "--workers: 0 given"),
    ],
)
def test_what_cannot_be_run_is_one_line(workload: ServingWorkload, message: str) -> None:
    with pytest.raises(InputError) as caught:
        workload.make_arrivals(workload.make_scenario(), 0)
    assert str(caught.value).startswith(message)


def test_runs_are_the_same_here_and_in_other_processes() -> None:
    workload = ServingWorkload(arrivals="clients", requests=60, rate=3.0)
    runs = [ServingRun(workload, name, ServingOptions(seed=7)) for name in ("compass", "hash:compat")]
    here, there = compare(runs, processes=1), compare(runs, processes=2)
    for one, other in zip(here, there, strict=True):
        assert np.array_equal(one.requests.finish, other.requests.finish, equal_nan=True)
        assert one.scheduler == other.scheduler
