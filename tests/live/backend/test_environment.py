"""What every backend promises every job, and that nothing of Fairway's own surroundings leaks into it."""

from __future__ import annotations

from pathlib import Path

from fairway.live.backend.accelerators import Accelerator
from fairway.live.backend.commands import JobProgram, StartRun
from fairway.live.backend.environment import PROMISED, common_environment, rank_environments


def environment(program: JobProgram, *, emulated: bool = False) -> dict[str, str]:
    return common_environment(
        StartRun(7, "train", program, "v100", (3, 1), attempt=2),
        {"HOME": "/home/me", "WHO": "outside", "FAIRWAY_HOME": "/somewhere"},
        master=("10.0.0.1", 29500),
        run_directory=Path("/runs/7-train"),
        checkpoint_directory=Path("/checkpoints/train"),
        emulated=emulated,
    )


def test_a_rank_finds_all_that_is_promised() -> None:
    ranks = rank_environments([Accelerator("v100", 3, device="GPU-3"), Accelerator("v100", 1)], (0, 1))
    for rank, device in ((0, "GPU-3"), (1, "")):
        found = {**environment(JobProgram("true")), **ranks[rank]}
        assert set(PROMISED) <= set(found)
        assert (found["FAIRWAY_RANK"], found["RANK"], found["CUDA_VISIBLE_DEVICES"]) == (str(rank), str(rank), device)
        assert (found["MASTER_ADDR"], found["FAIRWAY_MASTER_PORT"]) == ("10.0.0.1", "29500")
        assert (found["FAIRWAY_RUN_DIR"], found["FAIRWAY_WORLD_SIZE"]) == ("/runs/7-train", "2")


def test_the_jobs_own_variables_go_before_those_of_the_agent_and_after_fairways() -> None:
    found = environment(JobProgram("true", envs={"WHO": "job", "FAIRWAY_JOB_ID": "another"}))
    assert (found["HOME"], found["WHO"], found["FAIRWAY_JOB_ID"]) == ("/home/me", "job", "train")
    assert "FAIRWAY_HOME" not in found


def test_what_the_description_says_is_there_only_if_it_says_so() -> None:
    assert not {"FAIRWAY_STEPS", "FAIRWAY_CHECKPOINT_SECONDS", "FAIRWAY_EMULATED"} & set(
        environment(JobProgram("true"))
    )
    found = environment(JobProgram("true", steps=7, checkpoint_every_seconds=60.0), emulated=True)
    assert (found["FAIRWAY_STEPS"], found["FAIRWAY_CHECKPOINT_SECONDS"]) == ("4", "60.0"), "each rank does its part"
    assert found["FAIRWAY_EMULATED"] == "1"
