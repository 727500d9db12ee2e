"""Simulated histories of the live training system: the same seed gives the same one, and none breaks a promise."""

from __future__ import annotations

import pytest

from fairway.simtest.plan import Plan, Step
from fairway.simtest.runner import plan_of, run_many
from fairway.simtest.training.component import TRAINING


def test_a_history_without_faults_ends_with_every_job_done() -> None:
    spec = {"run": ["steps"], "steps": 6, "throughputs": {"v100": 2.0, "k80": 1.0}}
    steps = tuple(Step(0.1 * number, "submit", {"key": f"key-{number}", "spec": spec}) for number in range(3))
    settings = {"emulate": "v100=1,k80=1", "policy": "fifo", "round_seconds": 2.0}
    history = TRAINING.run(Plan("training", "by hand", 1, settings, steps))
    assert history.violations == ()
    assert history.faults == {}


@pytest.mark.parametrize("generator", ["uniform", "swarm", "adversarial"])
def test_the_same_seed_gives_the_same_history(generator: str) -> None:
    plan = plan_of(TRAINING, generator, 3)
    first, second = TRAINING.run(plan), TRAINING.run(Plan.from_dict(plan.to_dict()))
    assert first == second
    assert plan_of(TRAINING, generator, 4) != plan


@pytest.mark.parametrize("generator", ["uniform", "swarm", "adversarial"])
def test_no_promise_is_broken_whatever_happens(generator: str) -> None:
    tally = run_many(TRAINING, (generator,), histories=67)
    assert tally.broken == []
    assert tally.faults.total() > 1000
