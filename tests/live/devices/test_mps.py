"""Control daemons of MPS, through a stand-in that records what it is asked and has faults."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from fairway.live.devices import mps
from fairway.live.devices.mps import MpsDaemons, MpsError
from tests.live.devices.mps_stand_in import put

GPU = "GPU-8f2c"


class World:
    """Daemons whose program is the stand-in."""

    def __init__(self, directory: Path, fault: str = "") -> None:
        programs = directory / "bin"
        programs.mkdir()
        self.record, self.now = put(programs), 0.0
        self.daemons = MpsDaemons(directory / "state", self.surroundings(programs, fault), lambda: self.now)
        self.pipes = directory / "state" / "mps" / GPU / "pipes"

    @staticmethod
    def surroundings(programs: Path, fault: str) -> dict[str, str]:
        return {"PATH": f"{programs}:{os.environ['PATH']}", "MPS_FAULT": fault}

    def asked(self) -> list[Any]:
        return [json.loads(line) for line in self.record.read_text().splitlines()]

    def commands(self) -> list[str]:
        return [" ".join(options) or command for options, command, _ in self.asked()]


def test_a_daemon_is_started_for_its_gpu_alone_and_its_clients_find_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    found = world.daemons.client_environment(GPU, 0.25, 20 * 2**30)
    assert found == {
        "CUDA_MPS_PIPE_DIRECTORY": str(world.pipes),
        "CUDA_VISIBLE_DEVICES": GPU,
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=20480M",
    }
    (started,) = [seen for options, _, seen in world.asked() if options == ["-d"]]
    assert started["CUDA_VISIBLE_DEVICES"] == GPU
    assert started["CUDA_MPS_PIPE_DIRECTORY"] == str(world.pipes)
    assert Path(started["CUDA_MPS_LOG_DIRECTORY"]).is_dir()
    world.daemons.client_environment(GPU, 0.75)
    assert world.commands().count("-d") == 1, "one daemon serves all clients of a GPU"


def test_a_daemon_of_before_is_found_again(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.daemons.client_environment(GPU, 0.5)
    again = MpsDaemons(tmp_path / "state", world.daemons.environment)
    again.client_environment(GPU, 0.5)
    assert world.commands().count("-d") == 1


def test_a_daemon_that_dies_is_started_again_after_a_pause(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.daemons.client_environment(GPU, 0.5)
    assert world.daemons.watch() == {}
    (world.pipes / "control").unlink()
    assert world.daemons.watch() == {}
    assert world.commands().count("-d") == 2
    (world.pipes / "control").unlink()
    assert world.daemons.watch() == {}
    assert world.commands().count("-d") == 2, "not at once"
    world.now = 100.0
    assert world.daemons.watch() == {}
    assert world.commands().count("-d") == 3


def test_all_daemons_are_stopped(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.daemons.client_environment(GPU, 0.5)
    world.daemons.client_environment("GPU-2", 0.5)
    world.daemons.stop_all()
    assert world.commands()[-2:] == ["quit", "quit"]
    assert not (world.pipes / "control").exists()
    world.daemons.stop(GPU)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("refuses", "Failed to communicate with the GPU: no permission"),
        ("dead", "does not answer; see .*control.log"),
    ],
)
def test_a_daemon_that_cannot_be_started_gets_one_line(tmp_path: Path, fault: str, words: str) -> None:
    world = World(tmp_path, fault)
    with pytest.raises(MpsError, match=f"GPU {GPU}: .*{words}") as caught:
        world.daemons.client_environment(GPU, 0.5)
    assert "\n" not in str(caught.value)


def test_a_program_that_hangs_is_not_waited_for_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mps, "_ANSWER_SECONDS", 0.5)
    with pytest.raises(MpsError, match=r"has not answered for 0\.5 s"):
        World(tmp_path, "hangs").daemons.client_environment(GPU, 0.5)


def test_without_the_program_the_reason_says_what_to_install(tmp_path: Path) -> None:
    daemons = MpsDaemons(tmp_path, {"PATH": str(tmp_path)})
    with pytest.raises(MpsError, match="no nvidia-cuda-mps-control on PATH: parts of GPUs are not enforced; install"):
        daemons.client_environment(GPU, 0.5)


def test_a_directory_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    with pytest.raises(MpsError, match="belongs to another user"):
        world.daemons.client_environment(GPU, 0.5)
