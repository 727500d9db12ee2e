"""The common form of traces: what it refuses and how it sums itself up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairway.errors import InputError
from fairway.traces import SkippedRow, Trace, TraceJob

JOB = TraceJob("a", 0.0)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("id", "", "id: nothing given"),
        ("arrival", -1.0, "arrival: -1.0 given, expected seconds of at least 0"),
        ("arrival", float("nan"), "arrival: nan given"),
        ("scale_factor", 0, "scale_factor: 0 given, expected a whole number of at least 1"),
        ("total_steps", 0.0, "total_steps: 0.0 given, expected a number above 0"),
        ("duration_seconds", float("inf"), "duration_seconds: inf given"),
        ("weight", -1.0, "weight: -1.0 given"),
        ("slo", 0.0, "slo: 0.0 given"),
        ("accelerators", (), "accelerators: an empty name or no name given"),
        ("accelerators", ("V100", ""), "accelerators: an empty name or no name given"),
        ("gpu_fraction", 0.0, "gpu_fraction: 0.0 given, expected a number above 0 and up to 1"),
        ("gpu_fraction", 1.5, "gpu_fraction: 1.5 given"),
    ],
)
def test_a_job_that_makes_no_sense_is_refused(field: str, value: object, message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        replace(JOB, **{field: value})


def test_jobs_stand_in_order_of_arrival() -> None:
    late = TraceJob("b", 5.0)
    assert Trace((JOB, late), "x", "f").jobs == (JOB, late)
    with pytest.raises(InputError, match=r"^f: job 'a' arrives at 0.0 s, before job 'b' at 5.0 s; put the jobs in"):
        Trace((late, JOB), "x", "f")


def test_a_trace_without_jobs_is_refused() -> None:
    with pytest.raises(InputError, match=r"^f: no job could be read; expected at least one$"):
        Trace((), "x", "f")
    with pytest.raises(InputError, match=r"^f: no job could be read \(line 3: bad\); expected"):
        Trace((), "x", "f", (SkippedRow(3, "bad"),))


def test_the_summary_counts_every_row_left_out() -> None:
    jobs = (JOB, TraceJob("b", 5400.0))
    assert Trace(jobs[:1], "x", "f").summary() == "f: 1 job arriving over 0.0 h (x)"
    assert Trace(jobs, "x", "f", (SkippedRow(3, "bad"),)).summary() == (
        "f: 2 jobs arriving over 1.5 h (x); 1 row cannot be read: 1 × bad (first at line 3)"
    )
    assert (
        Trace(jobs, "x", "f", (SkippedRow(3, "bad"), SkippedRow(4, "idle", True)))
        .summary()
        .endswith("; 1 row left out: 1 × idle (first at line 4); 1 row cannot be read: 1 × bad (first at line 3)")
    )
    rows = [SkippedRow(line, reason) for line, reason in enumerate("abbcccdde", start=2)]
    trace = Trace(jobs, "x", "f", tuple(rows))
    assert dict(trace.skipped_by_reason) == {"c": 3, "b": 2, "d": 2, "a": 1, "e": 1}
    assert trace.summary().endswith(
        "9 rows cannot be read: 3 × c (first at line 5); 2 × b (first at line 3); 2 × d (first at line 8); "
        "2 for other reasons"
    )
