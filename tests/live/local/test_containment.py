"""The end of a run is the end of all its processes, whatever they and others do."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairway.live.local.agent.keepers import keeper_of
from fairway.live.local.identity import identify
from fairway.live.machine.containment import CAVEAT, Containment, RunGroup, _nested
from tests.live.training.machine import Machine, kill, until

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc, as on Linux")

DETACHED = "(env -i setsid sleep 9999 & echo $! > {}) ; sleep 600"
"""A process that is in no session of the keeper, and that carries no mark."""


@pytest.fixture
def grouped(tmp_path: Path) -> Containment:
    found = Containment.found(tmp_path / "machine")
    if not found.parents:
        pytest.skip("no control group can be made here: this needs root, or a delegated group")
    return found


def groups_of(found: Containment) -> list[str]:
    return [path.name for parent in found.parents for path in parent.glob("*") if path.is_dir()]


def test_a_detached_process_ends_when_its_keeper_is_killed(tmp_path: Path, grouped: Containment) -> None:
    async def check() -> None:
        async with Machine(tmp_path) as machine:
            await machine.start(run=DETACHED.format(tmp_path / "pid"))
            left = int(await until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text()))
            keeper = keeper_of(machine.files())
            assert keeper is not None
            kill(keeper.pid)
            await machine.ended()
            assert identify(left) is None
            assert groups_of(grouped) == []

    asyncio.run(check())


def test_a_detached_process_ends_when_keeper_and_agent_are_killed_before_the_next_run_begins(
    tmp_path: Path, grouped: Containment
) -> None:
    async def check() -> None:
        async with Machine(tmp_path, "v100=1") as machine:
            await machine.start(run=DETACHED.format(tmp_path / "pid"))
            left = int(await until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text()))
            keeper = keeper_of(machine.files())
            assert keeper is not None
            machine.kill_agent()
            kill(keeper.pid)
            await machine.disconnect()
            assert identify(left) is not None, "it is detached"
            machine.start_agent()
            await machine.connect(epoch=2)
            await machine.start("next", 2, run=f"grep -q sleep /proc/{left}/cmdline && exit 1 || exit 0")
            assert (await machine.ended("next")).kind == "finished"
            assert identify(left) is None
            assert groups_of(grouped) == []

    asyncio.run(check())


def test_what_a_job_detaches_ends_with_it_also_in_groups_that_it_has_made_itself(
    tmp_path: Path, grouped: Containment
) -> None:
    own = grouped.group_of("1-job").paths[0]
    script = f"mkdir {own}/inner && echo $$ > {own}/inner/cgroup.procs; {DETACHED.format(tmp_path / 'pid')}"

    async def check() -> None:
        async with Machine(tmp_path) as machine:
            await machine.start(run=script, grace_seconds=0.2)
            left = int(await until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text()))
            await machine.end(1, "job", save=False)
            assert (await machine.ended()).kind == "stopped"
            assert identify(left) is None
            assert groups_of(grouped) == []

    asyncio.run(check())


def test_groups_of_runs_that_no_record_names_are_cleared_when_an_agent_starts(
    tmp_path: Path, grouped: Containment
) -> None:
    group = grouped.group_of("7-forgotten")
    group.make()
    with subprocess.Popen(["sleep", "600"], preexec_fn=group.enter) as left:  # noqa: PLW1509 - it only writes

        async def check() -> None:
            async with Machine(tmp_path):
                assert left.wait(30) == -9

        asyncio.run(check())
    assert groups_of(grouped) == []


def test_a_run_may_not_have_more_processes_than_leave_room_for_others(tmp_path: Path, grouped: Containment) -> None:
    group = grouped.group_of("1-job")
    group.make()
    bounds = [int((path / "pids.max").read_text()) for path in group.paths if (path / "pids.max").exists()]
    group.remove()
    if not bounds:
        pytest.skip("the controller 'pids' is not to be had here")
    assert 1024 <= bounds[0] <= int(Path("/proc/sys/kernel/pid_max").read_text()) // 4


def test_what_a_run_asks_for_is_all_that_it_can_have(tmp_path: Path, grouped: Containment) -> None:
    if grouped.enforced != {"cpu", "memory"}:
        pytest.skip("no control group can be bounded here: this needs root, or delegated controllers")
    eat = "x = []\nwhile True: x.append(bytearray(2**20))"

    async def check() -> None:
        async with Machine(tmp_path, "v100=2") as machine:
            await machine.start(run="sleep 600", cpus=0.5, memory_bytes=64 * 2**20)
            group = grouped.group_of("1-job")

            def bounds() -> set[str]:
                names = ("cpu.max", "cpu.cfs_quota_us", "memory.max", "memory.limit_in_bytes")
                paths = [path / name for path in group.paths for name in names]
                return {path.read_text().strip() for path in paths if path.exists()}

            await until(lambda: bounds() & {"50000 100000", "50000"} and str(64 * 2**20) in bounds())
            await machine.start("hog", 2, run=[sys.executable, "-c", eat], workers=[1], memory_bytes=64 * 2**20)
            ended = await machine.ended("hog", 2)
            assert ended.kind == "failed"
            assert "more memory than it asked for" in ended.reason
            await machine.end(1, "job", save=False)
            await machine.ended("job", 1)

    asyncio.run(check())
    assert not [path for parent in grouped.bounding for path in parent.glob("*") if path.is_dir()]


def test_what_cannot_be_enforced_is_said() -> None:
    (caveat,) = Containment((Path("/nowhere"),), enforced=frozenset({"cpu"})).caveats
    assert "what jobs ask for of memory is counted, but not enforced" in caveat
    (caveat,) = Containment((Path("/nowhere"),), enforced=frozenset()).caveats
    assert "CPUs and memory" in caveat


def test_where_no_group_can_be_made_that_is_said(tmp_path: Path) -> None:
    assert Containment().caveats == (CAVEAT,)
    group = Containment().group_of("1-job")
    group.make()
    group.enter()
    assert group.kill()
    group.remove()


def test_a_fork_bomb_ends_with_its_run(tmp_path: Path, grouped: Containment) -> None:
    bound = next((path / "pids.max" for path in grouped.group_of("1-job").paths if "pids" in str(path)), None)
    if bound is None or not os.access(bound.parent.parent, os.W_OK):
        pytest.skip("the controller 'pids' is not to be had here")
    bomb = f"echo 60 > {bound}; touch {tmp_path}/begun; bomb() {{ bomb | bomb & }}; trap '' TERM; bomb; sleep 600"

    async def check() -> None:
        async with Machine(tmp_path) as machine:
            await machine.start(run=bomb, grace_seconds=0.2)
            await until((tmp_path / "begun").exists)
            await machine.start("other", 2, run="echo here", workers=[1])
            assert (await machine.ended("other")).kind == "finished"
            await machine.end(1, "job", save=False)
            await machine.ended()
            assert groups_of(grouped) == []

    asyncio.run(check())


def test_groups_that_a_job_has_nested_a_thousand_deep_are_found_the_innermost_first(tmp_path: Path) -> None:
    """Plain directories stand for them, since not every system lets tests make groups."""
    innermost = str(tmp_path)
    for _ in range(1500):
        innermost += "/a"
        Path(innermost).mkdir()
    found = list(_nested(tmp_path))
    assert (found[0], found[-1], len(found)) == (Path(innermost), tmp_path, 1501)
    RunGroup((tmp_path,)).remove()
    assert not tmp_path.exists()
    tmp_path.mkdir()
