"""The conformance kit of backends: what must hold for any of them, ours or a third party's.

`check_backend` starts small jobs (`check_job`) on a backend and runs every check of `CHECKS`: runs start and end once,
jobs get their notice and their grace, commands may come twice and late, logs and progress arrive, no accelerator is
held by two leases, and all of it survives a restart. A failure names the check and the facts.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from fairway.errors import FairwayError, InputError
from fairway.live.backend.answers import BackendGoneError, Refusal, SupersededError
from fairway.live.backend.check_job import BEGINS, ENDS, NOTICED, SAVED, STILL_HERE, CheckJob
from fairway.live.backend.check_trial import BackendError, Trial
from fairway.live.backend.commands import (
    EndRun,
    ExtendLeases,
    ForgetRun,
    HandOverRun,
    JobProgram,
    RetireJob,
    RunCommand,
)
from fairway.live.backend.environment import PROMISED
from fairway.live.backend.protocol import Backend
from fairway.live.backend.reports import RunEnded, RunProgressed, RunStarted
from fairway.live.backend.status import OutcomeKind, RunState

__all__ = ["CHECKS", "BackendError", "check_backend"]

_ENDLESS = CheckJob(seconds=1e6)
_STEPS = CheckJob(cooperative=True)
_GRACE_SECONDS, _FEWEST_LINES = 1.0, 5
_FAR_SECONDS = 1e6


def check_backend(make_backend: Callable[[], Backend], *, python: str = sys.executable, patience: float = 30.0) -> None:
    """Raise `BackendError` unless the backend passes every check.

    `make_backend` makes a backend object; each call makes another one for the same machines, as a controller that
    starts again would. They must have two accelerators of one type, real or emulated, and be used for nothing else.
    `python` is an interpreter there that has Fairway; `patience` is how many seconds the kit waits for anything.
    """
    asyncio.run(_check_all(Trial(make_backend, python=python, patience=patience)))


async def _check_all(trial: Trial) -> None:
    trial.controller = await trial.connect()
    try:
        await trial.begin()
        for check in CHECKS:
            trial.check = check.__name__
            await check(trial)
            await trial.clear()
    except BackendError:
        raise
    except Exception as error:
        raise trial.failure(f"raises {type(error).__name__}: {error}") from error
    finally:
        with suppress(FairwayError):  # where a check has failed, this is only to leave nothing behind
            await trial.clear()
        await trial.backend.shut_down()
        await trial.controller.leave()


async def says_what_it_has(trial: Trial) -> None:
    """The status names every accelerator once, and the controller that gives the commands."""
    status = await trial.backend.status()
    names = [(one.type, one.number) for one in status.accelerators]
    if len(set(names)) < len(names):
        trial.fail(f"accelerators come twice: {names}")
    if status.epoch != trial.controller.epoch:
        trial.fail(f"its epoch is {status.epoch}, but the controller's is {trial.controller.epoch}")


async def a_run_starts_and_ends_once(trial: Trial) -> None:
    """That a run started, and how it ended, is reported once; it stands in the status until it is forgotten."""
    for code, kind in ((0, OutcomeKind.FINISHED), (3, OutcomeKind.FAILED)):
        run = await trial.start(CheckJob(code=code))
        outcome = (await trial.ended(run)).outcome
        if (outcome.kind, outcome.code) != (kind, code):
            trial.fail(f"a job that ends with exit code {code} ended as {outcome}")
        if outcome.started is None or outcome.ended is None or outcome.started > outcome.ended:
            trial.fail(f"it ran from {outcome.started} to {outcome.ended}")
        stands = await trial.run(run)
        if stands is None or (stands.state, stands.outcome) != (RunState.ENDED, outcome):
            trial.fail(f"a run that ended as {outcome} stands as {stands}")
        await trial.ended(await trial.start())  # time enough for more reports about the run before
        for report in (RunStarted, RunEnded):
            if (count := len(trial.controller.of(report, run))) != 1:
                trial.fail(f"{count} reports {report.__name__} of one run")


async def a_job_finds_its_environment(trial: Trial) -> None:
    """Every rank of a gang has the promised variables, its own number and the size of the gang."""
    run = await trial.start(ranks=2, attempt=4, envs={"MASTER_PLAN": "as given"})
    await trial.ended(run)
    for rank in (0, 1):
        found = dict(line.split("=", 1) for line in await trial.log(run, rank) if "=" in line)
        expected = {
            "FAIRWAY_JOB_ID": run.job,
            "FAIRWAY_ATTEMPT": "4",
            "FAIRWAY_RANK": str(rank),
            "FAIRWAY_WORLD_SIZE": "2",
            "FAIRWAY_ACCELERATOR": run.accelerator,
            "MASTER_PLAN": "as given",
        }
        wrong = {name: found.get(name) for name, value in expected.items() if found.get(name) != value}
        missing = [name for name in PROMISED if name not in found]
        if wrong or missing:
            trial.fail(f"rank {rank} finds {wrong}, expected {expected}; it does not find {missing}")


async def what_cannot_start_is_reported(trial: Trial) -> None:
    """A command that does not exist is a run that failed to start, with a reason."""
    run = await trial.start(run=("/no/such/command",))
    outcome = (await trial.ended(run)).outcome
    if outcome.kind is not OutcomeKind.FAILED_TO_START or not outcome.reason or outcome.started is not None:
        trial.fail(f"a command that does not exist ended as {outcome}")


async def a_cooperative_job_saves_before_it_stops(trial: Trial) -> None:
    """Asked to stop, a cooperative job saves its last step, and the next attempt goes on from there."""
    run = await trial.start(_STEPS)
    await trial.report(RunProgressed, run, lambda report: report.steps > 5)
    await trial.give(EndRun(run.lease, run.job))
    outcome = (await trial.ended(run)).outcome
    if outcome.kind is not OutcomeKind.STOPPED or not outcome.steps or outcome.checkpoint_step != outcome.steps:
        trial.fail(f"a cooperative job that was asked to save ended as {outcome}")
    again = await trial.start(_STEPS, job=run.job, attempt=2)
    first = await trial.report(RunProgressed, again)
    if first.steps < outcome.steps:
        trial.fail(f"it saved step {outcome.steps}, but the next attempt begins at {first.steps}")


async def a_plain_job_has_its_grace(trial: Trial) -> None:
    """A job that saves after SIGTERM is waited for; one that ignores it is killed, but not before its grace is over."""
    saves = await trial.start(CheckJob(seconds=1e6, at_notice="save"))
    ignores = await trial.start(CheckJob(seconds=1e6, at_notice="ignore"), first=1, grace_seconds=_GRACE_SECONDS)
    for run in (saves, ignores):
        await trial.logged(run, BEGINS)
        await trial.give(EndRun(run.lease, run.job))
    outcome, lines = (await trial.ended(saves)).outcome, await trial.log(saves)
    if outcome.kind is not OutcomeKind.STOPPED or outcome.killed or lines[-3:] != [NOTICED, SAVED, ENDS]:
        trial.fail(f"a job that saves in its grace ended as {outcome}, its log as {lines[-3:]}")
    outcome, lines = (await trial.ended(ignores)).outcome, await trial.log(ignores)
    if outcome.kind is not OutcomeKind.STOPPED or not outcome.killed or NOTICED not in lines:
        trial.fail(f"a job that ignores its notice ended as {outcome}, its log as {lines[-3:]}")
    if lines.count(STILL_HERE) < _FEWEST_LINES:
        trial.fail(f"a job with {_GRACE_SECONDS:g} s of grace was killed after {lines.count(STILL_HERE) / 10:g} s")


async def a_job_that_is_not_preemptible_runs_on(trial: Trial) -> None:
    """It is not stopped for the sake of others, but can be cancelled."""
    run = await trial.start(_ENDLESS, preemptible=False)
    await trial.started(run)
    await trial.refused(EndRun(run.lease, run.job, save=True), Refusal.NOT_PREEMPTIBLE)
    await trial.give(EndRun(run.lease, run.job, save=False))
    await trial.ended(run)


async def a_cancelled_job_is_gone(trial: Trial) -> None:
    """Ended at once, forgotten and retired, nothing is left of a job but its log."""
    for job in (_ENDLESS, _STEPS):
        run = await trial.start(job)
        await trial.logged(run, BEGINS)
        await trial.refused(ForgetRun(run.lease, run.job), Refusal.ACTIVE)
        await trial.refused(RetireJob(run.job), Refusal.ACTIVE)
        await trial.give(EndRun(run.lease, run.job, save=False))
        outcome = (await trial.ended(run)).outcome
        if outcome.kind is not OutcomeKind.STOPPED:
            trial.fail(f"a job that was asked to stop at once ended as {outcome}")
        await trial.give(ForgetRun(run.lease, run.job))
        status = await trial.backend.status()
        if run.job not in status.former:
            trial.fail(f"'{run.job}' is forgotten but not retired, and not among the former jobs {status.former}")
        await trial.give(RetireJob(run.job))
        status = await trial.backend.status()
        if run.job in status.former or any(each.job == run.job for each in status.runs):
            trial.fail(f"'{run.job}' is retired, but the backend knows {status.runs} and former jobs {status.former}")


async def commands_may_come_twice(trial: Trial) -> None:
    """A command that comes again does nothing again."""
    run = await trial.start(_ENDLESS)
    await trial.give(run, "known")
    await trial.logged(run, BEGINS)
    await trial.give(EndRun(run.lease, run.job, save=False))
    again = await trial.backend.give(EndRun(run.lease, run.job, save=False))
    if again.result not in {"accepted", "known"}:  # known, if it has ended by then
        trial.fail(f"a second command to end a run was answered by '{again.result}', expected 'accepted' or 'known'")
    await trial.ended(run)
    await trial.give(EndRun(run.lease, run.job, save=False), "known")
    await trial.give(run, "known")
    await trial.give(ForgetRun(run.lease, run.job))
    await trial.give(ForgetRun(run.lease, run.job), "known")
    await trial.give(run, "stale")
    for _ in range(2):
        await trial.give(RetireJob(run.job))
    await trial.began_once(run)


async def news_of_older_leases_changes_nothing(trial: Trial) -> None:
    """Commands about a lease of before are answered as stale, and the run goes on."""
    old = trial.lease()
    run = await trial.start(_ENDLESS)
    await trial.started(run)  # a job may write its first line before its backend has seen that it runs
    await trial.logged(run, BEGINS)
    late = trial.command(_ENDLESS, lease=old, job=run.job, first=1)
    stale: tuple[RunCommand, ...] = (late, EndRun(old, run.job, save=False), HandOverRun(run.job, old, trial.lease()))
    for command in stale:
        await trial.give(command, "stale")
    stands = await trial.run(run)
    if stands is None or stands.state is not RunState.RUNNING:
        trial.fail(f"after late commands the run stands as {stands}")
    await trial.began_once(run)


async def an_older_controller_gives_no_commands(trial: Trial) -> None:
    """A newer controller takes over: the older one hears of it, is refused from then on, and cannot come back."""
    run = await trial.start(_ENDLESS)
    await trial.started(run)
    older = trial.controller
    trial.controller = await trial.connect()
    await trial.connected(trial.controller)
    late = await trial.connect(older.epoch)
    try:
        for controller in (older, late):
            await trial.superseded(controller)
            try:
                answer = await controller.backend.give(EndRun(run.lease, run.job, save=False))
            except (SupersededError, BackendGoneError):
                continue
            trial.fail(f"a command of an older controller was answered by {answer}")
    finally:
        await older.leave()
        await late.leave()
    stands = await trial.run(run)
    if stands is None or stands.state is not RunState.RUNNING:
        trial.fail(f"after commands of an older controller the run stands as {stands}")


async def logs_are_read_while_it_runs_and_after(trial: Trial) -> None:
    """A log is read from any byte on while the job runs, after its end, and when the job is retired."""
    run = await trial.start(CheckJob(seconds=1e6, at_notice="save"))
    await trial.logged(run, BEGINS)
    read = trial.backend.read_log
    whole = await asyncio.to_thread(read, run.job, 0, 0, 2**20)
    part = await asyncio.to_thread(read, run.job, 0, 7, 5)
    if part.content != whole.content[7:12] or whole.size < len(whole.content):
        trial.fail(f"bytes 7 to 12 of {whole.content[:20]!r}… are {part.content!r}; its size is {whole.size}")
    for job, rank in ((run.job, 9), ("check-none", 0)):
        nothing = await asyncio.to_thread(read, job, rank, 0, 2**20)
        if nothing.content or nothing.size:
            trial.fail(f"rank {rank} of '{job}' has written nothing, but its log is {nothing}")
    await trial.give(EndRun(run.lease, run.job))
    await trial.ended(run)
    await trial.give(ForgetRun(run.lease, run.job))
    await trial.give(RetireJob(run.job))
    lines = await trial.log(run)
    if lines[-3:] != [NOTICED, SAVED, ENDS]:
        trial.fail(f"after the end of the job its log ends with {lines[-3:]}")


async def progress_and_rates_arrive(trial: Trial) -> None:
    """Steps are reported as they are done, with the rate that was measured, up to the last one."""
    run = await trial.start(_STEPS, steps=100, ranks=2)
    await trial.report(RunProgressed, run, lambda report: (report.steps_per_second or 0.0) > 0)
    outcome = (await trial.ended(run)).outcome
    if (outcome.kind, outcome.steps, outcome.checkpoint_step) != (OutcomeKind.FINISHED, 100, 100):
        trial.fail(f"a gang of two that does 100 steps together ended as {outcome}")
    told = [report.steps for report in trial.controller.of(RunProgressed, run)]
    if told != sorted(told) or told[-1] != 100:
        trial.fail(f"a gang that does 100 steps reported {told}")


async def no_accelerator_is_held_by_two_leases(trial: Trial) -> None:
    """A lease is refused while another holds its accelerator, and waits while that one is ending."""
    first = await trial.start(CheckJob(seconds=1e6, at_notice="save"))
    await trial.logged(first, BEGINS)
    second = trial.command()
    await trial.refused(second, Refusal.BUSY)
    await trial.give(EndRun(first.lease, first.job))
    answer = await trial.give(second)
    if answer.run is None or answer.run.state is not RunState.WAITING:
        trial.fail(f"the accelerator is not free yet, but the next run stands as {answer.run}")
    before, after = (await trial.ended(first)).outcome, (await trial.ended(second)).outcome
    if before.ended is None or after.started is None or after.started < before.ended:
        trial.fail(f"the first run ended at {before.ended}, but the second started at {after.started}")


async def a_job_goes_on_under_a_new_lease(trial: Trial) -> None:
    """Of two jobs that share a lease, the one that stays is handed over to another without a stop."""
    stays = await trial.start(_STEPS)
    leaves = await trial.start(_ENDLESS, lease=stays.lease)
    for run in (stays, leaves):
        await trial.logged(run, BEGINS)
    handed = HandOverRun(stays.job, stays.lease, trial.lease())
    await trial.give(handed)
    await trial.give(handed, "known")
    await trial.give(EndRun(leaves.lease, leaves.job, save=False))
    await trial.ended(leaves)
    await trial.give(EndRun(stays.lease, stays.job), "stale")
    await trial.give(EndRun(handed.lease, handed.job))
    outcome = (await trial.ended(handed)).outcome
    if outcome.kind is not OutcomeKind.STOPPED or not outcome.checkpoint_step:
        trial.fail(f"a job that was handed over and asked to save ended as {outcome}")
    await trial.began_once(stays)


async def a_lease_is_prolonged_and_expires(trial: Trial) -> None:
    """A lease that expires ends by itself at its end, which can be put off; the job saves before."""
    command = trial.command(_STEPS, expires=True)
    accepted = (await trial.give(command)).run
    if accepted is None:
        trial.fail("the answer to a start does not say how the run stands")
    for until in (accepted.accepted + _FAR_SECONDS, accepted.accepted):
        await trial.report(RunProgressed, command, lambda report: report.steps > 0)
        answer = await trial.give(ExtendLeases(until, (command.lease,)))
        stands = await trial.run(command)
        if answer.leases != (command.lease,) or stands is None or stands.until != until:
            trial.fail(f"lease {command.lease} was prolonged until {until}: {answer.leases}, it stands as {stands}")
    outcome = (await trial.ended(command)).outcome
    if outcome.kind is not OutcomeKind.STOPPED or not outcome.checkpoint_step:
        trial.fail(f"a cooperative job whose lease expired ended as {outcome}")


async def runs_are_adopted_after_a_restart(trial: Trial) -> None:
    """What runs the jobs ends and comes back: the jobs have run on, and are stopped and reported as before."""
    run = await trial.start(_STEPS)
    plain = await trial.start(CheckJob(seconds=0.5), first=1)
    await trial.report(RunProgressed, run, lambda report: report.steps > 0)
    before = await trial.backend.status()
    await trial.restart()
    after = await trial.backend.status()
    if before.instance == after.instance:
        trial.fail(f"the instance that answers is '{after.instance}' before and after a restart")
    stands = await trial.run(run)
    if stands is None or stands.state is not RunState.RUNNING:
        trial.fail(f"after a restart the run stands as {stands}")
    await trial.give(run, "known")
    reached = stands.steps or 0
    await trial.report(RunProgressed, run, lambda report: report.steps > reached)
    await trial.give(EndRun(run.lease, run.job))
    outcome = (await trial.ended(run)).outcome
    if outcome.kind is not OutcomeKind.STOPPED or not outcome.checkpoint_step:
        trial.fail(f"a job that was adopted and asked to save ended as {outcome}")
    await trial.logged(plain, ENDS)
    while (stands := await trial.run(plain)) is not None and stands.state is not RunState.ENDED:
        await trial.ended(plain)
    if stands is None or stands.outcome is None or stands.outcome.kind is not OutcomeKind.FINISHED:
        trial.fail(f"a job that ran on during a restart stands as {stands}")
    for each in (run, plain):
        await trial.began_once(each)


async def what_cannot_be_placed_is_refused(trial: Trial) -> None:
    """A gang on accelerators that are not there is refused, and so is a program that no machine can run."""
    missing = max(trial.numbers) + 1
    await trial.refused(trial.command(workers=(trial.numbers[0], missing)), Refusal.CANNOT_PLACE)
    await trial.refused(trial.command(accelerator="no-such-type"), Refusal.CANNOT_PLACE)
    await trial.refused(trial.command(workers=trial.numbers[:1] * 2), Refusal.BAD_INPUT)
    if runs := (await trial.backend.status()).runs:
        trial.fail(f"runs that were refused are known: {runs}")
    await asyncio.to_thread(trial.backend.check, trial.command().program)
    try:
        await asyncio.to_thread(trial.backend.check, JobProgram("true", workdir="/no/such/directory"))
    except InputError:
        return
    trial.fail("a program in a directory that does not exist is not refused")


CHECKS: tuple[Callable[[Trial], Coroutine[Any, Any, None]], ...] = (
    says_what_it_has,
    a_run_starts_and_ends_once,
    a_job_finds_its_environment,
    what_cannot_start_is_reported,
    a_cooperative_job_saves_before_it_stops,
    a_plain_job_has_its_grace,
    a_job_that_is_not_preemptible_runs_on,
    a_cancelled_job_is_gone,
    logs_are_read_while_it_runs_and_after,
    commands_may_come_twice,
    news_of_older_leases_changes_nothing,
    an_older_controller_gives_no_commands,
    progress_and_rates_arrive,
    no_accelerator_is_held_by_two_leases,
    a_job_goes_on_under_a_new_lease,
    a_lease_is_prolonged_and_expires,
    runs_are_adopted_after_a_restart,
    what_cannot_be_placed_is_refused,
)
"""Every check, in the order in which they run."""
