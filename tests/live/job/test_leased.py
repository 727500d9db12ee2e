"""`fairway.leased` from the inside: plain iteration, resuming, saving, stopping, agreeing, pacing, measuring."""

from __future__ import annotations

import itertools
import pickle
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairway
from fairway.live.backend.channel import STOPPED, LeaseState, RunChannel
from fairway.live.job import leased
from fairway.live.job.agreement import Alone
from fairway.live.job.checkpoint import Checkpoints
from fairway.live.job.gang import Gang
from fairway.live.job.leased import Leased, LeaseEnded, Rank
from fairway.live.job.pacing import Meter, Pace


def rank_in(directory: Path, **variables: object) -> Rank:
    """A rank as a process of a run would be."""
    (directory / "run").mkdir(exist_ok=True)
    environment = {"FAIRWAY_RUN_DIR": directory / "run", "FAIRWAY_CHECKPOINT_DIR": directory / "checkpoints"}
    return Rank({name: str(value) for name, value in {**environment, **variables}.items()})


def loop(
    rank: Rank,
    loader: Iterable[int],
    checkpoint: Any = None,
    *,
    every: int | None = None,
    steps: int | None = None,
    skip: bool = True,
    at_end: Literal["exit", "break"] = "break",
) -> Leased[int]:
    return Leased(loader, rank, checkpoint, every=every, steps=steps, skip=skip, at_end=at_end)


def test_outside_fairway_it_is_a_plain_iterator() -> None:
    run = fairway.leased([3, 1, 4], checkpoint=lambda _: pytest.fail("there is nowhere to save to"))
    assert (run.start, run.state, run.stopped, len(run)) == (0, None, False, 3)
    assert list(run) == [3, 1, 4]
    assert list(fairway.leased(range(10), steps=run.step + 2)) == [0, 1]


def test_a_notice_saves_and_stops_and_the_next_attempt_goes_on(tmp_path: Path) -> None:
    files = RunChannel(tmp_path / "run")
    rank = rank_in(tmp_path)
    done: list[int] = []

    def train() -> None:
        for batch in loop(rank, range(10), lambda step: {"step": step}, at_end="exit"):
            done.append(batch)
            if batch == 3:
                files.write_lease(LeaseState(1, stop="save"))
                rank._looked = -1.0  # as if the few milliseconds between two looks had passed

    with pytest.raises(LeaseEnded) as ended:
        train()
    assert ended.value.code == STOPPED
    told = files.progress(range(1))
    assert told is not None
    assert (told[0].step, told[0].checkpoint_step, told[0].stopped) == (4, 4, True)
    files.write_lease(LeaseState(2))
    again = rank_in(tmp_path)
    run = loop(again, range(10))
    assert (run.start, run.state) == (4, {"step": 4})
    assert done + list(run) == list(range(10))
    assert not run.stopped


def test_loops_after_a_stop_are_empty_when_the_loop_only_breaks(tmp_path: Path) -> None:
    rank = rank_in(tmp_path)
    RunChannel(tmp_path / "run").write_lease(LeaseState(1, stop="save"))
    rank._looked = -1.0
    assert list(loop(rank, range(5), lambda _: {})) == []
    assert rank.stopped
    assert list(loop(rank, range(5), lambda _: {})) == []


def test_epochs_are_passed_over_as_far_as_they_were_done(tmp_path: Path) -> None:
    Checkpoints(tmp_path / "checkpoints").save(7, {"step": 7})
    rank = rank_in(tmp_path)
    epochs = [list(loop(rank, range(3))) for _ in range(4)]
    assert epochs == [[], [], [1, 2], [0, 1, 2]]
    assert rank.step == 12


def test_a_loader_that_begins_at_the_start_by_itself_is_not_passed_over(tmp_path: Path) -> None:
    Checkpoints(tmp_path / "checkpoints").save(7, None)
    rank = rank_in(tmp_path, FAIRWAY_STEPS=10)
    run = loop(rank, itertools.count(rank.start), skip=False)
    assert run.state is None
    assert list(run) == [7, 8, 9]


