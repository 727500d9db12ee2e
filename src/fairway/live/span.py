"""Lengths of time as people write them: `90`, `90s`, `15m`, `2h`, `1h30m`, `3d`."""

from __future__ import annotations

import re

from fairway.documents import shown
from fairway.errors import InputError

A_SPAN = "seconds, or a length of time such as '90s', '15m', '1h30m' or '3d'"
_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_SPAN = re.compile(r"(?:(\d+(?:\.\d+)?)d)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?")
_MOST_SECONDS = 1e9


def seconds_of(given: object) -> float:
    """The length in seconds, above 0; raises an error that does not yet say in which field."""
    seconds = -1.0
    if isinstance(given, str):
        match = _SPAN.fullmatch(given.replace(" ", "").lower())
        if match and any(match.groups()):
            seconds = sum(
                float(part) * unit for part, unit in zip(match.groups(), _UNITS.values(), strict=True) if part
            )
    elif isinstance(given, int | float) and not isinstance(given, bool):
        seconds = float(given)
    if not 0 < seconds <= _MOST_SECONDS:
        raise InputError(f"{shown(given)} given, expected {A_SPAN}, above 0")
    return seconds
