"""Homes that keep short work from long work: by hand, on published pipelines, and what holds for any of them."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.engine.serving.schedule import schedule_of
from fairway.engine.serving.stage_planning import planned_graphs
from fairway.place.arrays import BoolArray
from fairway.place.fleet import Fleet, Worker
from fairway.place.graph import TaskGraph
from fairway.place.homes import homes_of, homes_under
from fairway.place.kinds_of_worker import separated
from fairway.sim.serving_workload import ServingWorkload
from fairway.workflows import Model, Stage, Workflow


def _graphs(seconds: list[float], sizes: list[int], memory: list[float]) -> tuple[list[TaskGraph], Fleet]:
    """A workflow of one stage with a model of its own for each time."""
    models = [Model(f"m{number}", size) for number, size in enumerate(sizes)]
    fleet = Fleet.of([Worker(f"w{number}", each) for number, each in enumerate(memory)], models)
    workflows = [
        Workflow((Stage.of("only", each, model.name),), (), {model.name: model})
        for each, model in zip(seconds, models, strict=True)
    ]
    return [TaskGraph.of(workflow, fleet) for workflow in workflows], fleet


def _names(homes: BoolArray, fleet: Fleet) -> list[set[str]]:
    return [{fleet.models[model].name for model in np.flatnonzero(column)} for column in homes.T]


def test_short_work_gets_workers_without_long_work() -> None:
    # Half of the work is one long model, the other half five short ones; at first the long one is everywhere.
    graphs, fleet = _graphs([1.0, 0.2, 0.2, 0.2, 0.2, 0.2], [1] * 6, [5.0] * 4)
    mixed = np.zeros((6, 4), np.bool_)
    mixed[0] = True
    for worker in range(4):
        mixed[[1 + (worker + each) % 5 for each in range(4)], worker] = True
    found = _names(separated(mixed, graphs, fleet), fleet)
    assert sum("m0" not in names for names in found) >= 1
    assert set().union(*found) == {f"m{number}" for number in range(6)}


def test_two_workflows_in_little_memory_have_two_kinds_of_worker_four_each() -> None:
    scenario = ServingWorkload("loki-both-tight").make_scenario()
    fleet, rules = scenario.fleet(), schedule_of("fairway").rules
    slos = {graph: scenario.slo_of(graph.workflow) for graph in scenario.graphs(fleet)}
    homes = homes_under(rules, planned_graphs(rules, slos), fleet)
    assert homes is not None
    kinds = [frozenset(names) for names in _names(homes, fleet)]
    assert kinds.count(frozenset({"yolov5m", "clip-vit-base-patch32"})) == 4
    assert kinds.count(frozenset({"yolov5m", "efficientnet-b4", "genderNet_16"})) == 4


def test_workers_that_are_alike_repeat_what_a_few_of_them_have() -> None:
    graphs, fleet = _graphs([1.0, 0.02], [1, 1], [1.0] * 60)
    homes = separated(homes_of(graphs, fleet), graphs, fleet)
    assert np.array_equal(homes[:, :12], homes[:, 12:24])
    assert homes.any(axis=1).all()


def test_what_is_too_large_to_be_searched_stays_as_it_is() -> None:
    graphs, fleet = _graphs([1.0] * 40, [1] * 40, [float(1 + number % 2) for number in range(60)])
    homes = homes_of(graphs, fleet)
    assert np.array_equal(separated(homes, graphs, fleet), homes)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_homes_fit_and_every_model_keeps_one(data: st.DataObject) -> None:
    models, workers = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 5))
    seconds = data.draw(st.lists(st.floats(0.001, 10.0), min_size=models, max_size=models))
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=models, max_size=models))
    memory = data.draw(st.lists(st.floats(4.0, 12.0), min_size=workers, max_size=workers))
    graphs, fleet = _graphs(seconds, sizes, memory)
    before = homes_of(graphs, fleet)
    after = separated(before, graphs, fleet)
    assert (fleet.model_bytes @ after <= fleet.memory + 1e-9).all()
    assert (after.any(axis=1) >= before.any(axis=1)).all()
    assert np.array_equal(after, separated(before, graphs, fleet))
