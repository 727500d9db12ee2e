"""Sizes, CPUs and lengths of time as people write them in files, code and options: `1.5 GiB`, `0.5`, `1h30m`."""

from __future__ import annotations

import math
import re
from itertools import pairwise

from fairway.documents import shown
from fairway.errors import InputError
from fairway.magnitudes import SPANS

A_SIZE = "bytes, or a size such as '512KB', '40MB' or '1.5GiB'"
A_SPAN = "seconds, or a length of time such as '50ms', '90s', '15m', '1h30m' or '3d'"

_SIZES = {
    "": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip
_TIMES = {"d": 86400.0, "h": 3600.0, "min": 60.0, "m": 60.0, "s": 1.0, "": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6}
_PART = re.compile(r"\s*(\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+)\s*([A-Za-zµ]*)\s*")
_LONGEST = 100
"""Characters of a quantity; longer text is none, and not worth looking at."""

_MOST_BYTES = 2**53
_CPUS = 0.01, 1_000_000.0
_LEAST_MEMORY = 2**20
A_NUMBER_OF_CPUS = "a number of CPUs from 0.01 to 1000000, as in 4 or 0.5"
A_MEMORY = "a size of memory of at least 1MiB, as in '16GB' or '512MiB'"


def bytes_of(given: object) -> int:
    """A size in bytes; raises an error that does not yet say where it was given."""
    size = _plain(given)
    if isinstance(given, str) and len(parts := _parts(given)) == 1 and (unit := _SIZES.get(parts[0][1])):
        size = parts[0][0] * unit
    if size is None or not 0 <= size <= _MOST_BYTES:
        raise InputError(f"{shown(given)} given, expected {A_SIZE}")
    return round(size)


def cpus_of(given: object) -> float:
    """A number of CPUs, which may be a part of one."""
    try:
        number = math.nan if isinstance(given, bool) else float(given)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not _CPUS[0] <= number <= _CPUS[1]:
        raise InputError(f"{shown(given)} given, expected {A_NUMBER_OF_CPUS}")
    return number


def memory_of(given: object) -> int:
    """A size of memory in bytes."""
    try:
        size = bytes_of(given)
    except InputError:
        size = 0
    if size < _LEAST_MEMORY:
        raise InputError(f"{shown(given)} given, expected {A_MEMORY}")
    return size


def seconds_of(given: object, *, or_none: bool = False) -> float:
    """A length of time in seconds, above 0 unless none at all may be meant as well.

    Raises an error that does not yet say where it was given.
    """
    seconds = _plain(given)
    if isinstance(given, str) and (parts := _parts(given)):
        sizes = [_TIMES.get(unit, -1.0) for _, unit in parts]
        # From days down to what is smaller, each once; a number without a unit stands alone.
        falling = all(large > small for large, small in pairwise(sizes))
        if min(sizes) > 0 and falling and (len(parts) == 1 or all(unit for _, unit in parts)):
            seconds = sum(number * size for (number, _), size in zip(parts, sizes, strict=True))
    if seconds is None or not seconds >= 0 or (seconds == 0 and not or_none):
        raise InputError(f"{shown(given)} given, expected {A_SPAN}, {'at least' if or_none else 'above'} 0")
    if seconds not in SPANS:
        raise InputError(f"{shown(given)} given, expected {A_SPAN}, of {SPANS} seconds")
    return seconds or 0.0


def _parts(text: str) -> list[tuple[float, str]]:
    """The numbers of a quantity, each with its unit; none if the text is no quantity.

    Part by part: a pattern for all of them would try every way to divide a long number into parts.
    """
    parts: list[tuple[float, str]] = []
    position = 0
    while position < len(text) <= _LONGEST:
        match = _PART.match(text, position)
        if match is None:
            return []
        parts.append((float(match[1]), match[2].lower()))
        position = match.end()
    return parts


def _plain(given: object) -> float | None:
    """A number as it is; None for anything else."""
    if not isinstance(given, int | float) or isinstance(given, bool):
        return None
    try:
        number = float(given)
    except OverflowError:  # a whole number of more than 308 digits
        return None
    return number if math.isfinite(number) else None
