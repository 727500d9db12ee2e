"""Which decisions of a simulated run are kept: evenly spread, bounded, and such that they can be made again."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from fairway.cluster import Cluster
from fairway.jobs import Job
from fairway.report.training.record import TrainingRecord
from fairway.sim import kept_decisions
from fairway.sim.replay import decide_again
from fairway.sim.submissions import Submission, TrainingOptions
from fairway.sim.training import simulate_training

OPTIONS = TrainingOptions(round_seconds=60.0, keep_leases=True)


def simulated(jobs: int = 12, options: TrainingOptions = OPTIONS) -> TrainingRecord:
    rates = {"v100": 2.0, "k80": 1.0}
    come = [Submission(90.0 * k, Job(f"j{k}", rates, steps_left=600.0 + 60 * k)) for k in range(jobs)]
    return simulate_training(come, Cluster({"v100": 1, "k80": 1}), "max-min-fairness", options)


def test_every_decision_of_a_short_run_is_there_and_comes_out_the_same_again() -> None:
    record = simulated()
    assert [number for number, _, _ in record.decisions] == list(range(1, record.solves + 1))
    for number, at, body in record.decisions:
        again = decide_again(number, at, "max-min-fairness", dict(body))
        assert again.same, again
    waiting = {job for _, _, body in record.decisions for job in body["reasons"]}
    assert waiting, "two workers and twelve jobs: some wait"


def test_a_long_run_keeps_a_bounded_number_of_them_spread_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_decisions, "MOST_JOBS", 40)
    record = simulated(30)
    numbers = [number for number, _, _ in record.decisions]
    gaps = {after - before for before, after in pairwise(numbers)}
    assert sum(len(body["problem"]["jobs"]) for _, _, body in record.decisions) <= 40
    assert len(gaps) == 1
    assert gaps.pop() > 1
    assert numbers[0] == 1


def test_without_leases_no_decision_is_kept() -> None:
    assert simulated(options=replace(OPTIONS, keep_leases=False)).decisions == ()
