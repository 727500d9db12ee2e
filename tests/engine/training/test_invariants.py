"""An engine that contradicts itself says so, and tells the story of what is wrong."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.engine.protocol import InvariantError
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import JobArrived, RoundBegan, WorkersLeft
from fairway.engine.training.options import EngineOptions
from tests.engine.training.test_engine import EveryoneShares, job


def busy() -> TrainingEngine:
    """Two gangs and a job that waits, on two types; a worker of one is lost."""
    cluster = Cluster({"fast": 4, "slow": 3})
    engine = TrainingEngine(cluster, policy_of("fifo"), EngineOptions(restart_seconds=3.0))
    jobs = [job("a", scale=4), job("b", scale=2), job("c", scale=2)]
    engine.handle(0.0, [*map(JobArrived, jobs), RoundBegan(), WorkersLeft("slow", (2,))])
    assert engine.jobs.lease.tolist() == [1, 2, -1]
    return engine


def free(engine: TrainingEngine) -> None:
    engine.workers.free[1] += 1


def present(engine: TrainingEngine) -> None:
    engine.workers.present[0] -= 1
    engine.jobs.pooled = engine.jobs.rates @ engine.workers.present


def a_worker_of_two_leases(engine: TrainingEngine) -> None:
    engine.workers._holder[0][3] = 2


def a_worker_that_is_gone(engine: TrainingEngine) -> None:
    engine.workers._holder[0][3] = -2
    present(engine)


def a_lease_of_no_job(engine: TrainingEngine) -> None:
    engine.jobs.lease[1] = engine.jobs.on[1] = engine.jobs.charged[1] = -1
    engine.jobs.rate[1] = 0.0


def a_number_to_come(engine: TrainingEngine) -> None:
    engine._leases.last = 1


def running_on_nothing(engine: TrainingEngine) -> None:
    engine.jobs.lease[0] = -1


def waiting_and_running(engine: TrainingEngine) -> None:
    engine.jobs.rate[2] = 1.0


def beside_a_stranger(engine: TrainingEngine) -> None:
    engine.jobs.beside[0] = 7


def two_sizes(engine: TrainingEngine) -> None:
    engine.jobs.lease[1] = 1


def not_described(engine: TrainingEngine) -> None:
    del engine._admission.described["b"]


def twice(engine: TrainingEngine) -> None:
    engine.jobs.ids[1] = "a"


def out_of_order(engine: TrainingEngine) -> None:
    engine.jobs.number[0] = 9


def less_than_nothing_left(engine: TrainingEngine) -> None:
    engine.jobs.left[1] = -1.0


def not_a_number(engine: TrainingEngine) -> None:
    engine.jobs.isolated[1] = np.nan


def late(engine: TrainingEngine) -> None:
    engine.jobs.since[1] = 3.5


def other_rates(engine: TrainingEngine) -> None:
    engine.jobs.rates[1, 0] = 9.0


def no_round(engine: TrainingEngine) -> None:
    engine.round_end = None


def charged_for_nothing(engine: TrainingEngine) -> None:
    engine.jobs.charged[2] = 0


def endless_debt(engine: TrainingEngine) -> None:
    engine.jobs.owed[1, 0] = np.inf


def leaving_alone(engine: TrainingEngine) -> None:
    engine.workers._leaving[1].add(2)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (free, "slow: 1 free of 2 present were counted, but there are 0 of 2"),
        (present, "fast: 0 free of 3 present were counted, but there are 0 of 4"),
        (a_worker_of_two_leases, "lease 1 of ['a'] does not hold as many workers as they ask for, {4}"),
        (a_worker_that_is_gone, "lease 1 of ['a'] does not hold as many workers as they ask for, {4}"),
        (a_lease_of_no_job, "lease 2 holds 2 slow, but no job holds it there"),
        (a_number_to_come, "lease 2 is numbered above the last one, 1"),
        (running_on_nothing, "job 'a' runs without a lease, or holds one and does not"),
        (waiting_and_running, "job 'c' waits, but runs, shares or is charged"),
        (beside_a_stranger, "lease 1 is held by ['a'], which do not know of each other"),
        (two_sizes, "lease 1 is held by ['a', 'b'], of sizes {2, 4} on types {0, 1}"),
        (not_described, "job 'b' is not described"),
        (twice, "job 'a' stands 2 times in the table"),
        (out_of_order, "jobs are not in order of arrival: their numbers are [9, 1, 2]"),
        (less_than_nothing_left, "job 'b' has -1.0 steps left"),
        (not_a_number, "job 'b' has had nan seconds on an equal share"),
        (late, "job 'b' makes progress from 3.5 s on, but no restart ends after 3.0 s"),
        (other_rates, "job 'b' is taken to run at 10.0 on all workers"),
        (no_round, "there are 3 jobs, but no round in which one could run"),
        (charged_for_nothing, "job 'c' waits, but runs, shares or is charged"),
        (endless_debt, "the debts of jobs are not all numbers"),
        (leaving_alone, "worker slow/2 leaves with its lease, but no lease holds it"),
    ],
)
def test_a_contradiction_is_found(spoil: Callable[[TrainingEngine], None], says: str) -> None:
    engine = busy()
    engine.validate()
    spoil(engine)
    with pytest.raises(InvariantError) as raised:
        engine.validate()
    assert str(raised.value).startswith(f"{says}:\n")


def test_the_story_of_what_is_wrong_is_told() -> None:
    engine = busy()
    less_than_nothing_left(engine)
    with pytest.raises(InvariantError, match=r"(?s)JobArrived\(job=Job\(id='b'.*Grant\(lease=2, jobs=\('b',\)"):
        engine.validate()


def test_jobs_that_share_know_of_each_other() -> None:
    engine = TrainingEngine(
        Cluster({"fast": 1}), policy_of("max-min-fairness:space-sharing"), partners=EveryoneShares()
    )
    engine.handle(0.0, [*[JobArrived(job(name, job_type="x")) for name in "ab"], RoundBegan()])
    assert engine.jobs.beside.tolist() == [1, 0]
    engine.validate()
    engine.jobs.beside[1] = -1
    with pytest.raises(InvariantError, match=r"lease 1 is held by \['a', 'b'\], which do not know of each other"):
        engine.validate()


def test_a_worker_that_was_drained_and_is_then_lost_leaves_once() -> None:
    engine = TrainingEngine(Cluster({"fast": 2}), policy_of("fifo"))
    engine.handle(0.0, [JobArrived(job("a", scale=2, preemptible=False)), RoundBegan()])
    engine.handle(1.0, [WorkersLeft("fast", (0,), drain=True)])
    assert engine.workers.gone(0) == (0,)
    engine.handle(2.0, [WorkersLeft("fast", (0,))])
    engine.validate()
    assert (engine.workers.free.tolist(), engine.workers.present.tolist()) == ([1], [1])
