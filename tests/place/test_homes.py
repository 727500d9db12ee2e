"""Where models are at home: that the arrangement fits, leaves no room unused, spreads work, and what it changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway import Fleet, Links, Model, Stage, TaskGraph, Worker, Workflow, placer_of
from fairway.place.homes import homes_of
from tests.place.clusters import Cluster
from tests.workflows.edge import MODELS

_FITS = ["depth", "tts", "nli", "mt5"]
"""Models that fill a worker, so that there is no room for another one."""


def _homes(workflows: list[Workflow], workers: list[Worker]) -> list[set[str]]:
    """The names of the models that are at home, by worker."""
    models = {name: model for workflow in workflows for name, model in workflow.models.items()}
    fleet = Fleet.of(workers, models.values())
    homes = homes_of([TaskGraph.of(workflow, fleet) for workflow in workflows], fleet)
    return [{fleet.models[number].name for number in np.flatnonzero(column)} for column in homes.T]


def _workflow(stages: dict[str, tuple[float, int]], edges: tuple[tuple[str, str], ...] = ()) -> Workflow:
    """Stages with a model each, by seconds and megabytes."""
    models = {name: Model(name, size * 10**6) for name, (_, size) in stages.items()}
    return Workflow(tuple(Stage.of(name, seconds, name) for name, (seconds, _) in stages.items()), edges, models)


def test_the_models_of_reading_and_listening_are_spread_by_their_work() -> None:
    reading = _workflow(
        {"detect": (0.057, 62), "turn-page": (0.011, 73), "turn-lines": (0.009, 14), "recognise": (0.248, 125)}
    )
    listening = _workflow({"listen": (0.014, 89)})
    workers = [Worker("a", 213 * 10**6), Worker("b", 213 * 10**6)]
    busy, other = _homes([reading, listening], workers)
    assert busy == {"recognise", "turn-page", "turn-lines"}
    assert other == {"detect", "listen", "turn-lines"}


def test_the_two_busiest_models_are_apart_and_the_rest_evens_out() -> None:
    workflow = _workflow({"a": (4.0, 1), "b": (3.0, 1), "c": (2.0, 1), "d": (1.0, 1)})
    assert _homes([workflow], [Worker("v", 2e6), Worker("w", 2e6)]) == [{"a", "d"}, {"b", "c"}]


def test_room_that_is_left_goes_to_the_models_with_the_most_work_for_each_home() -> None:
    workflow = _workflow({"a": (8.0, 1), "b": (3.0, 1)})
    homes = _homes([workflow], [Worker(str(number), 1e6) for number in range(4)])
    assert sorted(homes, key=sorted) == [{"a"}, {"a"}, {"a"}, {"b"}]
    assert _homes([workflow], [Worker("v", 2e6), Worker("w", 2e6)]) == [{"a", "b"}] * 2


def test_a_second_home_takes_over_half_of_the_work() -> None:
    """a has 8 s, with a second home 4 s at each, more than the 3 s of c: so b comes to c before d comes to a."""
    workflow = _workflow({"a": (8.0, 2), "c": (3.0, 2), "b": (1.0, 1), "d": (0.9, 1)})
    homes = _homes([workflow], [Worker("v", 3e6), Worker("w", 3e6), Worker("x", 4e6)])
    assert homes == [{"a", "d"}, {"c", "b"}, {"a", "b", "d"}]


def test_a_model_is_at_home_only_where_its_stage_can_run() -> None:
    model = Model("m", 10**6)
    workflow = Workflow((Stage("s", {"k80": {1: 1.0}}, models=("m",)),), (), {"m": model})
    assert _homes([workflow], [Worker("a", 1e6, "v100"), Worker("b", 1e6, "k80")]) == [set(), {"m"}]


@given(st.data())
def test_homes_fit_and_no_model_could_have_one_more(data: Any) -> None:
    sizes = data.draw(st.lists(st.integers(1, 10), min_size=1, max_size=6))
    seconds = data.draw(st.lists(st.floats(0, 5), min_size=len(sizes), max_size=len(sizes)))
    stages = {f"m{number}": (took, size) for number, (took, size) in enumerate(zip(seconds, sizes, strict=True))}
    largest = max(sizes)
    memory = data.draw(st.lists(st.integers(largest, 3 * largest), min_size=1, max_size=5))
    workers = [Worker(f"w{number}", size * 1e6) for number, size in enumerate(memory)]
    homes = _homes([_workflow(stages)], workers)
    for worker, at_home in zip(workers, homes, strict=True):
        left = worker.memory_bytes - sum(1e6 * stages[name][1] for name in at_home)
        assert left >= 0
        assert all(1e6 * size > left for name, (_, size) in stages.items() if name not in at_home)
    assert homes == _homes([_workflow(stages)], workers)


@pytest.mark.parametrize(("at_home", "factor"), [([], 2), (["depth"], 2), (_FITS, 9)])
def test_a_model_that_is_at_home_has_a_higher_price_than_a_guest(at_home: list[str], factor: int) -> None:
    # With no more than depth estimation at home, the worker has guests enough to give up for the language model.
    workflow = Workflow((Stage.of("t", 0.5, "opt", input_bytes=0),), (), MODELS)
    fetch = Links().to_device(MODELS["opt"].bytes)
    for difference, expected in ((-0.01, "w0"), (0.01, "w1")):
        cluster = Cluster(
            workflow, 2, cached={0: ["opt"], 1: _FITS}, load={0: factor * fetch + difference}, homes={1: at_home}
        )
        assert cluster.plan(ingress=1).assignment == {"t": expected}
        moved = cluster.next_worker("t", planned=0, scheduler="compass:theta=0", me=1)
        assert cluster.fleet.workers[moved].name == expected


def test_homes_can_be_left_out() -> None:
    others = ("compass:no-homes", "compass:as-published", "compass:compat", "jit", "heft", "hash")
    assert placer_of("compass").rules.settles
    assert not any(placer_of(name).rules.settles for name in others)