def test_checkpoints_are_saved_every_few_steps_and_at_the_end(tmp_path: Path) -> None:
    saved: list[int] = []
    rank = rank_in(tmp_path, FAIRWAY_STEPS=10)
    assert len(list(loop(rank, itertools.count(), saved.append, every=4))) == 10
    assert saved == [4, 8, 10]
    assert rank_in(tmp_path).start == 10


def test_checkpoints_are_saved_at_the_interval_of_the_job(tmp_path: Path) -> None:
    saved: list[int] = []
    rank = rank_in(tmp_path, FAIRWAY_CHECKPOINT_SECONDS=0.000001)
    assert list(loop(rank, range(3), saved.append)) == [0, 1, 2]
    assert saved == [1, 2]


def test_a_lease_that_expires_is_given_up_even_if_nobody_says_so(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    RunChannel(tmp_path / "run").write_lease(LeaseState(1, until=1.0, expires=True))
    rank = rank_in(tmp_path)
    assert list(loop(rank, range(3), lambda _: {})) == []
    assert rank.stopped


@pytest.mark.parametrize("step", [3600.0, -3600.0], ids=["forwards", "back"])
def test_a_lease_that_expires_does_not_notice_that_the_clock_was_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    wall, monotonic = time.time(), time.monotonic()
    # Not the clocks of the process: servers of other tests may go by them in threads of their own.
    clocks = SimpleNamespace(time=lambda: wall, monotonic=lambda: monotonic)
    monkeypatch.setattr(leased, "time", clocks)
    (tmp_path / "run").mkdir()
    RunChannel(tmp_path / "run").write_lease(LeaseState(1, until=wall + 100.0, expires=True))
    rank = rank_in(tmp_path)
    clocks.time, clocks.monotonic = (lambda: wall + step), (lambda: monotonic + 99.0)
    assert rank.next(can_save=True) == "step"
    clocks.monotonic = lambda: monotonic + 101.0
    assert rank.next(can_save=True) == "stop"


def test_a_job_goes_on_when_it_cannot_tell_how_far_it_is(tmp_path: Path) -> None:
    rank = rank_in(tmp_path)
    for file in (tmp_path / "run").iterdir():
        file.unlink()
    (tmp_path / "run").rmdir()
    assert list(loop(rank, range(3))) == [0, 1, 2]


@pytest.mark.parametrize(
    ("state", "suffix"),
    [
        ({"weights": np.arange(6.0).reshape(2, 3), "bias": np.float32([1])}, "npz"),
        ({"weights": np.arange(3), "epoch": 4}, "pickle"),
        ([1, "two", {3}], "pickle"),
        (None, "saved"),
    ],
)
def test_states_of_every_kind_come_back(tmp_path: Path, state: Any, suffix: str) -> None:
    checkpoints = Checkpoints(tmp_path / "here")
    checkpoints.save(5, state)
    assert [path.name for path in checkpoints.directory.iterdir()] == [f"step-000000000005.rank-0.{suffix}"]
    assert checkpoints.latest() == 5
    np.testing.assert_equal(checkpoints.load(5), state)


def test_a_checkpoint_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, "first")
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        checkpoints.save(2, lambda: None)
    assert checkpoints.latest() == 1
    assert len(list(tmp_path.iterdir())) == 1
    (tmp_path / ".step-000000000003.rank-0.pickle.1.part").write_bytes(b"cut sh")
    assert checkpoints.latest() == 1


def test_a_gang_goes_on_from_the_last_step_that_all_ranks_have_saved(tmp_path: Path) -> None:
    ranks = [Checkpoints(tmp_path, rank, 2) for rank in (0, 1)]
    assert ranks[0].latest() is None
    for step in (10, 20):
        for rank in ranks:
            rank.save(step, step)
    for step in (30, 40, 50):  # rank 1 never gets to save these
        ranks[0].save(step, step)
    assert [rank.latest() for rank in ranks] == [20, 20]
    assert [rank.load(20) for rank in ranks] == [20, 20]
    ranks[1].save(50, 50)
    ranks[0].save(60, 60)
    assert ranks[0].latest() == 50
    assert sorted(path.name[:17] for path in tmp_path.glob("*rank-0*")) == ["step-000000000050", "step-000000000060"]


