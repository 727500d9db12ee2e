"""Traces of requests: two forms, rows that cannot be used, and files that are neither."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from fairway.errors import InputError
from fairway.traces.requests import parse_requests, read_requests
from tests.figures import genai_requests

PLAIN = "arrival_seconds,workflow,seconds\n1,a,\n3,a,oops\n4,,1\n5,b,0.5\n"


def test_plain_rows_are_read_and_those_that_cannot_be_used_are_told() -> None:
    trace = parse_requests(PLAIN, "r.csv")
    assert trace.arrival.tolist() == [0.0, 4.0]
    assert trace.asks_for == ("a", "b")
    assert math.isnan(trace.seconds[0])
    assert trace.seconds[1] == 0.5
    assert [(row.line, row.reason.partition(":")[0]) for row in trace.skipped] == [(3, "seconds"), (4, "workflow")]
    assert "2 requests for 2 models or workflows; 2 rows cannot be read: 1 × seconds: " in trace.summary()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "r.csv: empty"),
        ("a,b\n1,2\n", "r.csv: not a trace of requests; expected CSV with the columns arrival_seconds and workflow"),
        ("arrival_seconds,workflow\n-1,a\n", "r.csv: no request that can be used; the first row: arrival_seconds"),
    ],
)
def test_what_is_no_trace_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_requests(text, "r.csv")
    assert str(caught.value).startswith(message)


def test_every_50th_of_the_published_requests_is_read() -> None:
    trace = parse_requests(genai_requests(), "requests.csv")
    assert len(trace) == 268
    assert len(trace.names) == 31
    assert [row.reason for row in trace.skipped] == ["ran for 0 seconds"] * 9
    assert (trace.seconds > 0).all()
    assert (trace.arrival[1:] >= trace.arrival[:-1]).all()


def test_the_published_requests_are_read(shared_data: Callable[[str], Path]) -> None:
    trace = read_requests(shared_data("alibaba-genai-2026/lora_request_trace.csv"))
    assert len(trace) == 13390
    assert len(trace.names) == 75
    assert len(trace.skipped) == 9
    assert (trace.seconds > 0).all()
    assert (trace.arrival[1:] >= trace.arrival[:-1]).all()
