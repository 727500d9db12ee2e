"""Any CSV of requests by the names of its columns: moments, ends, and counts in windows of time."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from fairway.errors import InputError
from fairway.sim.scenarios import SCENARIOS
from fairway.sim.serving_workload import ServingWorkload
from fairway.traces.requests import parse_requests, read_requests

# The first rows of published traces, in the form that they are published in.
AZURE_LLM = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:17:03.9799600,4808,10
2023-11-16 18:17:04.0319600,3180,8
2023-11-16 18:17:04.0781490,110,27
"""
AZURE_FUNCTIONS = """app,func,end_timestamp,duration
a,f1,10.5,0.078
a,f2,60.25,57.25
b,f1,61.0,0.5
"""
WINDOWS = """window,second,rps
low,0,2
low,1,0
low,2,1
high,0,3
high,1,1
"""


def test_dates_and_times_are_moments_and_a_trace_need_not_say_what_is_asked_for() -> None:
    trace = parse_requests(AZURE_LLM, "llm.csv", "arrival=TIMESTAMP")
    assert trace.arrival.tolist() == pytest.approx([0.0, 0.052, 0.098189], abs=1e-5)
    assert trace.asks_for == ()
    assert trace.summary() == "llm.csv: 3 requests"


def test_an_end_and_a_run_time_say_when_a_request_came() -> None:
    trace = parse_requests(AZURE_FUNCTIONS, "f.csv", "end=end_timestamp,seconds=duration,workflow=func")
    assert trace.arrival.tolist() == pytest.approx([0.0, 7.422, 57.5])
    assert trace.asks_for == ("f2", "f1", "f1")
    assert trace.seconds.tolist() == [57.25, 0.078, 0.5]


def test_evenly_spread_requests_of_a_window_have_equal_distances() -> None:
    trace = parse_requests(WINDOWS, "w.csv", "arrival=second,count=rps,only=window:high,even")
    assert trace.arrival.tolist() == pytest.approx([0.0, 1 / 3, 2 / 3, 1.0])
    assert trace.within is None


def test_other_requests_of_a_window_are_spread_by_the_seed(tmp_path: Path) -> None:
    path = tmp_path / "w.csv"
    path.write_text("second,count\n0,200\n1,0\n2,100\n")
    scenario = SCENARIOS["loki-both-tight"]()
    workload = ServingWorkload("loki-both-tight", f"trace:{path}", columns="arrival=second")
    first, again, other = (workload.make_arrivals(scenario, seed) for seed in (1, 1, 2))
    assert np.array_equal(first.time, again.time)
    assert not np.array_equal(first.time, other.time)
    moments = parse_requests(path.read_text(), "w.csv", "arrival=second")
    assert len(first) == len(moments) == 300
    assert (np.diff(first.time) >= 0).all()
    assert np.histogram(first.time, [0, 1, 2, 3])[0].sum() == 300
    assert not ((first.time > 1.01) & (first.time < 1.9)).any(), "the second window is empty"
    assert 100 < (first.workflow == 0).sum() < 200, "half of the requests ask for each workflow"


def test_windows_without_times_need_a_length() -> None:
    trace = parse_requests("count\n2\n0\n1\n", "w.csv", "every=1m,even")
    assert trace.arrival.tolist() == [0.0, 30.0, 120.0]
    with pytest.raises(InputError, match=r"w\.csv: no request that can be used; the first row: nothing says how long"):
        parse_requests("count\n2\n0\n1\n", "w.csv", "count=count")


def test_a_rate_is_the_mean_rate_of_the_trace(tmp_path: Path) -> None:
    path = tmp_path / "w.csv"
    path.write_text(WINDOWS)
    columns = "arrival=second,count=rps,only=window:high,even"
    workload = ServingWorkload("loki-traffic", f"trace:{path}", rate=30.0, columns=columns)
    times = workload.make_arrivals(SCENARIOS["loki-traffic"](), 0).time
    assert times.tolist() == pytest.approx([0.0, 1 / 30, 2 / 30, 3 / 30])


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        (WINDOWS, "arrival=second,count=rps", "r.csv, line 5: the time goes back from 2 to 0 s; sort the rows by time"),
        ("arrival\n2\n1\n", "arrival=arrival", "r.csv, line 3: the time goes back from 2 to 1 s"),
        ("arrival_seconds,workflow\n2,a\n1,a\n", None, "r.csv, line 3: the time goes back from 2 to 1 s"),
        (WINDOWS, "arrival=secnd", "r.csv, line 1: header: no column 'secnd' for the arrival of a request, did you"),
        (WINDOWS, "only=part:low,arrival=second", "r.csv, line 1: header: no column 'part' for the only of a request"),
        (WINDOWS, "workflow=window", "r.csv, line 1: header: no column says when requests come; the file has window"),
        (WINDOWS, "only=window:mid,arrival=second", "r.csv: no row with --columns only=window:mid"),
        (WINDOWS, "only=window", "--columns: 'only=window' given, expected a column and its value, as in only=a:b"),
        (WINDOWS, "arival=second", "--columns: trace 'csv' has no option 'arival', did you mean 'arrival'?"),
        (WINDOWS, "every=soon", '--columns: "soon" given, expected seconds, or a length of time'),
        (
            "arrival,count\n1,4\n",
            "count=count",
            "r.csv: one window, whose length nothing says; add it, as in --columns",
        ),
        ("arrival,count\n1,99999999999\n2,1\n", "count=count", "r.csv: 100000000000 requests, expected at most"),
        (
            "arrival,count\n1,-4\n",
            "count=count",
            "r.csv: no request that can be used; the first row: count: '-4' given",
        ),
    ],
)
def test_what_cannot_be_read_is_one_line(text: str, columns: str | None, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_requests(text, "r.csv", columns)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_trace_may_be_packed_by_gzip(tmp_path: Path) -> None:
    text = "arrival_seconds,workflow\r\n0,a\r\n1.5,b\r\n"
    plain, packed = tmp_path / "trace.csv", tmp_path / "trace.csv.gz"
    plain.write_bytes(text.encode())
    packed.write_bytes(gzip.compress(text.encode()))
    one, other = read_requests(plain), read_requests(packed)
    assert one.arrival.tolist() == other.arrival.tolist() == [0.0, 1.5]
    assert one.asks_for == other.asks_for
    packed.write_bytes(packed.read_bytes()[:-12])
    with pytest.raises(InputError, match=r"trace.csv.gz: packed by gzip, but cannot be unpacked"):
        read_requests(packed)
