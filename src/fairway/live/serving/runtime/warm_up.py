"""Has the code that places tasks there before the first request comes.

It takes most of a second to come from its cache, and no client should wait for that.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import numpy as np

from fairway.place.fleet import Fleet
from fairway.place.graph import TaskGraph
from fairway.place.placer import Placer
from fairway.place.plan import NoPlaceError, Request
from fairway.place.state import NEVER, StateTable

_WARM: set[tuple[Placer, int, int]] = set()
"""What this process has decided like already: a simulation has many workers in one process."""


def warm_up(placer: Placer, fleet: Fleet, graphs: Iterable[TaskGraph], me: int) -> None:
    """Decide once in every way, as worker `me` does.

    Where a task goes is another question if its worker is idle, has too much to do, or is gone.
    """
    draws = np.random.default_rng(0)
    for graph in graphs:
        if (shape := (placer, len(graph), len(fleet))) in _WARM:
            continue
        _WARM.add(shape)
        request = Request(0, graph, me)
        idle, busy, gone = (StateTable(fleet) for _ in range(3))
        workers = placer.plan(request, idle.view(me, 0.0), 0.0, draws).workers.tolist()
        placer.plan(request._replace(untimed=True), idle.view(me, 0.0), 0.0, draws)
        for stage, planned in enumerate(workers):
            busy.write_load(planned, 1e9, NEVER, 0.0)
            gone.leave(planned)
            for table in (idle, busy, gone):
                with suppress(NoPlaceError):
                    placer.next_worker(request, stage, planned, table.view(me, 0.0), 0.0, draws)
