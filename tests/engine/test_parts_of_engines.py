"""Parts of both engines by themselves: names of schedules, machines of workers that come, what reservations leave."""

from __future__ import annotations

import numpy as np
import pytest

from fairway.cluster import UNCOUNTED, Cluster, Machine
from fairway.engine.serving.schedule import schedule_of
from fairway.engine.training.job_table import JobTable
from fairway.engine.training.messages import Reserved, WorkersLeft
from fairway.engine.training.reservations import Kept
from fairway.engine.training.worker_pool import WorkerPool

# Serving


@pytest.mark.parametrize(
    ("text", "name", "title", "centralised"),
    [
        ("compass", "compass", "compass", False),
        ("compass:no-adjust", "compass", "compass:no-adjust", False),
        ("fairway:centralised", "fairway", "fairway:centralised", True),
        ("front+compass", "front+compass", "front+compass", True),
        ("esg:k=2+best-fit", "esg+best-fit", "esg:k=2+best-fit", True),
        ("esg", "esg+near-data", "esg+near-data", True),
    ],
)
def test_a_schedule_is_called_by_its_parts(text: str, name: str, title: str, centralised: bool) -> None:
    schedule = schedule_of(text)
    assert (schedule.name, schedule.title, schedule.centralised) == (name, title, centralised)


# Training


def test_workers_that_leave_are_gone_unless_it_is_a_drain() -> None:
    assert not WorkersLeft("v100", (0,)).drain


@pytest.mark.parametrize("first", [0, 1])
def test_workers_that_come_are_in_machines_like_the_last_one(first: int) -> None:
    machines = (Machine(8, 64), Machine(4, 32))
    cluster = Cluster({"v100": 2}, machines=machines, machine_of={"v100": (1 - first, first)})
    pool = WorkerPool(cluster)
    pool.join(0, 2)
    of_worker = pool.machine_of(0).tolist()
    assert of_worker[:2] == [1 - first, first]
    assert [pool.machines[number] for number in of_worker[2:]] == [machines[first]] * 2
    assert min(of_worker[2:]) == 2, "they are new machines"


def test_where_machines_are_not_known_those_of_new_workers_are_not_either() -> None:
    pool = WorkerPool(Cluster({"v100": 2}))
    pool.join(0, 1)
    assert pool.machine_of(0).tolist() == [UNCOUNTED] * 3


def kept_of(*reserved: Reserved, until: float = 100.0) -> Kept:
    """Reservations beside a job of team a, one of a team below it and one of team b."""
    jobs = JobTable(2)
    for team, name in enumerate(("a", "below", "b")):
        rates = np.array([1.0, 1.0])
        jobs.add(name, time=0.0, rates=rates, spread=rates, scale=1, weight=1.0, steps=9.0,
                 deadline=9.0, team=team, kind=0)  # fmt: skip
    lineages = [frozenset({"a"}), frozenset({"below", "a"}), frozenset({"b"})]
    return Kept(("v100", "k80"), jobs, lineages, np.full(3, until), list(reserved))


def reserved(count: int, team: str = "a", begins: float = 0.0, **others: int) -> Reserved:
    return Reserved(f"r{count}", team, {"v100": count, **others}, begins, 1000.0)


def test_jobs_use_up_the_reservations_of_their_team_one_after_the_other() -> None:
    kept = kept_of(reserved(3), reserved(2, k80=1), reserved(4, "b"))
    assert kept.from_job(2, 0) == 5
    assert kept.from_job(0, 0) == 4
    kept.use(0, 0, 4)
    assert kept.from_job(2, 0) == 1, "three of the first and one of the second"
    kept.use(1, 0, 9)
    assert kept.from_job(2, 0) == 0, "a team below has what is left, and the rest from elsewhere"
    assert kept.from_job(2, 1) == 1, "of another type"
    assert kept.from_job(0, 0) == 4, "what is for others is as it was"
    assert kept.fresh().from_job(2, 0) == 5


def test_a_reservation_that_begins_when_the_job_is_over_is_none_of_its_business() -> None:
    assert kept_of(reserved(3, "b", begins=99.9)).from_job(0, 0) == 3
    late = kept_of(reserved(3, "b", begins=100.0))
    assert late.from_job(0, 0) == 0
    assert late.promised(0, 0) == []


def test_a_rate_is_zero_where_too_few_workers_are_not_reserved_for_others() -> None:
    kept = kept_of(reserved(3, "b"))
    for present, possible in ((3, 0.0), (4, 1.0)):
        rates = np.ones((3, 2))
        kept.leave_out_impossible(rates, np.array([present, 0]))
        assert rates[:, 0].tolist() == [possible, possible, 1.0]
        assert rates[:, 1].tolist() == [0.0, 0.0, 0.0]
