"""What a job does to its own files, processes and keeper costs that job, and no other."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from pathlib import Path

import pytest

from fairway.live.backend.accelerators import emulated_accelerators
from fairway.live.backend.commands import EndRun, JobProgram, StartRun
from fairway.live.backend.reports import RunEnded, RunReport
from fairway.live.local.agent.keepers import KeeperProcesses, keeper_of
from fairway.live.local.agent.run_table import RunTable
from fairway.live.local.identity import ProcessIdentity, identify, kill_remains
from fairway.live.local.log_files import log_path, read_log
from tests.live.training.machine import Machine, until

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc, as on Linux")

PROGRESS = "$FAIRWAY_RUN_DIR/progress-0.json"
WAYS = {
    "a FIFO": f"mkfifo {PROGRESS}",
    "a directory": f"mkdir {PROGRESS}",
    "a symbolic link": f"ln -s /dev/zero {PROGRESS}",
    "larger than": f"head -c 200000 /dev/zero | tr '\\0' '[' > {PROGRESS}.new; mv {PROGRESS}.new {PROGRESS}",
    "brackets": f"head -c 60000 /dev/zero | tr '\\0' '[' > {PROGRESS}",
}


@pytest.mark.parametrize("kind", WAYS)
def test_a_job_whose_progress_cannot_be_read_fails_with_the_reason_and_others_run(kind: str, tmp_path: Path) -> None:
    async def check() -> None:
        async with Machine(tmp_path) as machine:
            await machine.start("hostile", 1, run=f"{WAYS[kind]}; sleep 600", grace_seconds=0.5)
            await machine.start("other", 2, run="echo here", workers=[1])
            assert (await machine.ended("other")).kind == "finished"
            outcome = await machine.ended("hostile")
            assert outcome.kind == "failed"
            assert "progress-0.json" in outcome.reason
            assert kind in outcome.reason
            await machine.start("next", 3, run="echo here")
            assert (await machine.ended("next")).kind == "finished"
            await machine.forget(1, "hostile")
            assert not machine.files(1, "hostile").channel.directory.exists()

    asyncio.run(check())


def test_an_agent_that_comes_back_is_not_held_up_by_what_a_job_left(tmp_path: Path) -> None:
    async def check() -> None:
        async with Machine(tmp_path) as machine:
            await machine.start("hostile", 1, run=f"mkfifo {PROGRESS}; sleep 600", grace_seconds=0.5)
            await machine.ended("hostile")
            machine.kill_agent()
            await machine.disconnect()
            machine.start_agent()
            status = await machine.connect(epoch=2)
            assert [run.outcome.kind for run in status.runs if run.outcome] == ["failed"]

    asyncio.run(check())


def test_counts_and_rates_out_of_range_are_passed_over(tmp_path: Path) -> None:
    fields = '"rank": 0, "since": 0, "step": 5, "steps_per_second"'
    script = f"""
        for text in '{{{fields}: 1e-308}}' '{{{fields}: 1e308}}' '{{"rank": 0, "step": -1, "since": 0}}' \\
                    '{{"rank": 0, "step": 1e300, "since": 0}}'; do
            echo "$text" > {PROGRESS}.new && mv {PROGRESS}.new {PROGRESS}; sleep 0.4
        done"""

    async def check() -> None:
        async with Machine(tmp_path) as machine:
            await machine.start(run=script)
            assert (await machine.ended()).kind == "finished"
            told = [(report.steps, report.steps_per_second) for report in machine.reports if hasattr(report, "steps")]
            assert told == [(5, None)]

    asyncio.run(check())


def _linked(path: Path) -> None:
    path.with_name("elsewhere").write_text("of another")
    path.symlink_to(path.with_name("elsewhere"))


REPLACED = {"a FIFO": os.mkfifo, "a directory": Path.mkdir, "a symbolic link": _linked}


@pytest.mark.parametrize("kind", REPLACED)
def test_a_log_that_was_replaced_is_neither_written_nor_read_and_costs_its_job_alone(kind: str, tmp_path: Path) -> None:
    async def check() -> None:
        async with Machine(tmp_path) as machine:
            await machine.start(run="echo first; exit 3")
            assert (await machine.ended()).kind == "failed"
            path = log_path(machine.directory, "job", 0)
            path.unlink()
            REPLACED[kind](path)
            await machine.start(lease=2, run="echo second")
            outcome = await machine.ended(lease=2)
            assert outcome.kind == "failed-to-start"
            assert f"rank-0.log is {kind}" in outcome.reason
            block = read_log(path, 0, 1000)
            assert f"rank-0.log is {kind}" in block.content.decode()
            assert len(block.content) == block.size
            assert read_log(path, block.size, 1000).content == b""
            if path.is_symlink():
                assert path.read_text() == "of another"
            await machine.start("next", 3, run="echo here")
            assert (await machine.ended("next")).kind == "finished"

    asyncio.run(check())


def test_a_job_that_prints_without_end_keeps_the_last_part_of_its_log_and_no_more(tmp_path: Path) -> None:
    most = 2_000_000

    async def check() -> None:
        async with Machine(tmp_path) as machine:
            await machine.start(run="yes | head -c 12000000; sleep 1; echo over", log_bytes=most)
            assert (await machine.ended()).kind == "finished"
            path = log_path(machine.directory, "job", 0)
            assert path.stat().st_blocks * 512 <= most
            size = read_log(path, 0, 0).size
            assert size > 12_000_000, "the positions in it are those of all that was printed"
            assert read_log(path, size - 5, 100).content == b"over\n"
            assert b"bytes before this were dropped" in read_log(path, 0, 100).content

    asyncio.run(check())


def test_a_command_that_is_too_long_to_be_started_is_not_repeated_in_the_reason(tmp_path: Path) -> None:
    async def check() -> None:
        async with Machine(tmp_path) as machine:
            await machine.start(run="true " + "x" * 300_000)
            outcome = await machine.ended()
            assert outcome.kind == "failed-to-start"
            assert "Argument list too long" in outcome.reason
            assert len(outcome.reason) < 400

    asyncio.run(check())


@pytest.mark.parametrize(
    "deed",
    [
        "chmod 000 $FAIRWAY_RUN_DIR",
        "rm -rf $FAIRWAY_RUN_DIR",
        "rm -rf $FAIRWAY_RUN_DIR; ln -s $FAIRWAY_RUN_DIR $FAIRWAY_RUN_DIR",
        "cd $FAIRWAY_RUN_DIR; mkdir -p a/b; touch a/b/c; chmod 000 a/b a",
        "rm -f $FAIRWAY_RUN_DIR/lease.json; mkdir $FAIRWAY_RUN_DIR/lease.json",
        "exec 0<&- 1>&- 2>&-",
    ],
)
def test_a_job_that_ruins_its_channel_can_still_be_ended_and_forgotten(deed: str, tmp_path: Path) -> None:
    async def check() -> None:
        async with Machine(tmp_path) as machine:
            await machine.start(run=f"{deed}; touch {tmp_path}/done; sleep 600 & wait", grace_seconds=1.0)
            await until((tmp_path / "done").exists)
            await machine.end(1, "job")
            assert (await machine.ended()).kind in {"stopped", "failed"}
            await machine.forget(1, "job")
            left = [machine.directory / part for part in ("runs", "channels")]
            await until(lambda: not [name for each in left for name in each.iterdir()], "for its files to be removed")

    asyncio.run(check())


def test_a_keeper_that_its_job_has_stopped_goes_on(tmp_path: Path) -> None:
    async def check() -> None:
        async with Machine(tmp_path) as machine:
            await machine.start(run="kill -STOP $PPID; exit 3")
            outcome = await machine.ended()
            assert (outcome.kind, outcome.code) == ("failed", 3)

    asyncio.run(check())


class LaterClock:
    """The clock of the machine, some seconds ahead."""

    ahead = 0.0

    def time(self) -> float:
        return time.time() + self.ahead

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead


def test_a_keeper_that_is_kept_from_ending_its_run_is_killed_with_it_in_time(tmp_path: Path) -> None:
    reports: list[RunReport] = []
    clock = LaterClock()
    table = RunTable(tmp_path, emulated_accelerators("v100=1"), emit=reports.append, clock=clock)
    again = "while true; do kill -STOP $PPID; sleep 0.01; done"
    pids = f"trap '' TERM; echo $$ > {tmp_path}/pid"
    program = JobProgram(f"{pids}; {again}", checkpoint_seconds=0.0, grace_seconds=1.0)
    table.carry_out(StartRun(1, "job", program, "v100", (0,)))
    files = table._preparation.files_of(table.state.runs[0])

    async def ended() -> None:
        def looked() -> bool:
            table.tick()
            return any(isinstance(report, RunEnded) for report in reports) and not table._gone

        try:
            await until((tmp_path / "pid").exists)
            table.carry_out(EndRun(1, "job", save=False))
            table.tick()
            clock.ahead = 60.0
            await until(looked, "for the run to end")
        finally:
            assert KeeperProcesses().clear_up(files)

    asyncio.run(ended())
    keeper = keeper_of(files)
    assert keeper is not None
    assert not keeper.alive
    assert identify(int((tmp_path / "pid").read_text())) is None


def test_a_job_is_ended_though_there_is_no_room_to_write_the_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a disk that the job has filled."""
    reports: list[RunReport] = []
    table = RunTable(tmp_path, emulated_accelerators("v100=1"), emit=reports.append)
    table.carry_out(StartRun(1, "job", JobProgram(f"touch {tmp_path}/runs-now; sleep 600"), "v100", (0,)))
    files = table._preparation.files_of(table.state.runs[0])

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    async def ended() -> None:
        def looked() -> bool:
            table.tick()
            return any(isinstance(report, RunEnded) for report in reports) and not table._gone

        try:
            await until((tmp_path / "runs-now").exists)
            with monkeypatch.context() as patched:
                patched.setattr("fairway.live.local.run_files.write_json", full)
                patched.setattr("fairway.live.local.agent.state.write_json", full)
                table.carry_out(EndRun(1, "job", save=False))
            await until(looked, "for the run to end")
        finally:
            assert KeeperProcesses().clear_up(files)

    asyncio.run(ended())
    assert [report.outcome.kind for report in reports if isinstance(report, RunEnded)] == ["stopped"]


