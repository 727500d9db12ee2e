"""Keepers are forked by a nursery, which can be killed or stopped at any moment."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fairway.live.backend.accelerators import emulated_accelerators
from fairway.live.backend.commands import JobProgram, StartRun
from fairway.live.backend.reports import RunEnded, RunReport
from fairway.live.local.agent import nurseries
from fairway.live.local.agent.keepers import KeeperProcesses, keeper_of
from fairway.live.local.agent.nurseries import Nursery
from fairway.live.local.agent.run_table import RunTable
from fairway.live.local.identity import identify, process_table
from fairway.live.local.run_files import RunFiles
from tests.live.training.machine import Machine, kill, until

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc, as on Linux")


def nursery_of(agent: int) -> int | None:
    """The nursery among the children of a process, which may have others, such as a database of other tests."""
    children = [row.pid for row in process_table() if row.parent == agent]
    return next(
        (pid for pid in children if b"fairway.live.local.keeper.nursery" in Path(f"/proc/{pid}/cmdline").read_bytes()),
        None,
    )


def test_a_killed_nursery_costs_no_run_and_is_replaced(tmp_path: Path) -> None:
    async def check() -> None:
        async with Machine(tmp_path) as machine:
            go = tmp_path / "go"
            await machine.start("first", 1, run=f"while [ ! -e {go} ]; do sleep 0.02; done; exit 4")
            await until(lambda: machine.files(1, "first").started())
            assert machine.agent is not None
            nursery = nursery_of(machine.agent.pid)
            assert nursery is not None
            keeper = keeper_of(machine.files(1, "first"))
            assert keeper is not None
            kill(nursery)
            await until(lambda: identify(nursery) is None)
            await machine.start("second", 2, run="exit 5", workers=[1])
            assert (await machine.ended("second")).code == 5
            assert keeper.alive
            go.touch()
            assert (await machine.ended("first")).code == 4

    asyncio.run(check())


def test_a_nursery_ends_with_its_agent(tmp_path: Path) -> None:
    async def check() -> None:
        async with Machine(tmp_path) as machine:
            await machine.start(run="true")
            await machine.ended()
            assert machine.agent is not None
            nursery = nursery_of(machine.agent.pid)
            assert nursery is not None
            machine.kill_agent()
            await until(lambda: identify(nursery) is None, "for the nursery to end")

    asyncio.run(check())


class Bench:
    """A table of runs in this process, without control groups, whose keepers come from a nursery."""

    def __init__(self, directory: Path) -> None:
        self.reports: list[RunReport] = []
        self.nursery = Nursery(directory, lambda: None)
        self.table = RunTable(
            directory,
            emulated_accelerators("v100=1"),
            emit=self.reports.append,
            keepers=KeeperProcesses(nursery=self.nursery),
        )

    def start(self, run: str) -> RunFiles:
        self.table.carry_out(StartRun(1, "job", JobProgram(run), "v100", (0,)))
        return self.table._preparation.files_of(self.table.state.runs[0])

    def ended(self) -> RunEnded | None:
        self.table.tick()
        return next((report for report in self.reports if isinstance(report, RunEnded)), None)


@asynccontextmanager
async def bench(directory: Path) -> AsyncIterator[Bench]:
    (directory / "agent.log").touch()
    made = Bench(directory)
    try:
        yield made
    finally:
        made.nursery.close()
        for run in made.table.state.runs:
            assert KeeperProcesses().clear_up(made.table._preparation.files_of(run))


def test_a_nursery_that_was_stopped_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nurseries, "_SILENT_SECONDS", 0.5)

    async def check() -> None:
        async with bench(tmp_path) as site:
            site.nursery._begin()
            stopped = nursery_of(os.getpid())
            assert stopped is not None
            os.kill(stopped, signal.SIGSTOP)
            site.start("exit 6")
            ended = await until(site.ended, "for the run to be started by another")
            assert ended.outcome.code == 6
            assert identify(stopped) is None

    asyncio.run(check())


def test_without_control_groups_what_a_killed_keeper_leaves_comes_to_the_nursery_and_is_killed(tmp_path: Path) -> None:
    async def check() -> None:
        async with bench(tmp_path) as site:
            files = site.start(f"(env -i setsid sleep 9999 & echo $! > {tmp_path}/pid); sleep 600")
            left = int(await until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text()))
            await until(lambda: keeper_of(files) is not None)
            keeper = keeper_of(files)
            assert keeper is not None
            kill(keeper.pid)
            await until(lambda: identify(left) is None, "for the detached process to end")
            assert (await until(site.ended)).outcome.kind == "failed"

    asyncio.run(check())
