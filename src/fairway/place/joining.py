"""Where a task goes that may join a batch: it counts what it adds to one that waits against starting elsewhere now.

For each worker, from its row (`lines`): the tasks that are more urgent run before it, one batch after another; then the
batch of its own model, which it joins if there is room. With t(n) the time of n tasks together and n of them in the
batch that it would join, it

    ends     start + t(n + 1)            where start is when the worker is free and all that goes before is done
    adds     t(n + 1) - t(n)             which all that waits behind it there has to wait longer

and goes where the sum of both, the second `weight` times, is least. Being late costs what a wait of as long would, many
times over. A model that is not there has to come first, which is added work as well, and more so where others must go.
"""

from __future__ import annotations

import numpy as np

from fairway.compiled import BoolTable, FloatBlock, FloatTable, compiled
from fairway.place.arrays import BoolArray, FloatArray, IntArray
from fairway.place.lines import COUNT, LATEST, SECONDS
from fairway.place.plan import Request
from fairway.place.planner import no_place
from fairway.place.stage_plan import StagePlan
from fairway.place.state import View

_LATE_FACTOR = 10.0


def joined_worker(
    request: Request,
    stage: int,
    view: View,
    now: float,
    draw: float,
    *,
    weight: float,
    eviction_penalty: float,
    home_penalty: float,
    together: int = 1,
    stay: float = 0.0,
) -> int:
    """The worker for a task whose inputs are at `view.me`, or come from a client.

    So many go `together` with it. Elsewhere it has to be better by a part `stay` of its run time.
    """
    graph, fleet = request.graph, request.graph.fleet
    plan = graph.plan or _alone(request)
    before = graph.workflow.predecessors[stage]
    far = float(graph.far_seconds[list(before)].sum()) if before else float(graph.input_seconds[stage])
    chosen = cheapest_to_join(
        graph.seconds[stage],
        plan.times[stage],
        plan.kinds,
        int(plan.sizes[stage]),
        far,
        graph.needed[stage],
        fleet.fetch_seconds,
        fleet.model_bytes,
        view.queued,
        view.busy_until,
        view.cached,
        view.free,
        view.lines,
        view.me,
        view.own_queued,
        view.own_busy_until,
        view.own_cached,
        view.own_free,
        view.own_line,
        view.homes,
        now,
        request.due - float(plan.kept[stage]),
        request.due - float(plan.after[stage]),
        weight,
        eviction_penalty,
        home_penalty,
        draw,
        together,
        stay,
    )
    if chosen < 0:
        raise no_place(request, stage)
    return int(chosen)


def _alone(request: Request) -> StagePlan:
    """Where nothing is planned, each task runs alone."""
    graph = request.graph
    return StagePlan.of(graph.workflow, graph.fleet, [1] * len(graph), range(len(graph)))


@compiled()
def cheapest_to_join(
    seconds: FloatArray,
    times: FloatTable,
    kinds: IntArray,
    size: int,
    far_seconds: float,
    needed: IntArray,
    fetch_seconds: FloatArray,
    model_bytes: FloatArray,
    queued: FloatArray,
    busy_until: FloatArray,
    cached: BoolTable,
    free_bytes: FloatArray,
    lines: FloatBlock,
    me: int,
    own_queued: float,
    own_busy_until: float,
    own_cached: BoolArray,
    own_free: float,
    own_line: FloatTable,
    homes: BoolTable,
    now: float,
    latest: float,
    end_by: float,
    weight: float,
    eviction_penalty: float,
    home_penalty: float,
    draw: float,
    coming: int,
    stay: float,
) -> int:
    """The worker with the least cost, -1 if none can run the task; `draw` from [0, 1) decides between equals."""
    workers, rows = len(seconds), lines.shape[1]
    model = needed[0] if len(needed) else rows - 1
    best, least = -1, np.inf
    first = int(draw * workers)
    for turn in range(workers):
        worker = (first + turn) % workers
        own = worker == me
        if seconds[worker] == np.inf or (own_queued if own else queued[worker]) == np.inf:
            continue
        start = now if own else now + far_seconds
        free = max(now, own_busy_until if own else busy_until[worker])
        if rows == 0:  # nothing is known but how much work waits
            free += own_queued if own else queued[worker]
        waiting = 0
        for row in range(rows):
            count = int(own_line[COUNT, row] if own else lines[COUNT, row, worker])
            if count == 0:
                continue
            if row == model:
                waiting = count
            elif (own_line[LATEST, row] if own else lines[LATEST, row, worker]) <= latest:
                free += own_line[SECONDS, row] if own else lines[SECONDS, row, worker]
        missing, price = 0.0, 0.0
        for each in needed:
            if own_cached[each] if own else cached[each, worker]:
                continue
            fetch = fetch_seconds[each]
            missing += fetch
            price += fetch
            if model_bytes[each] > (own_free if own else free_bytes[worker]):
                price += fetch * eviction_penalty
            if not homes[each, worker]:
                price += fetch * home_penalty
        kind, there = kinds[worker], waiting % size
        free += (waiting // size) * times[kind, size - 1]
        together = min(there + coming, size)
        more = there + coming - together  # do not fit in the batch that waits
        run = times[kind, together - 1] + (times[kind, more - 1] if more else 0.0)
        added = run - (times[kind, there - 1] if there else 0.0)
        end = max(free, start + missing) + run
        cost = end + weight * added + price
        if not own:
            cost += stay * run
        if end > end_by:
            cost += _LATE_FACTOR * (end - end_by)
        for row in range(rows):  # what it goes before may be late because of it
            count = own_line[COUNT, row] if own else lines[COUNT, row, worker]
            if count == 0 or row == model:
                continue
            starts_by = own_line[LATEST, row] if own else lines[LATEST, row, worker]
            if starts_by > latest and end > starts_by:
                cost += _LATE_FACTOR * min(added, end - starts_by) * count
        if cost < least:
            best, least = worker, cost
    return best
