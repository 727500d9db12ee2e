"""The controller with real processes: every job is run, none twice, none is stopped without need."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from fairway.live.local.agent.keepers import keeper_of
from fairway.live.local.run_files import RunFiles
from fairway.store.states import JobState
from tests.live.training.invariants import check_all_over, check_history, check_journal
from tests.live.training.jobs import COUNTING, RENDEZVOUS, STUBBORN
from tests.live.training.machine import kill, python
from tests.live.training.site import Site, until

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc, as on Linux")

RATES = {"v100": 100.0, "k80": 50.0}


def steps_in(trace: Path) -> list[int]:
    return [int(line) for line in trace.read_text().splitlines()] if trace.exists() else []


def counting(trace: Path, steps: int, seconds: float = 0.0) -> dict[str, Any]:
    """A job that writes down each step that it does."""
    return {"run": python(COUNTING, 10**6, seconds, trace), "steps": steps, "throughputs": RATES}


def waiting(go: Path) -> str:
    """A command that ends when a file is there."""
    return f"while [ ! -e {go} ]; do sleep 0.02; done"


def pid_of(site: Site, job: str) -> int:
    """The process that keeps the run of a job."""
    runs = [run for run in site.agent().runs if run.job == job and run.state == "running"]
    assert len(runs) == 1, runs
    (directory,) = (site.settings.backend_directory / "runs").glob(f"*-{job}")
    keeper = keeper_of(RunFiles(directory))
    assert keeper is not None
    assert keeper.alive
    return keeper.pid


def test_a_dozen_jobs_of_two_teams_all_succeed_and_every_step_is_done_once(tmp_path: Path) -> None:
    with Site(tmp_path, round_seconds=0.5) as site:
        traces = {
            site.submit(**counting(tmp_path / f"trace-{number}", 60), team=f"team-{number % 2}"): number
            for number in range(12)
        }
        site.wait_for_all()
        until(lambda: not site.agent().runs, "for the agent to forget")
        check_history(site.store)
        check_all_over(site.store)
        check_journal(site.store)
        for number in traces.values():
            assert steps_in(tmp_path / f"trace-{number}") == list(range(60))
        assert site.controller.statistics().leases_granted_total >= 12
        assert {job.exit_code for job in site.jobs()} == {0}
        assert len({job.team for job in site.jobs()}) == 2


def test_a_preempted_job_goes_on_where_it_was(tmp_path: Path) -> None:
    with Site(tmp_path, "k80=1", round_seconds=0.3, restart_seconds=0.01) as site:
        first, second = tmp_path / "first", tmp_path / "second"
        one = site.submit(**counting(first, 150))
        two = site.submit(**counting(second, 150))
        site.wait_for_all()
        assert site.job(one).attempts + site.job(two).attempts > 2
        assert steps_in(first) == steps_in(second) == list(range(150))
        assert site.controller.statistics().preemptions_total > 0
        outcomes = [attempt.outcome for job in (one, two) for attempt in site.history(job).attempts]
        assert set(outcomes) == {"preempted", "succeeded"}
        check_history(site.store)
        check_journal(site.store)


HANGING = """
import os, signal, sys, time
import fairway

signal.signal(signal.SIGTERM, signal.SIG_IGN)
for batch in fairway.leased(range(10**6), checkpoint=lambda step: {"step": step}, every=10):
    with open(sys.argv[1], "a") as file:
        file.write(f"{batch}\\n")
    if batch == 14 and os.environ["FAIRWAY_ATTEMPT"] == "1":
        time.sleep(600)
