"""The head of Ray is killed and started again, with and without what it knew; this takes minutes."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks._ray_cluster import RayCluster
from tests.cli.installation import Installation, until
from tests.live.training.jobs import COUNTING

pytestmark = pytest.mark.soak

NODE = "ray.io/accelerator-type=V100,fairway.io/accelerators=1,fairway.io/node=a"


def steps_of(trace: Path) -> list[int]:
    return [int(line) for line in trace.read_text().splitlines()] if trace.exists() else []


def running(cluster: RayCluster) -> bool:
    """Whether the node's raylet lives."""
    try:
        cluster.raylet("a")
    except AssertionError:
        return False
    return True


@pytest.mark.timeout(600)
@pytest.mark.parametrize("remembers", [True, False])
def test_jobs_outlive_the_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remembers: bool) -> None:
    for name in [name for name in os.environ if name.startswith("RAY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    trace, script = tmp_path / "trace", tmp_path / "counting.py"
    script.write_text(COUNTING)
    with tempfile.TemporaryDirectory(prefix="fw-ray-") as directory, RayCluster(Path(directory)) as ray:
        if remembers:
            ray.environment |= {"RAY_gcs_storage": "rocksdb", "RAY_gcs_storage_path": f"{directory}/gcs"}
        ray.start("head", head=True)
        ray.start("a", NODE)
        backend = f"ray:fence-seconds=3,node-directory={tmp_path / 'nodes'}"
        options = ("--backend", backend, "--address", ray.address, "--port", "0", "--round", "1s")
        with Installation(tmp_path, *options) as live:
            live.up()
            (tmp_path / "job.yaml").write_text(
                f"name: long\nrun: [{sys.executable}, {script}, '1000000', '0.05', {trace}]\nsteps: 1000000\n"
                "checkpoint: {interval: 1s}\n"
            )
            job = live.printed("submit", "--quiet", str(tmp_path / "job.yaml")).strip()
            until(lambda: len(steps_of(trace)) > 60, "for it to run")
            ray.kill("head")
            time.sleep(5)
            ray.start("head", head=True)
            if remembers:
                time.sleep(20)
                assert running(ray)
                before = len(steps_of(trace))
                until(lambda: len(steps_of(trace)) > before, "for it to go on")
                assert all(after > step for step, after in pairwise(steps_of(trace))), "it was never started again"
            else:
                until(lambda: not running(ray), "for the node to end, which the new head does not know")
                ray.kill("a")
                before = len(steps_of(trace))
                ray.start("a", NODE)
                until(lambda: len(steps_of(trace)) > before + 20, "for it to go on")
                (lost,) = (step - after for step, after in pairwise(steps_of(trace)) if after <= step)
                assert lost < 60, "no more than what was done since the last checkpoint is done again"
            live.printed("cancel", job)
            until(lambda: live.state_of(job) == "cancelled", "for it to be cancelled")
            assert live.end(signal.SIGINT).rstrip().endswith("stopped")
