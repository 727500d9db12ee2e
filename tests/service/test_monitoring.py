"""The Grafana board and the alerts of the examples ask for nothing but what Fairway measures, by labels that it has."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from fairway.live.serving.application.definition import load_application
from fairway.live.serving.runtime.tally import Tally
from fairway.service.inference.metrics import exposition
from fairway.store.job_changes import change_job
from fairway.store.states import JobState
from tests.service.running import JOB, Served

_MONITORING = Path(__file__).parents[2] / "examples" / "monitoring"
_BY_PROMETHEUS = {"instance", "job", "le"}
_ALERTS = [
    rule
    for group in yaml.safe_load((_MONITORING / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]
_BOARD = json.loads((_MONITORING / "grafana.json").read_text(encoding="utf-8"))


def _labels_by_sample(text: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


@pytest.fixture
def measured(own: Served, client: httpx.Client) -> dict[str, set[str]]:
    """The labels of everything that is measured, by its name: of training, and of serving."""
    for team in ("a", "b"):
        client.post("/jobs", json=JOB | {"team": team})
    own.store.write(change_job, "job-1", JobState.FAILED, at=2e9, exit_code=3)
    client.get("/status")
    tally = Tally(resident=["Measure"])
    tally.ran(0, 0, 1, 0.1, 2)
    tally.took(0, 0, 0.1)
    tally.answered(0, 0.1, 1.0)
    tally.refuse("late")
    application = load_application("tests.service.inference.offered:ALL")
    serving = exposition(application, {0: tally.document()}, {0: "worker-0"}, 1).decode()
    return _labels_by_sample(client.get("/metrics").text) | _labels_by_sample(serving)


def _check(expression: str, measured: dict[str, set[str]]) -> None:
    names = re.findall(r"\bfairway_[a-z_]+", expression)
    assert names, expression
    for name in names:
        assert name in measured, f"{name} is not measured: {expression}"
    known = _BY_PROMETHEUS.union(*(measured[name] for name in names))
    for name, matchers in re.findall(r"\b(fairway_[a-z_]+)\{([^}]*)\}", expression):
        for label in re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers):
            assert label in measured[name] | _BY_PROMETHEUS, f"{name} has no label {label}: {expression}"
    for listed in re.findall(r"\b(?:by|on) \(([^)]*)\)", expression):
        assert set(re.split(r",\s*", listed)) <= known, expression
    assert expression.count("(") == expression.count(")")


def test_alerts_and_board_ask_for_what_is_measured(measured: dict[str, set[str]]) -> None:
    targets = [target for panel in _BOARD["panels"] for target in panel.get("targets", ())]
    expressions = [rule["expr"] for rule in _ALERTS] + [target["expr"] for target in targets]
    assert len(expressions) > 50
    for expression in expressions:
        if "fairway_" in expression:
            _check(expression, measured)
    for target in targets:
        in_legend = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        by = {label for listed in re.findall(r"by \(([^)]*)\)", target["expr"]) for label in re.split(r",\s*", listed)}
        assert in_legend <= by, f"{in_legend - by} is not in the result of {target['expr']}"


@pytest.mark.parametrize("rule", _ALERTS, ids=lambda rule: str(rule["alert"]))
def test_an_alert_says_what_is_wrong_and_what_to_do(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in {"info", "warning", "critical"}
    assert rule["annotations"]["summary"]
    assert rule["annotations"]["description"].endswith(".")


def test_no_two_panels_of_the_board_lie_on_each_other() -> None:
    cells: dict[tuple[int, int], str] = {}
    for panel in _BOARD["panels"]:
        place = panel["gridPos"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in cells, f"{panel['title']} and {cells[x, y]}"
                cells[x, y] = panel["title"]
        assert place["x"] + place["w"] <= 24
    assert len({panel["id"] for panel in _BOARD["panels"]}) == len(_BOARD["panels"])
