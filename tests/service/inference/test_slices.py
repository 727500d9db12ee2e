"""What is told of slices: how large they are, and whether anything holds models to them."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fairway.live.serving.application.definition import load_application
from fairway.live.serving.runtime.tally import Tally
from fairway.service.inference.metrics import exposition

_ROOT = Path(__file__).parents[3]


def _samples(parts: dict[str, float], not_enforced: list[str]) -> dict[tuple[str, str], float]:
    application = load_application("tests.live.serving.sliced:ALL")
    tallies = {0: Tally().document(), 1: {**Tally().document(), "not_enforced": not_enforced}}
    text = exposition(application, tallies, {0: "0", 1: "1"}, 0, parts).decode()
    return {
        (sample.name, next(iter(sample.labels.values()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if "slice" in sample.name
    }


def test_metrics_say_what_slices_there_are_and_where_they_are_enforced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(_ROOT)
    assert _samples({"small": 0.25, "large": 0.75}, ["slices are not enforced in CPU time"]) == {
        ("fairway_serving_slice_ratio", "small"): 0.25,
        ("fairway_serving_slice_ratio", "large"): 0.75,
        ("fairway_serving_slices_enforced", "0"): 1.0,
        ("fairway_serving_slices_enforced", "1"): 0.0,
    }
    assert _samples({}, []) == {}, "without slices there is nothing to say"
