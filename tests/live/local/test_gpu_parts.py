"""Parts of GPUs: a daemon for as long as runs have some, and a caveat where there can be none."""

from __future__ import annotations

import os
from pathlib import Path

from fairway.live.backend.accelerators import Accelerator
from fairway.live.devices.mps import MpsDaemons
from fairway.live.local.gpu_parts import GpuParts
from tests.live.devices.mps_stand_in import put

GPU = Accelerator("h100", 0, device="GPU-1", memory_bytes=80 * 2**30)


def parts(directory: Path, fault: str = "") -> tuple[GpuParts, Path]:
    programs = directory / "bin"
    programs.mkdir()
    record = put(programs)
    surroundings = {"PATH": f"{programs}:{os.environ['PATH']}", "MPS_FAULT": fault}
    return GpuParts(MpsDaemons(directory, surroundings, lambda: 0.0)), record


def test_a_run_with_a_part_finds_the_daemon_of_its_gpu(tmp_path: Path) -> None:
    gpus, record = parts(tmp_path)
    (found,) = gpus.environments([GPU], 0.5)
    assert found["CUDA_MPS_PIPE_DIRECTORY"] == str(tmp_path / "mps" / "GPU-1" / "pipes")
    assert found["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == "0=40960M"
    assert gpus.caveats == ()
    gpus.look_after(["GPU-1"], 0.0)
    assert "quit" not in record.read_text()
    gpus.look_after([], 20.0)
    assert "quit" in record.read_text()


def test_whole_gpus_emulated_ones_and_those_of_others_have_no_daemon(tmp_path: Path) -> None:
    gpus, record = parts(tmp_path)
    assert gpus.environments([GPU], 1.0) == [{}]
    assert gpus.environments([Accelerator("v100", 0)], 0.5) == [{}]
    assert gpus.environments([Accelerator("mi300", 0, device="0000:03:00.0")], 0.5) == [{}]
    assert not record.exists()


def test_where_there_can_be_no_daemon_the_part_is_said_not_to_be_enforced(tmp_path: Path) -> None:
    gpus, _ = parts(tmp_path, "refuses")
    assert gpus.environments([GPU], 0.5) == [{}]
    (caveat,) = gpus.caveats
    assert caveat.startswith("parts of GPUs are counted, but not enforced: GPU GPU-1: nvidia-cuda-mps-control:")
    gpus.look_after([], 20.0)
    assert gpus.caveats == (), "no run has a part any more"
