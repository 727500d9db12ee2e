"""An agent that is alive but silent counts as lost, and is adopted again; a job that kills its keeper has failed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from fairway.live.local.agent import client as agent_client
from fairway.live.local.agent import frames
from fairway.live.training import loop
from fairway.store.states import JobState
from tests.live.training.site import Site, until

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc, as on Linux")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_client, "SILENT_SECONDS", 3.0)


def test_a_stopped_agent_is_noticed_holds_up_no_drain_and_is_adopted_again(tmp_path: Path) -> None:
    with Site(tmp_path) as site:
        running = site.submit("sleep 600")
        site.wait_for(running, JobState.RUNNING)
        agent = site.agent_pid()
        os.kill(agent, signal.SIGSTOP)
        try:
            until(lambda: not site.controller.healthy, "for the silence to be noticed")
            assert "the agent lives but has not answered for 3 s" in str(site.controller.trouble)
            waiting = site.submit("echo here")
            site.controller.drain([("k80", 0)], on=True)
            drained = [worker.accelerator for worker in site.controller.workers if worker.drained_at is not None]
            assert drained == ["k80"]
        finally:
            os.kill(agent, signal.SIGCONT)
        site.wait_for(waiting, JobState.SUCCEEDED)
        until(lambda: site.controller.healthy, "for the agent to be adopted")
        assert site.controller.trouble is None
        job = site.job(running)
        assert (site.agent_pid(), job.state, job.attempts) == (agent, JobState.RUNNING, 1)


def test_an_agent_that_a_job_has_stopped_is_let_go_on(tmp_path: Path) -> None:
    with Site(tmp_path) as site:
        site.wait_for(site.submit("true"), JobState.SUCCEEDED)
        os.kill(site.agent_pid(), signal.SIGSTOP)
        until(lambda: not site.controller.healthy, "for the silence to be noticed")
        site.wait_for(site.submit("echo here"), JobState.SUCCEEDED)


def test_the_end_does_not_wait_for_ever_for_an_agent_that_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "_CLOSING_SECONDS", 1.0)
    with Site(tmp_path) as site:
        running = site.submit("sleep 600")
        site.wait_for(running, JobState.RUNNING)
        agent = site.agent_pid()
        os.kill(agent, signal.SIGSTOP)
        try:
            assert "has not answered" in str(site.controller.shut_down())
        finally:
            os.kill(agent, signal.SIGCONT)


def test_a_socket_that_takes_no_more_connections_is_silence_and_holds_up_nothing(tmp_path: Path) -> None:
    with frames.listening_socket(tmp_path) as listening:
        listening.listen(0)
        waiting = [frames.connected_socket(tmp_path)]
        with pytest.raises(BlockingIOError):
            waiting += [frames.connected_socket(tmp_path) for _ in range(100)]
        for each in waiting:
            each.close()


def test_a_job_that_kills_its_keeper_has_failed_and_is_retried_as_often_as_it_may(tmp_path: Path) -> None:
    with Site(tmp_path) as site:
        job = site.submit("kill -9 $PPID; sleep 600", retries=1)
        ended = site.wait_for(job, JobState.FAILED)
        assert ended.failures == 2
        assert ended.attempts <= 2  # fewer, where the keeper was killed before it could say that the job runs
        assert "its keeper was killed" in str(ended.reason)