@given(seed=st.randoms(use_true_random=False), size=st.integers(2, 5), notice=st.integers(0, 60))
def test_ranks_always_stop_and_save_after_the_same_steps(
    tmp_path_factory: pytest.TempPathFactory, seed: Any, size: int, notice: int
) -> None:
    path = tmp_path_factory.mktemp("gang") / "gang"
    ranks = [Gang(path, rank, size) for rank in range(size)]
    done, saves = [0] * size, [[] for _ in range(size)]  # type: list[int], list[list[int]]
    going = set(range(size))
    for turn in range(10_000):
        if not going:
            break
        rank = seed.choice(sorted(going))
        stop = turn >= notice and seed.random() < 0.5  # ranks notice at different moments
        match ranks[rank].next(done[rank], stop=stop, save=seed.random() < 0.05):
            case "step":
                done[rank] += 1
            case "save":
                saves[rank].append(done[rank])
            case "stop":
                going.remove(rank)
    assert not going
    assert len(set(done)) == 1
    # A save that all agreed on but that lies where all stop is done as they stop.
    assert len({tuple(step for step in steps if step < done[0]) for steps in saves}) == 1


def test_ranks_in_lockstep_never_wait_for_each_other_at_a_stop(tmp_path: Path) -> None:
    meeting = threading.Barrier(3, timeout=20)  # as the gradients of data-parallel training
    notice = threading.Event()
    done = [0, 0, 0]

    def work(rank: int) -> None:
        gang = Gang(tmp_path / "gang", rank, 3)
        while gang.next(done[rank], stop=notice.is_set(), save=False) == "step":
            meeting.wait()
            done[rank] += 1
            if rank == 1 and done[rank] == 50:
                notice.set()

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not meeting.broken
    assert done[0] == done[1] == done[2] >= 50


def test_a_rank_alone_does_as_it_likes() -> None:
    assert Alone().next(3, stop=True, save=True) == "stop"
    assert Alone().next(3, stop=False, save=True) == "save"
    assert Alone().next(3, stop=False, save=False) == "step"


class Clock:
    """A clock that only moves when somebody sleeps or works."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@given(
    rate=st.floats(0.5, 500),
    work=st.lists(st.floats(0, 0.5), min_size=50, max_size=50),
)
def test_pacing_keeps_the_rate_whatever_single_steps_take(rate: float, work: list[float]) -> None:
    clock = Clock()
    pace = Pace(clock, clock.sleep)
    pace.set(rate)
    pace.begin()
    for share in work:
        clock.sleep(share / rate)  # less than a step may take
        pace.step()
    assert clock.now == pytest.approx(len(work) / rate, abs=0.002 + 1e-6)


def test_pacing_does_not_hurry_after_a_long_stop_and_does_not_count_checkpoints() -> None:
    clock = Clock()
    pace = Pace(clock, clock.sleep)
    pace.set(10.0)
    clock.sleep(60)
    pace.step()
    for _ in range(30):
        pace.step()
    assert clock.now == pytest.approx(60 + 30 / 10 - 2)
    clock.sleep(5)
    pace.pause(5)
    before = clock.now
    pace.step()
    assert clock.now == pytest.approx(before + 0.1)
    pace.set(None)
    pace.step()
    assert clock.now == pytest.approx(before + 0.1)


def test_the_measured_rate_leaves_out_checkpoints_and_the_first_step() -> None:
    clock = Clock()
    meter = Meter(clock)
    assert meter.steps_per_second is None
    clock.sleep(30)  # the first step is slow
    meter.mark(1)
    assert meter.steps_per_second is None
    clock.sleep(1)
    meter.mark(6)
    clock.sleep(10)
    meter.pause(10)
    clock.sleep(1)
    meter.mark(11)
    assert meter.steps_per_second == pytest.approx(5.0)
    meter.restart()  # the one that it shared with has left
    assert meter.steps_per_second is None
    clock.sleep(1)
    meter.mark(12)
    clock.sleep(1)
    meter.mark(20)
    assert meter.steps_per_second == pytest.approx(8.0)
