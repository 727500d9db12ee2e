"""What is to be reached, as text: `p95 wait < 1h`, `slo >= 99%`, `mean jct < 2.5h`, `cost < 100`."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fairway.errors import InputError
from fairway.experiments.planning.outlook import METRICS
from fairway.magnitudes import FACTORS
from fairway.options import nearest
from fairway.quantities import seconds_of

_FORM = re.compile(r"\s*([a-z0-9 ]+?)\s*(<=|>=|<|>)\s*(\S.*?)\s*", re.IGNORECASE)
_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Goal:
    """A metric, how it is compared, and the bound: seconds, a share of 1, dollars or jobs."""

    metric: str
    comparison: str
    bound: float
    text: str

    @classmethod
    def parse(cls, text: str) -> Goal:
        """Read a goal."""
        match = _FORM.fullmatch(text)
        if match is None:
            raise InputError(f"find: '{text}' given, expected a number and its bound, as in 'p95 wait < 1h'")
        metric = " ".join(match[1].lower().split())
        if metric not in METRICS:
            raise InputError(f"find: '{metric}' is not known{nearest(metric, METRICS)}; known: {', '.join(METRICS)}")
        return cls(metric, match[2], _bound(metric, match[3]), text.strip())

    def reached(self, value: float) -> bool:
        """Whether a value of the metric is within the bound; one that there is not is none."""
        return not math.isnan(value) and _COMPARISONS[self.comparison](value, self.bound)


def _bound(metric: str, text: str) -> float:
    try:
        if metric == "slo":
            return float(text[:-1]) / 100 if text.endswith("%") else float(text)
        if metric in {"cost", "unfinished"}:
            return FACTORS.zero_or_more(float(text.lstrip("$")))
        return seconds_of(text)
    except (ValueError, InputError):
        unit = {"slo": "a share, as in 99%", "cost": "dollars, as in 100", "unfinished": "a number of jobs"}
        raise InputError(
            f"find: '{text}' given for {metric}, expected {unit.get(metric, 'a time, as in 90s, 30m or 1h')}"
        ) from None
