"""What each stage may take of the SLO: along a chain all of it, on branches as much as the longest."""

from __future__ import annotations

import pytest

from fairway.configure.budgets.stages import stage_budgets
from fairway.workflows import Stage, Workflow


def test_stages_of_a_chain_share_the_slo_by_their_times() -> None:
    chain = Workflow((Stage.of("a", 1.0), Stage.of("b", 3.0)), (("a", "b"),))
    assert stage_budgets(chain, 8.0) == pytest.approx((2.0, 6.0))


def test_branches_that_run_side_by_side_may_take_as_long_as_the_longest() -> None:
    stages = tuple(Stage.of(name, seconds) for name, seconds in (("a", 1.0), ("b", 2.0), ("c", 1.0), ("d", 1.0)))
    diamond = Workflow(stages, (("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")))
    assert stage_budgets(diamond, 8.0) == pytest.approx((2.0, 4.0, 4.0, 2.0))
