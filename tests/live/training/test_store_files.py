"""The files of the store are deleted under a controller that runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairway.live.training import loop
from fairway.store.errors import StoreError
from fairway.store.states import JobState
from tests.live.training.site import Site, until


def test_a_controller_whose_store_is_deleted_says_so_and_accepts_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Site(tmp_path, "v100=1") as site:
        job = site.submit("sleep 600")
        site.wait_for(job, JobState.RUNNING)
        assert site.controller.healthy
        (site.directory / "fairway.db").unlink()
        until(lambda: not site.controller.healthy, "for the controller to notice, with nothing to write")
        with pytest.raises(StoreError, match=r"'fairway\.db' was deleted while it was open; nothing more is accepted"):
            site.submit("true")
        assert site.job(job).state is JobState.RUNNING, "the job runs on, and can be looked at"
        assert "nothing is decided until this is over: store" in caplog.text
    assert (site.directory / "fairway.db-rescued").exists()


def test_the_end_does_not_wait_for_ever_for_a_store_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "_CLOSING_SECONDS", 1.0)
    with Site(tmp_path, "v100=1") as site:
        site.wait_for(site.submit("sleep 600"), JobState.RUNNING)
        (site.directory / "fairway.db").unlink()
        until(lambda: not site.controller.healthy, "for the controller to notice")
        assert "was deleted while it was open" in str(site.controller.shut_down())
