"""Every command and every report has one form in JSON, which is read back as what it was, or refused with one line."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fairway.errors import InputError
from fairway.live.backend.codec import COMMAND_KINDS, COMMANDS, REPORT_KINDS, REPORTS
from fairway.live.backend.commands import (
    CLOSED,
    EndRun,
    ExtendLeases,
    ForgetRun,
    GangPart,
    HandOverRun,
    JobProgram,
    RetireJob,
    RunCommand,
    StartRun,
)
from fairway.live.backend.reports import BackendReport, RunEnded
from fairway.live.backend.status import OutcomeKind, RunOutcome

LEASES, JOBS = st.integers(1, 2**40), st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)
TIMES, RATES = st.none() | st.floats(0, 1e12), st.none() | st.floats(0.001, 1e9)
WORDS = st.text(min_size=1, max_size=20)
PROGRAMS = st.builds(
    JobProgram,
    run=WORDS | st.lists(WORDS, min_size=1, max_size=3).map(tuple),
    setup=st.none() | WORDS,
    envs=st.dictionaries(WORDS, st.text(max_size=5), max_size=2),
    steps=st.none() | st.integers(1, 10**9),
    checkpoint_every_seconds=RATES,
    grace_seconds=st.floats(0, 1e6),
    preemptible=st.booleans(),
)
WORKERS = st.lists(st.integers(0, 1000), min_size=1, max_size=4).map(tuple)
COMMAND = st.one_of(
    st.builds(StartRun, LEASES, JOBS, PROGRAMS, WORDS, WORKERS, st.integers(1, 99), TIMES, st.booleans(), RATES),
    st.builds(EndRun, LEASES, JOBS, st.booleans()),
    st.builds(ExtendLeases, st.floats(0, 1e12), st.none() | st.lists(LEASES, max_size=3).map(tuple)),
    st.builds(HandOverRun, JOBS, LEASES, LEASES, TIMES, RATES),
    st.builds(ForgetRun, LEASES, JOBS),
    st.builds(RetireJob, JOBS),
)


@given(COMMAND)
def test_a_command_is_read_back_as_it_was(command: RunCommand) -> None:
    assert COMMANDS.read(json.loads(json.dumps(COMMANDS.document_of(command)))) == command


PARTS = st.builds(
    GangPart,
    ranks=WORKERS,
    world_size=st.integers(2, 1000),
    node_rank=st.integers(0, 100),
    nodes=st.lists(WORDS, min_size=2, max_size=3).map(tuple),
)
st.register_type_strategy(GangPart, PARTS)


@given(st.one_of(*(st.from_type(kind) for kind in REPORT_KINDS.values())))
def test_a_report_is_read_back_as_it_was(report: BackendReport) -> None:
    assume("nan" not in repr(report))  # which is not equal to itself
    assert REPORTS.read(json.loads(json.dumps(REPORTS.document_of(report)))) == report


def test_the_forms_are_these() -> None:
    assert COMMANDS.document_of(EndRun(7, "train", save=False)) == {
        "command": "end-run",
        "lease": 7,
        "job": "train",
        "save": False,
    }
    ended = RunEnded(7, "train", 12.5, RunOutcome(OutcomeKind.FAILED, code=3, reason="rank 0 ended with exit code 3"))
    document = REPORTS.document_of(ended)
    assert (document["report"], document["outcome"]["kind"], document["outcome"]["code"]) == ("run-ended", "failed", 3)


START = COMMANDS.document_of(StartRun(1, "job", JobProgram("true"), "v100", (0,)))


@pytest.mark.parametrize(
    ("document", "line"),
    [
        ({}, "command: None given, expected one of start-run, end-run, extend-leases"),
        ({"command": ["end-run"]}, "command: ['end-run'] given, expected one of start-run"),
        ({"command": "end-run", "job": "a"}, "end-run.lease: field required"),
        ({"command": "end-run", "job": "a", "lease": 1, "more": 2}, "end-run.more: unexpected keyword argument"),
        ({**START, "workers": []}, "start-run.workers: tuple should have at least 1 item"),
        ({**START, "until": float("nan")}, "start-run.until: input should be a finite number"),
        (
            {**START, "program": {"run": "true", "grace_seconds": -1}},
            "start-run.program.grace_seconds: input",
        ),
        ({**START, "program": {"run": "true", "grace": 1}}, "start-run.program.grace: unexpected keyword argument"),
        ({**START, "steps_per_second": 0.0}, "start-run.steps_per_second: input should be greater than 0"),
    ],
)
def test_a_command_that_is_none_is_refused_with_the_field(document: dict[str, Any], line: str) -> None:
    with pytest.raises(InputError) as refused:
        COMMANDS.read(document)
    assert str(refused.value).startswith(line)
    assert "\n" not in str(refused.value)


def test_commands_are_closed_and_reports_are_open_to_what_a_newer_agent_adds() -> None:
    assert all(kind.__pydantic_config__ is CLOSED for kind in (*COMMAND_KINDS.values(), JobProgram))  # type: ignore[attr-defined]
    assert REPORTS.read({"report": "disconnected", "why": "it rains", "since": 3}) == REPORT_KINDS["disconnected"](
        "it rains"  # type: ignore[call-arg,arg-type]
    )


def test_a_program_that_names_no_path_can_be_checked_without_a_disk() -> None:
    def program(run: str | tuple[str, ...], **fields: object) -> JobProgram:
        return JobProgram(run, **fields)  # type: ignore[arg-type]

    assert not program("python").names_files
    assert not program(("python", "/data/train.py")).names_files
    assert not program("python", envs={"HOME": "/x"}).names_files
    for named in (
        program("./train.sh"),
        program(("/bin/true", "x")),
        program("python", workdir="/x"),
        program("python", checkpoint_directory="/x"),
        program("python", setup="pip install x"),
        program("python", envs={"PATH": "/x"}),
    ):
        assert named.names_files
