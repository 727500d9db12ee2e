"""Jobs in containers: what they find there, and that they end as other jobs do, whatever is killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import fairway
from fairway.live.local.agent.keepers import keeper_of
from fairway.live.local.identity import process_table
from tests.live.local.podman import IMAGE, podman_of_tests
from tests.live.training.machine import Machine, until


@pytest.fixture(scope="module")
def podman() -> Iterator[Path]:
    with podman_of_tests() as directory:
        yield directory


@pytest.fixture(autouse=True)
def path(podman: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{podman}:{os.environ['PATH']}")


def arguments_with(word: str) -> list[list[str]]:
    """The command lines of living processes that have a word in them."""
    found = []
    for row in process_table():
        try:
            words = Path(f"/proc/{row.pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if any(word in one for one in words):
            found.append(words)
    return found


def test_a_job_finds_its_variables_and_directories_and_nothing_else_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_SERVER", "not for jobs")
    workdir, data = tmp_path / "work, dir", tmp_path / "data"
    workdir.mkdir()
    data.mkdir()
    (data / "x").write_text("the data\n")
    run = (
        'env > variables; id -u; cat "$DATA/x"; test -d "$FAIRWAY_RUN_DIR" && touch "$FAIRWAY_CHECKPOINT_DIR/saved"; '
        'test ! -e /etc/os-release && test ! -e "$PRIVATE" && echo alone; sleep 1'
    )

    envs = {"DATA": str(data), "KEY": "a secret,\nof two lines", "PATH": "/bin:/x", "PRIVATE": __file__}

    async def check() -> None:
        async with Machine(tmp_path, "v100=2") as machine:
            await machine.start(
                run=run, workdir=str(workdir), image=IMAGE, mounts=(str(data),), workers=[0, 1], envs=envs,
            )  # fmt: skip
            await until(lambda: arguments_with(IMAGE))
            assert not arguments_with("a secret")
            ended = await machine.ended()
            assert ended.kind == "finished", machine.log()
            assert machine.log().splitlines()[1:] == ["0", "the data", "alone"]
            assert machine.log(rank=1).splitlines()[1:] == ["0", "the data", "alone"]
            assert (machine.directory / "checkpoints" / "job" / "saved").exists()
            variables = (workdir / "variables").read_text()
            assert "SECRET_OF_THE_SERVER" not in variables
            assert "KEY=a secret,\nof two lines\n" in variables
            for given in ("PATH=/bin:/x", "FAIRWAY_JOB_ID=job", "WORLD_SIZE=2", "FAIRWAY_EMULATED=1"):
                assert f"{given}\n" in variables

    asyncio.run(check())


def test_the_exit_code_is_that_of_the_command_and_an_unknown_command_is_said_in_the_log(tmp_path: Path) -> None:
    async def check() -> None:
        async with Machine(tmp_path) as machine:
            await machine.start("one", 1, run="echo to be; exit 7", image=IMAGE)
            ended = await machine.ended("one")
            assert (ended.kind, ended.code) == ("failed", 7)
            assert machine.log("one").splitlines()[1:] == ["to be"]
            await machine.start("two", 2, workers=[1], run=["no-such-command", "x"], image=IMAGE)
            assert (await machine.ended("two")).kind == "failed"
            assert "No such file" in machine.log("two")

    asyncio.run(check())


def test_a_plain_command_ends_on_sigterm_and_one_that_ignores_it_is_killed_with_all_it_started(tmp_path: Path) -> None:
    stubborn = "trap '' TERM; setsid sleep 77771 & while true; do sleep 77771; done"

    async def check() -> None:
        async with Machine(tmp_path) as machine:
            await machine.start("plain", 1, run="sleep 77770", image=IMAGE, grace_seconds=60.0)
            await machine.start("stubborn", 2, workers=[1], run=stubborn, image=IMAGE, grace_seconds=0.5)
            await until(lambda: len(arguments_with("77770")) >= 2)  # podman's, and that of the command
            await until(lambda: sum(words[0] == "sleep" for words in arguments_with("77771")) == 2)
            await machine.end(1, "plain")
            await machine.end(2, "stubborn")
            ended = [await machine.ended(name) for name in ("plain", "stubborn")]
            assert [(one.kind, one.reason) for one in ended] == [
                ("stopped", "terminated"),
                ("stopped", "killed after its grace"),
            ]
            assert not arguments_with("7777")

    asyncio.run(check())


def test_a_killed_keeper_leaves_nothing_of_its_containers(tmp_path: Path) -> None:
    run = "trap '' TERM; echo begun; while true; do sleep 77772; done"

    async def check() -> None:
        async with Machine(tmp_path) as machine:
            await machine.start(run=run, image=IMAGE)
            await until(lambda: "begun" in machine.log())
            keeper = keeper_of(machine.files())
            assert keeper is not None
            os.kill(keeper.pid, signal.SIGKILL)
            assert (await machine.ended()).reason == "its keeper was killed, and the job with it"
            await until(lambda: not arguments_with("77772"))
            await until(lambda: not names(), "for podman to forget it")

    asyncio.run(check())


def test_keeper_and_agent_killed_at_once_end_the_job_in_its_container(tmp_path: Path) -> None:
    async def check() -> None:
        async with Machine(tmp_path) as machine:
            await machine.start(run="echo begun; sleep 77773", image=IMAGE)
            await until(lambda: "begun" in machine.log())
            keeper = keeper_of(machine.files())
            assert keeper is not None
            assert machine.agent is not None
            await asyncio.sleep(3.0)  # podman passes signals on from a moment after the command has begun
            os.kill(machine.agent.pid, signal.SIGKILL)
            os.kill(keeper.pid, signal.SIGKILL)
            await until(lambda: not arguments_with("77773"))
        await until(lambda: not names(), "for podman to forget it after it was cleared up")

    asyncio.run(check())


def test_a_job_that_works_with_leases_saves_its_checkpoint_in_a_container(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(
        "import fairway, time\n"
        "run = fairway.leased(range(100000), checkpoint=lambda step: {'step': step})\n"
        "for batch in run:\n    print('step', flush=True)\n    time.sleep(0.02)\n"
    )
    source = Path(fairway.__file__).parents[1]
    mounts = {sys.prefix, sys.base_prefix, str(source), "/usr", "/lib", "/lib64"}

    async def check() -> None:
        async with Machine(tmp_path) as machine:
            await machine.start(
                run=[sys.executable, "train.py"], workdir=str(tmp_path), image=IMAGE,
                mounts=tuple(sorted(one for one in mounts if Path(one).is_dir())),
            )  # fmt: skip
            await until(lambda: machine.log().count("step") > 5)
            await machine.end(1, "job")
            ended = await machine.ended()
            assert ended.reason == "saved a checkpoint and stopped", machine.log()
            assert ended.checkpoint_step

    asyncio.run(check())


def names() -> list[str]:
    """The containers that podman knows of."""
    said = subprocess.run(["podman", "ps", "--all", "--format=json"], capture_output=True, text=True, check=True).stdout
    return [name for one in json.loads(said) for name in one["Names"]]
