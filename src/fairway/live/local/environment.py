"""The environment of a job's processes: what every job is promised, and what `fairway.leased` needs besides.

A rank sees its own accelerator only, so that a program that takes the first one it finds takes the right one. The names
that torch reads (`RANK`, `MASTER_ADDR` and so on) are set as well: a script written for torchrun runs as it is.
"""

from __future__ import annotations

import math
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from fairway.live.local.accelerators import Accelerator

_LOOPBACK = "127.0.0.1"


def common_environment(
    outside: Mapping[str, str],
    envs: Mapping[str, str],
    *,
    job: str,
    attempt: int,
    accelerator: str,
    world_size: int,
    run_directory: Path,
    checkpoint_directory: Path,
    steps: int | None = None,
    checkpoint_every_seconds: float | None = None,
    emulated: bool = False,
) -> dict[str, str]:
    """What all ranks share: the surroundings of the agent, then the job's own variables, then Fairway's.

    `steps` are those of the whole gang, of which each rank does its part.
    """
    address, port = _LOOPBACK, str(_free_port())
    ours = {
        "FAIRWAY_JOB_ID": job,
        "FAIRWAY_ATTEMPT": str(attempt),
        "FAIRWAY_WORLD_SIZE": str(world_size),
        "FAIRWAY_MASTER_ADDR": address,
        "FAIRWAY_MASTER_PORT": port,
        "FAIRWAY_CHECKPOINT_DIR": str(checkpoint_directory),
        "FAIRWAY_ACCELERATOR": accelerator,
        "FAIRWAY_RUN_DIR": str(run_directory),
        "WORLD_SIZE": str(world_size),
        "MASTER_ADDR": address,
        "MASTER_PORT": port,
        "LOCAL_RANK": "0",
    }
    if steps is not None:
        ours["FAIRWAY_STEPS"] = str(math.ceil(steps / world_size))
    if checkpoint_every_seconds is not None:
        ours["FAIRWAY_CHECKPOINT_SECONDS"] = str(checkpoint_every_seconds)
    if emulated:
        ours["FAIRWAY_EMULATED"] = "1"
    inherited = {name: value for name, value in outside.items() if not name.startswith("FAIRWAY_")}
    return {"PYTHONUNBUFFERED": "1", **inherited, **envs, **ours}


def rank_environments(accelerators: Sequence[Accelerator]) -> list[dict[str, str]]:
    """What each rank has to itself; an emulated accelerator hides the real ones."""
    return [
        {"FAIRWAY_RANK": str(rank), "RANK": str(rank), "CUDA_VISIBLE_DEVICES": accelerator.device or ""}
        for rank, accelerator in enumerate(accelerators)
    ]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port
