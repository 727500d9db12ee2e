"""Lets workers fail in a simulation, and come back: what is lost with them, and who notices when.

A worker that fails takes its queue, its memory and the requests that it received with it. Until that is noticed, others
still send there, in vain. Clients whose request was at the lost worker ask another one, drawn from those that are
there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fairway.engine.serving.messages import PeerJoined, PeerLost, RequestArrived
from fairway.errors import InputError
from fairway.place.fleet import OUTSIDE
from fairway.sim.loop import URGENT

if TYPE_CHECKING:
    from fairway.sim.serving import World


@dataclass(frozen=True, slots=True)
class Failure:
    """A worker, by its number, that fails at a time and comes back at another one, or never."""

    worker: int
    at: float
    back_at: float | None = None


class Failures:
    """The failures of a run, and the clients that may have to ask again.

    `asked` has, by key, the request and the worker that was asked.
    """

    def __init__(self, world: World, failures: tuple[Failure, ...], detection_seconds: float) -> None:
        self.asked: dict[int, tuple[int, int]] = {}
        # By worker and run: when it ends, its tasks, and which part of the worker it holds.
        self._runs: dict[int, dict[int, tuple[float, int, float]]] = {}
        self._world = world
        self._detection_seconds = detection_seconds
        self._noticed: set[int] = set()
        self._epoch = 0
        self._waiting: list[int] = []
        self._draws = np.random.default_rng([len(failures), 3])
        for failure in failures:
            if not 0 <= failure.worker < len(world.fleet):
                raise InputError(f"failures: worker {failure.worker} given, but there are {len(world.fleet)} workers")
            world.at(failure.at, -2, partial(self._fail, failure), URGENT)

    def arrived(self, request: int, ingress: int) -> None:
        """A client asks the worker that it would, or another one if it knows that this one is gone."""
        if ingress == OUTSIDE or ingress not in self._noticed:
            self._world.ask(request, ingress, self._world.now)
        else:
            self._ask_another(request)

    def runs(self, worker: int, run: int, end: float, tasks: int, part: float) -> None:
        """A worker runs so many tasks until then, on a part of it."""
        own = self._runs.setdefault(worker, {})
        for number in [number for number, (until, _, _) in own.items() if until <= self._world.now]:
            del own[number]
        own[run] = (end, tasks, part)

    def stops(self, worker: int, run: int) -> None:
        """A run ends before its time."""
        self._runs.get(worker, {}).pop(run, None)

    def reaches(self, key: int, event: RequestArrived) -> None:
        """A request reaches its worker, unless its client has heard that this was lost, and asks another one."""
        if key in self.asked:
            self._world.tell(self.asked[key][1], event)

    def _fail(self, failure: Failure) -> None:
        world, worker = self._world, failure.worker
        if world.engines[worker] is None:
            return
        world.lose(worker)
        for until, tasks, part in self._runs.pop(worker, {}).values():
            if until > world.now:
                world.recorder.cut(worker, world.now, until, tasks, part)
        noticed = world.now + self._detection_seconds
        world.at(noticed, -2, partial(self._notice, worker), URGENT)
        if failure.back_at is not None:
            world.at(max(failure.back_at, noticed), -2, partial(self._return, worker), URGENT)

    def _notice(self, worker: int) -> None:
        world = self._world
        self._noticed.add(worker)
        world.table.leave(worker)
        for other in (*range(len(world.fleet)), OUTSIDE):
            world.tell(other, PeerLost(worker))
        for key, (request, ingress) in list(self.asked.items()):
            if ingress == worker:
                del self.asked[key]
                self._ask_another(request)

    def _return(self, worker: int) -> None:
        world = self._world
        self._noticed.discard(worker)
        self._epoch += 1
        world.hardware.restart(world.now, worker)
        world.table.join(worker)
        world.engines[worker] = world.engine(worker, self._epoch)
        for other in (*range(len(world.fleet)), OUTSIDE):
            if other != worker:
                world.tell(other, PeerJoined(worker))
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            self._ask_another(request)

    def _ask_another(self, request: int) -> None:
        """Ask a worker that is not known to be gone; wait for one if there is none."""
        world = self._world
        there = [worker for worker in range(len(world.fleet)) if worker not in self._noticed]
        if there:
            world.ask(request, there[int(self._draws.random() * len(there))], world.now)
        else:
            self._waiting.append(request)
