"""Which lives of the workers a planner has met.

A planner greets every worker that is there, and a worker that is greeted answers with its life and the models that it
holds; from then on the planner places work there. The planner may greet before there is a line to its supervisor, so
the worker that it greets can die, and its successor be there, without a word of it. Therefore a greeting is repeated
for every life that the supervisor names and that has not answered, and a worker that a planner greets again only
repeats its answer.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairway.live.serving.runtime.lives import Lives
from fairway.live.serving.seams.transport import Transport


class Greetings:
    """The workers that a planner has greeted, and the life of each that has answered."""

    def __init__(self, transport: Transport, lives: Lives) -> None:
        self._transport, self._lives = transport, lives
        self._answered: dict[int, int | None] = {}

    def greet(self, workers: Iterable[int]) -> None:
        """Greet workers that are there and have not been greeted."""
        for worker in workers:
            if worker not in self._answered and self._transport.send(worker, ("planner", self._lives.epoch)):
                self._answered[worker] = None

    def answered(self, worker: int, epoch: int) -> bool:
        """A worker says that it is there; False if that is known, or if it is over or was never greeted."""
        self._lives.check(worker, epoch)
        if worker not in self._answered or self._lives.has_ended(worker, epoch):
            return False
        known, self._answered[worker] = self._answered[worker], epoch
        return known != epoch

    def replaced(self, worker: int, epoch: int) -> int | None:
        """The life of a worker that has answered though the supervisor now names another; None if there is none."""
        known = self._answered.get(worker)
        return known if known is not None and known < epoch else None

    def named(self, worker: int, epoch: int) -> None:
        """The supervisor names a life of a worker: it is greeted, unless it has answered."""
        if self._answered.get(worker) != epoch:
            if worker in self._answered:
                self._transport.hang_up(worker)  # it may still lead to the life before
            self.forget(worker)
            self.greet([worker])

    def forget(self, worker: int) -> None:
        """A worker is gone: its next life is to be greeted."""
        self._answered.pop(worker, None)
