from __future__ import annotations

from random import Random

import pytest

from fairway.simtest.plan import Plan
from fairway.simtest.serving.component import SERVING


def _plan(generator: str, seed: int) -> Plan:
    return SERVING.generators[generator](seed, Random(seed))


@pytest.mark.parametrize("generator", list(SERVING.generators))
def test_the_same_seed_gives_the_same_history(generator: str) -> None:
    for seed in range(5):
        first, again = (SERVING.run(_plan(generator, seed)) for _ in range(2))
        assert first == again
        assert first.events > 10


@pytest.mark.parametrize("generator", list(SERVING.generators))
def test_a_plan_that_was_printed_and_read_gives_the_same_history(generator: str) -> None:
    plan = _plan(generator, 1)
    assert SERVING.run(Plan.from_dict(plan.to_dict())).digest == SERVING.run(plan).digest


def test_a_history_without_faults_keeps_all_promises() -> None:
    for seed in range(10):
        plan = _plan("uniform", seed)
        quiet = Plan("serving", "uniform", seed, plan.settings, tuple(step for step in plan.steps if not step.is_fault))
        history = SERVING.run(quiet)
        assert history.violations == ()
        assert history.faults == {}
