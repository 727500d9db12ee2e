"""Rows for other tools: by job and by request, as CSV, parquet and frames, with figures worked out by hand."""

from __future__ import annotations

import csv
import io
import math
import sys
from pathlib import Path

import polars
import pytest

from fairway import (
    Cluster,
    InputError,
    Job,
    ServingRun,
    ServingWorkload,
    Submission,
    TrainingOptions,
    simulate_training,
)
from fairway.report.tables import check_table_file, csv_text, polars_frame, stacked, write_table
from fairway.report.training.record import TrainingRecord
from fairway.sim.serving import ServingOptions

HOUR = 3600.0


@pytest.fixture(scope="module")
def run() -> TrainingRecord:
    """Two jobs of an hour and a gang that never fits, one after the other on one worker of 2 dollars an hour."""
    jobs = [
        Submission(0.0, Job("a", {"v100": 1.0}, steps_left=HOUR, entity="red")),
        Submission(0.0, Job("b", {"v100": 1.0}, steps_left=HOUR, entity="blue"), deadline=HOUR),
        Submission(0.0, Job("c", {}, scale_factor=2, steps_left=1.0)),
    ]
    cluster = Cluster({"v100": 1, "k80": 1}, prices={"v100": 2.0, "k80": 1.0})
    return simulate_training(jobs, cluster, "fifo", TrainingOptions(round_seconds=360.0))


def test_a_row_says_how_long_a_job_waited_and_ran_and_what_it_used(run: TrainingRecord) -> None:
    rows = list(csv.DictReader(io.StringIO(run.jobs.to_csv())))
    a, b, c = rows
    assert (a["id"], a["team"], a["outcome"], a["wait"], a["run"], a["jct"]) == (
        "a",
        "red",
        "completed",
        "0.0",
        "3600.0",
        "3600.0",
    )
    assert (float(b["wait"]), float(b["run"]), float(b["jct"])) == (HOUR, HOUR, 2 * HOUR)
    assert (float(a["v100_seconds"]), float(b["v100_seconds"]), float(a["k80_seconds"])) == (HOUR, HOUR, 0.0)
    assert (float(a["cost_dollars"]), float(b["cost_dollars"]), b["preemptions"]) == (2.0, 2.0, "0")
    assert (c["outcome"], c["jct"], c["wait"], c["rho"]) == ("unrunnable", "", "", "")
    assert float(b["rho"]) > float(a["rho"]) > 0


def test_what_jobs_held_adds_up_to_what_was_busy(run: TrainingRecord) -> None:
    frame = run.jobs.to_polars()
    assert frame["v100_seconds"].sum() == pytest.approx(run.busy_seconds[0])
    assert frame["jct"].null_count() == 1


def test_frames_and_files_have_the_same_rows(run: TrainingRecord, tmp_path: Path) -> None:
    table = stacked([({"policy": "fifo", "seed": 0}, run.jobs.table()), ({"policy": "x"}, {"id": ["d"], "new": [1]})])
    assert table["policy"] == ["fifo", "fifo", "fifo", "x"]
    assert table["new"] == [None, None, None, 1]
    write_table(table, str(tmp_path / "t.parquet"))
    write_table(table, str(tmp_path / "t.csv"))
    assert polars.read_parquet(tmp_path / "t.parquet").equals(polars_frame(table))
    assert polars.read_csv(tmp_path / "t.csv")["jct"].to_list() == polars_frame(table)["jct"].to_list()
    first = (tmp_path / "t.parquet").read_bytes()
    write_table(table, str(tmp_path / "t.parquet"))
    assert (tmp_path / "t.parquet").read_bytes() == first


def test_text_with_commas_and_lines_survives() -> None:
    text = csv_text({"name": ['a,"b"', "c\nd"], "x": [0.1 + 0.2, math.nan]})
    assert list(csv.DictReader(io.StringIO(text))) == [
        {"name": 'a,"b"', "x": "0.30000000000000004"},
        {"name": "c\nd", "x": ""},
    ]


def test_requests_are_rows_too() -> None:
    record = ServingRun(ServingWorkload("compass-edge", requests=20, rate=2.0), "compass", ServingOptions())()
    frame = record.requests.to_polars()
    assert len(frame) == 20
    assert (frame["latency"] == frame["finish"] - frame["arrival"]).all()
    assert set(frame["workflow"]) <= {each.name for each in record.workflows}
    assert (frame["slowdown"] >= 1 - 1e-9).all()


def test_what_is_not_installed_is_one_line(run: TrainingRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        InputError, match=r"this needs polars, which is not installed; install Fairway with its extra 'tables'"
    ):
        run.jobs.to_polars()
    with pytest.raises(InputError, match="pandas is not installed, which to_pandas needs; pip install pandas"):
        run.jobs.to_pandas()
    check_table_file("--jobs", "a.csv")
    with pytest.raises(InputError, match="polars, which is not installed"):
        check_table_file("--jobs", "a.parquet")
    with pytest.raises(InputError, match=r"--jobs: 'a.txt' given, expected the name of a .csv or .parquet file"):
        check_table_file("--jobs", "a.txt")
