"""Plans a request: by decreasing rank, each task goes where it would finish first (Compass, job planning).

The planner sees loads and memories as its worker sees them, and keeps its own account while it plans: when each worker
is done with the tasks of this request, and which models these will have brought there. Nothing is reserved: planners at
other workers may choose the same ones until they hear of it.

`kernels.plan_tasks` has the formulas. What HEFT and Hash need is the same search with less to look at, or with the
workers given.
"""

from __future__ import annotations

import numpy as np

from fairway.made import made
from fairway.place.arrays import FloatArray
from fairway.place.kernels import plan_tasks
from fairway.place.plan import NoPlaceError, Plan, Request
from fairway.place.state import View

KEY_MASK = 2**63 - 1
"""Of larger keys, kernels take the last bits only."""

NO_PARTS = np.empty(0)
NO_TIMES = np.empty(0)

_NO_WORKERS = np.empty(0, dtype=np.int64)


def plan_request(
    request: Request,
    view: View,
    now: float,
    draw: float,
    *,
    spreads: bool = False,
    parts: FloatArray = NO_PARTS,
    eviction_penalty: float = 1.0,
    home_penalty: float = 1.0,
    counts_load: bool = True,
    counts_cache: bool = True,
    compat: bool = False,
) -> Plan:
    """The plan of a request; `draw` from [0, 1) decides between equals.

    If it `spreads`, there is no search: tasks go where `kernels.spread_tasks` says, by `parts` if there are any, and
    only their times are worked out. `eviction_penalty` is what a model costs on top, as a part of its fetch time,
    where others have to make room for it, `home_penalty` where such have to that are at home there. With `compat`, the
    planner makes the same mistakes as the authors' simulator: input that arrives at once, models that are planned for
    twice, and the first of equals.
    """
    graph, fleet = request.graph, request.graph.fleet
    kept = request.kept
    workers, finish, stuck = plan_tasks(
        graph.order,
        graph.seconds,
        graph.before_offsets,
        graph.before,
        graph.heaviest,
        graph.near_seconds,
        graph.far_seconds,
        graph.input_seconds,
        graph.need_offsets,
        graph.needs,
        graph.models,
        fleet.fetch_seconds,
        fleet.model_bytes,
        fleet.hosts,
        view.queued,
        view.busy_until,
        view.cached,
        view.free,
        view.me,
        view.own_queued,
        view.own_busy_until,
        view.own_cached,
        view.own_free,
        view.homes,
        request.ingress,
        now,
        eviction_penalty,
        home_penalty,
        counts_load,
        counts_cache,
        compat,
        draw,
        _NO_WORKERS if kept is None else kept.workers,
        NO_TIMES if kept is None else kept.finish,
        spreads,
        request.key & KEY_MASK,
        parts,
    )
    if stuck >= 0:
        raise no_place(request, stuck)
    return made(Plan, (graph, workers, finish))


def no_place(request: Request, stage: int) -> NoPlaceError:
    """Why the request has to be refused."""
    name = request.graph.workflow.stages[stage].name
    able = int(request.graph.runnable[stage].sum())
    return NoPlaceError(
        f"request {request.key}: stage '{name}' can run on {able} of {len(request.graph.fleet)} workers, "
        "and none of these is there; wait for one of them"
    )
