"""What the platform adds to a run: prices, how long data takes to a task, overhead, noise, and the size of an invoker.

An invoker is a machine that runs tasks; each has so many CPUs and GPU slices. A task fetches its input before it runs:

    the request itself        latency + bytes / remote bandwidth                            (one copy)
    from the same invoker     bytes / local bandwidth
    from another invoker      2 · (latency + bytes / remote bandwidth)                      (put and get)
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fairway.configure.configuration import Prices


@dataclass(frozen=True, slots=True)
class Transfers:
    """How fast data moves: bytes per second, and seconds before the first byte."""

    local_bandwidth: float = 2e9
    remote_bandwidth: float = 1.25e9
    remote_latency: float = 0.005

    def entry_seconds(self, size: float) -> float:
        """From outside to any invoker."""
        return self.remote_latency + size / self.remote_bandwidth

    def local_seconds(self, size: float) -> float:
        """To the invoker that has it."""
        return size / self.local_bandwidth

    def remote_seconds(self, size: float) -> float:
        """To another invoker, through a store."""
        return 2 * (self.remote_latency + size / self.remote_bandwidth)


NO_TRANSFERS = Transfers(float("inf"), float("inf"), 0.0)
"""Data is where it is needed, at once."""


@dataclass(frozen=True, slots=True)
class Platform:
    """Prices, transfers, seconds of overhead for each task, and the CPUs and GPU slices of an invoker.

    `noise` is the standard deviation of log(time / profile), as measured; 0 if times are as in the profiles.
    """

    prices: Prices = field(default_factory=Prices)
    transfers: Transfers = field(default_factory=Transfers)
    overhead_seconds: float = 0.001
    cpu: int = 16
    gpu: int = 7
    noise: float = 0.0


BARE = Platform(transfers=NO_TRANSFERS, overhead_seconds=0.0)
"""Nothing but run times counts."""
