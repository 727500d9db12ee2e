"""The conformance kit of backends: ours pass it, and a backend that breaks a rule is found by the check of the rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from fairway import BackendError, check_backend
from fairway.live import durable_file
from fairway.live.backend.answers import CommandAnswer, Refusal, RefusedError
from fairway.live.backend.check import CHECKS
from fairway.live.backend.commands import EndRun, ExtendLeases, ForgetRun, HandOverRun, JobProgram, RunCommand, StartRun
from fairway.live.backend.logs import LogBlock
from fairway.live.backend.reports import BackendReport, RunEnded, RunProgressed
from fairway.live.backend.status import BackendStatus
from fairway.live.local.backend import LocalBackend
from tests.live.backend.simulated import SimulatedBackend, SimulatedMachine


@pytest.fixture(autouse=True)
def _unsynced() -> Iterator[None]:
    with patch.object(durable_file, "_sync", lambda _: None):
        yield


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc, as on Linux")
def test_the_local_backend_passes(tmp_path: Path) -> None:
    check_backend(lambda: LocalBackend(tmp_path / "agent", emulate="v100=2,k80=1"), patience=60.0)


def test_a_simulated_backend_passes(tmp_path: Path) -> None:
    machine = SimulatedMachine(tmp_path, "v100=2,k80=1")
    check_backend(lambda: SimulatedBackend(machine))


def test_a_backend_with_too_few_accelerators_is_refused(tmp_path: Path) -> None:
    machine = SimulatedMachine(tmp_path, "v100=1,k80=1")
    with pytest.raises(BackendError, match="the checks need two accelerators of one type"):
        check_backend(lambda: SimulatedBackend(machine))


class SaysAnotherEpoch(SimulatedBackend):
    """says_what_it_has"""

    async def status(self) -> BackendStatus:
        return replace(await super().status(), epoch=1)


class ReportsEndsTwice(SimulatedBackend):
    """a_run_starts_and_ends_once"""

    async def run(self, epoch: int, report: Callable[[BackendReport], None]) -> None:
        def twice(each: BackendReport) -> None:
            report(each)
            if isinstance(each, RunEnded):
                report(each)

        await super().run(epoch, twice)


class HidesExitCodes(SimulatedBackend):
    """a_run_starts_and_ends_once"""

    async def run(self, epoch: int, report: Callable[[BackendReport], None]) -> None:
        def without_code(each: BackendReport) -> None:
            report(replace(each, outcome=replace(each.outcome, code=None)) if isinstance(each, RunEnded) else each)

        await super().run(epoch, without_code)


class ForgetsTheEnvironment(SimulatedBackend):
    """a_job_finds_its_environment"""

    def read_log(self, job: str, rank: int, position: int, most: int) -> LogBlock:
        block = super().read_log(job, rank, position, most)
        return replace(block, content=block.content.replace(b"FAIRWAY_MASTER_PORT=", b"PORT="))


class SharesOneLogAmongRanks(SimulatedBackend):
    """a_job_finds_its_environment"""

    def read_log(self, job: str, rank: int, position: int, most: int) -> LogBlock:  # noqa: ARG002
        return super().read_log(job, 0, position, most)


class StartsAnything(SimulatedBackend):
    """what_cannot_start_is_reported"""

    async def give(self, command: RunCommand) -> CommandAnswer:
        if isinstance(command, StartRun) and command.program.run == ("/no/such/command",):
            command = replace(command, program=replace(command.program, run=("fail",)))
        return await super().give(command)


class NeverSaves(SimulatedBackend):
    """a_cooperative_job_saves_before_it_stops"""

    async def give(self, command: RunCommand) -> CommandAnswer:
        return await super().give(replace(command, save=False) if isinstance(command, EndRun) else command)


class KillsWithoutGrace(SimulatedBackend):
    """a_plain_job_has_its_grace"""

    async def give(self, command: RunCommand) -> CommandAnswer:
        if isinstance(command, StartRun):
            command = replace(command, program=replace(command.program, grace_seconds=0.1))
        return await super().give(command)


class PreemptsEverything(SimulatedBackend):
    """a_job_that_is_not_preemptible_runs_on"""

    async def give(self, command: RunCommand) -> CommandAnswer:
        if isinstance(command, StartRun):
            command = replace(command, program=replace(command.program, preemptible=True))
        return await super().give(command)


class NeverForgets(SimulatedBackend):
    """a_cancelled_job_is_gone"""

    async def give(self, command: RunCommand) -> CommandAnswer:
        if not isinstance(command, ForgetRun):
            return await super().give(command)
        run = self.machine.table.state.find(command.lease, command.job)
        if run is not None and run.active:
            return await super().give(command)
        return CommandAnswer("accepted")


class RefusesWhatItKnows(SimulatedBackend):
    """commands_may_come_twice"""

    async def give(self, command: RunCommand) -> CommandAnswer:
        answer = await super().give(command)
        if isinstance(command, StartRun) and answer.result == "known":
            raise RefusedError(Refusal.BUSY, "it runs already")
        return answer


class EndsTheNewestLease(SimulatedBackend):
    """news_of_older_leases_changes_nothing"""

    async def give(self, command: RunCommand) -> CommandAnswer:
        if isinstance(command, EndRun):
            command = replace(command, lease=self.machine.table.state.newest_lease(command.job))
        return await super().give(command)


class ListensToAnybody(SimulatedBackend):
    """an_older_controller_gives_no_commands"""

    def _require_connection(self) -> None:
        return


class LogsOnlyOfTheLiving(SimulatedBackend):
    """logs_are_read_while_it_runs_and_after"""

    def read_log(self, job: str, rank: int, position: int, most: int) -> LogBlock:
        known = any(run.job == job for run in self.machine.table.state.runs)
        return super().read_log(job, rank, position, most) if known else LogBlock(b"", 0)


class ReadsLogsFromTheStart(SimulatedBackend):
    """logs_are_read_while_it_runs_and_after"""

    def read_log(self, job: str, rank: int, position: int, most: int) -> LogBlock:  # noqa: ARG002
        return super().read_log(job, rank, 0, most)


class MeasuresNothing(SimulatedBackend):
    """progress_and_rates_arrive"""

    async def run(self, epoch: int, report: Callable[[BackendReport], None]) -> None:
        def unmeasured(each: BackendReport) -> None:
            report(replace(each, steps_per_second=None) if isinstance(each, RunProgressed) else each)

        await super().run(epoch, unmeasured)


class HoldsTwoLeases(SimulatedBackend):
    """no_accelerator_is_held_by_two_leases"""

    async def give(self, command: RunCommand) -> CommandAnswer:
        if isinstance(command, StartRun):
            free = [number for number in (0, 1) if not self._holders(command, number)]
            if self._holders(command, command.workers[0]) and free:
                command = replace(command, workers=(free[0],))
        return await super().give(command)

    def _holders(self, command: StartRun, number: int) -> Any:
        return self.machine.table.state.holders(command.lease, command.job, command.accelerator, (number,))


class StopsToHandOver(SimulatedBackend):
    """a_job_goes_on_under_a_new_lease"""

    async def give(self, command: RunCommand) -> CommandAnswer:
        if isinstance(command, HandOverRun):
            return await super().give(EndRun(command.old, command.job))
        return await super().give(command)


class ProlongsNothing(SimulatedBackend):
    """a_lease_is_prolonged_and_expires"""

    async def give(self, command: RunCommand) -> CommandAnswer:
        if isinstance(command, ExtendLeases):
            return CommandAnswer("accepted", leases=command.leases or ())
        return await super().give(command)


class LosesRunsWhenItEnds(SimulatedBackend):
    """runs_are_adopted_after_a_restart"""

    async def shut_down(self) -> None:
        self.machine.table.state.runs.clear()
        self.machine.table.new_epoch(self.machine.table.state.epoch + 1)
        for process in self.machine.alive():
            process.kill()
        await super().shut_down()


class PlacesAnywhere(SimulatedBackend):
    """what_cannot_be_placed_is_refused"""

    async def give(self, command: RunCommand) -> CommandAnswer:
        if isinstance(command, StartRun):
            command = replace(command, workers=tuple(min(number, 1) for number in command.workers))
        return await super().give(command)


class RefusesNoProgram(SimulatedBackend):
    """what_cannot_be_placed_is_refused"""

    def check(self, program: JobProgram) -> None:  # noqa: ARG002
        return


BROKEN = SimulatedBackend.__subclasses__()
"""Each breaks the rule that its description names."""


def test_every_check_can_fail() -> None:
    assert {kind.__doc__ for kind in BROKEN} == {check.__name__ for check in CHECKS}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_rule_is_found(tmp_path: Path, broken: type[SimulatedBackend]) -> None:
    machine = SimulatedMachine(tmp_path, "v100=2,k80=1")
    with pytest.raises(BackendError) as failed:
        check_backend(lambda: broken(machine), patience=2.0)
    assert f"'{broken.__name__}' fails check '{broken.__doc__}'" in str(failed.value)
