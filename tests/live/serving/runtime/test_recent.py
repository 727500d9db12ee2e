"""What a worker did lately: the newest rows of each kind, and how long models were on their way."""

from __future__ import annotations

from fairway.live.serving.runtime.recent import MOST_MODELS, Recent


def test_a_model_was_on_its_way_from_when_its_load_began() -> None:
    recent = Recent()
    recent.load_began("a", 1.0)
    recent.load_began("b", 2.0)
    recent.load_ended("a", 5.0)
    recent.load_ended("a", 6.0)
    recent.evicted("a", 7.0)
    assert recent.document(8.0) == {
        "now": 8.0,
        "requests": [],
        "stages": [],
        "models": [("a", False, 1.0, 5.0), ("a", False, 6.0, 6.0), ("a", True, 7.0, 7.0)],
    }


def test_only_the_newest_rows_are_kept() -> None:
    recent = Recent()
    for number in range(MOST_MODELS + 1):
        recent.evicted(str(number), 0.0)
    models = recent.document(0.0)["models"]
    assert (len(models), models[0][0], models[-1][0]) == (MOST_MODELS, "1", str(MOST_MODELS))
