"""Sizes and times as people write them."""

from __future__ import annotations

import pytest

from fairway import InputError
from fairway.quantities import bytes_of, seconds_of


@pytest.mark.parametrize(
    ("given", "size"),
    [("40MB", 40_000_000), ("1.5 GiB", 3 * 2**29), ("512kb", 512_000), (7, 7), ("12", 12), ("2e3 B", 2000), (0, 0)],
)
def test_a_size_is_read_with_its_unit(given: object, size: int) -> None:
    assert bytes_of(given) == size


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ("2s", 2.0),
        ("50ms", 0.05),
        (0.5, 0.5),
        ("1.5min", 90.0),
        ("3", 3.0),
        ("20 µs", 2e-5),
        ("1h30m", 5400.0),
        ("1d 2h", 93600.0),
    ],
)
def test_a_time_is_read_with_its_unit(given: object, seconds: float) -> None:
    assert seconds_of(given) == pytest.approx(seconds)


@pytest.mark.parametrize("given", ["40 megs", "-1MB", "", None, True, float("nan"), float("inf"), "1e30GB", [4]])
def test_what_is_no_size_is_refused(given: object) -> None:
    with pytest.raises(InputError, match="given, expected bytes, or a size such as"):
        bytes_of(given)


@pytest.mark.parametrize("given", [0, "0s", "-2s", "2 days", None, False, "s", "30m1h", "1h30", "1h2h"])
def test_what_is_no_time_above_nothing_is_refused(given: object) -> None:
    with pytest.raises(InputError, match="given, expected seconds, or a length of time such as"):
        seconds_of(given)
