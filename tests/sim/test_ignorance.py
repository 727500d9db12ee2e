"""What the scheduler does not know, or believes wrongly: it goes by what it knows, and no job starves."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from fairway.cluster import Cluster
from fairway.profiles.catalog import builtin
from fairway.report.training.record import Outcome, TrainingRecord
from fairway.sim.profiling import Profiling
from fairway.sim.submissions import Submission, TrainingOptions
from fairway.sim.training import simulate_training
from fairway.traces.generate import generate
from fairway.traces.generate_options import parse_generate

TABLE = builtin()
ALONE, SHARING = "min-jct", "min-jct:space-sharing"


def run(policy: str, rate: float = 1.5, gangs: str = "", seed: int = 0, **options: object) -> TrainingRecord:
    jobs = [
        Submission(job.arrival, TABLE.job(job.id, str(job.job_type), job.scale_factor, steps_left=job.total_steps))
        for job in islice(generate(parse_generate(f"rate={rate}{gangs},seed={seed}"), TABLE), 150)
    ]
    asked = TrainingOptions(**options)  # type: ignore[arg-type]
    return simulate_training(jobs, Cluster.parse("v100=8,p100=8,k80=8"), policy, asked, table=TABLE)


def mean_seconds(record: TrainingRecord) -> float:
    return float(np.mean(record.jobs.finish - record.jobs.arrival))


def worst(record: TrainingRecord) -> float:
    """How many times as long as on an equal share the job took that is worst off; all must be done."""
    assert (record.jobs.outcome == Outcome.COMPLETED).all()
    taken = record.jobs.finish - record.jobs.arrival
    return float((taken / np.maximum(record.jobs.isolated_seconds, 3600.0)).max())


@pytest.mark.parametrize("gangs", ["", ",multi-gpu"])
def test_lengths_that_are_wrong_by_a_factor_of_a_hundred_starve_no_job(gangs: str) -> None:
    told = [run(ALONE, 1.5, gangs, seed, wrong_lengths=factor) for factor in (1.0, 100.0) for seed in (0, 1)]
    right, wrong = (sum(mean_seconds(record) for record in found) for found in (told[:2], told[2:]))
    assert wrong != right
    assert wrong < 1.2 * right
    assert max(map(worst, told)) < 1.6


def test_pairs_that_are_never_measured_do_not_cost_what_sharing_gains() -> None:
    for seed in (0, 1):
        alone, believed = (
            run(ALONE, 2.5, seed=seed),
            run(SHARING, 2.5, seed=seed, profiling=Profiling(0.2, 16, watches=False)),
        )
        assert mean_seconds(believed) < mean_seconds(alone)
        assert worst(believed) < 1.3


@pytest.mark.parametrize("gangs", ["", ",multi-gpu"])
def test_where_more_comes_than_the_cluster_can_do_the_floor_holds(gangs: str) -> None:
    for seed in (0, 1):
        assert worst(run(SHARING, 20.0, gangs, seed)) < 1.3
