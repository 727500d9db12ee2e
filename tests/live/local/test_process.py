"""Jobs are real processes: environment, logs, exit codes, gangs, and every way of stopping them."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from fairway.live.backend.answers import RefusedError
from fairway.live.backend.reports import CheckpointSaved, RunProgressed
from fairway.live.local.agent.keepers import keeper_of
from fairway.live.local.identity import ProcessIdentity, identify, process_row, send_signal
from tests.live.training.jobs import COUNTING, DATA_PARALLEL, GANG, RENDEZVOUS, STUBBORN
from tests.live.training.machine import Machine, kill, python, until

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc, as on Linux")


def test_a_plain_command_runs_to_its_end_with_its_environment_and_log(tmp_path: Path) -> None:
    async def check() -> None:
        async with Machine(tmp_path) as machine:
            script = 'echo "hello $WHO"; pwd; env | grep -E "^(FAIRWAY|CUDA|RANK|WORLD)" | sort'
            await machine.start(run=script, envs={"WHO": "world"}, workdir=str(tmp_path), steps=7, attempt=2)
            exited = await machine.ended()
            assert (exited.kind, exited.code) == ("finished", 0)
            lines = machine.log().splitlines()
            assert lines[0].startswith("=== fairway: attempt 2 of job, lease 1, v100 0 (emulated), ")
            assert lines[1:3] == ["hello world", str(tmp_path)]
            variables = dict(line.split("=", 1) for line in lines[3:])
            port = variables.pop("FAIRWAY_MASTER_PORT")
            assert 1024 <= int(port) < 65536
            assert variables == {
                "CUDA_VISIBLE_DEVICES": "",
                "FAIRWAY_ACCELERATOR": "v100",
                "FAIRWAY_ATTEMPT": "2",
                "FAIRWAY_CHECKPOINT_DIR": str(machine.directory / "checkpoints" / "job"),
                "FAIRWAY_EMULATED": "1",
                "FAIRWAY_JOB_ID": "job",
                "FAIRWAY_MASTER_ADDR": "127.0.0.1",
                "FAIRWAY_RANK": "0",
                "FAIRWAY_RUN_DIR": str(machine.directory / "channels" / "1-job"),
                "FAIRWAY_STEPS": "7",
                "FAIRWAY_WORLD_SIZE": "1",
                "FAIRWAY_NODE_RANK": "0",
                "FAIRWAY_NUM_NODES": "1",
                "RANK": "0",
                "WORLD_SIZE": "1",
            }

    asyncio.run(check())


def test_exit_codes_signals_and_failures_to_start_are_told_apart(tmp_path: Path) -> None:
    async def check() -> None:
        async with Machine(tmp_path, "v100=6") as machine:
            await machine.start("code", 1, run="exit 3", workers=[0])
            await machine.start("signal", 2, run="kill -SEGV $$", workers=[1])
            await machine.start("missing", 3, run=["/no/such/command"], workers=[2])
            await machine.start("nowhere", 4, run="true", workdir="/no/such/directory", workers=[3])
            await machine.start("unset", 5, run="true", setup="echo preparing; exit 9", workers=[4])
            await machine.start(
                "set-up", 6, run="cat ready", setup="echo yes > ready", workdir=str(tmp_path), workers=[5]
            )
            outcome = await machine.ended("code")
            assert (outcome.kind, outcome.code) == ("failed", 3)
            assert outcome.reason == "rank 0 ended with exit code 3"
            outcome = await machine.ended("signal")
            assert (outcome.kind, outcome.code) == ("failed", -signal.SIGSEGV)
            assert outcome.reason == "rank 0 was killed by SIGSEGV"
            outcome = await machine.ended("missing")
            assert outcome.kind == "failed-to-start"
            assert outcome.reason == "command '/no/such/command': No such file or directory"
            outcome = await machine.ended("nowhere")
            assert outcome.kind == "failed-to-start"
            assert outcome.reason == "workdir /no/such/directory: no such directory"
            outcome = await machine.ended("unset")
            assert outcome.kind == "failed-to-start"
            assert outcome.reason == "setup ended with exit code 9; its output is in the log"
            assert (await machine.ended("set-up")).kind == "finished"
            assert machine.log("set-up").splitlines()[-1] == "yes"
            with pytest.raises(RefusedError, match="checkpoint directory /proc/none"):
                await machine.start("unwritable", 7, run="true", checkpoint_directory="/proc/none")
            with pytest.raises(RefusedError, match="no worker 'v100' 6"):
                await machine.start("elsewhere", 8, run="true", workers=[6])

    asyncio.run(check())


def test_the_log_is_continued_by_the_next_attempt(tmp_path: Path) -> None:
    async def check() -> None:
        async with Machine(tmp_path) as machine:
            for attempt in (1, 2):
                await machine.start(lease=attempt, attempt=attempt, run="echo $FAIRWAY_ATTEMPT; exit 3")
                await machine.ended(lease=attempt)
            assert [line[:28] for line in machine.log().splitlines()] == [
                "=== fairway: attempt 1 of jo",
                "1",
                "=== fairway: attempt 2 of jo",
                "2",
            ]

    asyncio.run(check())


def test_the_ranks_of_a_gang_meet_and_a_failure_of_one_ends_all(tmp_path: Path) -> None:
    async def check() -> None:
        async with Machine(tmp_path, "v100=2,k80=3") as machine:
            await machine.start("meeting", 1, run=python(RENDEZVOUS), workers=[0, 1])
            alone = "if [ $RANK = 1 ]; then exit 4; fi; sleep 60"
            await machine.start("broken", 2, run=alone, accelerator="k80", workers=[0, 1, 2])
            assert (await machine.ended("meeting")).kind == "finished"
            assert machine.log("meeting", 0).splitlines()[-1] == "met rank 1"
            assert machine.log("meeting", 1).splitlines()[-1] == "met rank 0"
            outcome = await machine.ended("broken")
            assert (outcome.kind, outcome.code) == ("failed", 4)
            assert outcome.reason == "rank 1 ended with exit code 4"

    asyncio.run(check())


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_a_data_parallel_job_of_torch_is_preempted_and_goes_on(tmp_path: Path) -> None:
    async def check() -> None:
        async with Machine(tmp_path) as machine:
            await machine.start(run=python(DATA_PARALLEL), workers=[0, 1])
            await until(lambda: (told := machine.files().progress(range(2))) and min(one.step for one in told) > 5)
            await machine.end(1, "job")
            assert (await machine.ended()).reason == "saved a checkpoint and stopped", machine.log()
            await machine.start(lease=2, run=python(DATA_PARALLEL), workers=[0, 1])
            assert (await machine.ended(lease=2)).kind == "finished", machine.log()
            weights = [machine.log("job", rank).splitlines()[-1] for rank in (0, 1)]
            assert weights[0] == weights[1]
            assert weights[0].startswith("weights [")

    asyncio.run(check())


def test_a_cooperative_job_is_preempted_and_goes_on_without_losing_or_repeating_a_step(tmp_path: Path) -> None:
    trace = tmp_path / "trace"

    async def check() -> None:
        async with Machine(tmp_path) as machine:
            command = python(COUNTING, 200, 0.005, trace)
            for lease in (1, 2):
                await machine.start(lease=lease, run=command)
                seen = len(trace.read_text().splitlines()) if trace.exists() else 0
                await until(lambda seen=seen: trace.exists() and len(trace.read_text().splitlines()) > seen + 20)
                await machine.end(lease, "job")
                outcome = await machine.ended(lease=lease)
                assert (outcome.kind, outcome.reason) == ("stopped", "saved a checkpoint and stopped")
                assert outcome.steps == outcome.checkpoint_step == len(trace.read_text().splitlines())
                assert (await machine.report(CheckpointSaved, lease=lease)).checkpoint_step == outcome.steps
            await machine.start(lease=3, run=command)
            outcome = await machine.ended(lease=3)
            assert (outcome.kind, outcome.steps) == ("finished", 200)
            assert [int(line) for line in trace.read_text().splitlines()] == list(range(200))
            assert machine.log().splitlines()[-1] == f"the sum is {sum(range(200))}"
            assert ((await machine.report(RunProgressed, lease=3)).steps_per_second or 0) > 0

    asyncio.run(check())


def test_all_ranks_of_a_gang_stop_after_the_same_step(tmp_path: Path) -> None:
    trace = tmp_path / "trace"

    async def check() -> None:
        async with Machine(tmp_path) as machine:
            command = python(GANG, 150, trace)
            await machine.start(run=command, workers=[0, 1])
            await until(lambda: all((tmp_path / f"trace{rank}").exists() for rank in (0, 1)))
            await until(lambda: len((tmp_path / "trace0").read_text().splitlines()) > 10)
            await machine.end(1, "job")
            outcome = await machine.ended()
            assert outcome.kind == "stopped"
            steps = [len((tmp_path / f"trace{rank}").read_text().splitlines()) for rank in (0, 1)]
            assert 2 * steps[0] == 2 * steps[1] == outcome.checkpoint_step
            await machine.start(lease=2, run=command, workers=[0, 1])
            assert (await machine.ended(lease=2)).kind == "finished"
            for rank in (0, 1):
                lines = (tmp_path / f"trace{rank}").read_text().splitlines()
                assert [int(line) for line in lines] == list(range(150))

    asyncio.run(check())


def test_a_job_that_fails_to_save_has_failed_and_one_that_writes_nonsense_harms_nobody(tmp_path: Path) -> None:
    script = """
