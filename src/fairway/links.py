"""How long bytes take to where they are needed: over links between workers, or through a store beside them.

`Links` are Compass's cost model: what a task puts out is pushed to the worker that needs it, before the task there
joins its queue. All of it is linear but for small messages, which do not reach the network's full speed. With s bytes:

    network(s)   = latency                                           s < 1 KB
                 = latency + s / (ramp + growth * s)                 1 KB <= s < 4 KB
                 = latency + s / bandwidth                           otherwise
    to_device(s) = copy latency + s / bandwidth to the device        a model that is missing costs one of these
    to_host(s)   = copy latency + s / bandwidth to the host

Between workers on different hosts, data is staged through both: to_host + network + to_device. Workers that share a
host need no network: to_host + to_device. Hosts hold every model in their memory, so nothing comes from elsewhere.

`Transfers` are those of ESG's platform: a task fetches its inputs when it starts, and holds its share of the worker
meanwhile. What comes from another worker goes through a store, so it is put there and got from there:

    the request itself        latency + bytes / remote bandwidth
    from the same worker      bytes / local bandwidth
    from another worker       2 · (latency + bytes / remote bandwidth)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import ClassVar, Protocol

from fairway.errors import InputError
from fairway.workflows.model import Model

KILOBYTE = 1024
GIGABYTE_PER_SECOND = 1048.58 * KILOBYTE * 1000
"""Bytes per second; the authors' constant, in kilobytes per millisecond, is rounded."""

_RAMP = 2.0**30


class Moves(Protocol):
    """How long data takes to a task; `pulls` says that the task fetches it, while it holds its share of the worker."""

    pulls: ClassVar[bool]

    def entry_seconds(self, size: float) -> float:
        """From a client to any worker."""
        ...

    def local_seconds(self, size: float) -> float:
        """From a task to another one on the same worker."""
        ...

    def within_host(self, size: float) -> float:
        """From one worker to another of the same host."""
        ...

    def between_hosts(self, size: float) -> float:
        """From one worker to another of another host."""
        ...

    def to_load(self, model: Model) -> float:
        """Until a model is in a worker's memory."""
        ...

    def to_host(self, size: float) -> float:
        """From a worker's memory to that of its host."""
        ...

    @property
    def message_seconds(self) -> float:
        """A message without data, between two hosts."""
        ...


@dataclass(frozen=True, slots=True)
class Links:
    """Latencies in seconds, bandwidths in bytes per second; as they are, a 100 Gb/s network, PCIe 3."""

    pulls: ClassVar[bool] = False
    network_latency: float = 2e-6
    network_bandwidth: float = 12 * GIGABYTE_PER_SECOND
    network_ramp: float = 3 * _RAMP
    network_ramp_growth: float = 2 * _RAMP / KILOBYTE
    to_device_bandwidth: float = 9.7 * GIGABYTE_PER_SECOND
    to_host_bandwidth: float = 9.7 * GIGABYTE_PER_SECOND
    copy_latency: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            may_be_zero = field.name.endswith(("latency", "growth"))
            if not (math.isfinite(value) and (value > 0 or (value == 0 and may_be_zero))):
                bound = ">= 0" if may_be_zero else "> 0"
                raise InputError(f"links.{field.name}: {value} given, expected a number {bound}")

    @property
    def message_seconds(self) -> float:
        """Seconds that a message without data takes between two hosts."""
        return self.network_latency

    def entry_seconds(self, size: float) -> float:
        """Seconds from a client to any worker."""
        return self.network(size)

    def local_seconds(self, size: float) -> float:  # noqa: ARG002
        """What a task put out is where the next one on its worker needs it."""
        return 0.0

    def network(self, size: float) -> float:
        """Seconds from one host to another."""
        if size < KILOBYTE:
            return self.network_latency
        if size < 4 * KILOBYTE:
            return self.network_latency + size / (self.network_ramp + self.network_ramp_growth * size)
        return self.network_latency + size / self.network_bandwidth

    def to_device(self, size: float) -> float:
        """Seconds from a host's memory to its accelerator."""
        return self.copy_latency + size / self.to_device_bandwidth

    def to_load(self, model: Model) -> float:
        """Seconds until a model is in an accelerator's memory: as measured, or those of its bytes."""
        return self.to_device(model.bytes) if model.load_seconds is None else model.load_seconds

    def to_host(self, size: float) -> float:
        """Seconds from an accelerator to its host's memory."""
        return self.copy_latency + size / self.to_host_bandwidth

    def within_host(self, size: float) -> float:
        """Seconds from one accelerator to another of the same host."""
        return self.to_host(size) + self.to_device(size)

    def between_hosts(self, size: float) -> float:
        """Seconds from an accelerator to one of another host."""
        return self.to_host(size) + self.network(size) + self.to_device(size)


@dataclass(frozen=True, slots=True)
class Transfers:
    """How fast data moves through a store: bytes per second, and seconds before the first byte."""

    pulls: ClassVar[bool] = True
    local_bandwidth: float = 2e9
    remote_bandwidth: float = 1.25e9
    remote_latency: float = 0.005

    @property
    def message_seconds(self) -> float:
        """What is said without data is part of the overhead of a decision."""
        return 0.0

    def entry_seconds(self, size: float) -> float:
        """Seconds from a client to any worker."""
        return self.remote_latency + size / self.remote_bandwidth

    def local_seconds(self, size: float) -> float:
        """Seconds to the worker that has it."""
        return size / self.local_bandwidth

    def within_host(self, size: float) -> float:
        """Seconds to another worker of the same host, which goes through the store, too."""
        return self.between_hosts(size)

    def between_hosts(self, size: float) -> float:
        """Seconds to another worker, through the store."""
        return 2 * (self.remote_latency + size / self.remote_bandwidth)

    def to_load(self, model: Model) -> float:
        """Seconds until a model is there: its cold start as measured, or no time."""
        return 0.0 if model.load_seconds is None else model.load_seconds

    def to_host(self, size: float) -> float:  # noqa: ARG002
        """A model that goes is copied nowhere."""
        return 0.0


NO_TRANSFERS = Transfers(float("inf"), float("inf"), 0.0)
"""Data is where it is needed, at once."""

SYSTEM_LINKS = Links(to_host_bandwidth=4.7 * GIGABYTE_PER_SECOND, copy_latency=2e-6)
"""What the authors' C++ system counts with: copies have a latency, and copies to the host are slower."""

EARLY_LINKS = Links(to_device_bandwidth=4.7 * GIGABYTE_PER_SECOND, to_host_bandwidth=4.7 * GIGABYTE_PER_SECOND)
"""An early version of the authors' code: the slower copies in both directions."""
