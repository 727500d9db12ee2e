"""Jobs that share at rates which the scheduler does not know at first."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from fairway.cluster import Cluster
from fairway.errors import InputError
from fairway.profiles.catalog import builtin
from fairway.sim.profiling import ProfiledPartners, Profiling
from fairway.sim.submissions import Submission, TrainingOptions
from fairway.sim.training import simulate_training
from fairway.traces.generate import generate
from fairway.traces.generate_options import parse_generate

TABLE = builtin()


def test_what_was_measured_beside_all_references_is_known_nearly_as_it_is() -> None:
    references = len(TABLE.job_types)
    partners = ProfiledPartners(TABLE, Profiling(1.0, references), seed=0)
    for other in TABLE.job_types[:5]:
        assert partners.pair_rates("A3C", other, 1) == TABLE.pair_rates("A3C", other, 1)


def test_with_little_measured_the_rest_is_an_estimate_between_nothing_and_the_rate_alone() -> None:
    partners = ProfiledPartners(TABLE, Profiling(0.2, 10), seed=1)
    different = 0
    for first in TABLE.job_types:
        for accelerator, both in partners.pair_rates(first, "CycleGAN", 1).items():
            assert 0 <= both[0] <= TABLE.rate(first, 1, accelerator) * (1 + 1e-9)
            assert 0 <= both[1] <= TABLE.rate("CycleGAN", 1, accelerator) * (1 + 1e-9)
            different += both != TABLE.pair_rates(first, "CycleGAN", 1)[accelerator]
    assert different > 10


def test_gangs_are_not_estimated() -> None:
    partners = ProfiledPartners(TABLE, Profiling(), seed=0)
    assert partners.pair_rates("LM (batch size 5)", "LM (batch size 5)", 2) == {}


def mean_jct(policy: str, profiling: Profiling | None, seed: int) -> float:
    jobs = [
        Submission(job.arrival, TABLE.job(job.id, str(job.job_type), steps_left=job.total_steps))
        for job in islice(generate(parse_generate(f"rate=1.5,seed={seed}"), TABLE), 150)
    ]
    options = TrainingOptions(profiling=profiling)
    record = simulate_training(jobs, Cluster.parse("v100=4,p100=4,k80=4"), policy, options, table=TABLE)
    return float(np.mean(record.jobs.finish - record.jobs.arrival))


def test_estimates_keep_most_of_the_benefit_of_sharing() -> None:
    alone, known, estimated = (
        sum(mean_jct(policy, profiling, seed) for seed in (0, 1))
        for policy, profiling in (
            ("max-min-fairness", None),
            ("max-min-fairness:space-sharing", None),
            ("max-min-fairness:space-sharing", Profiling(0.2, 16)),
        )
    )
    assert known < 0.9 * alone
    assert alone - estimated > 0.85 * (alone - known)


@pytest.mark.parametrize(("fraction", "references"), [(-0.1, 5), (1.5, 5), (0.2, 0)])
def test_options_out_of_range_are_refused(fraction: float, references: int) -> None:
    with pytest.raises(InputError, match="profiling: "):
        Profiling(fraction, references)