import fairway, itertools, os, pathlib, time
def broken(step):
    raise OSError("disk full")
for batch in fairway.leased(itertools.count(), checkpoint=broken):
    time.sleep(0.005)
"""
    nonsense = """
import os, pathlib, time
path = pathlib.Path(os.environ["FAIRWAY_RUN_DIR"], "progress-0.json")
for text in ('{"rank": 0, "step": "x", "since": []}', '{"rank": 0, "step": 1e999, "since": 0}', "{", "[]"):
    path.write_text(text)
    time.sleep(0.3)
"""

    async def check() -> None:
        async with Machine(tmp_path) as machine:
            await machine.start("broken", 1, run=python(script))
            await machine.start("nonsense", 2, run=python(nonsense), workers=[1])
            await machine.report(RunProgressed, "broken")
            await machine.end(1, "broken")
            outcome = await machine.ended("broken")
            assert (outcome.kind, outcome.code, outcome.checkpoint_step) == ("failed", 1, None)
            assert (await machine.ended("nonsense")).kind == "finished"

    asyncio.run(check())


def test_a_stubborn_job_is_killed_within_its_grace_with_all_that_it_started(tmp_path: Path) -> None:
    async def check() -> None:
        async with Machine(tmp_path) as machine:
            pids = tmp_path / "pids"
            script = f"(trap '' TERM; sleep 600) & echo $! >> {pids}; setsid sleep 600 & echo $! >> {pids}"
            await machine.start(run=f"{script}; exec {sys.executable} -c '{STUBBORN}'", grace_seconds=0.5)
            await until(lambda: "ready" in machine.log())
            asked = time.monotonic()
            await machine.end(1, "job")
            outcome = await machine.ended()
            assert (outcome.kind, outcome.killed) == ("stopped", True)
            assert outcome.reason == "killed after its grace"
            assert 0.5 <= time.monotonic() - asked < 10
            assert all(identify(int(pid)) is None for pid in pids.read_text().split())

    asyncio.run(check())


def test_a_plain_job_gets_sigterm_and_may_save_in_its_grace(tmp_path: Path) -> None:
    async def check() -> None:
        async with Machine(tmp_path) as machine:
            script = (
                "trap 'echo saving; sleep 0.2; echo saved; exit 0' TERM; echo ready; while true; do sleep 0.05; done"
            )
            await machine.start(run=script)
            await until(lambda: "ready" in machine.log())
            await machine.end(1, "job")
            outcome = await machine.ended()
            assert (outcome.kind, outcome.reason, outcome.killed) == ("stopped", "terminated", False)
            assert machine.log().splitlines()[-2:] == ["saving", "saved"]

    asyncio.run(check())


def test_a_job_that_is_not_preemptible_is_not_preempted_but_can_be_cancelled(tmp_path: Path) -> None:
    async def check() -> None:
        async with Machine(tmp_path) as machine:
            await machine.start(run="echo ready; sleep 600", preemptible=False)
            await until(lambda: machine.files().started())
            with pytest.raises(RefusedError, match="not preemptible") as refused:
                await machine.end(1, "job")
            assert refused.value.code == "not-preemptible"
            assert (await machine.run("job", 1)).state in {"starting", "running"}
            await machine.end(1, "job", save=False)
            assert (await machine.ended()).kind == "stopped"

    asyncio.run(check())


def test_what_a_job_leaves_behind_is_cleared_up_and_no_zombie_stays(tmp_path: Path) -> None:
    async def check() -> None:
        async with Machine(tmp_path) as machine:
            await machine.start(run=f"setsid sleep 600 & echo $! > {tmp_path}/left; (sleep 0 &) ; sleep 600 & exit 0")
            assert (await machine.ended()).kind == "finished"
            assert identify(int((tmp_path / "left").read_text())) is None
            keeper = keeper_of(machine.files())
            assert keeper is not None
            await until(lambda: process_row(keeper.pid) is None, "for the keeper to be reaped")

    asyncio.run(check())


def test_a_killed_keeper_takes_the_job_with_it_and_the_run_has_failed(tmp_path: Path) -> None:
    async def check() -> None:
        async with Machine(tmp_path) as machine:
            pids = tmp_path / "pids"
            await machine.start(run=f"sleep 600 & echo $! $$ >> {pids}; wait")
            await until(lambda: pids.exists() and pids.read_text())
            keeper = keeper_of(machine.files())
            assert keeper is not None
            kill(keeper.pid)
            outcome = await machine.ended()
            assert (outcome.kind, outcome.reason) == ("failed", "its keeper was killed, and the job with it")
            assert all(identify(int(pid)) is None for pid in pids.read_text().split())

    asyncio.run(check())


def test_a_keeper_that_is_terminated_with_the_machine_lets_the_job_save(tmp_path: Path) -> None:
    trace = tmp_path / "trace"

    async def check() -> None:
        async with Machine(tmp_path) as machine:
            await machine.start(run=python(COUNTING, 100_000, 0.005, trace))
            await until(lambda: trace.exists() and trace.read_text())
            keeper = keeper_of(machine.files())
            assert keeper is not None
            assert send_signal(keeper, signal.SIGTERM)
            outcome = await machine.ended()
            assert (outcome.kind, outcome.reason) == ("stopped", "saved a checkpoint and stopped")

    asyncio.run(check())


def test_a_number_that_was_given_to_another_process_is_never_signalled() -> None:
    me = identify(os.getpid())
    assert me is not None
    assert me.alive
    former = ProcessIdentity(me.pid, me.start - 1, me.boot)
    assert not former.alive
    assert not send_signal(former, signal.SIGKILL)
    assert not send_signal(ProcessIdentity(me.pid, me.start, "another boot"), signal.SIGKILL)


def test_files_of_a_run_are_for_the_owner_only(tmp_path: Path) -> None:
    async def check() -> None:
        async with Machine(tmp_path) as machine:
            await machine.start(run="true", envs={"SECRET": "s3cret"})
            await machine.ended()
            order = machine.files().directory / "order.json"
            assert json.loads(order.read_text())["environment"]["SECRET"] == "s3cret"
            assert order.stat().st_mode & 0o777 == 0o600
            assert order.parent.stat().st_mode & 0o777 == 0o700
            assert (machine.directory / "agent.sock").stat().st_mode & 0o777 == 0o600

    asyncio.run(check())
