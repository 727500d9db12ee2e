"""Points of the table of rates: kept as they are measured, and measured once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import _training_rates
from benchmarks._training_rates import Points

POINT = {"policy": "fifo", "rate": 4.0}


def counted(asked: list[float | None], answer: float | None) -> Callable[[], float | None]:
    def measure() -> float | None:
        asked.append(answer)
        return answer

    return measure


def test_a_point_in_the_file_is_not_measured_again_even_if_it_was_not_sustained(tmp_path: Path) -> None:
    path, asked = tmp_path / "points", list[float | None]()
    for _ in range(2):
        points = Points(path)
        assert points.hours(POINT, counted(asked, 17.5)) == 17.5
        assert points.hours(POINT | {"rate": 7.0}, counted(asked, None)) is None
    assert asked == [17.5, None]


def test_a_point_of_other_source_is_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, asked = tmp_path / "points", list[float | None]()
    Points(path).hours(POINT, counted(asked, 17.5))
    monkeypatch.setattr(_training_rates, "digest_of_source", lambda: "another")
    assert Points(path).hours(POINT, counted(asked, 16.0)) == 16.0
    assert asked == [17.5, 16.0]
