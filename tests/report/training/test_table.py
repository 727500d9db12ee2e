"""The comparison of runs in the terminal."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from fairway.report.training.comparison import compare, digits, time_unit
from fairway.report.training.metrics import RunSummary, summarize
from fairway.report.training.table import comparison_table
from tests.report.records import four_jobs, nothing_ran


def run(policy: str, *, times: float = 1.0, seed: int = 0) -> RunSummary:
    """The four jobs, where everything takes so many times as long."""
    whole = four_jobs()
    jobs = whole.jobs
    slower = replace(
        jobs,
        **{name: times * getattr(jobs, name) for name in ("arrival", "finish", "start", "isolated_seconds")},
        outcome=np.where(np.isfinite(jobs.finish), 0, jobs.outcome),
    )
    return summarize(replace(whole, policy=policy, settings={"seed": seed}, jobs=slower, makespan_seconds=400 * times))


def printed(*runs: RunSummary, width: int = 80) -> str:
    file = StringIO()
    Console(file=file, width=width, highlight=False).print(comparison_table(runs))
    return file.getvalue()


def test_times_are_in_hours_where_they_are_long_and_the_first_run_is_the_measure() -> None:
    text = printed(run("fifo", times=360), run("max-min-fairness", times=180))
    fifo, fair = (next(line.split() for line in text.splitlines() if line.startswith(name)) for name in ("fifo", "max"))
    assert "(h)" in text
    assert fifo[1:4] == ["20.0", "1.00", "20.0"]  # mean of 10 h and 30 h
    assert fair[1:4] == ["10.0", "0.50", "10.0"]


def test_the_best_of_each_column_is_bold_and_equals_share_it() -> None:
    rows = compare([run("fifo", times=2), run("max-min-fairness")]).rows
    assert [cell.best for cell in rows[0].cells[:4]] == [False] * 4
    assert [cell.best for cell in rows[1].cells[:4]] == [True] * 4
    assert rows[0].cells[-1].best
    assert rows[1].cells[-1].best


def test_a_single_run_is_compared_with_nothing() -> None:
    assert not any(cell.best for cell in compare([run("fifo")]).rows[0].cells)
    assert "first" not in printed(run("fifo"))


def test_seeds_of_a_policy_are_averaged_with_half_of_their_range() -> None:
    comparison = compare([run("fifo", times=360), run("fifo", times=396, seed=1)])
    cell = comparison.rows[0].cells[0]
    assert (cell.mean, cell.spread) == pytest.approx((200 * 378, 200 * 18))
    text = printed(run("fifo", times=360), run("fifo", times=396, seed=1))
    assert "21.0" in text
    assert "±1.0" in text
    assert "Means over 2 runs" in text


def test_eighty_columns_are_enough_for_the_longest_names_and_numbers() -> None:
    names = ["finish-time-fairness:agnostic", "max-min-fairness:space-sharing,agnostic", "shortest-job-first"]
    runs = [run(name, times=times, seed=seed) for seed in (0, 1) for times, name in enumerate(names, start=20_000)]
    for each in runs:
        each["cost_dollars"] = 123456.0 + 10_000 * (each["seed"] or 0)
        each["preemptions_per_job"] = 1234.5
        each["rho"]["mean"] = 123.4
    text = printed(*runs)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert "shortest-job" in text


def test_jobs_that_did_not_complete_are_told_below_the_table() -> None:
    text = " ".join(printed(run("fifo")).split())
    assert "fifo: 2 of 4 jobs completed; 1 not finished when the run ended, 1 that can never run." in text


def test_where_nothing_completed_dashes_stand_and_nothing_fails() -> None:
    empty = summarize(nothing_ran())
    assert "–" in printed(empty, run("max-min-fairness"))
    assert "fifo" in printed(empty)
    assert printed()


def test_a_name_with_brackets_is_not_markup() -> None:
    assert "[bold]x" in printed(run("[bold]x"))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.00"),
        (0.004, "0.004"),
        (0.996, "1.00"),
        (9.999, "10.0"),
        (99.97, "100"),
        (1234.4, "1234"),
        (12345, "12.3k"),
    ],
)
def test_numbers_have_three_or_four_digits(value: float, text: str) -> None:
    assert digits(value) == text


def test_a_time_is_told_in_the_largest_unit_that_it_holds_twice() -> None:
    assert [time_unit(seconds) for seconds in (0, 119, 120, 7199, 7200, 1e6)] == ["s", "s", "min", "min", "h", "h"]
