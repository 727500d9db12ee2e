"""Adjusts a plan as it goes: the next task moves if too much waits where it was planned (Compass, dynamic adjustment).

Asked by the worker that has just finished a predecessor, before it sends the output on. The planned worker stays unless
its load exceeds theta times the task's own run time; then the task goes where it would end first. Tasks that take the
output of several others never move, because their inputs come from workers that decide independently of each other; so
if the planned worker of one has left, all of them have to find the same other one.
"""

from __future__ import annotations

import numpy as np

from fairway.place.batch import NOWHERE, Batch, Room, ends_there
from fairway.place.fleet import OUTSIDE
from fairway.place.kernels import cheapest_worker
from fairway.place.plan import Draws, Request
from fairway.place.planner import no_place
from fairway.place.spread import spread_worker
from fairway.place.state import ABSENT, NEVER, View


def adjusted_worker(
    request: Request,
    stage: int,
    planned: int,
    view: View,
    now: float,
    draws: Draws,
    *,
    theta: float | None = 1.5,
    gathered: bool = False,
    eviction_penalty: float = 1.0,
    home_penalty: float = 1.0,
    counts_cache: bool = True,
    compat: bool = False,
) -> int:
    """Where the task goes: to the planned worker, or to a better one.

    Without `theta`, it moves only if the planned worker has left. `gathered` says that all inputs are together at
    `view.me`, so that a task with several of them can move too. With `compat`, the first of equals is taken, as in the
    authors' simulator.
    """
    graph, fleet = request.graph, request.graph.fleet
    load = view.load(planned, now)
    if graph.is_join[stage] and not gathered:
        return planned if load != ABSENT else spread_worker(request, stage, view)
    if load != ABSENT and (theta is None or load <= theta * graph.seconds[stage, planned]):
        return planned
    chosen = cheapest_worker(
        graph.seconds[stage],
        graph.input_seconds[stage],
        graph.needed[stage],
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
        planned,
        now,
        eviction_penalty,
        home_penalty,
        counts_cache,
        compat,
        0.0 if compat else draws.random(),
    )
    if chosen < 0:
        raise no_place(request, stage)
    return chosen


def first_to_end(
    batch: Batch,
    room: Room,
    view: View,
    now: float,
    draws: Draws,
    *,
    eviction_penalty: float = 1.0,
    home_penalty: float = 1.0,
    counts_load: bool = True,
    counts_cache: bool = True,
) -> int:
    """Of the workers that have room for a batch, the one on which it would end first; `NOWHERE` if none has."""
    fleet, idle = batch.graph.fleet, np.where(view.queued == ABSENT, ABSENT, 0.0)
    return int(
        cheapest_worker(
            ends_there(batch, room),
            0.0,
            batch.graph.needed[batch.stage],
            fleet.fetch_seconds,
            fleet.model_bytes,
            fleet.hosts,
            view.queued if counts_load else idle,
            view.busy_until if counts_load else idle,
            view.cached,
            view.free,
            OUTSIDE,
            0.0,
            NEVER,
            view.own_cached,
            view.own_free,
            view.homes,
            NOWHERE,
            now,
            eviction_penalty,
            home_penalty,
            counts_cache,
            False,
            draws.random(),
        )
    )
