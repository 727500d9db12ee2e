"""Which process a number stands for now: the lives of all processes, as the supervisor has told of them.

A process that takes the place of a dead one has its number, and an epoch of its own. The keys of requests say which
life has received them. So what a dead process has sent, and what comes late, is told from what its successor sends,
which may come before the supervisor has said that it is there: such messages are kept until then.
"""

from __future__ import annotations

from typing import Any

from fairway.live.serving.seams.transport import WireError
from fairway.live.serving.supervise.settings import ServingSettings
from fairway.place.fleet import OUTSIDE

_KEY_BITS = 32


class Lives:
    """The lives that one process knows of; the planner's engine is `OUTSIDE`."""

    def __init__(self, settings: ServingSettings, number: int, epoch: int) -> None:
        self._settings, self.epoch = settings, epoch
        self._there = {number: epoch}
        self._over: dict[int, int] = {}
        self.first_key = (epoch * settings.workers + number) << _KEY_BITS

    def engine_of(self, number: int) -> int:
        """The number of the engine in a process."""
        return OUTSIDE if number == self._settings.planner else number

    def number_of(self, engine: int) -> int:
        """The number of the process with an engine."""
        planner = self._settings.planner
        assert planner is not None or engine != OUTSIDE, "without a planner, every engine is that of a worker"
        return planner if planner is not None and engine == OUTSIDE else engine

    def joined(self, number: Any, epoch: Any) -> None:
        """A process is there; a planner counts from its greeting on, which clears away what the one before left."""
        self.check(number, epoch)
        if number != self._settings.planner:
            self._there[number] = epoch

    def lost(self, number: Any, epoch: Any) -> None:
        """A process is gone."""
        self.check(number, epoch)
        self._over[number] = max(epoch, self._over.get(number, -1))

    def is_there(self, engine: int, epoch: int) -> bool:
        """Whether just this life of a process is known to be there."""
        return self._there.get(self.number_of(engine)) == epoch

    def is_greeted_by(self, engine: int, epoch: Any) -> bool:
        """Another process says that it is there; False if a later life of it is known, or this one to be over."""
        number = self.number_of(engine)
        self.check(number, epoch)
        if epoch <= self._over.get(number, -1) or epoch < self._there.get(number, 0):
            return False
        if epoch:
            self.lost(number, epoch - 1)
        self._there[number] = epoch
        return True

    def is_over(self, key: int) -> bool:
        """Whether the process that has received a request is known to be gone."""
        return self.has_ended(*self._received_by(key))

    def has_ended(self, number: int, epoch: int) -> bool:
        """Whether a life of a process is known to be over."""
        return epoch <= self._over.get(number, -1) or epoch < self._there.get(number, 0)

    def is_early(self, key: int) -> bool:
        """Whether the process that has received a request is not known to be there yet."""
        number, epoch = self._received_by(key)
        return epoch > self._there.get(number, -1)

    def _received_by(self, key: int) -> tuple[int, int]:
        """The number and the epoch of the process that has received a request."""
        workers, planner, life = self._settings.workers, self._settings.planner, key >> _KEY_BITS
        number = life % workers if planner is None else planner
        return number, (life - number) // workers

    def check(self, number: Any, epoch: Any) -> None:
        """Refuse what no supervisor would say."""
        if type(number) is not int or number not in self._settings.processes or type(epoch) is not int:
            raise WireError(f"{str(number)[:40]!r} given, expected the number of a worker")
