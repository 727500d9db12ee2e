"""Batches planned by the SLO of a workflow, and what is kept back for the stages that follow."""

from __future__ import annotations

import pytest

from fairway.engine.serving.stage_planning import planned_graphs
from fairway.place.graph import TaskGraph
from fairway.place.placers.compass import Compass
from fairway.place.placers.fairway import Fairway
from fairway.sim.scenarios import SCENARIOS


def _graphs(name: str) -> tuple[TaskGraph, ...]:
    scenario = SCENARIOS[name]()
    return scenario.graphs(scenario.fleet())


def _planned(slo: float | None, name: str = "loki-traffic", **options: object) -> list[TaskGraph]:
    rules = Fairway(**options).rules  # type: ignore[arg-type]
    return planned_graphs(rules, dict.fromkeys(_graphs(name), slo))


def test_a_plan_has_nearly_the_least_work_of_those_within_the_slo_waiting_included() -> None:
    (graph,) = _planned(0.25)
    plan = graph.plan
    assert plan is not None
    assert plan.sizes.tolist() == [4, 8, 16]
    # 1.5 · (0.0995 + 0.0580) = 0.236; eight detections at once would leave no time for any batch behind them. Faces in
    # batches of 32 are in time, too, 1.5 · (0.0995 + 0.0666) = 0.249: 0.3 % less work, but that takes 13 ms longer.
    assert plan.after[0] == pytest.approx(1.5 * 0.058006)
    assert plan.kept[0] == pytest.approx(1.5 * 0.058006 + 0.099481)


def test_more_time_makes_batches_larger_and_less_makes_them_smaller() -> None:
    sizes = [graph.plan.sizes[0] for slo in (0.1, 0.25, 1.0) for graph in _planned(slo) if graph.plan is not None]
    assert sizes == sorted(sizes)
    assert sizes[0] == 1
    assert sizes[-1] > 4


def test_without_batching_each_runs_alone() -> None:
    (graph,) = _planned(0.25, no_batching=True)
    assert graph.plan is not None
    assert graph.plan.sizes.tolist() == graph.plan.largest.tolist() == [1, 1, 1]


def test_stages_that_share_a_model_share_a_group_unless_they_must_not() -> None:
    first, second = _planned(0.25, "loki-both-tight")
    assert first.plan is not None
    assert second.plan is not None
    assert first.plan.groups[0] == second.plan.groups[0]
    assert len({*first.plan.groups, *second.plan.groups}) == len(first) + len(second) - 1
    apart = _planned(0.25, "loki-both-tight", no_mixing=True)
    groups = [group for graph in apart if graph.plan is not None for group in graph.plan.groups]
    assert len(groups) == len(set(groups))


def test_other_schedulers_have_no_plan() -> None:
    assert [graph.plan for graph in planned_graphs(Compass().rules, dict.fromkeys(_graphs("loki-traffic"), 0.25))] == [
        None
    ]