"""


def test_a_job_that_heeds_nothing_is_killed_and_goes_on_from_its_last_checkpoint(tmp_path: Path) -> None:
    with Site(tmp_path, "k80=1", round_seconds=0.3, restart_seconds=0.01) as site:
        trace = tmp_path / "trace"
        job = site.submit(python(HANGING, trace), steps=30, throughputs=RATES, grace=0.2, checkpoint={"seconds": 0.2})
        until(lambda: len(steps_in(trace)) == 15)
        other = site.submit(**counting(tmp_path / "other", 30))
        site.wait_for_all()
        assert steps_in(trace) == [*range(15), *range(10, 30)]
        first, second = site.history(job).attempts
        assert (first.outcome, second.outcome) == ("preempted", "succeeded")
        assert first.reason is not None
        assert first.reason.startswith("killed after its grace")
        assert site.job(other).attempts == 1
        check_history(site.store)


WAITING = "while [ ! -e {} ]; do sleep 0.02; done"
"""A plain command that knows nothing of leases, until there is a file."""


def test_a_plain_command_is_not_moved_to_a_type_that_is_believed_to_be_faster(tmp_path: Path) -> None:
    with Site(tmp_path, "k80=1,v100=1", round_seconds=0.2, restart_seconds=0.01) as site:
        gates = [tmp_path / "first", tmp_path / "second"]
        jobs = [site.submit(WAITING.format(gate)) for gate in gates]
        for job in jobs:
            site.wait_for(job, JobState.RUNNING)
        by_type = {site.history(job).leases[0].accelerator: number for number, job in enumerate(jobs)}
        gates[by_type["v100"]].touch()
        site.wait_for(jobs[by_type["v100"]], JobState.SUCCEEDED)
        rounds = site.controller.statistics().rounds
        until(lambda: site.controller.statistics().rounds >= rounds + 5)
        gates[by_type["k80"]].touch()
        assert site.wait_for(jobs[by_type["k80"]], JobState.SUCCEEDED).attempts == 1


def test_a_plain_command_that_has_to_stop_for_another_says_what_it_lost(tmp_path: Path) -> None:
    with Site(tmp_path, "k80=1", round_seconds=0.2, restart_seconds=0.01) as site:
        gates = [tmp_path / "first", tmp_path / "second"]
        jobs = [site.submit(WAITING.format(gate)) for gate in gates]
        until(lambda: any(site.job(job).attempts > 1 for job in jobs))
        for gate in gates:
            gate.touch()
        site.wait_for_all()
        lost = [one.reason for job in jobs for one in site.history(job).attempts if one.outcome == "preempted"]
        assert lost
        for reason in lost:
            assert reason is not None
            assert "it reported no checkpoint, so " in reason
            assert reason.endswith(" s of work are lost and it begins from zero")


def test_a_job_that_must_not_be_preempted_is_not(tmp_path: Path) -> None:
    with Site(tmp_path, "k80=1", round_seconds=0.2, restart_seconds=0.01) as site:
        go = tmp_path / "go"
        held = site.submit(waiting(go), preemptible=False)
        site.wait_for(held, JobState.RUNNING)
        other = site.submit("true")
        rounds = site.controller.statistics().rounds
        until(lambda: site.controller.statistics().rounds > rounds + 12, "for rounds to pass")
        assert site.job(held).state is JobState.RUNNING
        assert site.job(other).reason_code == "Held"
        go.touch()
        site.wait_for_all()
        assert (site.job(held).attempts, site.job(other).attempts) == (1, 1)


def test_the_ranks_of_a_gang_meet(tmp_path: Path) -> None:
    with Site(tmp_path) as site:
        job = site.submit(python(RENDEZVOUS), resources={"accelerators": "v100:2"})
        assert site.wait_for(job, JobState.SUCCEEDED, JobState.FAILED).state is JobState.SUCCEEDED
        assert "met rank 1" in site.log(job, 0)
        assert "met rank 0" in site.log(job, 1)
        assert len(site.history(job).leases[0].workers) == 2


def test_of_two_that_share_the_one_that_stays_goes_on_without_a_stop(tmp_path: Path) -> None:
    shared = "ResNet-18 (batch size 128)"  # 18 steps per second alone, 14 beside another
    with Site(tmp_path, "v100=1", policy="max-min-fairness:space-sharing") as site:

        def spec(name: str, steps: int) -> dict[str, Any]:
            return {"run": python(COUNTING, 10**6, 0, tmp_path / name), "steps": steps, "job_type": shared}

        short, long = site.submit_together(spec("short", 20), spec("long", 10**5))
        site.wait_for(short, JobState.RUNNING)
        site.wait_for(long, JobState.RUNNING)
        pid = pid_of(site, long)
        assert site.history(short).leases[0].jobs == (short, long)
        site.wait_for(short, JobState.SUCCEEDED)
        until(lambda: site.history(long).attempts[0].lease == 2, "for the hand-over")
        assert pid_of(site, long) == pid
        (more,) = site.submit_together(spec("more", 10**5))
        site.wait_for(more, JobState.RUNNING)
        until(lambda: site.job(long).state is JobState.RUNNING and site.job(long).attempts == 2)
        pid = pid_of(site, more)
        site.cancel(long)
        site.wait_for(long, JobState.CANCELLED)
        assert pid_of(site, more) == pid
        until(lambda: [lease.ended_at is None for lease in site.history(more).leases] == [False, True])
        site.cancel(more)
        site.wait_for(more, JobState.CANCELLED)
        trace = steps_in(tmp_path / "long")
        assert trace == list(range(len(trace)))
        check_history(site.store)
        check_all_over(site.store)
        check_journal(site.store)


def test_running_jobs_do_not_notice_that_the_controller_is_another_one(tmp_path: Path) -> None:
    with Site(tmp_path, "v100=1", round_seconds=1.0) as site:
        trace = tmp_path / "trace"
        running = site.submit(**counting(trace, 10**6, 0.01), preemptible=False)
        until(lambda: len(steps_in(trace)) > 5)
        queued = [site.submit("true") for _ in range(3)]
        pid = pid_of(site, running)
        for _ in range(2):
            site.restart()
            assert pid_of(site, running) == pid
            assert site.controller.healthy
        before = len(steps_in(trace))
        until(lambda: len(steps_in(trace)) > before)
        assert site.job(running).attempts == 1
        steps = steps_in(trace)
        assert steps == list(range(len(steps)))
        site.cancel(running)
        until(lambda: not any(job.active for job in site.jobs()))
        assert site.job(running).state is JobState.CANCELLED
        started = [site.job(name).started_at for name in queued]
        assert None not in started
        assert started == sorted(filter(None, started)), "those that waited keep their place"
        check_history(site.store)
        check_journal(site.store)


def test_what_happened_while_no_controller_was_there_is_found_out(tmp_path: Path) -> None:
    with Site(tmp_path, "v100=3") as site:
        go = tmp_path / "go"
        ends = site.submit(waiting(go))
        fails = site.submit(f"{waiting(go)}; exit 7", retries=0)
        dies = site.submit("sleep 600")
        for job in (ends, fails, dies):
            site.wait_for(job, JobState.RUNNING)
        keeper, agent = pid_of(site, dies), site.agent_pid()
        site.controller.stop()
        kill(agent)
        go.touch()
        kill(keeper)
        late = site.submit("true")
        site.start()
        assert site.wait_for(ends, JobState.SUCCEEDED).attempts == 1
        failed = site.wait_for(fails, JobState.FAILED)
        assert (failed.attempts, failed.exit_code, failed.reason) == (1, 7, "rank 0 ended with exit code 7")
        site.wait_for(late, JobState.SUCCEEDED)
        until(lambda: site.job(dies).attempts == 2, "for the killed job to run again")
        assert site.history(dies).attempts[0].outcome == "failed"
        check_history(site.store)


def test_a_killed_agent_is_started_again_and_nothing_is_restarted(tmp_path: Path) -> None:
    with Site(tmp_path) as site:
        trace = tmp_path / "trace"
        job = site.submit(**counting(trace, 10**6, 0.01))
        until(lambda: len(steps_in(trace)) > 5)
        site.wait_for(job, JobState.RUNNING)
        pid = pid_of(site, job)
        for times in range(1, 3):
            kill(site.agent_pid())
            until(lambda times=times: site.controller.statistics().agent_restarts_total == times)
            until(lambda: site.controller.healthy)
        assert pid_of(site, job) == pid
        new = site.submit("true")
        assert site.wait_for(new, JobState.SUCCEEDED).attempts == 1
        assert site.job(job).attempts == 1
        steps = steps_in(trace)
        assert steps == list(range(len(steps)))


def test_time_scale_makes_all_of_it_faster(tmp_path: Path) -> None:
    taken = {}
    for scale in (1.0, 10.0):
        with Site(tmp_path / str(scale), "v100=1", round_seconds=10.0, time_scale=scale) as site:
            job = site.submit(python(COUNTING, 10**6, 0, tmp_path / f"trace-{scale}"), steps=40,
                              throughputs={"v100": 10.0})  # fmt: skip
            site.wait_for(job, JobState.SUCCEEDED)
            (attempt,) = site.history(job).attempts
            assert attempt.ended_at is not None
            taken[scale] = attempt.ended_at - attempt.started_at
    assert taken[1.0] >= 3.9
    assert taken[10.0] < taken[1.0] / 2


def test_shutting_down_saves_and_stops_all_and_the_next_start_goes_on(tmp_path: Path) -> None:
    with Site(tmp_path, "v100=1,k80=1") as site:
        trace = tmp_path / "trace"
        job = site.submit(**counting(trace, 200))
        stubborn = site.submit(python(STUBBORN), grace=0.2)
        until(lambda: len(steps_in(trace)) > 5)
        until(lambda: "ready" in site.log(stubborn))
        site.wait_for(job, JobState.RUNNING)
        site.wait_for(stubborn, JobState.RUNNING)
        agent = site.agent_pid()
        site.controller.shut_down()
        with pytest.raises(ProcessLookupError):
            os.kill(agent, signal.SIG_DFL)
        saved = len(steps_in(trace))
        assert site.job(job).state is JobState.QUEUED
        assert site.job(job).steps_left == 200 - saved
        assert not list((site.settings.backend_directory / "runs").iterdir())
        site.start()
        site.wait_for(job, JobState.SUCCEEDED)
        assert steps_in(trace) == list(range(200))
        site.cancel(stubborn)
        site.wait_for(stubborn, JobState.CANCELLED)
