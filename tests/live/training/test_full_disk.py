"""A job fills the disk on which everything is kept: it can be cancelled."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from fairway.store.errors import StoreError
from fairway.store.job_changes import request_cancel
from fairway.store.states import JobState
from tests.full_disk import free_bytes, small_disk
from tests.live.training.site import Site, until

_GREEDY = "while :; do cat /dev/zero >> $FAIRWAY_CHECKPOINT_DIR/rubbish 2> /dev/null; done"


def test_the_job_that_fills_the_disk_is_cancelled_and_others_go_on_when_there_is_room(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 32) as disk, Site(disk, "v100=2", round_seconds=0.5) as site:
        other = site.submit("sleep 600")
        site.wait_for(other, JobState.RUNNING)
        greedy = site.submit(_GREEDY, grace=1)
        until(lambda: free_bytes(disk) == 0, "for the disk to be full")
        with pytest.raises(StoreError, match="the disk is full"):
            site.submit("true")
        site.store.write_vital(request_cancel, greedy, at=time.time())
        site.controller.notify(greedy)
        site.wait_for(greedy, JobState.CANCELLED)
        assert site.job(other).state is JobState.RUNNING
        until(lambda: greedy not in [run.job for run in site.agent().runs], "for its last process to be gone")
        next(disk.glob("**/rubbish")).unlink()
        until(lambda: free_bytes(disk) > 2**22, "for the room that it took")
        site.wait_for(site.submit("true"), JobState.SUCCEEDED)
        until(lambda: site.controller.healthy, "for the controller to be well")
