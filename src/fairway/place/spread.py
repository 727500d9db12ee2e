"""Spreads tasks over the workers by the hash of request and stage, which all workers work out alike.

`kernels.spread_task` says where a hash falls. For a request that is untimed, that is all there is to know.
"""

from __future__ import annotations

import numpy as np

from fairway.made import made
from fairway.place.kernels import spread_task, spread_tasks
from fairway.place.plan import Draws, Plan, Request
from fairway.place.planner import KEY_MASK, NO_PARTS, NO_TIMES, no_place, plan_request
from fairway.place.state import View


def spread_worker(request: Request, stage: int, view: View) -> int:
    """The worker of one task; if that has left or cannot run it, another one of those that can."""
    worker = spread_task(request.key & KEY_MASK, stage, -1.0, request.graph.seconds[stage], view.queued)
    if worker < 0:
        raise no_place(request, stage)
    return worker


def spread_plan(request: Request, view: View, now: float, draws: Draws | None = None) -> Plan:
    """A plan that spreads the tasks by hash or, where draws are given, by chance; and when each should finish there."""
    parts = NO_PARTS
    if draws is None:
        if request.untimed and request.kept is None:
            return _untimed_plan(request, view)
    else:
        kept = [-1] * len(request.graph) if request.kept is None else request.kept.workers.tolist()
        parts = np.array([draws.random() if worker < 0 else 0.0 for worker in kept])
    return plan_request(request, view, now, 0.0, spreads=True, parts=parts)


def _untimed_plan(request: Request, view: View) -> Plan:
    graph = request.graph
    workers = spread_tasks(request.key & KEY_MASK, NO_PARTS, graph.seconds, view.queued)
    for stage, worker in enumerate(workers.tolist()):
        if worker < 0:
            raise no_place(request, stage)
    return made(Plan, (graph, workers, NO_TIMES))
