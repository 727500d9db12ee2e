"""The table of runs by itself, on a machine in virtual time."""

from __future__ import annotations

import shutil
from pathlib import Path
from unittest.mock import patch

import pytest

from fairway.live import durable_file
from fairway.live.backend.commands import ForgetRun, JobProgram, RetireJob, StartRun
from fairway.live.backend.reports import RunEnded
from fairway.live.backend.status import OutcomeKind, RunState
from fairway.live.local.keeper import process as keeper
from fairway.live.local.run_files import RunFiles
from tests.live.backend.simulated import SimulatedMachine


def test_a_job_that_has_come_to_its_end_is_not_started_by_a_controller_that_has_not_heard_of_it(tmp_path: Path) -> None:
    with patch.object(durable_file, "_sync", lambda _: None):
        machine = SimulatedMachine(tmp_path, "v100=2")
        machine.start_agent()
        program = JobProgram(("steps",), steps=2)
        machine.carry_out(StartRun(1, "job", program, "v100", (0,)))
        for seconds in (0.4, 5.0):
            machine.advance_to(machine.now + seconds)
        answer = machine.carry_out(StartRun(2, "job", program, "v100", (1,)))
        assert answer.run is not None
        assert answer.run.state is RunState.ENDED
        assert len(machine.processes) == 1
        ends = [report for report in machine.take_reports() if isinstance(report, RunEnded)]
        assert [(end.lease, end.outcome.kind) for end in ends] == [(1, OutcomeKind.FINISHED), (2, OutcomeKind.STOPPED)]


def test_a_job_that_was_retired_is_not_started_by_a_command_that_comes_twice_but_by_another_controller(
    tmp_path: Path,
) -> None:
    with patch.object(durable_file, "_sync", lambda _: None):
        machine = SimulatedMachine(tmp_path, "v100=2")
        machine.start_agent()
        start = StartRun(7, "job", JobProgram(("steps",), steps=2), "v100", (0,))
        machine.carry_out(start)
        for seconds in (0.4, 5.0):
            machine.advance_to(machine.now + seconds)
        assert machine.carry_out(RetireJob("job")).result == "accepted"
        answer = machine.carry_out(start)
        assert (answer.result, answer.newest) == ("stale", 7)
        machine.table.new_epoch(2)  # whose store may be another one, with jobs of the same names
        assert machine.carry_out(start).result == "accepted"


def test_a_keeper_waits_for_room_on_the_disk_instead_of_failing_its_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(keeper.time, "sleep", waited.append)
    files = RunFiles(tmp_path)
    me = {"pid": 1, "start": 1, "boot": "now"}

    def claim() -> bool:
        if len(waited) < 2:
            raise OSError(28, "No space left on device")
        return files.claim(me)

    assert keeper._when_there_is_room(files, claim)
    assert len(waited) == 2
    assert files.claimed_by() == me


def test_a_keeper_whose_directory_is_gone_does_not_wait_for_room(tmp_path: Path) -> None:
    def claim() -> bool:
        raise OSError(2, "No such file or directory")

    assert keeper._when_there_is_room(RunFiles(tmp_path / "gone"), claim) is None


def test_how_a_run_ended_is_known_after_a_loss_of_power_that_took_its_directory(tmp_path: Path) -> None:
    with patch.object(durable_file, "_sync", lambda _: None):
        machine = SimulatedMachine(tmp_path, "v100=2")
        machine.start_agent()
        program = JobProgram(("steps",), steps=2)
        machine.carry_out(StartRun(1, "job", program, "v100", (0,)))
        for seconds in (0.4, 5.0, 2.0):
            machine.advance_to(machine.now + seconds)
        for part in ("runs", "channels"):
            for directory in (tmp_path / part).iterdir():
                shutil.rmtree(directory)
        machine.start_agent()  # after the loss: what it had not written down is gone
        (run,) = machine.table.status().runs
        assert run.outcome is not None
        assert run.outcome.kind is OutcomeKind.FINISHED
        answer = machine.carry_out(StartRun(2, "job", program, "v100", (1,)))
        assert answer.run is not None
        assert answer.run.state is RunState.ENDED
        assert len(machine.processes) == 1
        machine.carry_out(ForgetRun(1, "job"))
        assert [run.lease for run in machine.table.status().runs] == [2]
