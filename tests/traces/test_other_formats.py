"""The traces of Philly, Helios, PAI and Pollux, and the Standard Workload Format, on small texts in their form."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairway.errors import InputError
from fairway.traces import SkippedRow, TraceJob, parse_trace

HELIOS = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
PAI = "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n"
POLLUX = "name,time,application,num_replicas,batch_size\n"


def attempt(start: str | None, end: str | None, *gpus: int) -> dict[str, Any]:
    detail = [{"ip": f"m{i}", "gpus": [f"gpu{g}" for g in range(count)]} for i, count in enumerate(gpus)]
    return {"start_time": start, "end_time": end, "detail": detail}


def philly(jobid: str, attempts: Any, submitted: str | None = "2017-10-07 01:00:00", **more: Any) -> dict[str, Any]:
    job = {"status": "Pass", "vc": "v", "jobid": jobid, "attempts": attempts, "submitted_time": submitted, "user": "u"}
    return job | more


def test_philly_adds_up_the_attempts_of_a_job() -> None:
    twice = [
        attempt("2017-10-07 01:04:22", "2017-10-07 01:05:22", 4, 2),
        attempt("2017-10-07 02:00:00", "2017-10-07 02:00:30", 8),
    ]
    log = [
        philly("b", [attempt("2017-10-07 01:02:00", "2017-10-07 01:03:00", 1)], "2017-10-07 01:01:00"),
        philly("a", twice, status="Killed"),
    ]
    trace = parse_trace(json.dumps(log, indent=1), "cluster_job_log")
    assert trace.format == "philly"
    assert trace.jobs == (
        TraceJob("a", 0.0, scale_factor=6, duration_seconds=90.0, entity="v", user="u", status="Killed"),
        TraceJob("b", 60.0, scale_factor=1, duration_seconds=60.0, entity="v", user="u", status="Pass"),
    )


def test_philly_reports_the_jobs_whose_length_is_unknown() -> None:
    good = attempt("2017-10-07 01:04:22", "2017-10-07 01:05:22", 1)
    unknown = "an attempt without a start or an end, so how long it ran is not known"
    log: list[tuple[object, str]] = [
        (philly("a", None), "never started"),
        (philly("b", []), "never started"),
        (philly("c", [attempt("2017-10-07 01:04:22", None, 1)]), unknown),
        (philly("d", [attempt("None", "2017-10-07 01:04:22", 1)]), unknown),
        (philly("e", [attempt("2017-10-07 01:04:22", "2017-10-07 01:04:21", 1)]), "an attempt ends before it starts"),
        (philly("f", [attempt("2017-10-07 01:04:22", "2017-10-07 01:04:22", 1)]), "ran for 0 seconds"),
        (philly("g", [attempt("2017-10-07 01:04:22", "2017-10-07 01:04:23")]), "asks for no GPU"),
        (philly("h", [good], None), "submitted_time: nothing given"),
        (
            philly("i", [good], "yesterday"),
            "submitted_time: 'yesterday' given, expected a time as in 2020-04-01 00:00:13",
        ),
        (philly("j", [good], user=3), "user: 3 given, expected text"),
        (philly("k", {"a": 1}), "attempts: dict given, expected a list"),
        (philly("l", ["x"]), "attempts: str given, expected an object"),
        (philly("m", [good | {"detail": [[]]}]), "detail: list given, expected an object"),
        (philly("", [good]), "id: nothing given, expected the name of the job"),
        (7, "int given, expected an object with jobid, submitted_time, attempts, status, vc, user"),
        ({"jobid": "n"}, "submitted_time, attempts, status, vc, user missing"),
    ]
    text = "[\n" + ",\n".join(json.dumps(entry) for entry, _ in log) + f"\n,{json.dumps(philly('z', [good]))}]"
    trace = parse_trace(text, "log")
    assert [job.id for job in trace.jobs] == ["z"]
    assert trace.skipped == tuple(
        SkippedRow(line, reason, reason in {"never started", "ran for 0 seconds", "asks for no GPU"})
        for line, (_, reason) in enumerate(log, start=2)
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", r"log, line 1: not valid JSON: Expecting value"),
        ("[]", r"log: no job could be read; expected at least one"),
        ("{}", r"log, line 1: not valid JSON: expected a list of jobs, closed by '\]'"),
        ("", r"log, line 1: not valid JSON: expected a list"),
        ("[1\n,", r"log, line 2: not valid JSON: Expecting value"),
        ("[1\n\n2]", r"log, line 3: not valid JSON: expected a list of jobs, closed by '\]'"),
        ("[" * 100_000, r"log, line 1: not valid JSON: "),
        ("[1]", r"log: no job could be read \(line 1: int given"),
    ],
)
def test_philly_must_be_a_list_of_jobs(text: str, message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        parse_trace(text, "log", "philly")


def test_helios_gives_gpu_jobs_with_their_virtual_cluster() -> None:
    text = HELIOS + (
        "1,u1,vc1,8,64,1,COMPLETED,2020-04-01 00:01:13,2020-04-01 00:02:00,2020-04-01 00:12:00,600,47\n"
        "2,u2,vc2,0,4,1,COMPLETED,2020-04-01 00:01:13,2020-04-01 00:02:00,2020-04-01 00:12:00,600,47\n"
        "3,u2,vc2,1,4,1,CANCELLED,2020-04-01 00:00:13,None,2020-04-01 00:12:00,0,47\n"
        "4,u2,vc2,2,4,1,FAILED,2020-04-01 00:00:13,2020-04-01 00:02:00,2020-04-01 00:02:05,5.0,47\n"
        "5,u2,vc2,2,4,1,FAILED,01/04/2020,2020-04-01 00:02:00,2020-04-01 00:02:05,5,47\n"
    )
    trace = parse_trace(text, "cluster_log.csv")
    assert trace.format == "helios"
    assert trace.jobs == (
        TraceJob("4", 0.0, scale_factor=2, duration_seconds=5.0, entity="vc2", user="u2", status="FAILED"),
        TraceJob("1", 60.0, scale_factor=8, duration_seconds=600.0, entity="vc1", user="u1", status="COMPLETED"),
    )
    assert trace.skipped == (
        SkippedRow(3, "asks for no GPU", True),
        SkippedRow(4, "ran for 0 seconds", True),
        SkippedRow(6, "submit_time: '01/04/2020' given, expected a time as in 2020-04-01 00:00:13"),
    )


PAI_ROWS = """\
j1,tensorflow,1.0,Terminated,4550879.0,4551416.0,600.0,29.296875,50.0,MISC
j2,worker,4.0,Terminated,4550779.0,4551779.0,600.0,29.296875,200.0,V100
j2,ps,2.0,Failed,4550779.0,4551779.0,600.0,29.296875,150.0,
j2,evaluator,1.0,Terminated,4550779.0,4551779.0,600.0,29.296875,,
j3,xComputeWorker,1.0,Running,4550779.0,,600.0,29.296875,25.0,T4
j4,xComputeWorker,1.0,Failed,4550779.0,4550779.0,600.0,29.296875,25.0,T4
"""


def test_pai_counts_percent_of_gpus_with_and_without_a_header() -> None:
    for offset, text in enumerate((PAI_ROWS, PAI + PAI_ROWS)):
        trace = parse_trace(text, "pai_task_table.csv")
        assert trace.format == "pai"
        assert trace.jobs == (
            TraceJob(
                "j2/worker",
                0.0,
                scale_factor=8,
                duration_seconds=1000.0,
                accelerators=("V100",),
                status="Terminated",
            ),
            TraceJob("j2/ps", 0.0, scale_factor=4, duration_seconds=1000.0, gpu_fraction=0.75, status="Failed"),
            TraceJob(
                "j1/tensorflow",
                100.0,
                duration_seconds=537.0,
                accelerators=("MISC",),
                gpu_fraction=0.5,
                status="Terminated",
            ),
        )
        assert trace.skipped == (
            SkippedRow(4 + offset, "asks for no GPU", True),
            SkippedRow(5 + offset, "without a start or an end, so how long it runs is not known", True),
            SkippedRow(6 + offset, "ended no later than it started"),
        )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PAI_ROWS.replace(",600.0", ""), "t.csv, line 1: 9 columns given, expected 10: job_name, task_name"),
        (PAI.replace(",plan_gpu", ""), "t.csv, line 1: no column plan_gpu in the header; it needs job_name"),
        (HELIOS.replace(",gpu_num", ""), "t.csv, line 1: no column gpu_num in the header; it needs job_id"),
        (POLLUX.replace(",time", ""), "t.csv, line 1: no column time in the header; it needs name, time"),
        (POLLUX, "t.csv: no job could be read; expected at least one"),
    ],
)
def test_a_missing_column_is_an_error_of_the_file(text: str, message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        parse_trace(text, "t.csv")


def test_pollux_names_the_batch_size_in_the_job_type() -> None:
    text = POLLUX + "cifar10-0,110.0,cifar10,4,512\nbert-1,110,bert,2,\nncf-2,120,ncf,none,32768\n"
    trace = parse_trace(text, "workload-1.csv")
    assert trace.format == "pollux"
    assert trace.jobs == (
        TraceJob("cifar10-0", 110.0, "cifar10 (batch size 512)", 4),
        TraceJob("bert-1", 110.0, "bert", 2),
    )
    assert trace.skipped == (SkippedRow(4, "num_replicas: nothing given"),)
    with pytest.raises(InputError, match=r"line 3: arrival time goes back from 5.0 to 4.0 s"):
        parse_trace(POLLUX + "a,5,bert,1,8\nb,4,bert,1,8", "workload-1.csv")


SWF = """\
; Version: 2.2
; Computer: a cluster

  2 100 5 60 4 -1 -1 8 3600 -1 1 3 1 -1 -1 -1 -1 -1
  1  50 5 60.5 4 -1 -1 -1 3600 -1 5 -1 -1 -1 -1 -1 -1 -1
  3 100 -1 -1 -1 -1 -1 8 3600 -1 0 3 1 -1 -1 -1 -1 -1
  2 100 5 30 4 -1 -1 8 3600 -1 2 3 1 -1 -1 -1 -1 -1
  4 100 5 30 -1 -1 -1 -1 3600 -1 1 3 1 -1 -1 -1 -1 -1
  5 -1 5 30 1 -1 -1 1 3600 -1 1 3 1 -1 -1 -1 -1 -1
  6 100 5
"""


def test_swf_takes_what_is_known() -> None:
    for text in (SWF, SWF.split("\n\n")[1]):
        trace = parse_trace(text, "log.swf")
        assert trace.format == "swf"
        assert trace.jobs == (
            TraceJob("1", 0.0, scale_factor=4, duration_seconds=60.5, status="cancelled"),
            TraceJob("2", 50.0, scale_factor=8, duration_seconds=60.0, entity="1", user="3", status="completed"),
        )
        assert [row.reason for row in trace.skipped] == [
            "never ran",
            "part of a job that has a line of its own",
            "without a number of processors",
            "submit time: '-1' given, expected a number of at least 0",
            "3 columns given, expected 18",
        ]
    assert [row.line for row in parse_trace(SWF, "log.swf").skipped] == [6, 7, 8, 9, 10]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("; only a comment", "log.swf: no job could be read; expected at least one"),
        ("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17", "log.swf, line 1: 17 columns given, expected 18: job number,"),
        (";\n1 2 3", "log.swf, line 2: 3 columns given, expected 18: job number, submit time"),
    ],
)
def test_swf_needs_18_columns(text: str, message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        parse_trace(text, "log.swf")
