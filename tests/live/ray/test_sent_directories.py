"""Where the work directory of a run is sent, and what can be asked of nodes that do not have it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fairway.errors import InputError
from fairway.live.backend.answers import BackendGoneError, Refusal, RefusedError
from fairway.live.backend.commands import JobProgram, StartRun
from fairway.live.ray.bridge_client import BridgeGoneError
from fairway.live.ray.sent_directories import WorkPackages, can_be_sent, without_files


class Bridge:
    """Answers what it is asked; a node sees the directory or not."""

    def __init__(self, *, sees: bool = False, error: Exception | None = None) -> None:
        self.sees, self.error = sees, error
        self.asked: list[tuple[str, dict[str, Any]]] = []

    async def ask(self, question: str, **fields: Any) -> Any:
        self.asked.append((question, fields))
        if self.error is not None:
            raise self.error
        return self.sees if question == "sees" else "/there"


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    (directory / "train.py").write_text("")
    return directory


def start(workdir: Path) -> StartRun:
    return StartRun(1, "job", JobProgram("true", workdir=str(workdir)), "v100", (0,))


def sent(packages: Path, part: StartRun, bridge: Bridge) -> StartRun:
    return asyncio.run(WorkPackages(packages).sent(part, "n1", bridge.ask))


def test_a_node_that_sees_the_directory_is_sent_nothing(tmp_path: Path, workdir: Path) -> None:
    bridge, part = Bridge(sees=True), start(workdir)
    assert sent(tmp_path / "p", part, bridge) is part
    assert bridge.asked == [("sees", {"node": "n1", "path": str(workdir)})]


def test_a_run_is_in_the_directory_that_was_sent(tmp_path: Path, workdir: Path) -> None:
    bridge, part = Bridge(), start(workdir)
    there = sent(tmp_path / "p", part, bridge)
    assert (there.program.workdir, there.lease, there.program.run) == ("/there", 1, "true")
    question, fields = bridge.asked[1]
    assert (question, fields["node"], fields["job"]) == ("deliver", "n1", "job")
    assert Path(fields["path"]).is_file()
    packages = WorkPackages(tmp_path / "p")
    packages.drop("job")
    packages.drop("job")
    assert not Path(fields["path"]).exists()


def test_what_cannot_be_packed_cannot_start_and_a_bridge_that_is_gone_may_come_back(
    tmp_path: Path, workdir: Path
) -> None:
    with pytest.raises(RefusedError) as caught:
        sent(tmp_path / "p", start(workdir), Bridge(error=InputError("too large")))
    assert caught.value.code == Refusal.CANNOT_START
    with pytest.raises(BackendGoneError, match="cannot be sent to node n1: gone"):
        sent(tmp_path / "p", start(workdir), Bridge(error=BridgeGoneError("gone")))


def test_only_a_directory_that_is_here_and_the_jobs_own_can_be_sent(workdir: Path) -> None:
    assert can_be_sent(JobProgram("true", workdir=str(workdir)))
    assert not can_be_sent(JobProgram("true"))
    assert not can_be_sent(JobProgram("true", workdir=str(workdir), user="other"))
    assert not can_be_sent(JobProgram("true", workdir=str(workdir / "none")))
    assert not can_be_sent(JobProgram("true", workdir=str(workdir / "train.py")))


@pytest.mark.parametrize(
    ("run", "setup", "asked"),
    [
        ("python train.py", None, ("python train.py", None)),
        ("./train.py", None, ("true", None)),
        ("/bin/true", None, ("/bin/true", None)),
        (("./train.py", "x"), None, ("true", None)),
        (("/bin/true", "./x"), None, (("/bin/true", "./x"), None)),
        ("python x", "./setup.sh", ("true", None)),
        ("python x", "true", ("python x", "true")),
    ],
)
def test_commands_in_the_directory_are_not_asked_about(
    workdir: Path, run: str | tuple[str, ...], setup: str | None, asked: tuple[object, object]
) -> None:
    for name in ("train.py", "setup.sh"):
        (workdir / name).write_text("#!/bin/sh\n")
        (workdir / name).chmod(0o755)
    plain = without_files(JobProgram(run, setup=setup, workdir=str(workdir)))
    assert (plain.run, plain.setup, plain.workdir, plain.requirements) == (*asked, None, None)
