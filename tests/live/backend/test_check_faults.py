"""Each fact that a check of the backends' kit looks at: a backend that gets this one wrong, and no other, is found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from fairway.live import durable_file
from fairway.live.backend import check
from fairway.live.backend.answers import CommandAnswer, Refusal, RefusedError
from fairway.live.backend.check_trial import BackendError, Trial
from fairway.live.backend.commands import (
    EndRun,
    ExtendLeases,
    ForgetRun,
    HandOverRun,
    JobProgram,
    RetireJob,
    RunCommand,
    StartRun,
)
from fairway.live.backend.logs import LogBlock
from fairway.live.backend.reports import BackendReport, RunEnded, RunProgressed, RunStarted, Superseded
from fairway.live.backend.status import BackendStatus, OutcomeKind, RunOutcome, RunState, RunStatus
from tests.live.backend.simulated import SimulatedBackend, SimulatedMachine

Reports = Callable[[BackendReport], list[BackendReport]]


class Faulty(SimulatedBackend):
    """A backend whose reports, status, answers or logs are changed on their way."""

    reports: Reports = staticmethod(lambda each: [each])
    stands: Callable[[BackendStatus], BackendStatus] = staticmethod(lambda status: status)
    answers: Callable[[RunCommand, CommandAnswer], CommandAnswer] = staticmethod(lambda _, answer: answer)
    refuses: Callable[[RunCommand, RefusedError], CommandAnswer | None] = staticmethod(lambda *_: None)
    logs: Callable[[str, int, int, LogBlock], LogBlock] = staticmethod(lambda *given: given[-1])
    checks: Callable[[JobProgram], None] | None = None

    async def run(self, epoch: int, report: Callable[[BackendReport], None]) -> None:
        def changed(each: BackendReport) -> None:
            for one in self.reports(each):
                report(one)

        await super().run(epoch, changed)

    async def status(self) -> BackendStatus:
        return self.stands(await super().status())

    async def give(self, command: RunCommand) -> CommandAnswer:
        try:
            return self.answers(command, await super().give(command))
        except RefusedError as error:
            answer = self.refuses(command, error)
            if answer is None:
                raise
            return answer

    def read_log(self, job: str, rank: int, position: int, most: int) -> LogBlock:
        return self.logs(job, rank, position, super().read_log(job, rank, position, most))

    def check(self, program: JobProgram) -> None:
        (self.checks or super().check)(program)


def ended(when: Callable[[RunOutcome], bool] = lambda _: True, **wrong: Any) -> dict[str, Any]:
    """Of ends that are such, something is reported wrongly."""

    def changed(each: BackendReport) -> list[BackendReport]:
        if isinstance(each, RunEnded) and when(each.outcome):
            return [replace(each, outcome=replace(each.outcome, **wrong))]
        return [each]

    return {"reports": staticmethod(changed)}


def reported(change: Reports) -> dict[str, Any]:
    return {"reports": staticmethod(change)}


def runs(change: Callable[[RunStatus], RunStatus | None]) -> dict[str, Any]:
    """The runs stand otherwise in the status, or not at all."""
    return {
        "stands": staticmethod(
            lambda status: replace(status, runs=tuple(one for run in status.runs if (one := change(run)) is not None))
        )
    }


def said(kind: type, result: str, wrong: str, at: int = 0) -> dict[str, Any]:
    """Of the commands of a kind that are answered so, one is answered otherwise."""
    seen: list[RunCommand] = []

    def answer(command: RunCommand, answer: CommandAnswer) -> CommandAnswer:
        if isinstance(command, kind) and answer.result == result:
            seen.append(command)
            if len(seen) == at + 1:
                return replace(answer, result=wrong)  # type: ignore[arg-type]
        return answer

    return {"answers": staticmethod(answer)}


def answered(change: Callable[[CommandAnswer], CommandAnswer], kind: type = StartRun) -> dict[str, Any]:
    def answer(command: RunCommand, answer: CommandAnswer) -> CommandAnswer:
        return change(answer) if isinstance(command, kind) else answer

    return {"answers": staticmethod(answer)}


def refused(kind: type, at: int = 0, code: Refusal | None = None) -> dict[str, Any]:
    """A command is accepted without effect that has to be refused, or refused for another reason."""
    seen: list[RunCommand] = []

    def answer(command: RunCommand, _: RefusedError) -> CommandAnswer | None:
        if isinstance(command, kind):
            seen.append(command)
            if len(seen) == at + 1:
                if code is not None:
                    raise RefusedError(code, "for another reason")
                return CommandAnswer("accepted")
        return None

    return {"refuses": staticmethod(answer)}


def logged(old: bytes, new: bytes) -> dict[str, Any]:
    def change(*given: Any) -> LogBlock:
        block: LogBlock = given[-1]
        return replace(block, content=block.content.replace(old, new))

    return {"logs": staticmethod(change)}


def _twice(each: BackendReport) -> list[BackendReport]:
    return [each, each] if isinstance(each, RunStarted) else [each]


def _without(kind: type) -> dict[str, Any]:
    return reported(lambda each: [] if isinstance(each, kind) else [each])


def _steps(change: Callable[[int], int]) -> dict[str, Any]:
    return reported(lambda each: [replace(each, steps=change(each.steps)) if isinstance(each, RunProgressed) else each])


def _only(kind: OutcomeKind) -> Callable[[RunOutcome], bool]:
    return lambda outcome: outcome.kind is kind


def _late_end(each: BackendReport) -> list[BackendReport]:
    """The end of what was stopped is said to be an hour later than it was."""
    if isinstance(each, RunEnded) and each.outcome.kind is OutcomeKind.STOPPED and each.outcome.ended is not None:
        return [replace(each, outcome=replace(each.outcome, ended=each.outcome.ended + 3600))]
    return [each]


def _written(rank: int, size: int = 0, content: bytes = b"") -> dict[str, Any]:
    """Something is in a log that nobody has written to."""
    return {
        "logs": staticmethod(
            lambda job, of, _, block: LogBlock(content, size) if of == rank or job == "check-none" else block
        )
    }


def _short(*given: Any) -> LogBlock:
    block: LogBlock = given[-1]
    return replace(block, size=max(0, len(block.content) - 1))


def _wrongly_refused(program: JobProgram) -> None:
    raise RuntimeError(f"{program.run} does not please")


_KILLED, _STOPPED = (lambda outcome: outcome.killed), _only(OutcomeKind.STOPPED)
FAULTS: list[tuple[str, dict[str, Any], str]] = [
    ("says_what_it_has", {"stands": lambda s: replace(s, accelerators=s.accelerators * 2)}, "come twice"),
    ("says_what_it_has", {"stands": lambda s: replace(s, epoch=s.epoch + 1)}, "its epoch is"),
    ("a_run_starts_and_ends_once", ended(kind=OutcomeKind.STOPPED), "a job that ends with exit code 0"),
    ("a_run_starts_and_ends_once", ended(code=0), "a job that ends with exit code 3"),
    ("a_run_starts_and_ends_once", ended(started=None), "it ran from None"),
    ("a_run_starts_and_ends_once", ended(ended=None), "it ran from .* to None"),
    ("a_run_starts_and_ends_once", ended(ended=1.0), "it ran from .* to 1.0"),
    ("a_run_starts_and_ends_once", ended(reason="other"), "stands as"),
    ("a_run_starts_and_ends_once", runs(lambda _: None), "stands as None"),
    ("a_run_starts_and_ends_once", runs(lambda run: replace(run, state=RunState.RUNNING)), "stands as"),
    ("a_run_starts_and_ends_once", runs(lambda run: replace(run, outcome=None)), "stands as"),
    ("a_run_starts_and_ends_once", reported(_twice), "2 reports RunStarted"),
    ("a_run_starts_and_ends_once", _without(RunStarted), "0 reports RunStarted"),
    ("a_job_finds_its_environment", logged(b"\nFAIRWAY_JOB_ID=", b"\nFAIRWAY_JOB_ID=not-"), "rank 0 finds"),
    ("a_job_finds_its_environment", logged(b"\nFAIRWAY_ATTEMPT=4", b"\nFAIRWAY_ATTEMPT=5"), "rank 0 finds"),
    ("a_job_finds_its_environment", logged(b"\nFAIRWAY_RANK=1", b"\nFAIRWAY_RANK=0"), "rank 1 finds"),
    ("a_job_finds_its_environment", logged(b"\nFAIRWAY_WORLD_SIZE=2", b"\nFAIRWAY_WORLD_SIZE=1"), "rank 0 finds"),
    ("a_job_finds_its_environment", logged(b"\nFAIRWAY_ACCELERATOR=", b"\nFAIRWAY_ACCELERATOR=x"), "rank 0 finds"),
    ("a_job_finds_its_environment", logged(b"as given", b"as taken"), "rank 0 finds"),
    ("a_job_finds_its_environment", logged(b"\nMASTER_ADDR=", b"\nADDR="), r"does not find \['MASTER_ADDR'\]"),
    ("what_cannot_start_is_reported", ended(kind=OutcomeKind.FAILED), "does not exist ended as"),
    ("what_cannot_start_is_reported", ended(reason=""), "does not exist ended as"),
    ("what_cannot_start_is_reported", ended(started=2.0), "does not exist ended as"),
    ("a_cooperative_job_saves_before_it_stops", ended(kind=OutcomeKind.FINISHED), "asked to save ended as"),
    ("a_cooperative_job_saves_before_it_stops", ended(steps=0, checkpoint_step=0), "asked to save ended as"),
    ("a_cooperative_job_saves_before_it_stops", ended(checkpoint_step=1), "asked to save ended as"),
    ("a_cooperative_job_saves_before_it_stops", ended(steps=10**6, checkpoint_step=10**6), "attempt begins at"),
    ("a_plain_job_has_its_grace", ended(kind=OutcomeKind.FAILED), "a job that saves in its grace ended"),
    ("a_plain_job_has_its_grace", ended(killed=True), "a job that saves in its grace ended"),
    ("a_plain_job_has_its_grace", logged(b"\nsaved", b""), "a job that saves in its grace ended"),
    ("a_plain_job_has_its_grace", ended(_KILLED, kind=OutcomeKind.FAILED), "a job that ignores its notice ended"),
    ("a_plain_job_has_its_grace", ended(_KILLED, killed=False), "a job that ignores its notice ended"),
    ("a_plain_job_has_its_grace", logged(b"noticed\nstill here", b"still here"), "a job that ignores its notice"),
    ("a_plain_job_has_its_grace", logged(b"still here\nstill here", b""), "was killed after"),
    ("a_job_that_is_not_preemptible_runs_on", refused(EndRun), "expected a refusal as 'not-preemptible'"),
    ("a_job_that_is_not_preemptible_runs_on", refused(EndRun, code=Refusal.BUSY), "was refused as 'busy'"),
    ("a_job_that_is_not_preemptible_runs_on", said(EndRun, "accepted", "known"), "expected 'accepted'"),
    ("a_job_that_is_not_preemptible_runs_on", _without(RunEnded), "waited 3 s for RunEnded"),
    ("a_job_that_is_not_preemptible_runs_on", _without(RunStarted), "waited 3 s for RunStarted"),
    ("a_cancelled_job_is_gone", ended(kind=OutcomeKind.FAILED), "asked to stop at once ended"),
    ("a_cancelled_job_is_gone", refused(ForgetRun), "expected a refusal as 'active'"),
    ("a_cancelled_job_is_gone", refused(RetireJob), "expected a refusal as 'active'"),
    ("a_cancelled_job_is_gone", {"stands": lambda s: replace(s, former=())}, "not among the former jobs"),
    ("a_cancelled_job_is_gone", {"stands": lambda s: replace(s, former=("check-1", "check-2"))}, "is retired, but"),
    ("a_cancelled_job_is_gone", said(ForgetRun, "accepted", "known"), "expected 'accepted'"),
    ("a_cancelled_job_is_gone", said(RetireJob, "accepted", "known"), "expected 'accepted'"),
    ("a_cancelled_job_is_gone", said(EndRun, "accepted", "known"), "expected 'accepted'"),
    ("logs_are_read_while_it_runs_and_after", {"logs": staticmethod(_short)}, "its size is"),
    ("logs_are_read_while_it_runs_and_after", _written(9, content=b"x"), "rank 9 of .* has written nothing"),
    ("logs_are_read_while_it_runs_and_after", _written(9, size=1), "rank 9 of .* has written nothing"),
    ("logs_are_read_while_it_runs_and_after", _written(8, size=1), "rank 0 of 'check-none' has written nothing"),
    ("logs_are_read_while_it_runs_and_after", logged(b"saved\n", b""), "its log ends with"),
    ("logs_are_read_while_it_runs_and_after", said(EndRun, "accepted", "known"), "expected 'accepted'"),
    ("logs_are_read_while_it_runs_and_after", said(ForgetRun, "accepted", "known"), "expected 'accepted'"),
    ("logs_are_read_while_it_runs_and_after", said(RetireJob, "accepted", "known"), "expected 'accepted'"),
    ("logs_are_read_while_it_runs_and_after", _without(RunEnded), "waited 3 s for RunEnded"),
    ("commands_may_come_twice", said(StartRun, "known", "accepted"), "expected 'known'"),
    ("commands_may_come_twice", said(StartRun, "known", "accepted", at=1), "expected 'known'"),
    ("commands_may_come_twice", said(StartRun, "stale", "accepted"), "expected 'stale'"),
    ("commands_may_come_twice", said(EndRun, "accepted", "stale", at=1), "expected 'accepted'"),
    ("commands_may_come_twice", said(EndRun, "known", "accepted"), "expected 'known'"),
    ("commands_may_come_twice", said(ForgetRun, "accepted", "known"), "expected 'accepted'"),
    ("commands_may_come_twice", said(ForgetRun, "known", "accepted"), "expected 'known'"),
    ("commands_may_come_twice", said(RetireJob, "accepted", "known"), "expected 'accepted'"),
    ("commands_may_come_twice", said(RetireJob, "accepted", "known", at=1), "expected 'accepted'"),
    ("commands_may_come_twice", logged(b"begins\n", b"begins\nbegins\n"), "has begun 2 times"),
    ("news_of_older_leases_changes_nothing", said(StartRun, "stale", "known"), "expected 'stale'"),
    ("news_of_older_leases_changes_nothing", said(EndRun, "stale", "known"), "expected 'stale'"),
    ("news_of_older_leases_changes_nothing", said(HandOverRun, "stale", "known"), "expected 'stale'"),
    ("news_of_older_leases_changes_nothing", runs(lambda _: None), "the run stands as None"),
    ("news_of_older_leases_changes_nothing", runs(lambda r: replace(r, state=RunState.ENDING)), "the run stands as"),
    ("news_of_older_leases_changes_nothing", logged(b"begins\n", b"begins\nbegins\n"), "has begun 2 times"),
    ("an_older_controller_gives_no_commands", _without(Superseded), "to hear of a newer one"),
    ("an_older_controller_gives_no_commands", runs(lambda _: None), "the run stands as None"),
    ("an_older_controller_gives_no_commands", runs(lambda r: replace(r, state=RunState.ENDING)), "the run stands as"),
    ("progress_and_rates_arrive", ended(steps=99), "ended as"),
    ("progress_and_rates_arrive", ended(checkpoint_step=99), "ended as"),
    ("progress_and_rates_arrive", ended(kind=OutcomeKind.STOPPED), "ended as"),
    ("progress_and_rates_arrive", _steps(lambda steps: 150 - steps), "reported"),
    ("progress_and_rates_arrive", _steps(lambda steps: min(steps, 99)), "reported"),
    ("no_accelerator_is_held_by_two_leases", refused(StartRun), "expected a refusal as 'busy'"),
    ("no_accelerator_is_held_by_two_leases", refused(StartRun, code=Refusal.ACTIVE), "was refused as 'active'"),
    ("no_accelerator_is_held_by_two_leases", answered(lambda a: replace(a, run=None)), "stands as None"),
    (
        "no_accelerator_is_held_by_two_leases",
        answered(lambda a: replace(a, run=a.run and replace(a.run, state=RunState.STARTING))),
        "the next run stands as",
    ),
    ("no_accelerator_is_held_by_two_leases", reported(_late_end), "but the second started"),
    ("no_accelerator_is_held_by_two_leases", ended(ended=None), "the first run ended at None"),
    ("no_accelerator_is_held_by_two_leases", ended(started=None), "the second started at None"),
    ("a_job_goes_on_under_a_new_lease", said(HandOverRun, "accepted", "known"), "expected 'accepted'"),
    ("a_job_goes_on_under_a_new_lease", said(HandOverRun, "known", "accepted"), "expected 'known'"),
    ("a_job_goes_on_under_a_new_lease", said(EndRun, "accepted", "known"), "expected 'accepted'"),
    ("a_job_goes_on_under_a_new_lease", said(EndRun, "stale", "accepted"), "expected 'stale'"),
    ("a_job_goes_on_under_a_new_lease", said(EndRun, "accepted", "known", at=1), "expected 'accepted'"),
    ("a_job_goes_on_under_a_new_lease", ended(checkpoint_step=0), "handed over and asked to save ended"),
    ("a_job_goes_on_under_a_new_lease", ended(kind=OutcomeKind.FAILED), "handed over and asked to save ended"),
    ("a_job_goes_on_under_a_new_lease", logged(b"begins\n", b"begins\nbegins\n"), "has begun 2 times"),
    ("a_lease_is_prolonged_and_expires", answered(lambda a: replace(a, run=None)), "does not say how the run stands"),
    ("a_lease_is_prolonged_and_expires", answered(lambda a: replace(a, leases=()), ExtendLeases), "was prolonged"),
    ("a_lease_is_prolonged_and_expires", runs(lambda run: replace(run, until=1.0)), "was prolonged"),
    ("a_lease_is_prolonged_and_expires", runs(lambda _: None), "was prolonged"),
    ("a_lease_is_prolonged_and_expires", ended(kind=OutcomeKind.FAILED), "whose lease expired ended"),
    ("a_lease_is_prolonged_and_expires", ended(checkpoint_step=0), "whose lease expired ended"),
    ("runs_are_adopted_after_a_restart", {"stands": lambda s: replace(s, instance="one")}, "before and after"),
    ("runs_are_adopted_after_a_restart", runs(lambda _: None), "after a restart the run stands as None"),
    ("runs_are_adopted_after_a_restart", runs(lambda r: replace(r, state=RunState.ENDING)), "after a restart the run"),
    ("runs_are_adopted_after_a_restart", said(StartRun, "known", "accepted"), "expected 'known'"),
    ("runs_are_adopted_after_a_restart", _steps(lambda steps: min(steps, 1)), "waited 3 s for RunProgressed"),
    ("runs_are_adopted_after_a_restart", ended(_STOPPED, kind=OutcomeKind.FAILED), "adopted and asked to save"),
    ("runs_are_adopted_after_a_restart", ended(checkpoint_step=0), "adopted and asked to save"),
    ("runs_are_adopted_after_a_restart", runs(lambda r: replace(r, outcome=None)), "ran on during a restart"),
    ("runs_are_adopted_after_a_restart", logged(b"begins\n", b"begins\nbegins\n"), "has begun 2 times"),
    ("what_cannot_be_placed_is_refused", refused(StartRun), "expected a refusal as 'cannot-place'"),
    ("what_cannot_be_placed_is_refused", refused(StartRun, 1), "expected a refusal as 'cannot-place'"),
    ("what_cannot_be_placed_is_refused", refused(StartRun, 2, Refusal.BUSY), "expected 'bad-input'"),
    (
        "what_cannot_be_placed_is_refused",
        {"stands": lambda s: replace(s, runs=(RunStatus(1, "a", "v100", (0,), RunState.ENDED),))},
        "runs that were refused are known",
    ),
    ("what_cannot_be_placed_is_refused", {"checks": staticmethod(_wrongly_refused)}, "does not please"),
    ("what_cannot_be_placed_is_refused", {"checks": staticmethod(lambda _: None)}, "is not refused"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _unsynced() -> Iterator[None]:
    with patch.object(durable_file, "_sync", lambda _: None):
        yield


async def _tried(trial: Trial, name: str) -> None:
    trial.controller = await trial.connect()
    try:
        await trial.begin()
        await getattr(check, name)(trial)
    finally:
        await trial.controller.leave()


@pytest.mark.parametrize(("name", "fault", "found"), FAULTS)
def test_a_fault_is_found(tmp_path: Path, name: str, fault: dict[str, Any], found: str) -> None:
    machine = SimulatedMachine(tmp_path, "v100=2,k80=1")
    plain = {what: staticmethod(how) if what == "stands" and callable(how) else how for what, how in fault.items()}
    kind: type[Faulty] = type("Faulty", (Faulty,), plain)
    patience = 3.0 if found.startswith(("waited", "to hear")) else 20.0
    with pytest.raises((BackendError, RuntimeError), match=f"(?s){found}"):
        asyncio.run(_tried(Trial(lambda: kind(machine), python="python", patience=patience), name))


def test_every_check_has_its_faults_and_passes_without_them(tmp_path: Path) -> None:
    assert {name for name, _, _ in FAULTS} == {one.__name__ for one in check.CHECKS}
    for number, one in enumerate(check.CHECKS):
        machine = SimulatedMachine(tmp_path / str(number), "v100=2,k80=1")
        asyncio.run(_tried(Trial(lambda: Faulty(machine), python="python", patience=20.0), one.__name__))  # noqa: B023
