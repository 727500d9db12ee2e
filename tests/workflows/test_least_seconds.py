"""An SLO that no configuration can meet is refused with the least time that would do."""

from __future__ import annotations

import re

import pytest

from fairway.errors import InputError
from fairway.sim.scenario_file import parse_scenario
from fairway.sim.scenarios.esg_apps import esg_apps
from fairway.workflows import Stage, Workflow

WORKFLOW = Workflow(
    (Stage.of("a", {"t4": {1: 0.3, 4: 0.5}, "a10": 0.2}), Stage.of("b", {"t4": 0.1}), Stage.of("c", {"t4": 0.4})),
    (("a", "b"), ("a", "c")),
    name="w",
)


def test_the_least_time_is_that_of_the_longest_way_where_each_stage_is_fastest() -> None:
    assert WORKFLOW.least_seconds() == pytest.approx(0.6)
    assert WORKFLOW.least_seconds(["t4"]) == pytest.approx(0.7)


def test_the_least_time_that_is_told_will_do() -> None:
    least = 0.123456789
    with pytest.raises(InputError) as caught:
        WORKFLOW.check_slo(0.12, least)
    told = re.search(r"takes ([\d.e-]+) s at least", str(caught.value))
    assert told is not None
    assert least <= float(told[1]) < 1.001 * least
    WORKFLOW.check_slo(float(told[1]), least)
    WORKFLOW.check_slo(least, least)


def test_a_scenario_counts_the_workers_that_it_has() -> None:
    text = """
workflows: {w: {slo_seconds: 0.25, stages: [{name: a, seconds: {t4: 0.3, a10: 0.2}}]}}
workers: [{name: x, memory_bytes: 1e9, accelerator: TYPE}]
"""
    parse_scenario(text.replace("TYPE", "a10"), "s.yaml").check_slos()
    with pytest.raises(InputError, match=r"an SLO of 0\.25 s given, which no configuration can meet; .* 0\.3 s at"):
        parse_scenario(text.replace("TYPE", "t4"), "s.yaml").check_slos()


def test_sizes_count_where_they_can_be_chosen() -> None:
    esg_apps("strict", "dag").check_slos()  # 0.8 times the time on one slice, and there are seven
    with pytest.raises(InputError, match="no configuration can meet"):
        esg_apps("strict", "dag").check_slos(0.1)
