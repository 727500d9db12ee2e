"""What a task waits for before it runs: overhead, its input and, if its model is idle at no worker, a cold start."""

from __future__ import annotations

from dataclasses import dataclass

from fairway.configure.application import Application
from fairway.configure.capacity import Capacity
from fairway.configure.platform import Platform
from fairway.configure.queues import Queue


@dataclass(frozen=True, slots=True)
class Fetches:
    """By stage, the seconds that its input takes: as the request itself, from the same worker, from another one."""

    entry: tuple[float, ...]
    local: tuple[float, ...]
    remote: tuple[float, ...]
    is_entry: tuple[bool, ...]
    cold: tuple[float, ...]
    overhead: float

    @classmethod
    def of(cls, application: Application, platform: Platform) -> Fetches:
        """The fetches of an application on a platform."""
        sizes, transfers = application.workflow.input_bytes, platform.transfers
        return cls(
            tuple(map(transfers.entry_seconds, sizes)),
            tuple(map(transfers.local_seconds, sizes)),
            tuple(map(transfers.between_hosts, sizes)),
            tuple(not before for before in application.workflow.predecessors),
            application.cold_seconds or (0.0,) * len(application),
            platform.overhead_seconds,
        )

    def planned(self, stage: int) -> float:
        """What a stage adds to its run time if all goes well: its input is local, unless it is the request."""
        return self.overhead + (self.entry[stage] if self.is_entry[stage] else self.local[stage])

    def expected(self, queue: Queue, capacity: Capacity, *, local: bool = True) -> float:
        """What the next task of a queue probably adds to its run time.

        Its input counts as local if all predecessors of the oldest job ran on one worker that has a CPU and a slice
        free; without `local`, never.
        """
        stage = queue.stage
        cold = self.cold[stage] if queue.warm is not None and not queue.warm.any() else 0.0
        if self.is_entry[stage]:
            return self.overhead + cold + self.entry[stage]
        source = queue.sources[0]
        near = local and min(source) == max(source) and capacity.fits(source[0], 1, 1)
        return self.overhead + cold + (self.local[stage] if near else self.remote[stage])
