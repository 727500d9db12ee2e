"""What the platform adds to a run: prices, how long data takes to a task, overhead, noise, and the size of a worker."""

from __future__ import annotations

from dataclasses import dataclass, field

from fairway.configure.configuration import Prices
from fairway.configure.slices.mig import MigDevice
from fairway.links import NO_TRANSFERS, Moves, Transfers


@dataclass(frozen=True, slots=True)
class Platform:
    """Prices, transfers, seconds of overhead for each task, and the CPUs and GPU slices of a worker.

    `noise` is the standard deviation of log(time / profile), as measured; 0 if times are as in the profiles. `mig` is
    what GPUs are, if they are cut by MIG.
    """

    prices: Prices = field(default_factory=Prices)
    transfers: Moves = field(default_factory=Transfers)
    overhead_seconds: float = 0.001
    cpu: int = 16
    gpu: int = 7
    noise: float = 0.0
    mig: MigDevice | None = None


BARE = Platform(transfers=NO_TRANSFERS, overhead_seconds=0.0)
"""Nothing but run times counts."""
