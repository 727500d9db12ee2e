"""What plans for all queues have in common: what follows a stage, which configurators preempt, who stays where."""

from __future__ import annotations

import numpy as np
import pytest

from fairway import Application, Configuration, Profile, configurator_of
from fairway.configure.fleet_plan import Machines, StagePlan, later_seconds, preempts, stay_put

ONE = Profile.of({Configuration(1, 1, 1): 0.1})


@pytest.mark.parametrize(
    ("name", "may"), [("shepherd", True), ("shepherd:no-preemption", False), ("nexus", False), ("esg", False)]
)
def test_only_a_configurator_that_preempts_may_stop_a_batch(name: str, may: bool) -> None:
    assert preempts(configurator_of(name)) is may
    assert preempts(None) is False


def test_what_follows_a_stage_is_the_longest_way_to_an_end() -> None:
    fork = Application.of(dict.fromkeys("abcd", ONE), [("a", "b"), ("a", "c"), ("b", "d")], 1.0)
    assert [stage.name for stage in fork.workflow.stages] == ["a", "b", "c", "d"]
    assert later_seconds(fork, [1.0, 2.0, 6.0, 3.0]) == (6.0, 3.0, 0.0, 0.0)
    assert later_seconds(fork, [1.0, 2.0, 4.0, 3.0]) == (5.0, 3.0, 0.0, 0.0)


def plan_on(*models: set[int], workers: int) -> tuple[tuple[StagePlan, ...], ...]:
    """A plan in which stage s, of model s, runs on these workers."""
    return (
        tuple(StagePlan(np.array([int(worker in held) for worker in range(workers)]), 0.1, 0.0) for held in models),
    )


def test_workers_stay_with_what_they_hold_most_of_in_bytes() -> None:
    machines = Machines(np.full(3, 10e9), np.array([1e9, 4e9, 2e9]))
    before = plan_on({0}, {1}, {0, 2}, workers=3)  # worker 0 holds models 0 and 2, worker 1 model 1, worker 2 nothing
    wanted = [frozenset({1, 2}), frozenset({0}), frozenset({2})]
    assert stay_put(wanted, machines, before, [(0, 1, 2)]) == [1, 2, 0], "2 GB on worker 0 weigh more than 1 GB"
    assert stay_put(wanted, machines, None, [(0, 1, 2)]) == [0, 1, 2]


def test_a_worker_that_is_gone_and_a_stage_without_a_model_hold_nothing() -> None:
    machines = Machines(np.array([10e9, 0.0, 10e9]), np.array([1e9, 4e9]))
    before = plan_on({2}, {1}, {0}, workers=3)
    assert stay_put([frozenset({0}), frozenset({1})], machines, before, [(0, 1, -1)]) == [2, 0]
    assert stay_put([frozenset({-1}), frozenset({0})], machines, before, [(0, 1, -1)]) == [0, 2]
