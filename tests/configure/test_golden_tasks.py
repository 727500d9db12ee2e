"""The published runs without noise: the same tasks, start, configuration and invoker, one after the other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairway import configurator_of
from tests.configure.driver import Run
from tests.configure.scenario import Scenario

NAMES = {"aquatope": "aquatope:exact"}


@pytest.fixture(scope="module")
def runs(shared_data: Path) -> dict[str, Any]:
    return json.loads((shared_data / "esg-golden" / "golden_tasks.json").read_text())["runs"]


@pytest.mark.parametrize(
    "name",
    [
        "esg strict-light",
        "esg relaxed-heavy",
        "orion moderate-normal",
        "infless strict-light",
        "fast-gshare moderate-normal",
        "aquatope moderate-normal",
    ],
)
def test_the_first_tasks_and_the_totals_are_the_published_ones(
    shared_data: Path, runs: dict[str, Any], name: str
) -> None:
    rule, setting = name.split()
    slo, load = setting.split("-")
    run = Run(Scenario(shared_data / "esg-golden", slo), configurator_of(NAMES.get(rule, rule)), load).go()
    published = runs[name]
    for found, expected in zip(run.tasks, published["first_tasks"], strict=False):
        row = found.row()
        assert row[1:9] == expected[1:9]
        assert [row[0], row[9]] == pytest.approx([expected[0], expected[9]], abs=1e-3)
    totals = run.totals(10.0)
    assert totals["hit"] == pytest.approx(published["hit"], abs=0.002)
    assert totals["cost_per_1k"] == pytest.approx(published["cost_per_1k"], rel=0.005)


@pytest.mark.parametrize(
    ("rule", "setting", "hit", "cost"),
    [
        ("esg:same", "strict-light", 0.9499, 0.3761),
        ("esg:no-batching", "strict-light", 0.9499, 0.3761),
        ("esg:no-gpu-sharing", "strict-light", 0.7771, 1.0997),
        ("infless:efficiency", "strict-light", 0.9391, 0.5318),
        ("orion", "strict-light", 0.7950, 0.5098),
        ("fast-gshare", "relaxed-heavy", 0.2362, 0.2388),
    ],
)
def test_other_published_totals_without_noise(
    shared_data: Path, rule: str, setting: str, hit: float, cost: float
) -> None:
    slo, load = setting.split("-")
    totals = Run(Scenario(shared_data / "esg-golden", slo), configurator_of(rule), load).go().totals(10.0)
    assert totals["hit"] == pytest.approx(hit, abs=0.002)
    assert totals["cost_per_1k"] == pytest.approx(cost, rel=0.005)


@pytest.mark.parametrize(("rule", "hit"), [("esg", 0.65), ("esg:margin=0.1", 0.96), ("esg:noise-margin", 0.97)])
def test_a_margin_is_what_meets_deadlines_under_noise(shared_data: Path, rule: str, hit: float) -> None:
    scenario = Scenario(shared_data / "esg-golden", "strict", noise=0.08, overhead=0.001)
    totals = Run(scenario, configurator_of(rule), "light", end=70.0).go().totals(10.0)
    assert totals["hit"] == pytest.approx(hit, abs=0.03)


def test_whoever_searches_the_same_way_decides_the_same(shared_data: Path) -> None:
    scenario = Scenario(shared_data / "esg-golden", "moderate", noise=0.08, overhead=0.001)
    rows = [
        [task.row() for task in Run(scenario, configurator_of(rule), "heavy", end=6.0, apps="dag").go().tasks]
        for rule in ("esg", "esg:search=layered", "esg:search=a-star")
    ]
    assert rows[0] == rows[1] == rows[2]
    assert len(rows[0]) > 1000
