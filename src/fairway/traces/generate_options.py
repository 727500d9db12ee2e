"""The options of the job generator, and their short form, as in `jobs=500,rate=4.0,multi-gpu,seed=0`.

`rate` is in jobs per hour; `lam`, its other form, is the mean of the seconds between two arrivals, and 0 lets all jobs
arrive at once. Without `jobs` the stream never ends.
"""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass

from fairway.errors import InputError
from fairway.magnitudes import FACTORS

_SWITCHES = {"multi-gpu": "multi_gpu", "multi-priority": "multi_priority", "slos": "slos"}
_VALUES = ("jobs", "rate", "lam", "duration", "reference", "seed")
_EXAMPLE = "jobs=500,rate=4.0,multi-gpu,seed=0"


@dataclass(frozen=True, slots=True)
class GeneratorOptions:
    """What to generate.

    Without `jobs` the stream never ends. A `mean_gap_seconds` of 0 lets all jobs arrive at once. `multi_gpu` asks for
    gangs, `multi_priority` gives one job of five the weight 5, `slos` gives each job a deadline. `duration_seconds`
    is the same for all jobs if given. `reference` is the accelerator on which durations are turned into steps.
    """

    mean_gap_seconds: float
    jobs: int | None = None
    multi_gpu: bool = False
    multi_priority: bool = False
    slos: bool = False
    duration_seconds: float | None = None
    reference: str = "v100"
    seed: int = 0

    def __post_init__(self) -> None:
        if not (self.mean_gap_seconds >= 0 and self.mean_gap_seconds <= 3600 / FACTORS.least):
            raise InputError(
                f"generate: lam={self.mean_gap_seconds} given, expected seconds of at least 0 and up to "
                f"{3600 / FACTORS.least:g}"
            )
        if self.jobs is not None and self.jobs < 1:
            raise InputError(f"generate: jobs={self.jobs} given, expected a whole number of at least 1")
        if self.jobs is None and self.mean_gap_seconds == 0:
            raise InputError("generate: no jobs=COUNT given, but lam=0 lets all jobs arrive at once; say how many")
        duration = self.duration_seconds
        if duration is not None and not (math.isfinite(duration) and duration > 0):
            raise InputError(f"generate: duration={duration} given, expected seconds above 0")


def parse_generate(text: str) -> GeneratorOptions:
    """Read `jobs=500,rate=4.0,multi-gpu,seed=0`."""
    switches: dict[str, bool] = {}
    values: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if key in switches or key in values:
            raise InputError(f"generate: '{key}' given twice; keep one")
        if key in _SWITCHES and not equals:
            switches[key] = True
        elif key in _VALUES and value:
            values[key] = value
        else:
            raise InputError(f"generate: '{part.strip()}' given{_expected(key)}, as in '{_EXAMPLE}'")
    return GeneratorOptions(
        mean_gap_seconds=_mean_gap(values),
        jobs=_whole_number("jobs", values["jobs"]) if "jobs" in values else None,
        duration_seconds=_number("duration", values["duration"]) if "duration" in values else None,
        reference=values.get("reference", "v100"),
        seed=_whole_number("seed", values.get("seed", "0")),
        **{_SWITCHES[key]: True for key in switches},
    )


def _mean_gap(values: dict[str, str]) -> float:
    if ("rate" in values) == ("lam" in values):
        raise InputError(
            "generate: expected either rate=JOBS_PER_HOUR or lam=SECONDS between arrivals (0 lets all jobs arrive at "
            f"once), as in '{_EXAMPLE}'"
        )
    if "lam" in values:
        return _number("lam", values["lam"])
    rate = _number("rate", values["rate"])
    try:
        return 3600 / FACTORS.above_zero(rate)
    except InputError:
        raise InputError(
            f"generate: rate={values['rate']} given, expected jobs per hour above 0, from {FACTORS}; lam=0 lets all "
            "jobs arrive at once"
        ) from None


def _expected(key: str) -> str:
    if key in _SWITCHES:
        return ", expected no value"
    if key in _VALUES:
        return f", expected a value, {key}=…"
    known = (*_VALUES, *_SWITCHES)
    nearest = difflib.get_close_matches(key, known, n=1)
    hint = f" (did you mean '{nearest[0]}'?)" if nearest else ""
    return f", expected one of {', '.join(known)}{hint}"


def _number(key: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise InputError(f"generate: {key}={value} given, expected a number") from None


def _whole_number(key: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise InputError(f"generate: {key}={value} given, expected a whole number") from None
