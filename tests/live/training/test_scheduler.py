"""What the scheduler makes of what happens, in virtual time: rates, reasons, refusals, and late or missing answers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairway.engine.protocol import like
from fairway.engine.training.messages import Grant, RateMeasured, Revoke
from fairway.live.backend.commands import JobProgram, StartRun
from fairway.live.backend.reports import CheckpointSaved, RunEnded, RunProgressed, RunReport, RunStarted
from fairway.live.backend.status import OutcomeKind, RunOutcome
from fairway.live.training import reports, scheduler
from fairway.store.job_changes import request_cancel
from fairway.store.journal import read_journal
from fairway.store.queries import job_history
from fairway.store.records import JobRecord
from fairway.store.states import JobState
from tests.live.training.invariants import check_all_over, check_history, check_journal
from tests.live.training.virtual import World

SHARED = "ResNet-18 (batch size 16)"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path, "v100=1,k80=1").running() as made:
        yield made


@pytest.fixture
def sharing(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path, "v100=1", policy="max-min-fairness:space-sharing").running() as made:
        yield made


def rates(world: World, job: str) -> dict[str, float]:
    engine = world.session.scheduler.engine
    return dict(zip(engine.types, engine.jobs.rates[engine.jobs.position(job)].tolist(), strict=True))


def test_a_measured_rate_replaces_the_estimate_and_is_scaled_to_the_other_types(world: World) -> None:
    job = world.submit(10_000, throughputs=None)
    before = rates(world, job)
    assert before["v100"] > before["k80"]
    world.run_for(5.0)
    (lease,) = world.session.scheduler.leases
    on, other = lease.grant.accelerator, {"v100": "k80", "k80": "v100"}[lease.grant.accelerator]
    after = rates(world, job)
    assert after[on] == pytest.approx(1.0)  # what a process here does when it is not paced
    assert after[other] / after[on] == pytest.approx(before[other] / before[on])
    measured = [e.message for e in world.store.read(read_journal, kinds=["event"]) if e.name == "RateMeasured"]
    assert len(measured) == 2, "told once, not in every round"
    assert all(isinstance(event, RateMeasured) for event in measured)
    (known,) = world.store.read(job_history, job).rates
    assert (known.accelerator, known.beside, known.steps_per_second) == (on, "", pytest.approx(1.0))
    world.start_controller()
    assert rates(world, job) == pytest.approx(after), "what was measured is known to the next controller"


def test_a_rate_that_is_as_expected_is_written_down_but_decides_nothing_anew(world: World) -> None:
    job = world.submit(10_000)
    world.run_for(3.0)
    solves = world.statistics.solves
    world.run_for(10.0)
    assert world.statistics.solves == solves
    assert [rate.steps_per_second for rate in world.store.read(job_history, job).rates] == [pytest.approx(2.0)]


def test_a_job_that_goes_on_alone_is_paced_and_measured_alone(sharing: World) -> None:
    kind = "ResNet-18 (batch size 128)"
    one, two = sharing.submit(10_000, job_type=kind), sharing.submit(10_000, job_type=kind)
    sharing.run_for(5.0)
    (lease,) = sharing.session.scheduler.leases
    assert set(lease.grant.jobs) == {one, two}
    (mine,) = [process for process in sharing.alive() if process.job == one]
    assert mine.rate == pytest.approx(14.06)
    sharing.cancel(two)
    sharing.run_for(5.0)
    assert mine.alive
    assert mine.rate == pytest.approx(17.99)
    assert rates(sharing, one)["v100"] == pytest.approx(17.99), "the rate beside the other says nothing of it alone"
    (attempt,) = sharing.store.read(job_history, one).attempts
    assert attempt.lease == 2
    assert sharing.job(two).state is JobState.CANCELLED
    check_history(sharing.store)


def test_two_that_share_and_end_at_the_same_moment_are_both_done(sharing: World) -> None:
    jobs = [sharing.submit(320, job_type=SHARED) for _ in range(2)]
    sharing.finish()
    assert [sharing.job(job).state for job in jobs] == [JobState.SUCCEEDED] * 2
    assert [sharing.job(job).attempts for job in jobs] == [1, 1]
    check_all_over(sharing.store)


def test_a_waiting_job_is_told_why_at_once_and_when_that_changes(world: World) -> None:
    jobs = [world.submit(10_000, preemptible=False) for _ in range(3)]

    def reasons() -> list[str | None]:
        return [world.job(job).reason_code for job in jobs]

    assert reasons() == ["WaitingForRound"] * 3
    world.run_for(2.5)
    assert reasons() == [None, None, "Held"]
    gang = world.submit(10_000, resources={"accelerators": "v100:1"}, throughputs={"v100": 1.0})
    assert world.job(gang).reason_code == "Held"
    world.drain([("v100", 0)], on=True)
    assert world.job(gang).reason_code in {"Held", "WorkersDrained"}
    world.cancel(jobs[0])
    world.cancel(jobs[1])
    world.run_for(1.0)
    world.drain([("v100", 0), ("k80", 0)], on=True)
    assert world.job(gang).reason_code == "WorkersDrained"
    assert world.job(gang).reason == "it asks for 1 v100, but 1 of 1 v100 is drained"
    new = world.submit(10, throughputs={"v100": 1.0})
    assert world.job(new).reason_code == "WorkersDrained"
    world.drain([("v100", 0), ("k80", 0)], on=False)
    for job in (jobs[2], gang):
        world.cancel(job)
    world.finish()
    assert world.job(new).state is JobState.SUCCEEDED


def test_a_job_cancelled_a_moment_before_its_lease_is_written_never_starts(world: World) -> None:
    job = world.submit(20)
    world.now += 0.001
    world.session.scheduler.tick()  # the round begins and grants, but nothing of it is written yet
    assert len(world.session.scheduler.leases) == 1
    world.store.write(request_cancel, job, at=world.now)
    world.commit()
    assert world.processes == []
    assert world.job(job).state is JobState.CANCELLED
    check_all_over(world.store)
    check_journal(world.store)


def test_a_job_cancelled_a_moment_before_it_goes_back_to_the_queue_does_not_come_back(world: World) -> None:
    job = world.submit(20)
    world.run_for(2.5)
    (process,) = world.alive()
    process.kill()
    world.store.write(request_cancel, job, at=world.now)  # and the controller hears of the loss before it hears of this
    world.run_for(2.0)
    assert world.job(job).state is JobState.CANCELLED
    assert len(world.processes) == 1
    check_all_over(world.store)


def test_a_cancel_that_nobody_told_the_controller_of_is_found_when_it_matters(world: World) -> None:
    blockers = [world.submit(12, preemptible=False, throughputs={"v100": 1.0}) for _ in range(1)]
    world.run_for(2.5)
    job = world.submit(20, throughputs={"v100": 1.0})
    world.store.write(request_cancel, job, at=world.now)
    world.finish()
    assert world.job(job).state is JobState.CANCELLED
    assert {process.job for process in world.processes} == set(blockers)
    check_all_over(world.store)


def test_what_the_agent_cannot_do_at_the_moment_is_not_the_jobs_failure(world: World) -> None:
    world.table.drain(on=True)
    job = world.submit(20)
    world.run_for(1.0)
    waits: JobRecord = world.job(job)
    assert (waits.state, waits.failures, waits.reason_code) == (JobState.QUEUED, 0, "BackOff")
    assert waits.reason == "this agent is draining and takes no new runs; tried again after 5 s"
    world.table.drain(on=False)
    world.finish()
    assert world.job(job).state is JobState.SUCCEEDED
    assert world.statistics.leases_granted_total == 2


def test_a_job_that_is_done_is_not_started_again_by_a_lease_that_waited_for_it(world: World) -> None:
    job = world.submit(8, throughputs={"v100": 2.0})
    world.run_for(4.2)
    (process,) = world.alive()
    assert 0 < process.next_time() - world.now < 0.15, "it is about to finish"
    world.drain([("v100", 0)], on=True)
    world.drain([("v100", 0)], on=False)
    assert [lease.revoked for lease in world.session.scheduler.leases] == [True, False]
    world.finish()
    assert world.processes == [process]
    done = world.job(job)
    assert (done.state, done.attempts) == (JobState.SUCCEEDED, 1)
    check_all_over(world.store)
    assert world.status().runs == ()


def test_a_lease_that_is_granted_and_taken_back_at_one_moment_starts_nothing(world: World) -> None:
    job = world.submit(40)
    world.run_for(3.0)
    (process,) = world.alive()
    world.drain([("v100", 0), ("k80", 0)], on=True)  # while it leaves the one, it is given the other, and leaves that
    entries = world.store.read(read_journal, kinds=["event", "command"])
    moment = [entry for entry in entries if entry.name == "WorkersLeft"]
    assert len({entry.body["time"] for entry in moment}) == 1
    answer = [entry.message for entry in entries if entry.cause == moment[-1].sequence]
    assert answer == [like(Revoke, lease=1), like(Grant, lease=2, jobs=(job,)), like(Revoke, lease=2)]
    assert [lease.revoked for lease in world.session.scheduler.leases] == [True, True]
    world.run_for(3.0)
    assert world.processes == [process]
    assert not len(world.session.scheduler.leases)
    assert world.job(job).reason_code == "WorkersDrained"
    world.drain([("v100", 0), ("k80", 0)], on=False)
    world.finish()
    assert (world.job(job).state, world.job(job).attempts) == (JobState.SUCCEEDED, 2)
    check_history(world.store)
    check_all_over(world.store)
    check_journal(world.store)


def test_a_round_takes_in_all_that_is_known_at_its_beginning_at_one_moment(world: World) -> None:
    world.submit(10_000, throughputs=None)
    world.submit(10_000)
    world.run_for(5.0)
    entries = world.store.read(read_journal, kinds=["event"])
    rounds = [entry.sequence for entry in entries if entry.name == "RoundBegan"]
    last = [entry for entry in entries if rounds[0] < entry.sequence <= rounds[1]]
    assert [entry.name for entry in last] == [
        "RateMeasured",
        "RateMeasured",
        "CheckpointKept",
        "CheckpointKept",
        "StepsCounted",
        "StepsCounted",
        "RoundBegan",
    ]
    assert len({entry.body["time"] for entry in last}) == 1
    check_journal(world.store)


def test_one_place_hands_events_to_the_engine() -> None:
    calls = [
        (path.name, node.lineno)
        for path in Path(scheduler.__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "handle"
    ]
    assert [name for name, _ in calls] == ["scheduler.py"], calls


def test_late_reports_about_runs_of_before_change_nothing(world: World) -> None:
    job = world.submit(20)
    world.run_for(4.0)
    said: list[RunReport] = [
        RunStarted(1, job, world.now, started=world.now - 3),
        RunProgressed(9, job, world.now, steps=19, steps_per_second=99.0),
        CheckpointSaved(9, job, world.now, checkpoint_step=19, seconds=1.0),
        RunEnded(9, job, world.now, RunOutcome(OutcomeKind.FAILED, code=1, reason="no")),
        RunEnded(1, "job-99", world.now, RunOutcome(OutcomeKind.FINISHED, code=0)),
    ]
    before = world.job(job)
    for report in said:
        reports.happened(world.session.scheduler, report)
    world.commit()
    after = world.job(job)
    assert (after.state, after.attempts, after.failures) == (before.state, 1, 0)
    assert after.checkpoint_steps_left is None
    world.finish()
    assert len(world.processes) == 1


def test_a_run_that_the_agent_has_forgotten_is_started_again_from_its_checkpoint(world: World) -> None:
    job = world.submit(60)
    world.run_for(5.0)
    for process in world.alive():
        process.kill()
    world.table.state.runs.clear()
    world.session.reconcile(world.status())
    world.commit()
    world.finish()
    first, second = world.store.read(job_history, job).attempts
    assert (first.outcome, second.outcome) == ("lost", "succeeded")


def test_a_run_that_should_not_be_is_asked_to_stop(world: World) -> None:
    stray = StartRun(77, "stray", JobProgram(("steps",), steps=9999), accelerator="v100", workers=(0,))
    world.table.carry_out(stray)
    world.run_for(0.5)
    world.session.reconcile(world.status())
    world.commit()
    job = world.submit(10)
    world.finish()
    assert world.job(job).state is JobState.SUCCEEDED
    assert [process.stop for process in world.processes] == ["save", None]
    assert world.status().runs == ()
    assert world.status().former == ()
