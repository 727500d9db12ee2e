"""ESG_Dispatch: which invoker runs a task, first by where its data is, then by where it fits best.

A task of an entry stage goes to its application's home or the next one in steps; any other to an invoker that holds
inputs of its jobs, most inputs first. Failing that, to the best fit: fewest slices left over, then fewest CPUs, then
the first. Where containers can be cold, those that have a warm one go first in each of these, as a cold start takes
seconds and a fetch milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairway.configure.application import Application
from fairway.configure.arrays import BoolArray
from fairway.configure.invokers import NOWHERE, Invokers, best_fit, first_fit, home_of, step_of
from fairway.configure.queues import Queue


def near_the_data(application: Application, queue: Queue, jobs: int, cpu: int, gpu: int, invokers: Invokers) -> int:
    """The invoker for a task of the oldest jobs, -1 if it fits nowhere."""
    for among in _warm_first(queue, invokers):
        anywhere = int(best_fit(invokers.free_cpu, invokers.free_gpu, cpu, gpu, among))
        if anywhere != NOWHERE:  # otherwise there is no need to look where the data is
            near = _near(application, queue, jobs, cpu, gpu, invokers, among)
            return anywhere if near == NOWHERE else near
    return NOWHERE


def where_it_fits(queue: Queue, cpu: int, gpu: int, invokers: Invokers) -> int:
    """The best fit, wherever the data is; -1 if a task of this size fits nowhere."""
    for among in _warm_first(queue, invokers):
        invoker = int(best_fit(invokers.free_cpu, invokers.free_gpu, cpu, gpu, among))
        if invoker != NOWHERE:
            return invoker
    return NOWHERE


def holders(sources: Sequence[tuple[int, ...]]) -> list[int]:
    """The invokers that hold inputs of these jobs: most inputs first, between equals the lowest number."""
    if len(sources) == 1 and len(sources[0]) == 1:
        return [sources[0][0]]
    counts: dict[int, int] = {}
    for job in sources:
        for invoker in job:
            counts[invoker] = counts.get(invoker, 0) + 1
    return sorted(counts, key=lambda invoker: (-counts[invoker], invoker))


def _near(
    application: Application, queue: Queue, jobs: int, cpu: int, gpu: int, invokers: Invokers, among: BoolArray
) -> int:
    if queue.stage in application.entries:
        count = len(invokers)
        home, step = home_of(application.key, count), step_of(count)
        return int(first_fit(invokers.free_cpu, invokers.free_gpu, cpu, gpu, among, home, step))
    for invoker in holders(queue.sources[:jobs]):
        if among[invoker] and invokers.fits(invoker, cpu, gpu):
            return invoker
    return NOWHERE


def _warm_first(queue: Queue, invokers: Invokers) -> tuple[BoolArray, ...]:
    return (invokers.everywhere,) if queue.warm is None else (queue.warm, invokers.everywhere)
