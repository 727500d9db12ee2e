"""What a job is told and what it tells: leases and progress as files, of which no job may write what it likes."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from fairway.live.backend.channel import LeaseState, RankProgress, RunChannel

TOLD = RankProgress(1, 40, 10, 2.5, 30, 4.0, True, 99.0, 7)


@pytest.mark.parametrize(
    "lease", [LeaseState(3, None), LeaseState(3, 50.0, True, "now", 2.0), LeaseState(4, 9.0, False, "save", None)]
)
def test_a_lease_is_read_as_it_was_written(tmp_path: Path, lease: LeaseState) -> None:
    channel = RunChannel(tmp_path)
    assert channel.lease() is None
    channel.write_lease(lease)
    assert channel.lease() == lease


def test_of_reasons_to_stop_that_are_not_known_a_checkpoint_is_saved() -> None:
    content = asdict(LeaseState(3, 50.0))
    assert LeaseState.of(content | {"stop": "later"}).stop == "save"
    assert LeaseState.of(content | {"stop": None}).stop is None


def test_progress_is_known_once_every_rank_has_told(tmp_path: Path) -> None:
    channel = RunChannel(tmp_path)
    assert not channel.is_cooperative([0, 1])
    channel.write_progress(TOLD)
    assert channel.is_cooperative([0, 1])
    assert not channel.is_cooperative([0])
    assert channel.progress([0, 1]) is None
    assert channel.progress([1]) == [TOLD]
    other = RankProgress(0, 0, 0)
    channel.write_progress(other)
    assert channel.progress([0, 1]) == [other, TOLD]


def test_a_job_with_another_fairway_says_less() -> None:
    assert RankProgress.of({"rank": 0, "step": 5, "since": 2}) == RankProgress(0, 5, 2)


@pytest.mark.parametrize(
    ("field", "least", "most"),
    [("step", 0, 2**53), ("since", 0, 2**53), ("checkpoint_step", 0, 2**53), ("lease", 0, 2**53),
     ("checkpoint_seconds", 0.0, 1e9)],
)  # fmt: skip
def test_counts_and_times_that_none_can_have_are_passed_over(field: str, least: float, most: float) -> None:
    content = asdict(TOLD)
    for good in (least, most):
        assert getattr(RankProgress.of(content | {field: good}), field) == good
    for bad in (least - 1, most + 1 if isinstance(most, int) else most * 1.01):
        with pytest.raises(ValueError, match="that is none"):
            RankProgress.of(content | {field: bad})


@pytest.mark.parametrize("time", [float("inf"), float("nan")])
def test_a_time_without_end_is_passed_over(time: float) -> None:
    with pytest.raises(ValueError, match="a time that is none"):
        RankProgress.of(asdict(TOLD) | {"time": time})


@pytest.mark.parametrize("rate", [0.0, -1.0, 1e300, 1e-300, float("nan"), float("inf")])
def test_a_rate_that_none_can_have_is_as_if_it_were_not_told(rate: float) -> None:
    told = RankProgress.of(asdict(TOLD) | {"steps_per_second": rate})
    assert (told.steps_per_second, told.step) == (None, TOLD.step)


@pytest.mark.parametrize(
    "change", [{"rank": "x"}, {"step": None}, {"step": []}, {"lease": {}}, {"step": -1}, {"time": "soon"}]
)
def test_nonsense_of_a_job_is_no_progress(tmp_path: Path, change: dict[str, Any]) -> None:
    channel = RunChannel(tmp_path)
    (tmp_path / "progress-1.json").write_text(json.dumps(asdict(TOLD) | change))
    assert channel.progress([1]) is None
