"""What a run is made of: its record, the order for its keeper, its lease, and directories for their owner only."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairway.live.backend.accelerators import Accelerator
from fairway.live.backend.answers import Refusal, RefusedError
from fairway.live.backend.commands import GangPart, JobProgram, MeetingPoint, StartRun
from fairway.live.backend.status import RunState
from fairway.live.local.agent.preparation import RunPreparation

EMULATED = [Accelerator("v100", 0), Accelerator("v100", 1)]
REAL = [Accelerator("h100", 0, device="GPU-1")]
MEET = MeetingPoint("10.0.0.1", 4000, 4001, "s" * 16)


def command(**fields: Any) -> StartRun:
    program = JobProgram(("train", "--fast"), setup="make", workdir="/work", log_bytes=10**6, grace_seconds=3.0)
    return replace(StartRun(7, "job-1", program, "v100", (0, 1), attempt=2), **fields)


def part(node: int) -> StartRun:
    return command(part=GangPart((2 * node, 2 * node + 1), 4, node, ("a", "b")), meet=MEET)


@pytest.fixture
def preparation(tmp_path: Path) -> RunPreparation:
    made = RunPreparation(tmp_path / "agent", {"PATH": "/bin"}, time_scale=10.0)
    made.make_directories()
    return made


def test_a_run_is_remembered_as_it_was_asked_for(preparation: RunPreparation) -> None:
    run = preparation.prepared(command(until=50.0, expires=True, share=0.5), EMULATED, now=20.0)
    assert (run.lease, run.job, run.accelerator, run.workers, run.attempt) == (7, "job-1", "v100", [0, 1], 2)
    assert (run.state, run.emulated, run.preemptible, run.share) == (RunState.WAITING, True, True, 0.5)
    assert (run.until, run.expires, run.accepted, run.directory) == (50.0, True, 20.0, "7-job-1")
    assert not preparation.prepared(command(workers=(0,)), REAL, now=20.0).emulated


def test_the_order_says_what_to_run_where_and_for_how_long(preparation: RunPreparation) -> None:
    order = preparation.files_of(preparation.prepared(command(), EMULATED, now=20.0)).order()
    assert order is not None
    assert (order.run, order.setup, order.workdir) == (["train", "--fast"], "make", "/work")
    assert (order.log_bytes, order.grace_seconds, order.checkpoint_seconds) == (10**6, 3.0, 60.0)
    assert order.title.startswith("fairway: attempt 2 of job-1, lease 7, ")
    assert order.numbers == [0, 1]
    assert (order.requirements, order.environments, order.user, order.agreement) == (None, None, None, None)
    checkpoints = preparation.directory / "checkpoints" / "job-1"
    assert order.environment["FAIRWAY_CHECKPOINT_DIR"] == str(checkpoints)
    assert checkpoints.is_dir()
    assert len(order.logs) == 2
    assert all(Path(log).parent.is_dir() for log in order.logs)
    assert 0 < int(order.environment["FAIRWAY_MASTER_PORT"]) < 65536


def test_an_order_that_is_there_stays_and_the_lease_is_that_of_the_last_command(preparation: RunPreparation) -> None:
    files = preparation.files_of(preparation.prepared(command(until=50.0), EMULATED, now=20.0))
    before = files.order()
    preparation.prepared(command(until=90.0, expires=True, program=JobProgram("other")), EMULATED, now=30.0)
    assert files.order() == before
    lease = files.lease()
    assert lease is not None
    assert (lease.lease, lease.until, lease.expires) == (7, 90.0, True)


def test_what_runs_belong_to_is_for_their_owner_only(preparation: RunPreparation) -> None:
    files = preparation.files_of(preparation.prepared(command(), EMULATED, now=20.0))
    own = [preparation.directory / name for name in ("runs", "channels", "logs", "checkpoints")]
    for directory in (*own, files.directory, files.channel.directory):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_emulated_gangs_are_held_to_their_rate_on_the_clock_of_the_wall(preparation: RunPreparation) -> None:
    run = preparation.prepared(command(steps_per_second=6.0), EMULATED, now=20.0)
    lease = preparation.files_of(run).lease()
    assert lease is not None
    assert lease.pace == preparation.pace(run, 6.0) == 30.0, "ten times as fast, for each of two ranks"
    assert preparation.pace(run, None) is None
    assert preparation.pace(preparation.prepared(part(0), EMULATED, now=20.0), 6.0) == 15.0, "of four ranks in all"
    real = preparation.prepared(command(lease=8, workers=(0,)), REAL, now=20.0)
    assert preparation.pace(real, 6.0) is None


def test_the_ranks_of_a_gang_on_several_nodes_meet_at_the_first_which_brings_them_to_agree(
    preparation: RunPreparation,
) -> None:
    orders = []
    for node in (0, 1):
        run = preparation.prepared(replace(part(node), lease=10 + node), EMULATED, now=20.0)
        orders.append(preparation.files_of(run).order())
    first, second = orders
    assert first is not None
    assert second is not None
    assert (first.numbers, second.numbers) == ([0, 1], [2, 3])
    assert first.agreement == {"address": "10.0.0.1", "port": 4001, "secret": "s" * 16, "ranks": 4}
    assert second.agreement is None
    for order in (first, second):
        met = (order.environment["FAIRWAY_MASTER_ADDR"], order.environment["FAIRWAY_MASTER_PORT"])
        assert met == ("10.0.0.1", "4000")


def test_a_job_may_use_the_cpus_that_it_asked_for(preparation: RunPreparation) -> None:
    run = preparation.prepared(command(program=JobProgram("x", cpus=1.5, memory_bytes=10**9)), EMULATED, now=20.0)
    order = preparation.files_of(run).order()
    assert order is not None
    assert (order.cpus, order.memory_bytes) == (1.5, 10**9)


def test_a_directory_that_cannot_be_made_is_refused_with_the_reason(preparation: RunPreparation) -> None:
    taken = preparation.directory / "file"
    taken.touch()
    where = taken / "checkpoints"
    with pytest.raises(RefusedError, match=f"checkpoint directory {where}: Not a directory") as caught:
        preparation.prepared(command(program=JobProgram("x", checkpoint_directory=str(where))), EMULATED, now=20.0)
    assert caught.value.code is Refusal.CANNOT_START
    with pytest.raises(RefusedError, match="user 'no-such-user'"):
        preparation.prepared(command(program=JobProgram("x", user="no-such-user")), EMULATED, now=20.0)
    assert not (preparation.directory / "runs" / "7-job-1").exists()


def test_packages_go_into_the_environments_of_ones_own_jobs(preparation: RunPreparation) -> None:
    run = preparation.prepared(command(program=JobProgram("x", requirements="r.txt")), EMULATED, now=20.0)
    order = preparation.files_of(run).order()
    assert order is not None
    assert order.requirements == "r.txt"
    assert order.environments == str(preparation.directory / "environments" / "own")
    assert Path(order.environments).is_dir()
