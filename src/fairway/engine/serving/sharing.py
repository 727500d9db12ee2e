"""How tasks that wait come to a worker that would be done with them sooner.

Where a task goes is decided when its inputs are there, by rows that say how much waits at each worker. A batch that
begins on one worker makes another the better one for what still waits. So a worker looks around when a batch begins and
now and then while it runs, and sends on what would be done sooner elsewhere, as many as are planned to run together.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fairway.engine.serving.forwarding import Forwarding
from fairway.engine.serving.messages import StageMoved
from fairway.errors import InputError
from fairway.place.fleet import OUTSIDE
from fairway.place.placer import BatchPlacer, MovingPlacer
from fairway.place.state import View

if TYPE_CHECKING:
    from fairway.engine.serving.urgent_queue import Group, UrgentQueue

_LOOKS = 24
_LEAST_LOOK_SECONDS = 1e-3
"""While a batch runs, a worker looks so often whether what waits would be done sooner elsewhere; not all the time."""


class Sharing(Forwarding):
    """Sends on what waits."""

    __slots__ = ("_looks_at", "_mover", "_moves")

    def _use_mover(self, placer: BatchPlacer) -> None:
        """Take note of whether what waits may move, and who says where."""
        rules = placer.rules
        self._mover: MovingPlacer | None = None
        if rules.moves and self.me != OUTSIDE:
            if not isinstance(placer, MovingPlacer):
                raise InputError(f"{placer.name}: its rules say that tasks move, but it has no method place_again")
            self._mover = placer
        self._moves = self._mover is not None and self._urgent is not None
        self._looks_at = math.inf

    def _look_around(self) -> None:
        """Send what waits elsewhere if that is better by now, and do so again before long."""
        queue = self._urgent
        assert queue is not None
        for group in list(queue.ready):
            if not group.late and group.entries:
                self._move(queue, group, self._table.view(self.me, self.now, self.load))
        running = self.running
        self._looks_at = self.now + max((0.0 if running is None else running.seconds) / _LOOKS, _LEAST_LOOK_SECONDS)

    def _move(self, queue: UrgentQueue, group: Group, view: View) -> bool:
        """Send a batch of those that wait to the worker that is best for it; False if that is this one."""
        first = group.entries[0][2]
        together = min(len(group.entries), first.facts.sizes[first.stage])
        row = queue.row()
        row[:, group.row] = 0.0
        assert self._mover is not None
        target = self._mover.place_again(
            first.flow.request, first.stage, together, view._replace(own_line=row), self.now, self.draws
        )
        if target == self.me:
            return False
        for _, _, task in group.entries[:together]:
            queue.drop(task)
            self.load.drop(task.seconds)
            self._row_changed = True
            self.here.remove(task)
            flow, moves = task.flow, task.moves + 1
            if self._recovers:
                moved = StageMoved(flow.request.key, task.stage, target, flow.attempt, moves=moves)
                self.tell(flow.request.ingress, moved)
            before = flow.graph.workflow.predecessors[task.stage]
            self.send(flow, task.stage, target, before, gathered=moves)
        return True
