"""Where a task goes that may join a batch: worked out by hand on two workers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fairway.place.fleet import Fleet, Worker
from fairway.place.graph import TaskGraph
from fairway.place.placers.fairway import Fairway
from fairway.place.plan import Request
from fairway.place.stage_plan import StagePlan
from fairway.place.state import StateTable, View
from fairway.workflows import Model, Stage, Workflow

TIMES = {"gpu": {1: 0.10, 2: 0.11, 4: 0.13}}
NOW = 10.0


def _graph(size: int = 4) -> TaskGraph:
    stages = (
        Stage.of("draft", TIMES, models=("a",)),
        Stage.of("check", {"gpu": 0.05}, models=("b",)),
    )
    models = (Model("a", 10), Model("b", 10))
    workflow = Workflow(stages, (("draft", "check"),), {model.name: model for model in models})
    fleet = Fleet.of([Worker("w0", 100.0), Worker("w1", 100.0)], models)
    graph = TaskGraph.of(workflow, fleet)
    return TaskGraph(**{**graph.__dict__, "plan": StagePlan.of(workflow, fleet, [size, 1], [0, 1])})


def _view(table: StateTable, me: int = -1) -> View:
    return table.view(me, NOW)


def _table(graph: TaskGraph) -> StateTable:
    table = StateTable(graph.fleet)
    table.show_lines()
    for worker in range(2):
        for model in range(2):
            table.write_cache(worker, model, True, 0.0)
    return table


def _row(table: StateTable, worker: int, model: int, count: int, latest: float, seconds: float) -> None:
    assert table.lines is not None
    row = np.zeros((3, 3))
    row[:, model] = (count, latest, seconds)
    table.lines.write(worker, row, NOW)


def _chosen(graph: TaskGraph, table: StateTable, due: float = math.inf, **options: float) -> int:
    request = Request(1, graph, due=due)
    plan = Fairway(**options).plan(request._replace(untimed=True), _view(table), NOW, np.random.default_rng(0))  # type: ignore[arg-type]
    return int(plan.workers[0])


def test_a_task_joins_a_batch_that_waits_if_that_adds_less_than_a_start_elsewhere_takes() -> None:
    graph = _graph()
    table = _table(graph)
    table.write_load(0, 0.1, NOW + 0.05, NOW)
    _row(table, 0, 0, 1, NOW + 1.0, 0.1)
    # There: ends after 0.05 + 0.11, adds 0.01; elsewhere: ends after 0.10, adds 0.10.
    assert _chosen(graph, table) == 0
    assert _chosen(graph, table, weight=0.1) == 1, "what others wait for longer hardly counts"


def test_a_batch_that_is_full_has_no_room() -> None:
    graph = _graph()
    table = _table(graph)
    table.write_load(0, 0.4, NOW + 0.05, NOW)
    _row(table, 0, 0, 4, NOW + 1.0, 0.13)
    assert _chosen(graph, table) == 1


def test_only_what_is_more_urgent_goes_before_it() -> None:
    graph = _graph()
    table = _table(graph)
    table.write_load(1, 0.0, NOW + 0.15, NOW)
    _row(table, 0, 1, 1, NOW + 5.0, 0.3)
    due = NOW + 1.0
    assert _chosen(graph, table, due) == 0, "what waits there has to start much later"
    _row(table, 0, 1, 1, NOW - 1.0, 0.3)
    assert _chosen(graph, table, due) == 1, "what waits there has to start before"


def test_it_does_not_make_others_late_that_wait() -> None:
    graph = _graph()
    table = _table(graph)
    table.write_load(1, 0.0, NOW + 0.05, NOW)
    due = NOW + 0.25  # so it has to start by NOW + 0.07, and ends at NOW + 0.1 if it starts now
    _row(table, 0, 1, 5, NOW + 0.12, 0.05)
    assert _chosen(graph, table, due) == 0, "they start in time behind it"
    _row(table, 0, 1, 5, NOW + 0.08, 0.05)
    assert _chosen(graph, table, due) == 1, "they would start too late behind it"


def test_a_worker_that_is_gone_gets_nothing() -> None:
    graph = _graph()
    table = _table(graph)
    table.leave(0)
    assert _chosen(graph, table) == 1


def test_a_plan_keeps_back_batches_of_what_follows() -> None:
    plan = _graph(4).plan
    assert plan is not None
    assert plan.after.tolist() == pytest.approx([0.05, 0.0])
    assert plan.kept.tolist() == pytest.approx([0.05 + 0.13, 0.05])
