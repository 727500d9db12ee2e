"""What becomes of runs, whatever their jobs, their keepers and the agent do."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from fairway.live import durable_file
from fairway.live.backend.commands import (
    EndRun,
    ForgetRun,
    RetireJob,
    StartRun,
)
from fairway.live.backend.status import OutcomeKind, RunState
from fairway.live.local.run_files import RunExit
from tests.live.local.standing_machine import PROGRAM, StandingMachine


@pytest.fixture
def machine(tmp_path: Path) -> Any:
    with patch.object(durable_file, "_sync", lambda _: None):
        yield StandingMachine(tmp_path)


def test_nothing_of_a_job_starts_after_it_has_failed_or_finished(machine: StandingMachine) -> None:
    for code, kind in ((0, OutcomeKind.FINISHED), (3, OutcomeKind.FAILED)):
        job = f"job-{code}"
        files = machine.run(1, 0, job=job)
        machine.table.carry_out(EndRun(1, job))
        assert machine.start(2, 1, job=job) is RunState.WAITING
        other = f"other-{code}"
        assert machine.start(2, 2, job=other) is RunState.STARTING
        machine.end(files, code)
        machine.pass_time(0.25)
        first, second = machine.status(1, job).outcome, machine.status(2, job).outcome
        assert first is not None
        assert second is not None
        assert (first.kind, second.kind) == (kind, OutcomeKind.STOPPED)
        assert "before it had started" in second.reason
        machine.table.carry_out(RetireJob(job))
        machine.end(machine.files(2, other))
        machine.keep(machine.files(2, other))
        machine.keepers.alive.clear()
        machine.pass_time(0.25)
        machine.table.carry_out(RetireJob(other))


def test_one_that_stopped_makes_way_for_the_next_run_of_its_job(machine: StandingMachine) -> None:
    files = machine.run(1, 0)
    machine.table.carry_out(EndRun(1, "a"))
    assert machine.start(2, 0) is RunState.WAITING
    machine.end(files, -15, failed=False, asked="save", terminated=True)
    machine.pass_time(0.25)
    outcome = machine.status(1).outcome
    assert outcome is not None
    assert outcome.kind is OutcomeKind.STOPPED
    assert machine.status(2).state is RunState.STARTING


def test_a_keeper_that_never_came_is_a_run_that_failed_to_start(machine: StandingMachine) -> None:
    machine.start(1, 0)
    machine.pass_time(60.0)
    assert machine.status(1).state is RunState.STARTING, "it may still come"
    machine.keepers.spawned["1-a"].code = 1
    machine.pass_time(0.25)
    outcome = machine.status(1).outcome
    assert outcome is not None
    assert outcome.kind is OutcomeKind.FAILED_TO_START


def test_an_exit_that_a_job_has_written_itself_frees_no_worker(machine: StandingMachine) -> None:
    files = machine.run(1, 0)
    files.write_exit(RunExit([0], time=machine.wall))
    machine.pass_time(5.0)
    assert machine.status(1).state is RunState.RUNNING
    machine.keepers.alive.clear()
    machine.pass_time(0.25)
    assert machine.status(1).state is RunState.ENDED


def test_a_keeper_that_is_gone_without_a_word_is_cleared_up_after(machine: StandingMachine) -> None:
    machine.run(1, 0)
    machine.keepers.alive.clear()
    machine.keepers.cannot_be_cleared = True
    machine.pass_time(0.25)
    assert machine.status(1).state is RunState.RUNNING, "its worker is not free"
    machine.keepers.cannot_be_cleared = False
    machine.pass_time(0.25)
    outcome = machine.status(1).outcome
    assert outcome is not None
    assert outcome.kind is OutcomeKind.FAILED
    assert machine.keepers.cleared == ["1-a", "1-a"]


def test_a_keeper_that_does_not_end_its_run_is_killed_ten_seconds_too_late(
    machine: StandingMachine,
) -> None:
    machine.run(1, 0)
    machine.table.carry_out(EndRun(1, "a"))
    machine.pass_time(0.0)
    machine.pass_time(15.75)
    assert machine.keepers.cleared == []
    machine.pass_time(0.25)
    assert machine.keepers.cleared == ["1-a"], "4 s to save, 2 s of grace, and 10"
    assert machine.status(1).state is RunState.ENDED


def test_a_run_that_writes_what_cannot_be_read_is_ended_and_the_others_go_on(machine: StandingMachine) -> None:
    files = machine.run(1, 0)
    machine.run(2, 1, job="b")
    (files.channel.directory / "progress-0.json").symlink_to("/etc/passwd")
    for _ in range(3):
        machine.pass_time(0.25)
    assert machine.keepers.asked == [("1-a", False)], "once, and without saving"
    assert machine.status(1).state is RunState.ENDING
    assert machine.status(2, "b").state is RunState.RUNNING
    machine.end(files, -15, failed=False, asked="now", terminated=True)
    machine.pass_time(0.25)
    outcome = machine.status(1).outcome
    assert outcome is not None
    assert outcome.kind is OutcomeKind.FAILED


def test_an_agent_that_comes_back_goes_on_with_what_runs_and_ends_what_was_to_end(machine: StandingMachine) -> None:
    machine.run(1, 0)
    machine.run(2, 1, job="b")
    machine.start(3, 2, job="c")
    machine.table.carry_out(EndRun(2, "b"))
    machine.pass_time(1.0)
    machine.keepers.started.clear()
    machine.keepers.asked.clear()
    machine.agent()
    assert machine.keepers.asked == [("2-b", True)]
    machine.pass_time(1.0)
    assert machine.keepers.started == ["3-c"], "no keeper has claimed that one"
    assert machine.keepers.asked == [("2-b", True)] * 2, "it may not have been there to hear it"
    assert [run.state for run in machine.table.status().runs] == [RunState.RUNNING, RunState.ENDING, RunState.STARTING]


def test_a_run_whose_files_are_gone_was_forgotten(machine: StandingMachine) -> None:
    machine.run(4, 0)
    (machine.files(4).directory / "order.json").unlink()
    machine.agent()
    assert machine.table.status().runs == ()
    assert machine.table.status().last_lease == 4


def test_runs_that_no_record_names_are_removed_or_ended_if_they_live(machine: StandingMachine) -> None:
    for name in ("7-dead", "8-alive"):
        for part in ("runs", "channels"):
            (machine.directory / part / name).mkdir()
    machine.run(1, 0)
    machine.keepers.alive.add("8-alive")
    machine.agent()
    machine.table.close(5.0)
    assert {path.name for path in (machine.directory / "runs").iterdir()} == {"1-a", "8-alive"}
    assert {path.name for path in (machine.directory / "channels").iterdir()} == {"1-a", "8-alive"}
    assert machine.keepers.asked == [("8-alive", True)]
    assert machine.keepers.cleared == ["7-dead"]


def test_when_the_machine_is_given_up_what_runs_is_lost_unless_it_had_ended(machine: StandingMachine) -> None:
    machine.run(1, 0)
    done = machine.run(2, 1, job="b")
    machine.run(3, 2, job="c")
    machine.table.carry_out(EndRun(3, "c"))
    machine.start(4, 2, job="d")
    done.write_exit(RunExit([0], time=machine.wall))
    machine.keepers.cannot_be_cleared = True
    assert not machine.table.kill_all()
    assert machine.status(4, "d").state is RunState.ENDED, "it had not begun"
    machine.keepers.cannot_be_cleared = False
    machine.keepers.cleared.clear()
    assert machine.table.kill_all()
    assert sorted(machine.keepers.cleared) == ["1-a", "2-b", "3-c"]
    outcomes = [run.outcome for run in machine.table.status().runs]
    assert [None if one is None else one.kind for one in outcomes] == [
        OutcomeKind.LOST, OutcomeKind.FINISHED, OutcomeKind.LOST, OutcomeKind.LOST,
    ]  # fmt: skip


def test_the_newest_controller_is_remembered(machine: StandingMachine) -> None:
    machine.table.new_epoch(5)
    machine.table.new_epoch(4)
    assert machine.table.status().epoch == 5
    machine.agent()
    assert machine.table.status().epoch == 5


def test_what_is_not_urgent_is_on_the_disk_within_a_second(machine: StandingMachine) -> None:
    synced = machine.directory / "state.synced.json"
    machine.start(1, 0)
    assert not synced.exists()
    machine.pass_time(0.75)
    assert not synced.exists()
    machine.pass_time(0.25)
    assert synced.exists()
    synced.unlink()
    machine.pass_time(5.0)
    assert not synced.exists(), "nothing has changed"
    machine.table.drain(on=True)
    machine.table.close(1.0)
    assert synced.exists(), "an agent that ends leaves nothing unwritten"


def test_a_full_disk_is_tried_again_a_second_later(machine: StandingMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    def full(*_: Any) -> None:
        tries.append(machine.now)
        raise OSError(28, "No space left on device")

    machine.start(1, 0)
    monkeypatch.setattr(type(machine.table.state), "save_synced", full)
    for _ in range(12):
        machine.pass_time(0.25)
    assert [later - sooner for sooner, later in pairwise(tries)] == [1.0, 1.0]


def test_the_status_names_what_there_is(machine: StandingMachine) -> None:
    status = machine.table.status()
    assert status.instance == "agent"
    assert [(one.type, one.number) for one in status.accelerators] == [
        ("v100", 0), ("v100", 1), ("v100", 2), ("v100", 3), ("k80", 0), ("k80", 1),
    ]  # fmt: skip
    machine.run(2, 3, attempt=4, until=math.inf)
    run = machine.table.status().runs[0]
    assert (run.lease, run.job, run.accelerator, run.workers, run.attempt, run.preemptible, run.emulated) == (
        2, "a", "v100", (3,), 4, True, True,
    )  # fmt: skip
    assert run.accepted == machine.wall - 0.25
    assert machine.table.status().last_lease == 2


def test_a_run_that_waits_is_known_to_the_agent_that_comes_back(machine: StandingMachine) -> None:
    first = machine.run(1, 0)
    machine.table.carry_out(EndRun(1, "a"))
    machine.pass_time(5.0)
    machine.start(2, 0, job="b")
    machine.agent()
    assert machine.status(2, "b").state is RunState.WAITING
    machine.end(first)
    machine.pass_time(0.25)
    assert machine.status(2, "b").state is RunState.STARTING


def test_that_a_run_was_to_end_is_written_down_within_a_second(machine: StandingMachine) -> None:
    machine.run(1, 0)
    machine.pass_time(5.0)
    machine.table.carry_out(EndRun(1, "a"))
    machine.pass_time(1.0)
    machine.agent()
    assert machine.status(1).state is RunState.ENDING


def test_that_a_run_is_forgotten_and_its_job_retired_is_written_down_within_a_second(machine: StandingMachine) -> None:
    machine.end(machine.run(1, 0))
    machine.pass_time(5.0)
    machine.table.carry_out(ForgetRun(1, "a"))
    machine.pass_time(1.0)
    machine.agent()
    assert (machine.table.status().runs, machine.table.status().former) == ((), ("a",))
    machine.pass_time(5.0)
    machine.table.carry_out(RetireJob("a"))
    machine.pass_time(1.0)
    machine.agent()
    assert machine.table.status().former == ()


def test_a_keeper_that_has_ended_is_waited_for_so_that_no_zombie_stays(machine: StandingMachine) -> None:
    machine.end(machine.run(1, 0))
    machine.pass_time(0.25)
    keeper = machine.keepers.spawned["1-a"]
    before = keeper.polled
    machine.pass_time(0.25)
    machine.pass_time(0.25)
    assert keeper.polled == before + 2
    keeper.code = 0
    machine.pass_time(0.25)
    machine.pass_time(0.25)
    assert keeper.polled == before + 3, "once it is gone there is nothing to wait for"


def test_a_job_that_has_finished_is_not_started_again_by_one_who_has_not_heard_of_it(machine: StandingMachine) -> None:
    machine.end(machine.run(1, 0))
    machine.pass_time(0.25)
    answer = machine.table.carry_out(StartRun(2, "a", PROGRAM, "v100", (0,)))
    assert answer.run is not None
    assert answer.run.state is RunState.ENDED
    assert machine.keepers.started == ["1-a"]
