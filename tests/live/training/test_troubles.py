"""Jobs that fail, are cancelled or find no workers: what becomes of them, and what people are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairway.errors import InputError
from fairway.store.states import JobState
from tests.live.training.invariants import check_all_over, check_history
from tests.live.training.machine import python
from tests.live.training.site import Site, until

FINISHING = """
import pathlib, sys, time
import fairway

last, go, count = map(pathlib.Path, sys.argv[1:])
for batch in fairway.leased(range(3)):
    while batch == 2 and not go.exists():
        last.touch()
        time.sleep(0.01)
with count.open("a") as file:
    file.write("done\\n")
"""
"""Hears of a stop while it does its last step."""

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc, as on Linux")


def test_a_job_that_fails_is_tried_again_later_and_later_also_after_a_restart(tmp_path: Path) -> None:
    with Site(tmp_path) as site:
        job = site.submit("exit 3", retries=2)
        until(lambda: site.job(job).failures == 1)
        waits = site.job(job)
        assert (waits.state, waits.reason_code) == (JobState.QUEUED, "BackOff")
        assert waits.reason == "rank 0 ended with exit code 3; failure 1 of at most 3, tried again after 1 s"
        until(lambda: site.job(job).failures == 2)
        site.restart()
        failed = site.wait_for(job, JobState.FAILED)
        assert (failed.exit_code, failed.reason_code, failed.attempts) == (3, "Failed", 3)
        assert failed.reason == "rank 0 ended with exit code 3, after 2 retries"
        first, second, third = site.history(job).attempts
        assert first.ended_at is not None
        assert second.ended_at is not None
        assert second.started_at - first.ended_at >= 1.0
        assert third.started_at - second.ended_at >= 2.0, "the wait is not cut short by a restart"
        check_history(site.store)


def test_what_cannot_be_started_says_why(tmp_path: Path) -> None:
    with Site(tmp_path) as site:
        missing = site.submit(["/no/such/command"], retries=0)
        blocked = tmp_path / "file"
        blocked.touch()
        nowhere = site.submit("true", retries=0, checkpoint={"directory": str(blocked / "below")})
        shell = site.submit("no-such-command", retries=0)
        assert site.wait_for(missing, JobState.FAILED).reason == (
            "command '/no/such/command': No such file or directory"
        )
        assert site.wait_for(nowhere, JobState.FAILED).reason == (
            f"checkpoint directory {blocked / 'below'}: Not a directory"
        )
        assert site.wait_for(shell, JobState.FAILED).exit_code == 127
        assert [site.job(job).attempts for job in (missing, nowhere, shell)] == [0, 0, 1]
        assert [site.job(job).failures for job in (missing, nowhere, shell)] == [1, 1, 1]
        until(lambda: not site.agent().runs)
        check_all_over(site.store)


def test_jobs_can_be_cancelled_whatever_they_do(tmp_path: Path) -> None:
    with Site(tmp_path, "k80=1", round_seconds=0.3, restart_seconds=0.01) as site:
        slow = "trap 'sleep 1; exit 0' TERM; while true; do sleep 0.02; done"
        running = site.submit(slow, throughputs={"k80": 1.0})
        queued = site.submit("sleep 600", throughputs={"k80": 1.0})
        site.wait_for(running, JobState.RUNNING)
        site.cancel(queued)
        assert site.job(queued).state is JobState.CANCELLED
        site.wait_for(running, JobState.RUNNING)
        site.cancel(running)
        ended = site.wait_for(running, JobState.CANCELLED)
        assert ended.reason == "cancelled while it ran"
        resting = site.submit("exit 1")
        until(lambda: site.job(resting).reason_code == "BackOff")
        site.cancel(resting)
        starting = site.submit("sleep 600", setup="sleep 600")
        until(lambda: [run.state for run in site.agent().runs] == ["starting"])
        site.cancel(starting)
        until(lambda: not site.agent().runs, "for the one that was starting to be gone")
        preempted = site.submit(slow)
        site.wait_for(preempted, JobState.RUNNING)
        other = site.submit("sleep 600")
        site.wait_for(preempted, JobState.PREEMPTING)
        site.cancel(preempted)
        site.wait_for(preempted, JobState.CANCELLED)
        site.wait_for(other, JobState.RUNNING)
        site.cancel(other)
        site.wait_for_all(state=JobState.CANCELLED)
        until(lambda: not site.agent().runs)
        check_history(site.store)
        check_all_over(site.store)


def test_a_job_that_finishes_while_it_is_asked_to_stop_is_done(tmp_path: Path) -> None:
    with Site(tmp_path, "k80=1", round_seconds=0.2, restart_seconds=0.01) as site:
        count, last, go = tmp_path / "count", tmp_path / "last", tmp_path / "go"
        job = site.submit(python(FINISHING, last, go, count), throughputs={"k80": 1000.0})
        until(last.exists)
        site.wait_for(job, JobState.RUNNING)
        other = site.submit("true", throughputs={"k80": 1.0})
        site.wait_for(job, JobState.PREEMPTING)
        go.touch()
        site.wait_for_all()
        assert site.job(job).attempts == 1
        assert count.read_text() == "done\n"
        assert site.job(other).attempts == 1


def test_drained_workers_stay_drained_and_people_are_told(tmp_path: Path) -> None:
    with Site(tmp_path, "v100=1,k80=1") as site:
        with pytest.raises(InputError, match="no 'v100/7' in this cluster"):
            site.controller.drain([("v100", 7)], on=True)
        job = site.submit("trap 'exit 0' TERM; while true; do sleep 0.02; done", resources={"accelerators": "v100"})
        site.wait_for(job, JobState.RUNNING)
        site.controller.drain([("v100", 0)], on=True)
        waits = site.wait_for(job, JobState.QUEUED)
        until(lambda: site.job(job).reason_code == "WorkersDrained", "for the reason")
        assert site.job(job).reason == "it asks for 1 v100, but 1 of 1 v100 is drained"
        new = site.submit("true", resources={"accelerators": "v100"})
        until(lambda: site.job(new).reason_code == "WorkersDrained")
        site.restart()
        site.wait_for(site.submit("true"), JobState.SUCCEEDED)
        assert {worker.accelerator for worker in site.controller.workers if worker.drained_at is not None} == {"v100"}
        until(lambda: site.job(new).reason_code == "WorkersDrained")
        assert site.job(job).state is JobState.QUEUED
        site.controller.drain([("v100", 0)], on=False)
        site.wait_for(job, JobState.RUNNING)
        site.cancel(job)
        site.wait_for(new, JobState.SUCCEEDED)
        assert waits.attempts == 1
