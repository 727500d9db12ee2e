"""The environment of a job's processes: what every backend promises every job, and what `fairway.leased` needs besides.

A rank sees its own accelerator only, so that a program that takes the first one it finds takes the right one. The names
that torch reads (`RANK`, `MASTER_ADDR` and so on) are set as well: a script written for torchrun runs as it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from fairway.live.backend.accelerators import Accelerator
from fairway.live.backend.commands import StartRun

PROMISED = (
    "FAIRWAY_JOB_ID",
    "FAIRWAY_ATTEMPT",
    "FAIRWAY_RANK",
    "FAIRWAY_WORLD_SIZE",
    "FAIRWAY_MASTER_ADDR",
    "FAIRWAY_MASTER_PORT",
    "FAIRWAY_NODE_RANK",
    "FAIRWAY_NUM_NODES",
    "FAIRWAY_CHECKPOINT_DIR",
    "FAIRWAY_ACCELERATOR",
    "FAIRWAY_RUN_DIR",
    "CUDA_VISIBLE_DEVICES",
    "RANK",
    "WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "LOCAL_RANK",
)
"""The variables that every rank of every job finds."""


def common_environment(
    command: StartRun,
    outside: Mapping[str, str],
    *,
    master: tuple[str, int],
    run_directory: Path,
    checkpoint_directory: Path,
    emulated: bool,
) -> dict[str, str]:
    """What all ranks share: the surroundings of the agent, then the job's own variables, then Fairway's.

    `master` is the address and port where the ranks meet, `run_directory` that of the channel (`channel`). The steps of
    the program are those of the whole gang, of which each rank does its part.
    """
    program, world_size, part = command.program, command.world_size, command.part
    address, port = master[0], str(master[1])
    ours = {
        "FAIRWAY_JOB_ID": command.job,
        "FAIRWAY_ATTEMPT": str(command.attempt),
        "FAIRWAY_WORLD_SIZE": str(world_size),
        "FAIRWAY_MASTER_ADDR": address,
        "FAIRWAY_MASTER_PORT": port,
        "FAIRWAY_NODE_RANK": "0" if part is None else str(part.node_rank),
        "FAIRWAY_NUM_NODES": "1" if part is None else str(len(part.nodes)),
        "FAIRWAY_CHECKPOINT_DIR": str(checkpoint_directory),
        "FAIRWAY_ACCELERATOR": command.accelerator,
        "FAIRWAY_RUN_DIR": str(run_directory),
        "WORLD_SIZE": str(world_size),
        "MASTER_ADDR": address,
        "MASTER_PORT": port,
        "LOCAL_RANK": "0",
    }
    if program.steps is not None:
        ours["FAIRWAY_STEPS"] = str(math.ceil(program.steps / world_size))
    if program.checkpoint_every_seconds is not None:
        ours["FAIRWAY_CHECKPOINT_SECONDS"] = str(program.checkpoint_every_seconds)
    if command.meet is not None:
        ours["FAIRWAY_AGREEMENT"] = f"{command.meet.address}:{command.meet.agreement_port}"
        ours["FAIRWAY_AGREEMENT_SECRET"] = command.meet.secret
    if emulated:
        ours["FAIRWAY_EMULATED"] = "1"
    inherited = {name: value for name, value in outside.items() if not name.startswith("FAIRWAY_")}
    return {"PYTHONUNBUFFERED": "1", **inherited, **program.envs, **ours}


def rank_environments(
    accelerators: Sequence[Accelerator], ranks: Sequence[int], share: float = 1.0
) -> list[dict[str, str]]:
    """What each of these ranks has to itself; an emulated accelerator hides the real ones."""
    return [
        {
            "FAIRWAY_RANK": str(rank),
            "RANK": str(rank),
            "CUDA_VISIBLE_DEVICES": accelerator.device or "",
            **share_environment(accelerator, share),
        }
        for rank, accelerator in zip(ranks, accelerators, strict=True)
    ]


def share_environment(accelerator: Accelerator, share: float) -> dict[str, str]:
    """What a process finds that has a part of an accelerator: how much, and on a GPU what CUDA takes for its bounds.

    CUDA keeps to them where a control daemon of MPS runs for the GPU; it numbers the devices that the process sees.
    """
    if share == 1:
        return {}
    said = {"FAIRWAY_ACCELERATOR_PART": f"{share:g}"}
    if accelerator.device is None:
        return said
    said["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = f"{share * 100:g}"
    if accelerator.memory_bytes:
        said["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = f"0={int(accelerator.memory_bytes * share) // 2**20}M"
    return said
