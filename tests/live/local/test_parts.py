"""Runs that have parts of an accelerator: beside each other as far as they fit, and held to their part of the CPUs."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairway.live.backend.accelerators import Accelerator
from fairway.live.backend.answers import Refusal, RefusedError
from fairway.live.backend.commands import EndRun, JobProgram, StartRun
from fairway.live.backend.environment import rank_environments
from fairway.live.backend.status import RunState
from fairway.live.local.agent.preparation import RunPreparation
from tests.live.backend.simulated import SimulatedMachine

ENDLESS = JobProgram(("steps",), steps=10**9)


def test_parts_run_beside_each_other_as_far_as_they_fit(tmp_path: Path) -> None:
    machine = SimulatedMachine(tmp_path, "v100=1")
    machine.start_agent()
    for lease, part in ((1, 0.5), (2, 0.3)):
        machine.carry_out(StartRun(lease, f"job-{lease}", ENDLESS, "v100", (0,), share=part))
    machine.advance_to(machine.now + 5.0)
    assert [run.state for run in machine.table.status().runs] == [RunState.RUNNING] * 2
    with pytest.raises(RefusedError, match="was not asked to end") as caught:
        machine.carry_out(StartRun(3, "job-3", ENDLESS, "v100", (0,), share=0.3))
    assert caught.value.code is Refusal.BUSY
    machine.carry_out(StartRun(4, "job-4", ENDLESS, "v100", (0,), share=0.2))


def test_a_part_waits_for_the_run_whose_room_it_gets(tmp_path: Path) -> None:
    machine = SimulatedMachine(tmp_path, "v100=1")
    machine.start_agent()
    machine.carry_out(StartRun(1, "job-1", ENDLESS, "v100", (0,), share=0.5))
    machine.carry_out(StartRun(2, "job-2", ENDLESS, "v100", (0,), share=0.5))
    machine.advance_to(machine.now + 5.0)
    machine.carry_out(EndRun(1, "job-1"))
    answer = machine.carry_out(StartRun(3, "job-3", ENDLESS, "v100", (0,), share=0.5))
    assert answer.run is not None
    assert answer.run.state is RunState.WAITING
    for _ in range(90):
        machine.advance_to(machine.now + 1.0)
    states = {run.job: run.state for run in machine.table.status().runs}
    assert states == {"job-1": RunState.ENDED, "job-2": RunState.RUNNING, "job-3": RunState.RUNNING}


def test_a_whole_one_waits_for_all_parts(tmp_path: Path) -> None:
    machine = SimulatedMachine(tmp_path, "v100=1")
    machine.start_agent()
    machine.carry_out(StartRun(1, "job-1", ENDLESS, "v100", (0,), share=0.5))
    with pytest.raises(RefusedError, match="was not asked to end"):
        machine.carry_out(StartRun(2, "job-2", ENDLESS, "v100", (0,)))


def test_a_part_of_an_emulated_accelerator_is_that_part_of_its_share_of_the_cpus(tmp_path: Path) -> None:
    preparation = RunPreparation(tmp_path, {}, emulated_cpus=4.0)
    slots = [Accelerator("v100", 0), Accelerator("v100", 1)]
    part = StartRun(1, "job", ENDLESS, "v100", (0,), share=0.25)
    assert preparation._cpus_of(part, slots[:1]) == 1.0
    assert preparation._cpus_of(StartRun(1, "job", ENDLESS, "v100", (0, 1), share=0.25), slots) == 2.0
    assert preparation._cpus_of(StartRun(1, "job", ENDLESS, "v100", (0,)), slots[:1]) is None
    assert preparation._cpus_of(part, [Accelerator("h100", 0, device="GPU-1")]) is None


def test_a_part_of_a_gpu_says_so_to_cuda() -> None:
    gpu = Accelerator("h100", 0, device="GPU-1", memory_bytes=80 * 2**30)
    assert rank_environments([gpu], [0], 0.25)[0] == {
        "FAIRWAY_RANK": "0",
        "RANK": "0",
        "CUDA_VISIBLE_DEVICES": "GPU-1",
        "FAIRWAY_ACCELERATOR_PART": "0.25",
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=20480M",
    }
    assert "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE" not in rank_environments([gpu], [0])[0]
