"""What the tasks of a run were given and how they found their models: of the whole run or, where the record has a
window, of the tasks and copies that began in it.

Of a whole run, the sums by worker tell enough. What falls into a window, only runs and copies that were kept can tell.
A task here is one run on a worker: several requests in one batch are one task.
"""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from fairway.report.serving.record import KINDS, BoolArray, FloatArray, IntArray, ServingRecord


class TaskNumbers(TypedDict):
    """The part of a `ServingSummary` that is about tasks, and the copies of models that were made for them."""

    cache_hit_rate: float | None
    partial_hit_rate: float | None
    cold_starts: int
    copies_begun: int
    evictions: int
    tasks: int
    mean_batch: float | None
    cpus_per_task: float | None
    slices_per_task: float | None
    local_fetch_rate: float | None
    kinds: dict[str, int] | None
    utilization: float | None
    cpu_utilization: float | None


def task_numbers(record: ServingRecord) -> TaskNumbers:
    """The numbers of a whole run, or of its window."""
    return _of_the_whole_run(record) if record.window is None else _in_the_window(record, record.window)


def _of_the_whole_run(record: ServingRecord) -> TaskNumbers:
    workers = record.workers
    looked = int((workers.hits + workers.partial + workers.misses).sum())
    # A batch finds the copy that its jobs waited for in their queue; that is no hit.
    hits = max(int((workers.hits - workers.awaited).sum()), 0)
    number = int(workers.runs.sum())
    return {
        "cache_hit_rate": part(hits, looked),
        "partial_hit_rate": part(int(workers.partial.sum()), looked),
        "cold_starts": int((workers.misses + workers.awaited).sum()),
        "copies_begun": int(workers.fetches.sum()),
        "evictions": int(workers.evictions.sum()),
        "tasks": number,
        "mean_batch": part(int(workers.tasks.sum()), number),
        "cpus_per_task": None,
        "slices_per_task": None,
        "local_fetch_rate": None,
        "kinds": None,
        "utilization": utilization(record),
        "cpu_utilization": None,
    }


def _in_the_window(record: ServingRecord, window: tuple[float, float]) -> TaskNumbers:
    """A cold start is a copy that a task, or a job in its queue, had to wait for; nothing is cold without models."""
    runs, copies, workers = record.runs, record.copies, record.workers
    started = _between(runs.start, window)
    lead = started & (runs.member == 0)
    later = started & ~_takes_requests(record)
    begun = _between(copies.start, window) & ~copies.evicted
    cold = int((begun & ~copies.ahead).sum())
    tasks = int(lead.sum())
    return {
        "cache_hit_rate": part(max(tasks - cold, 0), tasks),
        "partial_hit_rate": None,
        "cold_starts": cold,
        "copies_begun": int(begun.sum()),
        "evictions": int((_between(copies.start, window) & copies.evicted).sum()),
        "tasks": tasks,
        "mean_batch": _mean(runs.batch, lead),
        "cpus_per_task": _mean(runs.cpu, lead),
        "slices_per_task": _mean(runs.gpu, lead),
        "local_fetch_rate": _mean(runs.local, later),
        "kinds": {name: int((runs.kind[lead] == place).sum()) for place, name in enumerate(KINDS)},
        "utilization": _held(record, window, runs.gpu, workers.slices),
        "cpu_utilization": _held(record, window, runs.cpu, workers.cpus),
    }


def utilization(record: ServingRecord) -> float | None:
    """Time in which tasks ran over all time of all workers."""
    available = len(record.workers.names) * record.end_seconds
    return float(record.workers.busy_seconds.sum()) / available if available > 0 else None


def part(some: int, whole: int) -> float | None:
    """One number over another, None over nothing."""
    return some / whole if whole else None


def _between(time: FloatArray, window: tuple[float, float]) -> BoolArray:
    return np.asarray((time >= window[0]) & (time < window[1]), np.bool_)


def _held(record: ServingRecord, window: tuple[float, float], amount: IntArray, own: IntArray) -> float | None:
    """Which part of all that workers have tasks held in the window."""
    runs = record.runs
    lead = runs.member == 0
    held = held_between(runs.start[lead], runs.end[lead], amount[lead].astype(np.float64), np.array(window))[0]
    available = float(own.sum()) * (window[1] - window[0])
    return float(held) / available if available > 0 else None


def _takes_requests(record: ServingRecord) -> BoolArray:
    """Which tasks take requests themselves as their input: those of the first stages."""
    entries = [set(facts.entries) for facts in record.workflows]
    workflow = record.requests.workflow[record.runs.request]
    pairs = zip(workflow.tolist(), record.runs.stage.tolist(), strict=True)
    return np.array([stage in entries[number] for number, stage in pairs], np.bool_)


def _mean(values: IntArray, among: BoolArray) -> float | None:
    return float(values[among].mean()) if among.any() else None


def held_between(start: FloatArray, end: FloatArray, amount: FloatArray, edges: FloatArray) -> FloatArray:
    """The integral over each interval of the sum of the amounts that hold from `start[k]` to `end[k]`."""

    def until(since: FloatArray) -> FloatArray:
        """The integral up to each edge of amounts that hold from `since` on for ever."""
        order = np.argsort(since, kind="stable")
        sums = np.concatenate([[0.0], np.cumsum(amount[order])])
        moments = np.concatenate([[0.0], np.cumsum((amount * since)[order])])
        before = np.searchsorted(since[order], edges)
        return np.asarray(edges * sums[before] - moments[before], dtype=np.float64)

    return np.diff(until(start) - until(end))
