"""How a run ended is judged from its files alone: every way to end, written down as a keeper and a job would."""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from fairway.live.backend.channel import STOPPED, RankProgress
from fairway.live.backend.status import OutcomeKind, RunOutcome
from fairway.live.local.identity import identify
from fairway.live.local.outcomes import checkpoint_step, outcome_of
from fairway.live.local.run_files import RunExit, RunFiles


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    run = RunFiles(tmp_path / "runs" / "job-1.1")
    run.directory.mkdir(parents=True)
    run.channel.directory.mkdir(parents=True)
    return run


def ended(files: RunFiles, *codes: int, **fields: object) -> RunOutcome:
    files.write_exit(RunExit(list(codes), time=90.0, **fields))  # type: ignore[arg-type]
    return outcome_of(files, range(max(len(codes), 1)))


def told(files: RunFiles, *steps: tuple[int, int | None], stopped: bool = False) -> None:
    for rank, (step, saved) in enumerate(steps):
        files.write_progress(RankProgress(rank, step, 0, checkpoint_step=saved, stopped=stopped))


@pytest.mark.parametrize(
    ("codes", "fields", "kind", "code", "reason"),
    [
        ((0, 0), {}, OutcomeKind.FINISHED, 0, ""),
        ((0, 3), {"first": 1, "failed": True}, OutcomeKind.FAILED, 3, "rank 1 ended with exit code 3"),
        ((0, 3), {"first": 1}, OutcomeKind.FAILED, 3, "rank 1 ended with exit code 3"),
        ((-11, -15), {"first": 0, "failed": True}, OutcomeKind.FAILED, -11, "rank 0 was killed by SIGSEGV"),
        ((-1,), {"first": 0, "failed": True}, OutcomeKind.FAILED, -1, "rank 0 was killed by SIGHUP"),
        ((-200,), {"first": 0, "failed": True}, OutcomeKind.FAILED, -200, "rank 0 ended with exit code -200"),
        ((-15,), {"first": 0, "asked": "save", "terminated": True}, OutcomeKind.STOPPED, -15, "terminated"),
        ((-15,), {"first": 0, "terminated": True}, OutcomeKind.FAILED, -15, "rank 0 was killed by SIGTERM"),
        ((1,), {"first": 0, "asked": "save"}, OutcomeKind.FAILED, 1, "rank 0 ended with exit code 1"),
        ((0,), {"asked": "save"}, OutcomeKind.FINISHED, 0, ""),
        ((), {"asked": "save"}, OutcomeKind.STOPPED, 0, "asked to stop before it had started"),
        ((), {"asked": "save", "error": "no"}, OutcomeKind.STOPPED, 0, "asked to stop before it had started"),
    ],
)
def test_exit_codes_and_wishes_decide(
    files: RunFiles, codes: tuple[int, ...], fields: dict[str, object], kind: OutcomeKind, code: int, reason: str
) -> None:
    files.write_started(12.0)
    found = ended(files, *codes, **fields)
    assert found == RunOutcome(kind, code, reason, False, None, None, 12.0, 90.0)


def test_one_that_needed_force_says_so(files: RunFiles) -> None:
    found = ended(files, -9, first=0, asked="now", terminated=True, killed=True)
    assert (found.kind, found.reason, found.killed) == (OutcomeKind.STOPPED, "killed after its grace", True)


@pytest.mark.parametrize("codes", [(0, 0), (STOPPED, STOPPED), (0, STOPPED)])
def test_one_that_saved_and_left_was_stopped(files: RunFiles, codes: tuple[int, ...]) -> None:
    told(files, (40, 30), (41, 31), stopped=True)
    found = ended(files, *codes, first=None if not any(codes) else codes.index(STOPPED), asked="save")
    assert (found.kind, found.reason) == (OutcomeKind.STOPPED, "saved a checkpoint and stopped")
    assert (found.steps, found.checkpoint_step) == (81, 60)


def test_one_that_saved_but_ended_otherwise_was_not(files: RunFiles) -> None:
    told(files, (40, 30), (41, 31), stopped=True)
    assert ended(files, 0, 7, first=1, asked="save").kind is OutcomeKind.FAILED
    assert ended(files, 7, 0, first=0, failed=True, asked="save").kind is OutcomeKind.FAILED
    told(files, (40, 30), (41, 31))
    assert ended(files, 0, 0).kind is OutcomeKind.FINISHED
    assert ended(files, STOPPED, STOPPED, first=0, asked="save").kind is OutcomeKind.FAILED


def test_a_gang_has_saved_what_all_of_its_ranks_have(files: RunFiles) -> None:
    progress = RankProgress(0, 9, 0, checkpoint_step=8)
    assert checkpoint_step([progress, replace(progress, checkpoint_step=5)]) == 10
    assert checkpoint_step([progress, replace(progress, checkpoint_step=0)]) == 0
    assert checkpoint_step([progress, replace(progress, checkpoint_step=None)]) is None
    assert checkpoint_step([]) is None
    assert checkpoint_step(None) is None


def test_one_that_could_not_be_started_says_why(files: RunFiles) -> None:
    found = ended(files, error="no such program")
    assert found == RunOutcome(OutcomeKind.FAILED_TO_START, reason="no such program", ended=90.0)


def test_one_of_which_there_is_no_record_that_it_started_ran_when_it_ended(files: RunFiles) -> None:
    assert ended(files, 0).started == 90.0
    assert ended(files, asked="save").started is None


def test_without_an_end_it_depends_on_what_became_of_the_keeper(files: RunFiles) -> None:
    assert outcome_of(files, range(1)) == RunOutcome(
        OutcomeKind.FAILED_TO_START, reason="the keeper did not start: it said nothing"
    )
    (files.directory / "keeper.log").write_bytes(b"first\nno module\n\n")
    assert outcome_of(files, range(1)).reason == "the keeper did not start: no module"
    told(files, (7, 5))
    files.write_started(3.0)
    keeper = asdict(identify(os.getpid()))  # type: ignore[arg-type]
    assert files.claim(keeper)
    found = outcome_of(files, range(1))
    assert found == RunOutcome(
        OutcomeKind.FAILED, reason="its keeper was killed, and the job with it", steps=7, checkpoint_step=5, started=3.0
    )
    (files.directory / "claim.json").unlink()
    assert files.claim({**keeper, "boot": "another"})
    found = outcome_of(files, range(1))
    assert (found.kind, found.reason) == (OutcomeKind.LOST, "the machine was restarted, and the job with it")


def test_a_directory_that_is_gone_is_named(tmp_path: Path) -> None:
    found = outcome_of(RunFiles(tmp_path / "runs" / "gone"), range(1))
    assert found == RunOutcome(OutcomeKind.FAILED, reason="the directory of its run was removed")


@pytest.mark.parametrize("killed", [False, True])
def test_one_that_wrote_what_cannot_be_read_has_failed_whatever_its_code(files: RunFiles, killed: bool) -> None:
    files.write_started(3.0)
    (files.channel.directory / "progress-0.json").mkdir()
    found = outcome_of(files, range(1))
    assert (found.kind, found.killed, found.started, found.ended) == (OutcomeKind.FAILED, False, 3.0, None)
    assert found.reason.endswith("; the job has written it, and was ended for it")
    found = ended(files, 0, killed=killed)
    assert (found.kind, found.killed, found.ended) == (OutcomeKind.FAILED, killed, 90.0)
