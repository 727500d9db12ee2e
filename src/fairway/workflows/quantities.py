"""Sizes and lengths of time as people write them in code and options: `40MB`, `1.5 GiB`, `500ms`, `2s`."""

from __future__ import annotations

import math
import re

from fairway.documents import shown
from fairway.errors import InputError

A_SIZE = "bytes, or a size such as '512KB', '40MB' or '1.5GiB'"
A_TIME = "seconds, or a time such as '50ms', '2s' or '1.5min'"

_SIZES = {
    "": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip
_TIMES = {"": 1.0, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_QUANTITY = re.compile(r"\s*(\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+)\s*([A-Za-zµ]*)\s*")
_MOST_BYTES = 2**53
_MOST_SECONDS = 1e9


def bytes_of(given: object) -> int:
    """A size in bytes; raises an error that does not yet say where it was given."""
    size = _number(given, _SIZES)
    if size is None or not 0 <= size <= _MOST_BYTES:
        raise InputError(f"{shown(given)} given, expected {A_SIZE}")
    return round(size)


def seconds_of(given: object) -> float:
    """A length of time above 0 in seconds; raises an error that does not yet say where it was given."""
    seconds = _number(given, _TIMES)
    if seconds is None or not 0 < seconds <= _MOST_SECONDS:
        raise InputError(f"{shown(given)} given, expected {A_TIME}, above 0")
    return seconds


def _number(given: object, units: dict[str, int] | dict[str, float]) -> float | None:
    """The number with its unit worked in; None for what is no quantity."""
    if isinstance(given, int | float) and not isinstance(given, bool):
        return float(given) if math.isfinite(given) else None
    match = _QUANTITY.fullmatch(given) if isinstance(given, str) else None
    unit = None if match is None else units.get(match[2].lower())
    return None if match is None or unit is None else float(match[1]) * unit