def test_a_job_whose_run_directory_was_removed_by_another_is_ended_when_asked_to(tmp_path: Path) -> None:
    reports: list[RunReport] = []
    table = RunTable(tmp_path, emulated_accelerators("v100=1"), emit=reports.append)
    table.carry_out(StartRun(1, "job", JobProgram(f"touch {tmp_path}/runs-now; sleep 600"), "v100", (0,)))
    files = table._preparation.files_of(table.state.runs[0])
    keepers: list[ProcessIdentity | None] = []

    async def ended() -> None:
        def looked() -> bool:
            table.tick()
            return any(isinstance(report, RunEnded) for report in reports) and not table._gone

        try:
            await until((tmp_path / "runs-now").exists)
            keepers.append(keeper_of(files))
            shutil.rmtree(files.directory)
            table.carry_out(EndRun(1, "job", save=True))
            await until(looked, "for the run to end")
        finally:
            for keeper in filter(None, keepers):
                kill_remains(keeper, files.mark)

    asyncio.run(ended())


def test_a_job_that_writes_down_its_own_end_frees_no_worker(tmp_path: Path) -> None:
    """It runs as the user of the agent, and so can write what its keeper would."""
    forged = json.dumps({"codes": [0]})
    script = f"echo '{forged}' > $FAIRWAY_RUN_DIR/../../runs/1-job/exit.json; touch {tmp_path}/done; sleep 600 & wait"

    async def check() -> None:
        async with Machine(tmp_path, "v100=1") as machine:
            await machine.start(run=script, grace_seconds=0.5)
            await until((tmp_path / "done").exists)
            await until(lambda: machine.files().started())
            await asyncio.sleep(0.6)  # the agent looks twice
            assert (await machine.run("job", 1)).state == "running"
            await machine.end(1, "job", save=False)
            assert (await machine.ended()).kind == "stopped"

    asyncio.run(check())
