"""Gavel's traces in all four widths, on small texts and on the published files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from fairway.errors import InputError
from fairway.traces import SkippedRow, TraceJob, parse_trace, read_trace
from tests.figures import gavel_trace, gavel_traces

SEVEN = "LM (batch size 5)\trun\t--steps\t1\t900\t0.5\t4"
TEN = "LM (batch size 5)\trun\tdir\t--steps\t1\t900\t4\t5\t-1.000000\t0.5"
ELEVEN = "LM (batch size 5)\trun\tdir\t--steps\t1\t900\t4\tgns\t5\t1.2\t0.5"
TWELVE = "LM (batch size 5)\trun\tdir\t--steps\t1\t900\t4\tstatic\t5\t1.2\t3600\t0.5"


@pytest.mark.parametrize(
    ("row", "job"),
    [
        (SEVEN, TraceJob("0", 0.5, "LM (batch size 5)", 4, 900.0)),
        (TEN, TraceJob("0", 0.5, "LM (batch size 5)", 4, 900.0, weight=5.0)),
        (ELEVEN, TraceJob("0", 0.5, "LM (batch size 5)", 4, 900.0, weight=5.0, slo=1.2)),
        (TWELVE, TraceJob("0", 0.5, "LM (batch size 5)", 4, 900.0, 3600.0, weight=5.0, slo=1.2)),
    ],
)
def test_the_number_of_columns_tells_the_version(row: str, job: TraceJob) -> None:
    for text in (row, f"{row}\r\n", f"\n{row}\n\n"):
        trace = parse_trace(text, "x.trace")
        assert trace.jobs == (job,)
        assert trace.format == "gavel"
        assert trace.skipped == ()


def test_a_row_that_cannot_be_read_is_reported_with_its_line_and_keeps_its_number() -> None:
    bad = ["\t".join([*TEN.split("\t")[:5], *cells, "-1", "9"]) for cells in (["many", "1", "1"], ["9", "1.5", "1"])]
    none = TEN.replace("900", "0")
    trace = parse_trace("\n".join([TEN, bad[0], "", "not a job", bad[1], none, TEN]), "x.trace")
    assert [job.id for job in trace.jobs] == ["0", "5"]
    assert trace.skipped == (
        SkippedRow(2, "total_steps: 'many' given, expected a number"),
        SkippedRow(4, "1 columns given, expected 10"),
        SkippedRow(5, "scale_factor: '1.5' given, expected a whole number"),
        SkippedRow(6, "total_steps: 0.0 given, expected a number above 0, from 1e-30 to 1e+15"),
    )
    assert "2 jobs" in trace.summary()
    assert "4 rows cannot be read" in trace.summary()


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        (0, "", "job_type: nothing given"),
        (5, "nan", "total_steps: nothing given"),
        (5, "inf", "total_steps: 'inf' given, expected a number"),
        (6, "0", "scale_factor: '0' given, expected a number of at least 1"),
        (7, "0", "weight: 0.0 given, expected a number above 0, from 1e-09 to 1e+12"),
        (8, "soon", "SLO: 'soon' given, expected a number"),
        (9, "-1", "arrival_time: '-1' given, expected a number of at least 0"),
        (6, "1.5" + "1" * 99, f"scale_factor: '1.5{'1' * 56}…' given, expected a whole number"),
    ],
)
def test_what_is_wrong_with_a_row_is_said(column: int, value: str, reason: str) -> None:
    cells = TEN.split("\t")
    cells[column] = value
    (row,) = parse_trace("\t".join(cells) + "\n" + TEN, "x.trace").skipped
    assert row == SkippedRow(1, reason)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TEN.rsplit("\t", 1)[0], "x.trace, line 1: 9 columns given, expected 7, 10, 11 or 12, separated by tabs"),
        (f"{TEN}\n{SEVEN}", "x.trace, line 2: 7 columns given, expected 10 as in the rows above: job_type, command,"),
        (f"{TEN}\n\n{TEN[:-3]}0.25", "x.trace, line 3: arrival time goes back from 0.5 to 0.25 s; sort the rows"),
        (TEN.replace("900", "?"), r"x.trace: no job could be read \(line 1: total_steps: '\?' given"),
    ],
)
def test_a_missing_column_and_times_that_go_back_are_errors_of_the_file(text: str, message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}") as caught:
        parse_trace(text, "x.trace")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "gangs", "last"),
    [
        ("artifact_evaluation", {1: 12, 2: 3}, 0.0),
        ("max_min_fairness", {1: 59, 2: 19, 4: 18}, 46317.0),
        ("minimize_makespan", {1: 71, 2: 6, 4: 23}, 0.0),
        ("msr_2869ce_7col", {1: 65, 2: 6, 4: 11, 8: 379, 16: 2, 32: 70}, 8141054.0),
        ("small_test", {1: 17, 2: 3}, 0.0),
        ("gen_multi_100_lam2700_seed11", {1: 82, 2: 7, 4: 11}, 237569.0),
        ("gen_single_120_lam1500_seed7", {1: 120}, 179901.0),
        ("gen_single_120_lam1500_seed8", {1: 120}, 161749.0),
        ("medium_test", {1: 20}, 0.0),
    ],
)
def test_the_published_traces_are_read_in_full(name: str, gangs: dict[int, int], last: float) -> None:
    trace = parse_trace(gavel_trace(name), name)
    assert trace.format == "gavel"
    assert trace.skipped == ()
    assert Counter(job.scale_factor for job in trace.jobs) == gangs
    assert trace.jobs[-1].arrival == last
    assert all(job.slo is None and job.total_steps for job in trace.jobs)


def test_the_files_themselves_hold_these_jobs(shared_data: Callable[[str], Path]) -> None:
    for name in gavel_traces():
        ours = name.startswith("gen_") or name == "medium_test"
        file = shared_data(f"{'gavel-golden' if ours else 'gavel'}/traces/{name}.trace")
        assert read_trace(file).jobs == parse_trace(gavel_trace(name), name).jobs
