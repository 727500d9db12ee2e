"""The values of options of `fairway simulate serving` that are more than a word or a number, read and checked."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from fairway import quantities
from fairway.configure.slices.mig import A100_40GB
from fairway.errors import InputError
from fairway.options import nearest
from fairway.sim.failures import Failure
from fairway.sim.scenario import ColdStarts, DeviceSharing
from fairway.sim.scenarios.esg_apps import KEEP_ALIVE_SECONDS

ALL_WARM = "all"
"""In place of a number of containers: nothing is ever cold."""

_FAILURE = re.compile(r"\s*([^@]+?)\s*@\s*([^-]+?)\s*(?:-\s*(.+?)\s*)?")
_CONTAINERS = re.compile(r"\s*(\d{1,4})((?:\s*,\s*[a-z-]+)*)\s*")
_FLAGS = ("held", "no-prewarm")


def seconds_of(text: str, option: str) -> float:
    """Read `10ms`, `1.5s` or, in seconds, `0.01`."""
    try:
        return quantities.seconds_of(text, or_none=True)
    except InputError:
        raise InputError(f"{option}: '{text}' given, expected a time of at least 0, as in 10ms or 1.5s") from None


def staleness_of(text: str | None) -> dict[str, float]:
    """Read `load=10ms,cache=100ms`."""
    ages = {"load": 0.001, "cache": 0.001}
    given: set[str] = set()
    for part in text.split(",") if text is not None else ():
        column, equals, age = (word.strip() for word in part.partition("="))
        if not equals or column not in ages:
            hint = nearest(column, ages)
            raise InputError(f"--staleness: '{part}' given, expected load=TIME,cache=TIME, as in load=10ms{hint}")
        if column in given:
            raise InputError(f"--staleness: '{column}' given twice; keep one")
        given.add(column)
        ages[column] = seconds_of(age, f"--staleness: {column}")
    return ages


def failure_of(text: str, workers: Sequence[str]) -> Failure:
    """Read `w2@10s` or `w2@10s-25s`; `workers` are the names of all that there are."""
    match = _FAILURE.fullmatch(text)
    if not match:
        raise InputError(f"--fail: '{text}' given, expected WORKER@TIME or WORKER@TIME-TIME, as in w2@10s-25s")
    if match[1] not in workers:
        hint = nearest(match[1], workers)
        listed = f"; workers are {', '.join(workers[:5])}{', …' if len(workers) > 5 else ''}"
        raise InputError(f"--fail: there is no worker '{match[1]}'{hint or listed}")
    at = seconds_of(match[2], "--fail")
    back_at = None if match[3] is None else seconds_of(match[3], "--fail")
    if back_at is not None and back_at <= at:
        raise InputError(f"--fail: '{text}' given, but a worker comes back after it failed; swap the two times")
    return Failure(workers.index(match[1]), at, back_at)


def cold_starts_of(text: str, limit: int | None) -> ColdStarts | None:
    """Read `all`, `2`, `2,held` or `0,no-prewarm`; None if nothing is ever cold."""
    if limit is not None and limit < 1:
        raise InputError(f"--container-limit: {limit} given, expected a whole number of at least 1")
    if text.strip() == ALL_WARM:
        if limit is not None:
            raise InputError("--container-limit: given, but all functions are warm; add --containers N")
        return None
    match = _CONTAINERS.fullmatch(text)
    flags = [flag.strip() for flag in match[2].split(",") if flag.strip()] if match else []
    if not match or any(flag not in _FLAGS for flag in flags):
        raise InputError(
            f"--containers: '{text}' given, expected {ALL_WARM} or the idle containers of each function on each "
            f"worker at the start, as in 2, with options {' and '.join(_FLAGS)}"
        )
    return ColdStarts(int(match[1]), "no-prewarm" not in flags, "held" in flags, KEEP_ALIVE_SECONDS)


def sharing_of(text: str) -> DeviceSharing:
    """Read `any`, `mig` or `mps:0.18`."""
    kind, _, slowdown = (word.strip() for word in text.partition(":"))
    if kind == "any" and not slowdown:
        return DeviceSharing()
    if kind == "mig" and not slowdown:
        return DeviceSharing(A100_40GB)
    try:
        part = float(slowdown) if kind == "mps" else math.nan
    except ValueError:
        part = math.nan
    if not 0 <= part < math.inf:
        raise InputError(
            f"--slices: '{text}' given, expected any, mig, or mps and by which part a task takes longer while others "
            "have all of the rest of its GPU, as in mps:0.1"
        )
    return DeviceSharing(slowdown=part)
