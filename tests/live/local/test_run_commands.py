"""What the table of runs answers to each command, in each state of a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from fairway.errors import InputError
from fairway.live import durable_file
from fairway.live.backend.answers import Refusal, RefusedError
from fairway.live.backend.channel import RankProgress
from fairway.live.backend.commands import (
    EndRun,
    ExtendLeases,
    ForgetRun,
    HandOverRun,
    JobProgram,
    RetireJob,
    StartRun,
)
from fairway.live.backend.reports import CheckpointSaved, RunEnded, RunProgressed, RunStarted
from fairway.live.backend.status import OutcomeKind, RunState
from fairway.live.local.identity import boot
from tests.live.local.standing_machine import PROGRAM, StandingMachine


@pytest.fixture
def machine(tmp_path: Path) -> Any:
    with patch.object(durable_file, "_sync", lambda _: None):
        yield StandingMachine(tmp_path)


def _refused(do: Callable[[], object]) -> Refusal:
    with pytest.raises(RefusedError) as caught:
        do()
    return Refusal(caught.value.code)


def test_a_run_goes_from_start_to_end_and_says_so(machine: StandingMachine) -> None:
    files = machine.run(3, 1)
    assert machine.keepers.started == ["3-a"]
    assert machine.keepers.watched == ["3-a"]
    assert machine.take_reports() == [RunStarted(3, "a", machine.wall, machine.wall - 0.25)]
    machine.pass_time(1.0)
    assert machine.take_reports() == []
    machine.end(files)
    machine.pass_time(0.25)
    ended = machine.status(3)
    assert ended.state is RunState.ENDED
    assert ended.outcome is not None
    assert (ended.outcome.kind, ended.outcome.ended) == (OutcomeKind.FINISHED, machine.wall - 0.25)
    assert machine.take_reports() == [RunEnded(3, "a", machine.wall, ended.outcome)]
    machine.pass_time(5.0)
    assert machine.take_reports() == []
    assert machine.keepers.cleared == [], "its keeper has seen to that"


def test_what_a_run_tells_is_reported_once_and_looked_for_each_quarter_of_a_second(machine: StandingMachine) -> None:
    files = machine.run(1, 0, 1)
    machine.take_reports()

    def progress(*steps: int, saved: int | None = None) -> None:
        for rank, step in enumerate(steps):
            files.write_progress(RankProgress(rank, step, 0, 2.0, saved, 0.5 * (rank + 1), lease=1))

    progress(3, 4)
    machine.pass_time(0.125)
    assert machine.take_reports() == []
    machine.pass_time(0.125)
    assert machine.take_reports() == [RunProgressed(1, "a", machine.wall, 7, 4.0, None)]
    machine.pass_time(0.25)
    assert machine.take_reports() == [], "nothing is new"
    progress(5, 5, saved=5)
    machine.pass_time(0.25)
    assert machine.take_reports() == [
        CheckpointSaved(1, "a", machine.wall, 10, 1.0), RunProgressed(1, "a", machine.wall, 10, 4.0, 10),
    ]  # fmt: skip
    status = machine.status(1)
    assert (status.steps, status.steps_per_second, status.checkpoint_step) == (10, 4.0, 10)
    progress(6, 6, saved=6)
    machine.end(files)
    machine.pass_time(0.0625)
    told = machine.take_reports()
    assert [type(report) for report in told] == [CheckpointSaved, RunProgressed, RunEnded], "its last words count"


def test_a_run_that_is_known_is_not_started_twice_and_an_older_lease_not_at_all(machine: StandingMachine) -> None:
    machine.run(3, 0)
    again = machine.table.carry_out(StartRun(3, "a", PROGRAM, "v100", (0,)))
    assert again.result == "known"
    assert again.run == machine.status(3)
    older = machine.table.carry_out(StartRun(2, "a", PROGRAM, "v100", (1,)))
    assert (older.result, older.newest) == ("stale", 3)
    assert machine.keepers.started == ["3-a"]


def test_a_drained_machine_takes_no_new_runs(machine: StandingMachine) -> None:
    machine.table.drain(on=True)
    assert machine.table.status().draining
    assert _refused(lambda: machine.start(1)) is Refusal.DRAINING
    machine.agent()
    assert _refused(lambda: machine.start(1)) is Refusal.DRAINING, "over a restart of the agent, too"
    machine.table.drain(on=False)
    assert machine.start(1) is RunState.STARTING


def test_a_lease_that_expires_is_for_jobs_that_may_be_preempted(machine: StandingMachine) -> None:
    fixed = JobProgram(("steps",), preemptible=False)
    with pytest.raises(InputError, match="not preemptible"):
        machine.start(1, program=fixed, until=machine.wall + 5.0, expires=True)
    assert machine.start(1, program=fixed, until=machine.wall + 5.0) is RunState.STARTING
    machine.pass_time(10.0)
    assert machine.keepers.asked == []


def test_workers_that_run_something_else_which_was_not_asked_to_end_are_busy(machine: StandingMachine) -> None:
    machine.run(1, 0, 1)
    assert _refused(lambda: machine.start(2, 1, 2, job="b")) is Refusal.BUSY
    assert _refused(lambda: machine.start(2, 2)) is Refusal.BUSY, "the job itself runs elsewhere"
    assert machine.start(2, 2, job="b") is RunState.STARTING
    assert machine.start(3, 0, 1, job="c", accelerator="k80") is RunState.STARTING, "of another type"
    assert machine.start(2, 2, job="d") is RunState.STARTING, "under one lease two jobs share"


def test_a_run_waits_for_those_before_it_in_the_order_of_leases(machine: StandingMachine) -> None:
    first = machine.run(1, 0)
    machine.table.carry_out(EndRun(1, "a"))
    assert machine.start(3, 0, job="c") is RunState.WAITING
    assert machine.start(2, 0, job="b") is RunState.WAITING
    machine.pass_time(1.0)
    assert machine.keepers.started == ["1-a"]
    machine.end(first)
    machine.pass_time(0.25)
    assert machine.keepers.started == ["1-a", "2-b"]
    assert machine.status(3, "c").state is RunState.WAITING
    machine.table.carry_out(EndRun(2, "b", save=False))
    machine.end(machine.files(2, "b"))
    machine.keepers.spawned["2-b"].code = 0
    machine.files(2, "b").claim({"pid": 1, "start": 1, "boot": boot()})
    machine.pass_time(0.25)
    assert machine.keepers.started == ["1-a", "2-b", "3-c"]


def test_a_run_that_waits_is_taken_back_at_once(machine: StandingMachine) -> None:
    machine.run(1, 0)
    machine.table.carry_out(EndRun(1, "a"))
    machine.start(2, 0, job="b")
    machine.take_reports()
    answer = machine.table.carry_out(EndRun(2, "b"))
    assert answer.result == "accepted"
    (ended,) = machine.take_reports()
    assert isinstance(ended, RunEnded)
    assert (ended.lease, ended.outcome.kind, ended.outcome.ended) == (2, OutcomeKind.STOPPED, machine.wall)
    assert machine.keepers.asked == [("1-a", True)]


def test_one_that_is_to_end_is_asked_to_and_may_be_asked_again(machine: StandingMachine) -> None:
    machine.run(1, 0)
    assert machine.table.carry_out(EndRun(1, "a", save=True)).result == "accepted"
    assert machine.status(1).state is RunState.ENDING
    assert machine.table.carry_out(EndRun(1, "a", save=False)).result == "accepted"
    assert machine.keepers.asked == [("1-a", True), ("1-a", False)]
    machine.end(machine.files(1))
    machine.pass_time(0.25)
    assert machine.table.carry_out(EndRun(1, "a")).result == "known"
    unknown = machine.table.carry_out(EndRun(7, "a"))
    assert (unknown.result, unknown.newest) == ("stale", 1)


def test_a_job_that_is_not_preemptible_ends_without_saving_only(machine: StandingMachine) -> None:
    machine.run(1, 0, program=JobProgram(("steps",), preemptible=False))
    assert _refused(lambda: machine.table.carry_out(EndRun(1, "a", save=True))) is Refusal.NOT_PREEMPTIBLE
    assert machine.table.carry_out(EndRun(1, "a", save=False)).result == "accepted"


def test_a_lease_that_expires_ends_at_its_end_and_not_before(machine: StandingMachine) -> None:
    machine.run(1, 0, until=machine.wall + 10.0, expires=True)
    machine.run(2, 1, job="b", until=machine.wall + 1.0)
    machine.pass_time(9.25)
    assert machine.keepers.asked == []
    machine.pass_time(0.25)
    assert machine.keepers.asked == [("1-a", True)], "it saves; and the other lease does not expire"


def test_what_waits_under_a_lease_that_has_ended_never_begins(machine: StandingMachine) -> None:
    machine.run(1, 0)
    machine.table.carry_out(EndRun(1, "a"))
    machine.start(2, 0, job="b", until=machine.wall + 1.0, expires=True)
    machine.pass_time(1.0)
    assert machine.status(2, "b").state is RunState.ENDED


def test_leases_that_are_extended_last_longer_and_the_jobs_see_it(machine: StandingMachine) -> None:
    one = machine.run(1, 0, until=machine.wall + 2.0, expires=True)
    other = machine.run(2, 1, job="b", until=machine.wall + 2.0, expires=True)
    machine.run(3, 2, job="c")
    machine.table.carry_out(EndRun(3, "c"))
    until = machine.wall + 100.0
    assert machine.table.carry_out(ExtendLeases(until, (1, 3, 99))).leases == (1,), "one that ends goes on ending"
    lease = one.lease()
    assert lease is not None
    assert (lease.until, lease.expires) == (until, True)
    assert machine.status(1).until == until
    machine.pass_time(2.0)
    assert machine.keepers.asked == [("3-c", True), ("2-b", True)]
    assert machine.table.carry_out(ExtendLeases(until + 1.0)).leases == (1,)
    untouched = other.lease()
    assert untouched is not None
    assert untouched.until != until + 1.0
    machine.agent()
    assert machine.status(1).until == until + 1.0, "an agent that comes back knows it"


def test_a_clock_that_is_set_changes_no_lease(machine: StandingMachine) -> None:
    machine.run(1, 0, until=machine.wall + 10.0, expires=True)
    machine.wall += 3600.0
    machine.pass_time(9.0)
    assert machine.keepers.asked == []
    machine.wall -= 7200.0
    machine.pass_time(1.0)
    assert machine.keepers.asked == [("1-a", True)]


def test_a_job_goes_on_under_a_new_lease_with_another_pace(machine: StandingMachine) -> None:
    files = machine.run(1, 0, 1, steps_per_second=8.0)
    machine.run(1, 0, 1, job="b")
    lease = files.lease()
    assert lease is not None
    assert lease.pace == 8.0 * 2.0 / 2, "by rank, on a clock that runs twice as fast"
    until = machine.wall + 50.0
    answer = machine.table.carry_out(HandOverRun("a", old=1, lease=4, until=until, steps_per_second=10.0))
    assert answer.result == "accepted"
    assert (machine.status(4).state, machine.status(4).until) == (RunState.RUNNING, until)
    lease = files.lease()
    assert lease is not None
    assert (lease.lease, lease.until, lease.pace) == (4, until, 10.0)
    again = machine.table.carry_out(HandOverRun("a", old=1, lease=4, until=until, steps_per_second=12.0))
    assert again.result == "known"
    lease = files.lease()
    assert lease is not None
    assert lease.pace == 12.0, "an agent that was killed may not have written it"
    assert machine.keepers.started == ["1-a", "1-b"]
    kept = machine.table.carry_out(HandOverRun("a", old=4, lease=5, until=None))
    assert kept.result == "accepted"
    lease = files.lease()
    assert lease is not None
    assert (lease.pace, lease.until) == (12.0, None)


def test_what_cannot_be_handed_over_stays(machine: StandingMachine) -> None:
    files = machine.run(3, 0)
    stale = machine.table.carry_out(HandOverRun("a", old=2, lease=4))
    assert (stale.result, stale.newest) == ("stale", 3)
    assert machine.table.carry_out(HandOverRun("a", old=3, lease=2)).result == "stale"
    machine.table.carry_out(EndRun(3, "a"))
    assert _refused(lambda: machine.table.carry_out(HandOverRun("a", old=3, lease=4))) is Refusal.ENDING
    machine.end(files)
    machine.pass_time(0.25)
    assert machine.table.carry_out(HandOverRun("a", old=3, lease=4)).result == "stale"


def test_a_run_is_forgotten_once_it_has_ended_and_its_lease_is_remembered(machine: StandingMachine) -> None:
    files = machine.run(3, 0)
    assert _refused(lambda: machine.table.carry_out(ForgetRun(3, "a"))) is Refusal.ACTIVE
    assert _refused(lambda: machine.table.carry_out(RetireJob("a"))) is Refusal.ACTIVE
    machine.end(files)
    machine.pass_time(0.25)
    assert machine.table.carry_out(ForgetRun(3, "a")).result == "accepted"
    assert machine.table.status().runs == ()
    assert machine.table.status().former == ("a",)
    assert machine.table.status().last_lease == 3
    assert machine.table.carry_out(ForgetRun(3, "a")).result == "known"
    late = machine.table.carry_out(StartRun(3, "a", PROGRAM, "v100", (0,)))
    assert (late.result, late.newest) == ("stale", 3)
    machine.table.close(5.0)
    assert not files.directory.exists()
    assert not files.channel.directory.exists()
    machine.agent()
    assert machine.table.status().former == ("a",)


def test_a_job_that_is_retired_is_forgotten_altogether(machine: StandingMachine) -> None:
    for lease in (1, 2):
        machine.end(machine.run(lease, 0), code=1)
        machine.pass_time(0.25)
    machine.run(3, 1, job="b")
    assert machine.table.carry_out(RetireJob("a")).result == "accepted"
    assert [run.job for run in machine.table.status().runs] == ["b"]
    assert machine.table.status().former == ()
    assert machine.table.carry_out(RetireJob("a")).result == "accepted"
