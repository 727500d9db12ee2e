"""A GPU that falls off the bus while jobs run: it is drained with its reason, and its job goes elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairway.store.states import JobState
from tests.live.devices.machine import H100, L4, Machine
from tests.live.training.site import Site, until

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc, as on Linux")


def test_a_gpu_that_is_lost_is_drained_with_its_reason_and_its_job_moves(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.has(H100.format(0, ""), L4)
    for name in ("LD_LIBRARY_PATH", "NVML_STAND_IN"):
        monkeypatch.setenv(name, machine.environment[name])
    with Site(tmp_path, None, round_seconds=0.3) as site:
        assert {worker.accelerator for worker in site.controller.workers} == {"h100", "l4"}
        assert not site.controller.emulated
        job = site.submit("sleep 600", throughputs={"h100": 4.0, "l4": 1.0})
        site.wait_for(job, JobState.RUNNING)
        until(lambda: [run.accelerator for run in site.agent().runs] == ["h100"])
        machine.has(f"{H100.format(0, '')}|lost=1", L4)
        until(lambda: [worker.accelerator for worker in site.controller.workers if worker.drained_at is not None])
        drained = [worker.accelerator for worker in site.controller.workers if worker.drained_at is not None]
        assert drained == ["h100"], "the other goes on"
        devices = site.controller.devices()
        assert devices["h100", 0].sick == "the GPU is lost: it has fallen off the bus or is otherwise inaccessible"
        assert devices["l4", 0].sick is None
        until(lambda: [run.accelerator for run in site.agent().runs if run.state == "running"] == ["l4"])
        machine.has(H100.format(0, ""), L4)
        until(lambda: site.controller.devices()["h100", 0].sick is None)
        assert drained == [one.accelerator for one in site.controller.workers if one.drained_at is not None], (
            "it is for an administrator to say that it is well again"
        )
        site.controller.drain([("h100", 0)], on=False)
        assert all(worker.drained_at is None for worker in site.controller.workers)
        site.cancel(job)
        site.wait_for(job, JobState.CANCELLED)
