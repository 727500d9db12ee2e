"""The saved run of requests: every number as the record has it."""

from __future__ import annotations

import numpy as np

from fairway.dashboard.of_serving import saved_serving
from fairway.dashboard.perfetto import perfetto_trace
from fairway.dashboard.run_file import check, document
from tests.dashboard.runs import served_requests
from tests.dashboard.test_perfetto import slices


def test_it_is_a_saved_run() -> None:
    check(document([saved_serving(served_requests())]))


def test_requests_and_stages_are_those_of_the_record() -> None:
    record, saved = served_requests(), saved_serving(served_requests())
    assert np.allclose(saved["requests"]["arrival"], record.requests.arrival, atol=1e-6)
    assert np.allclose(saved["requests"]["finish"], record.requests.finish, atol=1e-6)
    assert len(saved["stages"]["request"]) == len(record.runs)
    ends = dict.fromkeys(range(len(record.requests)), 0.0)
    for request, end in zip(saved["stages"]["request"], saved["stages"]["end"], strict=True):
        ends[request] = max(ends[request], end)
    late = np.array(saved["requests"]["finish"]) - np.array(list(ends.values()))
    assert (late > -1e-6).all(), "a request is done when its last stage is, or after"


def test_hits_by_stage_are_those_of_the_workers() -> None:
    saved = saved_serving(served_requests())
    assert saved["stages"]["found"].count("hit") == sum(saved["workers"]["hits"])
    assert saved["stages"]["found"].count("miss") == sum(saved["workers"]["misses"])


def test_edges_join_stages_of_the_workflow() -> None:
    for flow in saved_serving(served_requests())["workflows"]:
        size = len(flow["stages"])
        assert size == 1 or flow["edges"]
        assert all(0 <= before < size and 0 <= after < size and before != after for before, after in flow["edges"])


def test_its_timeline_has_every_run_and_no_two_at_once_on_a_track() -> None:
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2  # noqa: PLC0415 - takes a second

    saved = saved_serving(served_requests())
    trace = perfetto_trace_pb2.Trace()  # type: ignore[attr-defined]  # made when it is imported
    trace.ParseFromString(perfetto_trace(saved))
    runs = [one for one in slices(trace) if one[0].startswith("runs")]
    assert len(runs) == saved["stages"]["member"].count(0)
