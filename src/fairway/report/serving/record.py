"""What happened in a run of requests for workflows, in columns: every request and, if kept, every run and copy.

The simulator and the live system write the same record; numbers, tables and pages are made of it and of nothing else.
Times are seconds since the start of the run, NaN where something did not happen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fairway.report.tables import Tabular

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


class RequestOutcome(IntEnum):
    """How a request ended, or that it did not."""

    COMPLETED = 0
    UNFINISHED = 1
    REFUSED = 2


@dataclass(frozen=True, slots=True)
class WorkflowFacts:
    """A workflow as the numbers know it: no request can be done sooner than its lower bound, and should be by its SLO.

    Both are in seconds; `stages` are the names of its stages, `entries` those that take the request itself, `edges` the
    pairs of stages of which the second takes what the first gives. `budgets` is what each stage may take of the SLO.
    """

    name: str
    lower_bound_seconds: float
    slo_seconds: float
    stages: tuple[str, ...]
    entries: tuple[int, ...] = ()
    edges: tuple[tuple[int, int], ...] = ()
    budgets: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class RequestColumns(Tabular):
    """One entry per request, in order of arrival; `workflow` numbers the record's workflows, whose facts are `of`.

    `asked` is how many workers its client asked: more than one if the first was lost. `counted` marks the requests that
    the averages are over. `cost` is its part of the bills of its tasks, in dollars; None where use has no price.
    """

    arrival: FloatArray
    finish: FloatArray
    workflow: IntArray
    outcome: IntArray
    asked: IntArray
    counted: BoolArray
    cost: FloatArray | None = None
    of: tuple[WorkflowFacts, ...] = ()

    def __len__(self) -> int:
        return len(self.arrival)

    def table(self) -> dict[str, Sequence[Any]]:
        """One row per request; times are seconds, and empty where a request was not answered."""
        done = self.outcome == RequestOutcome.COMPLETED
        latency = np.where(done, self.finish - self.arrival, np.nan)
        numbers = self.workflow.tolist()
        columns: dict[str, Sequence[Any]] = {
            "request": list(range(len(self))),
            "workflow": [self.of[number].name if self.of else number for number in numbers],
            "outcome": [RequestOutcome(each).name.lower() for each in self.outcome.tolist()],
            "counted": self.counted.tolist(),
            "arrival": self.arrival.tolist(),
            "finish": np.where(done, self.finish, np.nan).tolist(),
            "latency": latency.tolist(),
            "asked": self.asked.tolist(),
            "cost_dollars": (np.full(len(self), np.nan) if self.cost is None else self.cost).tolist(),
        }
        if self.of:
            bound = np.array([each.lower_bound_seconds for each in self.of])[self.workflow]
            slo = np.array([each.slo_seconds for each in self.of])[self.workflow]
            columns["wait"] = (latency - bound).tolist()
            columns["slowdown"] = (latency / np.where(bound > 0, bound, np.nan)).tolist()
            columns["in_time"] = [bool(late <= 0) if ok else None for late, ok in zip(latency - slo, done, strict=True)]
        return columns


@dataclass(frozen=True, eq=False)
class WorkerColumns:
    """One entry per worker: how long it ran tasks and copied models, how many tasks, and how they found their models.

    `busy_seconds` counts a task that holds a part of its worker as that part. `hits` found all models in memory,
    `partial` found one on its way, `misses` had to fetch one; `awaited` copies were begun for jobs that waited in
    their queue. `runs` is in how many runs the tasks ran: fewer than tasks where several ran together. `cpus` and
    `slices` are what the worker has.
    """

    names: tuple[str, ...]
    accelerators: tuple[str, ...]
    busy_seconds: FloatArray
    copy_seconds: FloatArray
    tasks: IntArray
    hits: IntArray
    partial: IntArray
    misses: IntArray
    fetches: IntArray
    evictions: IntArray
    awaited: IntArray
    runs: IntArray
    cpus: IntArray
    slices: IntArray


KINDS = ("planned", "best-effort", "shed", "forced")
"""Why a task ran in the size that it had; a record has positions in this."""


@dataclass(frozen=True, eq=False)
class RunColumns:
    """One entry per task that ran: it joined the queue at `queued`, had its turn at `turn` and ran from `start` on.

    `batch` is how many ran together, itself counted, and `member` its position among them; `planned` is for how many
    the run was meant. The run held `cpu` CPUs and `gpu` slices; `kind` is why. Of its time, `overhead` seconds went by
    for its decision and `fetch` for its inputs, which were on its worker if it was `local`; it paid `cost` dollars.
    """

    worker: IntArray
    request: IntArray
    stage: IntArray
    found: IntArray
    batch: IntArray
    member: IntArray
    planned: IntArray
    cpu: IntArray
    gpu: IntArray
    kind: IntArray
    local: IntArray
    queued: FloatArray
    turn: FloatArray
    start: FloatArray
    end: FloatArray
    overhead: FloatArray
    fetch: FloatArray
    cost: FloatArray

    WHOLE: ClassVar[tuple[str, ...]] = (
        "worker", "request", "stage", "found", "batch", "member", "planned", "cpu", "gpu", "kind", "local",
    )  # fmt: skip
    REAL: ClassVar[tuple[str, ...]] = ("queued", "turn", "start", "end", "overhead", "fetch", "cost")

    def __len__(self) -> int:
        return len(self.worker)


@dataclass(frozen=True, eq=False)
class CopyColumns:
    """One entry per model that came to a worker's memory (`end` is when it was there) or went (`start` is `end`).

    `ahead` says that no job waited for it.
    """

    worker: IntArray
    model: IntArray
    evicted: BoolArray
    ahead: BoolArray
    start: FloatArray
    end: FloatArray

    def __len__(self) -> int:
        return len(self.worker)


@dataclass(frozen=True, eq=False)
class StalenessColumns:
    """One entry per planned request: how far what its planner saw of the others was from the truth.

    `load_seconds` is the mean distance of a worker's load, `models_wrong` the part of models and workers that it had
    wrong.
    """

    time: FloatArray
    load_seconds: FloatArray
    models_wrong: FloatArray


@dataclass(frozen=True, slots=True)
class Power:
    """Watts of an accelerator that does nothing, that runs a task, and that copies; of a Tesla T4 by default."""

    idle_watts: float = 10.0
    busy_watts: float = 70.0
    copy_watts: float = 35.0


@dataclass(frozen=True, eq=False)
class ServingRecord:
    """A whole run. `settings` are what is needed to repeat it, by the names of the command's options.

    `decision_seconds` is the real time that each plan took. `dollars_per_hour` is the price of all workers together,
    None where they have none. Without `runs`, only their sums are known. `refusals` are the first reasons for which
    requests were refused. With a `window` (seconds), tasks and what they hold count in it only. `noise` is that of run
    times as measured, where the scheduler measures it.
    """

    scheduler: str
    settings: Mapping[str, Any]
    workflows: tuple[WorkflowFacts, ...]
    models: tuple[str, ...]
    requests: RequestColumns
    workers: WorkerColumns
    runs: RunColumns
    copies: CopyColumns
    staleness: StalenessColumns
    end_seconds: float
    decision_seconds: FloatArray
    events: int
    wall_seconds: float
    power: Power = Power()
    dollars_per_hour: float | None = None
    skipped_rows: int = 0
    unreadable_rows: int = 0
    refusals: tuple[str, ...] = ()
    window: tuple[float, float] | None = None
    noise: float | None = None
