"""Rounds in which jobs share: what is owed is work, however it is done."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from fairway.allocate.policies import POLICIES
from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import JobArrived, RateMeasured, RoundBegan
from fairway.engine.training.options import EngineOptions
from fairway.engine.training.sharing import MOST_OWED, account_work
from fairway.jobs import Job

SHARING = "max-min-fairness:space-sharing"


class Kept:
    """Two jobs that share keep so much of their rates (of 1.0), on every type."""

    def __init__(self, part: float) -> None:
        self.part = part

    def pair_rates(self, job_type: str, partner: str, scale_factor: int) -> Mapping[str, tuple[float, float]]:  # noqa: ARG002
        return dict.fromkeys(("fast", "slow"), (self.part, self.part))


def engine_of(jobs: int, workers: Mapping[str, int], part: float, *, slow: float = 1.0) -> TrainingEngine:
    engine = TrainingEngine(
        Cluster(workers), policy_of(SHARING), EngineOptions(round_seconds=10.0), partners=Kept(part)
    )
    coming = [
        JobArrived(Job(f"j{number}", {"fast": 1.0, "slow": slow}, steps_left=1e9, job_type="kind"))
        for number in range(jobs)
    ]
    engine.handle(0.0, [*coming, RoundBegan()])
    return engine


def run(engine: TrainingEngine, rounds: int) -> list[int]:
    """How many jobs were stopped or moved in each round."""
    moved = []
    for number in range(1, rounds + 1):
        before = engine.jobs.lease.copy()
        engine.handle(10.0 * number, [RoundBegan()])
        moved.append(int(((engine.jobs.lease != before) & (before >= 0)).sum()))
        engine.validate()
    return moved


def test_a_job_is_owed_its_due_rate_less_the_rate_that_it_has() -> None:
    owed = np.array([[10.0, 5.0], [0.0, 0.0], [7.0, 0.0], [3.0, 0.0]])
    due, rate = np.array([2.0, 2.0, 1.0, 0.0]), np.array([1.0, 4.0, 0.0, 0.0])
    account_work(8.0, due, rate, owed, 12.0)
    # 15 + 8 (1 - 1/2) is above the most; nothing is owed for being ahead; 7 + 8 is above as well; no due, no change
    assert owed.tolist() == [[12.0, 0.0], [0.0, 0.0], [12.0, 0.0], [3.0, 0.0]]
    account_work(2.0, due, rate, owed, 100.0)
    assert owed[:3].tolist() == [[13.0, 0.0], [0.0, 0.0], [14.0, 0.0]]


def test_policies_that_raise_a_level_are_served_by_work_where_jobs_share() -> None:
    by_work = {name for name, policy in POLICIES.items() if policy().by_work}
    assert not by_work
    able = {name for name in POLICIES if name not in ("allox", "isolated", "proportional", "nash-welfare", "gandiva")}
    sharing = {name for name in able if policy_of(f"{name}:space-sharing").by_work}
    assert sharing == {"max-min-fairness", "water-filling", "hierarchical", "finish-time-fairness", "makespan"}
    assert not policy_of(f"{SHARING},agnostic").by_work


def test_two_jobs_that_do_not_slow_each_other_share_and_stay_together() -> None:
    engine = engine_of(2, {"fast": 1}, 1.0)
    assert engine.jobs.on.tolist() == [0, 0]
    assert not any(run(engine, 50))


def test_two_jobs_that_would_do_less_together_take_turns() -> None:
    engine = engine_of(2, {"fast": 1}, 0.3)
    moved = run(engine, 400)
    assert (engine.jobs.beside < 0).all()
    assert engine.jobs.done == pytest.approx([2000.0, 2000.0], rel=0.05)
    assert sum(moved) <= 100  # a turn is five rounds, less what more owed a job that waits must be


@pytest.mark.parametrize(("jobs", "part", "slow"), [(5, 0.8, 0.5), (7, 0.6, 0.9), (6, 0.55, 0.2), (9, 0.7, 1.0)])
def test_every_job_gets_the_rate_that_it_is_due(jobs: int, part: float, slow: float) -> None:
    engine = engine_of(jobs, {"fast": 1, "slow": 2}, part, slow=slow)
    run(engine, 600)
    due = np.asarray(engine.allocation.throughputs) if engine.allocation is not None else np.zeros(jobs)
    assert (engine.jobs.done >= 0.93 * 6000.0 * due).all()
    assert engine.jobs.owed.max() < MOST_OWED * 50.0


def test_a_gang_gets_its_due_among_jobs_that_need_one_worker() -> None:
    engine = TrainingEngine(
        Cluster({"fast": 4}), policy_of(SHARING), EngineOptions(round_seconds=10.0), partners=Kept(0.6)
    )
    sizes = [1, 1, 1, 1, 1, 1, 4, 2]
    engine.handle(
        0.0,
        [
            *(
                JobArrived(Job(f"j{number}", {"fast": 1.0}, steps_left=1e9, job_type="kind", scale_factor=size))
                for number, size in enumerate(sizes)
            ),
            RoundBegan(),
        ],
    )
    run(engine, 600)
    assert engine.allocation is not None
    assert (engine.jobs.done >= 0.9 * 6000.0 * engine.allocation.throughputs).all()


def test_what_is_measured_of_two_jobs_that_share_counts_for_them_at_once() -> None:
    engine = engine_of(2, {"fast": 1}, 1.0)
    engine.handle(5.0, [RateMeasured(("j0", "j1"), "fast", (0.2, 0.2))])
    assert engine.jobs.rate.tolist() == [0.2, 0.2]
    engine.advance(10.0)
    assert engine.jobs.done == pytest.approx([5.0 + 1.0, 5.0 + 1.0])


def test_jobs_that_were_only_believed_to_run_together_are_parted_when_it_is_measured() -> None:
    engine = engine_of(2, {"fast": 1}, 1.0)
    assert engine.jobs.beside.tolist() == [1, 0]
    engine.handle(5.0, [RateMeasured(("j0", "j1"), "fast", (0.01, 0.01))])
    engine.handle(10.0, [RoundBegan()])
    assert engine.jobs.beside.tolist() == [-1, -1]
    for number in range(2, 200):
        engine.handle(10.0 * number, [RoundBegan()])
    assert engine.jobs.done.min() > 0.4 * 1990.0


@pytest.mark.parametrize("restart", [0.0, 20.0])
def test_an_engine_that_goes_on_from_another_decides_as_that_one_would(restart: float) -> None:
    options = EngineOptions(round_seconds=10.0, restart_seconds=restart)
    engines = [TrainingEngine(Cluster({"fast": 2}), policy_of(SHARING), options, partners=Kept(0.7))]
    coming = [
        JobArrived(Job(f"j{number}", {"fast": 1.0 + number}, steps_left=1e9, job_type="kind")) for number in range(5)
    ]
    engines[0].handle(0.0, [*coming, RoundBegan()])
    for number in range(1, 40):
        engines[0].handle(10.0 * number, [RoundBegan()])
    engines.append(TrainingEngine(Cluster({"fast": 2}), policy_of(SHARING), options, partners=Kept(0.7)))
    engines[1].handle(390.0, engines[0].resumption())
    assert engines[1].jobs.owed.sum(axis=1) == pytest.approx(engines[0].jobs.owed.sum(axis=1))
    assert engines[1].jobs.beside.tolist() == engines[0].jobs.beside.tolist()
