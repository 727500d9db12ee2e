"""Counts what a worker does, for metrics: plain numbers and histograms that other processes ask for."""

from __future__ import annotations

import bisect
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from fairway.engine.serving.messages import HIT, NO_MODEL
from fairway.live.serving.runtime.recent import Recent

BOUNDS = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
)  # fmt: skip
"""Upper bounds of the histograms' buckets, in seconds; the last bucket has none."""

PLANNING_BOUNDS = (5e-6, 1e-5, 2e-5, 3e-5, 5e-5, 7.5e-5, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.1)
"""Those of the time that decisions take."""


@dataclass(slots=True)
class Histogram:
    """How often something took how long."""

    bounds: tuple[float, ...] = BOUNDS
    counts: list[int] = field(default_factory=list)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def add(self, seconds: float) -> None:
        """Count one."""
        self.counts[bisect.bisect_left(self.bounds, seconds)] += 1
        self.total += seconds


@dataclass(slots=True)
class Tally:
    """Since the worker started; `epoch` counts how often. Stages go by workflow and stage, workflows by number."""

    epoch: int = 0
    asked: int = 0
    replied: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    cancelled: int = 0
    failures: int = 0
    hits: int = 0
    misses: int = 0
    loads: int = 0
    evictions: int = 0
    open: int = 0
    waiting: int = 0
    held: int = 0
    resident: list[str] = field(default_factory=list)
    not_enforced: list[str] = field(default_factory=list)
    latency: dict[int, Histogram] = field(default_factory=dict)
    run: dict[tuple[int, int], Histogram] = field(default_factory=dict)
    wait: dict[tuple[int, int], Histogram] = field(default_factory=dict)
    batch: dict[int, int] = field(default_factory=dict)
    in_time: int = 0
    late: int = 0
    planning: Histogram = field(default_factory=lambda: Histogram(PLANNING_BOUNDS))
    recent: Recent = field(default_factory=Recent)

    def ran(self, workflow: int, stage: int, found: int, waited: float, size: int) -> None:
        """A stage has its turn, with so many requests at once."""
        if found == HIT:
            self.hits += 1
        elif found != NO_MODEL:
            self.misses += 1
        self.batch[size] = self.batch.get(size, 0) + 1
        self.waited(workflow, stage, waited)

    def waited(self, workflow: int, stage: int, seconds: float) -> None:
        """A request has waited for its turn; of those that run together, each has."""
        _of(self.wait, (workflow, stage)).add(seconds)

    def took(self, workflow: int, stage: int, seconds: float) -> None:
        """A stage has run."""
        _of(self.run, (workflow, stage)).add(seconds)

    def answered(self, workflow: int, seconds: float, slo_seconds: float | None) -> None:
        """A request has its reply."""
        self.replied += 1
        _of(self.latency, workflow).add(seconds)
        if slo_seconds is not None:
            self.in_time += seconds <= slo_seconds
            self.late += seconds > slo_seconds

    def load_began(self, model: str, now: float) -> None:
        """A model is on its way."""
        self.loads += 1
        self.recent.load_began(model, now)

    def evicted(self, model: str, now: float) -> None:
        """A model was let go."""
        self.evictions += 1
        self.recent.evicted(model, now)

    def refuse(self, code: str) -> None:
        """A request was refused."""
        self.refused[code] = self.refused.get(code, 0) + 1

    def document(self) -> dict[str, Any]:
        """All that is counted, as plain values."""
        return {one.name: _plain(getattr(self, one.name)) for one in fields(self) if one.name != "recent"}


def _plain(value: Any) -> Any:
    if isinstance(value, Histogram):
        return asdict(value)
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return list(value) if isinstance(value, list) else value


def _of(histograms: dict[Any, Histogram], key: Any) -> Histogram:
    found = histograms.get(key)
    if found is None:
        found = histograms[key] = Histogram()
    return found
