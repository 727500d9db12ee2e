"""A lease that expires is neither longer nor shorter because the system clock is set while it lasts."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairway.live.backend.commands import ExtendLeases, JobProgram, StartRun
from fairway.live.backend.status import RunState
from tests.live.backend.simulated import SimulatedMachine

HOUR = 3600.0


@pytest.mark.parametrize("step", [HOUR, -HOUR], ids=["forwards", "back"])
@pytest.mark.parametrize("extended", [False, True], ids=["as granted", "extended"])
def test_a_lease_lasts_as_long_as_it_was_granted_for(tmp_path: Path, step: float, extended: bool) -> None:
    machine = SimulatedMachine(tmp_path, "v100=1")
    machine.start_agent()
    end = machine.time() + 60.0
    start = StartRun(1, "job", JobProgram(run=("steps",), steps=10**9), "v100", (0,), until=end, expires=True)
    machine.carry_out(start)
    machine.advance_to(machine.now + 1.0)
    if extended:
        end += 60.0
        machine.carry_out(ExtendLeases(end, (1,)))
    seconds = end - machine.time()
    machine.clock_set_by += step
    machine.advance_to(machine.now + seconds - 1.0)
    assert [run.state for run in machine.table.status().runs] == [RunState.RUNNING]
    machine.advance_to(machine.now + 2.0)
    assert [run.state for run in machine.table.status().runs] == [RunState.ENDING]
