"""What happened in a run of a serverless platform, in columns: every request, every task, every container begun.

Numbers, tables and pages are made of it and of nothing else. Times are seconds since the start of the run, NaN where
something did not happen; costs are dollars.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

KINDS = ("planned", "best-effort", "shed", "forced")
"""Why a task was started as it was; a record has positions in this."""


@dataclass(frozen=True, slots=True)
class ApplicationFacts:
    """An application as the numbers know it; `lower_bound_seconds` is its longest way at the fastest."""

    name: str
    slo_seconds: float
    lower_bound_seconds: float
    stages: tuple[str, ...]
    entries: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ServerlessRequests:
    """One entry per request, in order of arrival; `cost` is its part of the bills of its tasks."""

    arrival: FloatArray
    finish: FloatArray
    application: IntArray
    cost: FloatArray

    def __len__(self) -> int:
        return len(self.arrival)


@dataclass(frozen=True, eq=False)
class ServerlessTasks:
    """One entry per task, in order of their start.

    `oldest` is its first request; `jobs` how many it has, `batch` for how many it was planned; `local` how many of them
    had their inputs on the invoker. It waits `overhead` and `cold` seconds, fetches and runs; it pays for the latter
    two.
    """

    start: FloatArray
    end: FloatArray
    application: IntArray
    stage: IntArray
    oldest: IntArray
    jobs: IntArray
    batch: IntArray
    cpu: IntArray
    gpu: IntArray
    invoker: IntArray
    kind: IntArray
    local: IntArray
    overhead: FloatArray
    cold: FloatArray
    fetch: FloatArray
    run: FloatArray
    cost: FloatArray

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, eq=False)
class ServerlessContainers:
    """One entry per container that was begun: when it could take tasks, and whether that was ahead of need."""

    start: FloatArray
    ready: FloatArray
    function: IntArray
    invoker: IntArray
    ahead: BoolArray

    def __len__(self) -> int:
        return len(self.start)


NO_CONTAINERS = ServerlessContainers(
    np.empty(0), np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_)
)
"""Nothing was cold."""


@dataclass(frozen=True, eq=False)
class ServerlessRecord:
    """A whole run. `settings` are what is needed to repeat it, by the names of the command's options.

    Requests that arrive in `window` (seconds) count. `cpu` and `gpu` are those of one invoker; `noise` is as measured.
    `decision_seconds` is the real time that each decision took. `prices_known` is False where costs mean
    nothing.
    """

    scheduler: str
    settings: Mapping[str, Any]
    applications: tuple[ApplicationFacts, ...]
    functions: tuple[str, ...]
    invokers: int
    cpu: int
    gpu: int
    window: tuple[float, float]
    requests: ServerlessRequests
    tasks: ServerlessTasks
    containers: ServerlessContainers
    noise: float
    end_seconds: float
    decision_seconds: FloatArray
    events: int
    wall_seconds: float
    prices_known: bool = True
