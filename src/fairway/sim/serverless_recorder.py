"""Writes down what happens in a run of a serverless platform, and makes the record of it."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
import numpy.typing as npt

from fairway.engine.serverless_messages import StartTask
from fairway.report.serverless_record import (
    KINDS,
    FloatArray,
    ServerlessContainers,
    ServerlessRequests,
    ServerlessTasks,
)
from fairway.sim.serverless_scenario import ServerlessArrivals

_WHOLE = ("application", "stage", "oldest", "jobs", "batch", "cpu", "gpu", "invoker", "kind", "local")
_REAL = ("start", "end", "overhead", "cold", "fetch", "run", "cost")


class ServerlessRecorder:
    """Columns that grow."""

    def __init__(self, arrivals: ServerlessArrivals) -> None:
        self._arrivals = arrivals
        self.finish: FloatArray = np.full(len(arrivals), np.nan)
        self.cost: FloatArray = np.zeros(len(arrivals))
        self._whole = array("q")
        self._real = array("d")
        self._containers: list[tuple[float, float, int, int, bool]] = []

    def task_started(
        self, now: float, end: float, command: StartTask, overhead: float, cold: float, run: float, rate: float
    ) -> None:
        """A task starts; the bill is the rate, in dollars per second, times fetch and run."""
        (batch, cpu, gpu), jobs, invoker, kind = command.dispatch
        cost = rate * (command.fetch_seconds + run)
        self._whole.extend(
            (
                command.application,
                command.stage,
                command.requests[0],
                jobs,
                batch,
                cpu,
                gpu,
                invoker,
                KINDS.index(kind),
                command.local,
            )
        )
        self._real.extend((now, end, overhead, cold, command.fetch_seconds, run, cost))
        for request in command.requests:
            self.cost[request] += cost / jobs

    def container_begun(self, now: float, ready: float, function: int, invoker: int, *, ahead: bool) -> None:
        """A container is being created."""
        self._containers.append((now, ready, function, invoker, ahead))

    def requests(self) -> ServerlessRequests:
        """How requests fared."""
        return ServerlessRequests(self._arrivals.time, self.finish, self._arrivals.application, self.cost)

    def tasks(self) -> ServerlessTasks:
        """All tasks."""
        whole = np.frombuffer(self._whole, np.int64).reshape(-1, len(_WHOLE)) if self._whole else None
        real = np.frombuffer(self._real, np.float64).reshape(-1, len(_REAL)) if self._real else None
        return ServerlessTasks(
            **{name: _column(real, place, np.float64) for place, name in enumerate(_REAL)},
            **{name: _column(whole, place, np.int64) for place, name in enumerate(_WHOLE)},
        )

    def containers(self) -> ServerlessContainers:
        """All containers that were begun."""
        begun = self._containers
        return ServerlessContainers(
            np.array([each[0] for each in begun], np.float64),
            np.array([each[1] for each in begun], np.float64),
            np.array([each[2] for each in begun], np.int64),
            np.array([each[3] for each in begun], np.int64),
            np.array([each[4] for each in begun], np.bool_),
        )


def _column(table: npt.NDArray[Any] | None, place: int, kind: type) -> npt.NDArray[Any]:
    return np.empty(0, kind) if table is None else table[:, place].copy()
