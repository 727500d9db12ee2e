"""What an application did lately, put together from what each worker says by its own clock."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from fairway import Stage, Workflow
from fairway.live.serving.supervise.settings import ServingSettings
from fairway.report.serving.record import RequestOutcome, ServingRecord
from fairway.service.inference.history import _record, _Told

FLOW = Workflow((Stage.of("first", 1.0), Stage.of("then", 3.0)), (("first", "then"),))
APPLICATION = SimpleNamespace(
    name="app",
    workflows={
        "one": SimpleNamespace(name="one", workflow=FLOW, slo_seconds=8.0),
        "two": SimpleNamespace(name="two", workflow=FLOW, slo_seconds=None),
    },
    models={"m": None, "n": None},
)
TODAY = 1000.0


def told(number: int, ahead: float, requests: Any = (), stages: Any = (), models: Any = ()) -> _Told:
    return _Told(number, {"requests": requests, "stages": stages, "models": models}, ahead)


def record(*all_told: _Told, tallies: Any = None) -> tuple[ServingRecord, float]:
    settings = ServingSettings("m:a", Path("/d"), Path("/m"), workers=2, has_planner=True)
    return _record(cast(Any, APPLICATION), settings, all_told, tallies or {}, TODAY)


@pytest.fixture
def found() -> tuple[ServingRecord, float]:
    """Worker 0 is 900 s behind and worker 1 500 s; the planner, number 2, shows the same as this machine."""
    return record(
        told(
            0, 900.0,
            [(7, 1, 90.0, 95.0, "replied"), (8, 0, 96.0, 97.0, "shed")],
            [
                (7, 1, 0, 1, 90.0, 91.0, 94.0, 2, 0),
                (8, 0, 0, 1, 90.5, 91.0, 94.0, 2, 1),  # runs together with the one before
                (9, 0, 0, 2, 98.0, 98.5, 99.0, 1, 0),  # has not ended
                (5, 0, 0, 1, 50.0, 51.0, 52.0, 1, 0),  # of a request that is forgotten
            ],
            [("n", False, 80.0, 92.0), ("m", True, 85.0, 85.0), ("gone", False, 95.0, 96.0)],
        ),
        told(1, 500.0, [], [(7, 1, 1, 0, 494.0, 494.5, 494.75, 1, 0)], [("m", False, 493.0, 494.0)]),
        told(2, 0.0, [(10, 0, 999.0, 999.5, "replied")]),
        tallies={0: {"hits": 5, "misses": 2, "loads": 3, "evictions": 1}, 1: {"hits": 7}},
    )  # fmt: skip


def test_requests_are_in_the_order_in_which_they_came_on_one_clock(found: tuple[ServingRecord, float]) -> None:
    record, begins = found
    requests = record.requests
    assert begins == 990.0
    assert requests.arrival.tolist() == [0.0, 6.0, 8.0, 9.0]
    assert requests.finish[[0, 1, 3]].tolist() == [5.0, 7.0, 9.5]
    assert math.isnan(requests.finish[2])
    assert requests.workflow.tolist() == [1, 0, 0, 0]
    assert requests.outcome.tolist() == [
        RequestOutcome.COMPLETED, RequestOutcome.REFUSED, RequestOutcome.UNFINISHED, RequestOutcome.COMPLETED,
    ]  # fmt: skip
    assert record.end_seconds == 10.0


def test_runs_name_their_worker_request_and_stage(found: tuple[ServingRecord, float]) -> None:
    runs = found[0].runs
    assert runs.worker.tolist() == [0, 0, 0, 1]
    assert runs.request.tolist() == [0, 1, 2, 0]
    assert runs.stage.tolist() == [0, 0, 0, 1]
    assert runs.found.tolist() == [1, 1, 2, 0]
    assert (runs.batch.tolist(), runs.member.tolist()) == ([2, 2, 1, 1], [0, 1, 0, 0])
    assert runs.queued.tolist() == [0.0, 0.5, 8.0, 4.0]
    assert runs.start.tolist() == runs.turn.tolist() == [1.0, 1.0, 8.5, 4.5]
    assert runs.end.tolist() == [4.0, 4.0, 9.0, 4.75]


def test_a_batch_counts_once_for_its_worker(found: tuple[ServingRecord, float]) -> None:
    workers = found[0].workers
    assert workers.busy_seconds.tolist() == [3.5, 0.25]
    assert workers.tasks.tolist() == [2, 1]
    assert (workers.hits.tolist(), workers.misses.tolist()) == ([5, 7], [2, 0])
    assert (workers.fetches.tolist(), workers.evictions.tolist()) == ([3, 0], [1, 0])
    assert workers.names == ("w0", "w1")


def test_copies_are_those_that_ended_since_the_first_request(found: tuple[ServingRecord, float]) -> None:
    copies = found[0].copies
    assert copies.worker.tolist() == [0, 1]
    assert copies.model.tolist() == [1, 0]
    assert copies.evicted.tolist() == [False, False]
    assert copies.start.tolist() == [0.0, 3.0]
    assert copies.end.tolist() == [2.0, 4.0]


def test_workflows_are_told_with_their_edges_and_their_slo(found: tuple[ServingRecord, float]) -> None:
    one, two = found[0].workflows
    assert (one.name, one.stages, one.entries, one.edges) == ("one", ("first", "then"), (0,), ((0, 1),))
    assert (one.slo_seconds, two.slo_seconds) == (8.0, math.inf)
    np.testing.assert_allclose(one.budgets, [2.0, 6.0])
    assert two.budgets == ()


def test_without_requests_there_is_nothing_and_it_begins_now() -> None:
    record_of_nothing, begins = record(told(0, 900.0))
    assert (begins, record_of_nothing.end_seconds) == (TODAY, 0.0)
    assert len(record_of_nothing.requests.arrival) == 0
