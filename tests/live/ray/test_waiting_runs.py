"""A run whose job still ends on another node waits, and starts at most once."""

from __future__ import annotations

from dataclasses import replace

from fairway.live.backend.commands import EndRun, ExtendLeases, HandOverRun, JobProgram, StartRun
from fairway.live.backend.reports import RunEnded
from fairway.live.backend.status import OutcomeKind, RunOutcome, RunState
from fairway.live.ray.waiting_runs import WaitingRuns


def start(lease: int) -> StartRun:
    return StartRun(lease, "job", JobProgram("true"), "v100", (0,))


def test_it_starts_when_the_older_run_has_stopped() -> None:
    ends: list[RunEnded] = []
    runs = WaitingRuns(ends.append)
    assert runs.add(start(2), emulated=True).status.state is RunState.WAITING
    assert runs.extend(ExtendLeases(9.0)) == [2]
    runs.ended("job", RunOutcome(OutcomeKind.STOPPED))
    assert runs.ready(lambda _: True) == []
    (command,) = runs.ready(lambda _: False)
    assert (command.lease, command.until) == (2, 9.0)
    assert runs.ready(lambda _: False) == []
    assert (runs.statuses(), ends) == ([], [])


def test_it_never_starts_where_the_job_has_come_to_its_end() -> None:
    ends: list[RunEnded] = []
    runs = WaitingRuns(ends.append)
    runs.add(start(2), emulated=True)
    runs.ended("job", RunOutcome(OutcomeKind.FINISHED))
    assert runs.ready(lambda _: False) == []
    assert [(end.lease, end.outcome.kind) for end in ends] == [(2, OutcomeKind.STOPPED)]
    (stands,) = runs.statuses()
    assert stands.state is RunState.ENDED
    runs.forget(2, "job")
    assert runs.statuses() == []


def test_it_is_called_off_once_and_handed_over_while_it_waits() -> None:
    ends: list[RunEnded] = []
    runs = WaitingRuns(ends.append)
    runs.add(start(2), emulated=True)
    assert runs.hand_over(HandOverRun("job", 2, 3)).status.lease == 3
    assert runs.get(2, "job") is None
    for _ in range(2):
        runs.end(EndRun(3, "job"))
    assert [end.lease for end in ends] == [3]
    assert runs.ready(lambda _: False) == []


def test_of_each_job_the_oldest_lease_starts_and_a_blocked_one_waits_on() -> None:
    runs = WaitingRuns([].append)
    for lease, job in ((4, "a"), (2, "a"), (3, "b")):
        runs.add(replace(start(lease), job=job), emulated=True)
    assert [command.lease for command in runs.ready(lambda command: command.job == "b")] == [2]
    assert [command.lease for command in runs.ready(lambda _: False)] == [3, 4]


def test_of_a_retired_job_nothing_waits_and_others_wait_on() -> None:
    runs = WaitingRuns([].append)
    for lease, job in ((4, "a"), (5, "a"), (6, "b")):
        runs.add(replace(start(lease), job=job), emulated=False)
    runs.forget(4, "b")
    runs.retire("a")
    (left,) = runs.statuses()
    assert (left.lease, left.job, left.emulated, left.outcome) == (6, "b", False, None)


def test_only_leases_that_are_named_are_prolonged_and_none_that_is_over() -> None:
    runs = WaitingRuns([].append)
    for lease, job in ((4, "a"), (5, "b"), (6, "c")):
        runs.add(replace(start(lease), job=job, until=1.0), emulated=True)
    runs.end(EndRun(6, "c"))
    assert runs.extend(ExtendLeases(9.0, (5, 6))) == [5]
    assert [run.until for run in runs.statuses()] == [1.0, 9.0, 1.0]
    assert runs.extend(ExtendLeases(10.0)) == [4, 5]


def test_a_run_that_is_handed_over_keeps_its_pace_unless_it_gets_another() -> None:
    runs = WaitingRuns([].append)
    runs.add(replace(start(2), steps_per_second=3.0), emulated=True)
    assert runs.hand_over(HandOverRun("job", 2, 3, until=7.0)).command.steps_per_second == 3.0
    run = runs.hand_over(HandOverRun("job", 3, 4, steps_per_second=5.0))
    assert (run.command.steps_per_second, run.command.until) == (5.0, None)


def test_an_end_of_another_job_or_one_that_goes_on_calls_nothing_off() -> None:
    ends: list[RunEnded] = []
    runs = WaitingRuns(ends.append)
    runs.add(start(2), emulated=True)
    runs.ended("other", RunOutcome(OutcomeKind.FINISHED))
    runs.ended("job", RunOutcome(OutcomeKind.LOST))
    assert ends == []
    for kind in (OutcomeKind.FAILED, OutcomeKind.FAILED):
        runs.ended("job", RunOutcome(kind))
    assert [(end.lease, end.outcome.reason) for end in ends] == [(2, "its job ended before it had started")]
