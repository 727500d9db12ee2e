"""Copies of models on a worker that is divided: tasks that run side by side have one each."""

from __future__ import annotations

import numpy as np

from fairway import Fleet, Model, ServingEngine, Stage, StateTable, TaskGraph, Worker, Workflow, placer_of
from fairway.engine.serving.messages import Load, ModelFailed, ModelLoaded, Refuse, RequestArrived, Run

MODELS = {name: Model(name, 4) for name in ("a", "b")}


def test_what_comes_for_a_task_that_has_failed_meanwhile_is_idle() -> None:
    fleet = Fleet.of([Worker("w0", 10, cpus=4, slices=4)], MODELS.values())
    graph = TaskGraph.of(Workflow((Stage.of("both", 1.0, models=("a", "b")),), (), MODELS), fleet)
    engine = ServingEngine(0, placer_of("compass"), StateTable(fleet), np.random.default_rng(0))
    loads = [each for each in engine.handle(0.0, [RequestArrived(1, graph)]) if isinstance(each, Load)]
    assert [load.model for load in loads] == [0, 1]
    failed = engine.handle(1.0, [ModelFailed(loads[0].copy, 0, "broken file")])
    assert [each.reason for each in failed if isinstance(each, Refuse)] == ["broken file"]
    engine.handle(2.0, [ModelLoaded(loads[1].copy, 1)])
    assert (engine.memory.copies(1), engine.memory.idle(1)) == (1, 1)
    again = engine.handle(3.0, [RequestArrived(2, graph)])
    assert [each.model for each in again if isinstance(each, Load)] == [0], "the other one is there"
    (load,) = [each for each in again if isinstance(each, Load)]
    assert any(isinstance(each, Run) for each in engine.handle(4.0, [ModelLoaded(load.copy, 0)]))
    engine.validate()
