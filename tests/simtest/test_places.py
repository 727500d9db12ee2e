"""Places in the code at which faults strike: each that a plan can name exists, and each that there is can be struck."""

from __future__ import annotations

import ast
from itertools import count, takewhile
from pathlib import Path
from typing import Any

import pytest

import fairway
from fairway.simtest.component import Component
from fairway.simtest.runner import plan_of
from fairway.simtest.serving.component import SERVING
from fairway.simtest.serving.faults import Faults
from fairway.simtest.training.component import TRAINING
from fairway.simtest.training.world import World

MOST_SEEDS = 60


def named(component: Component) -> set[str]:
    """The places at which plans let a fault strike; the empty one is any."""
    plans = (plan_of(component, generator, seed) for seed in range(300) for generator in component.generators)
    return {step.arguments["place"] for plan in plans for step in plan.steps if "place" in step.arguments} - {""}


def in_the_code() -> set[str]:
    """The places that the code names where it comes to them."""
    texts = [path.read_text() for path in sorted(Path(fairway.__file__).parent.rglob("*.py"))]
    trees = [ast.parse(text) for text in texts if "reached(" in text]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {
        str(call.args[0].value)
        for call in calls
        if ast.unparse(call.func) in {"reached", "fault_points.reached"}
        and call.args
        and isinstance(call.args[0], ast.Constant)
    }


def run_until_reached(component: Component, wanted: set[str], seen: set[str]) -> set[str]:
    """Run histories until all wanted places are seen; returns those that no history has come to."""

    def missing() -> set[str]:
        return {place for place in wanted if not any(each.startswith(place) for each in seen)}

    for seed in takewhile(lambda seed: seed < MOST_SEEDS and missing(), count()):
        for generator in component.generators:
            component.run(plan_of(component, generator, seed))
    return missing()


def test_every_place_in_the_code_of_training_is_struck_by_some_plan_and_every_plan_names_one_that_exists() -> None:
    assert named(TRAINING) == in_the_code()


def test_histories_of_training_come_to_every_place(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[str] = set()
    real = World._reached

    def reached(world: World, place: str) -> None:
        seen.add(place)
        real(world, place)

    monkeypatch.setattr(World, "_reached", reached)
    assert run_until_reached(TRAINING, in_the_code(), seen) == set()


def test_histories_of_serving_come_to_every_place_that_plans_name_and_to_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: set[str] = set()
    real = Faults._reached

    def reached(faults: Faults, life: Any, place: str) -> None:
        seen.add(place)
        real(faults, life, place)

    monkeypatch.setattr(Faults, "_reached", reached)
    places = named(SERVING)
    assert run_until_reached(SERVING, places, seen) == set()
    assert {place for place in seen if not place.startswith(tuple(places))} == set()
