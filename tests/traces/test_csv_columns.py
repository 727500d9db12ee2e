"""Any CSV of jobs, once its columns are named; and what is wrong with the names in one line."""

from __future__ import annotations

import pytest

from fairway.errors import InputError
from fairway.traces import CsvColumns, SkippedRow, parse_trace

OURS = """name,queued,ran,cards,group
a,100,60,1,red
b,2020-13-01,60,1,red
c,130,7200,4,blue
d,140,0,1,red
e,150,60,0,red
f,160,,1,red
g,170
"""

NAMED = "csv:id=name,arrival=queued,duration=ran,gpus=cards,team=group"


def test_columns_mean_what_they_are_said_to_mean() -> None:
    trace = parse_trace(OURS, "ours.csv", NAMED)
    assert [(job.id, job.arrival, job.duration_seconds, job.scale_factor, job.entity) for job in trace.jobs] == [
        ("a", 0.0, 60.0, 1, "red"),
        ("c", 30.0, 7200.0, 4, "blue"),
    ]
    assert parse_trace(OURS, "ours.csv", CsvColumns("queued", "ran", id="name", gpus="cards", team="group")) == trace


def test_rows_left_out_on_purpose_are_told_apart_from_those_that_cannot_be_read() -> None:
    trace = parse_trace(OURS, "ours.csv", NAMED)
    assert trace.skipped == (
        SkippedRow(3, "queued: '2020-13-01' given, expected a time as in 2020-04-01 00:00:13"),
        SkippedRow(5, "ran for 0 seconds", on_purpose=True),
        SkippedRow(6, "asks for no GPU", on_purpose=True),
        SkippedRow(7, "never ran, or has not ended", on_purpose=True),
        SkippedRow(8, "2 columns given, expected 5"),
    )
    assert trace.unreadable == 2
    assert "; 3 rows left out: 1 × ran for 0 seconds (first at line 5)" in trace.summary()
    assert "; 2 rows cannot be read: " in trace.summary()


def test_start_and_end_say_how_long_a_job_is_and_times_may_be_dates() -> None:
    text = "t,s,e\n2024-05-01 00:00:00,2024-05-01 00:01:00,2024-05-01 01:01:00\n2024-05-01 00:00:30,5,4\n"
    trace = parse_trace(text, "x", "csv:arrival=t,start=s,end=e")
    assert [(job.id, job.arrival, job.duration_seconds) for job in trace.jobs] == [("2", 0.0, 3600.0)]
    assert trace.skipped == (SkippedRow(3, "ends before it starts"),)


def test_a_type_and_steps_will_do_instead_of_a_duration() -> None:
    trace = parse_trace("arrival,type,steps,accelerators\n0,A3C,100,v100|k80\n", "x", "csv")
    (job,) = trace.jobs
    assert (job.job_type, job.total_steps, job.duration_seconds, job.accelerators) == (
        "A3C",
        100.0,
        None,
        ("v100", "k80"),
    )


def test_columns_with_the_names_of_their_meanings_are_found_by_content() -> None:
    assert parse_trace("arrival,duration\n0,60\n5,60\n", "x").format == "csv"


@pytest.mark.parametrize(
    ("text", "format_", "message"),
    [
        (
            OURS,
            "csv:arrival=qeued,duration=ran",
            r"ours.csv, line 1: header: no column 'qeued' for the arrival of a job, did you mean 'queued'\?; the file "
            r"has name, queued, ran, cards, group; name one, as in --columns arrival=name",
        ),
        (OURS, "csv", "header: no column 'arrival' for the arrival of a job; the file has name, queued"),
        (
            OURS,
            "csv:arrival=queued",
            "header: no column says how long a job is; name one, as in --columns duration=group",
        ),
        (OURS, "csv:arrival=queued,duration=ran,gpus=gpu", "no column 'gpu' for the gpus of a job"),
        ("a,b\n", "csv:arrival=a,duration=b", "no job could be read"),
    ],
)
def test_columns_that_are_not_there_are_one_line(text: str, format_: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_trace(text, "ours.csv", format_)
