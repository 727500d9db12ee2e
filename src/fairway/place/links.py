"""The cost model: how long bytes take between hosts, and between a host and its accelerators (Compass, profiles).

All of it is linear but for small messages, which do not reach the network's full speed. With s in bytes:

    network(s)   = latency                                           s < 1 KB
                 = latency + s / (ramp + growth * s)                 1 KB <= s < 4 KB
                 = latency + s / bandwidth                           otherwise
    to_device(s) = copy latency + s / bandwidth to the device        a model that is missing costs one of these
    to_host(s)   = copy latency + s / bandwidth to the host

Between workers on different hosts, data is staged through both: to_host + network + to_device. Workers that share a
host need no network: to_host + to_device. Hosts hold every model in their memory, so nothing comes from elsewhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from fairway.errors import InputError
from fairway.workflows.model import Model

KILOBYTE = 1024
GIGABYTE_PER_SECOND = 1048.58 * KILOBYTE * 1000
"""Bytes per second; the authors' constant, in kilobytes per millisecond, is rounded."""

_RAMP = 2.0**30


@dataclass(frozen=True, slots=True)
class Links:
    """Latencies in seconds, bandwidths in bytes per second; as they are, a 100 Gb/s network, PCIe 3."""

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


SIMULATOR_LINKS = Links()
"""What the authors' simulator counts with; ours too."""

SYSTEM_LINKS = Links(to_host_bandwidth=4.7 * GIGABYTE_PER_SECOND, copy_latency=2e-6)
"""What the authors' C++ system counts with: copies have a latency, and copies to the host are slower."""

EARLY_LINKS = Links(to_device_bandwidth=4.7 * GIGABYTE_PER_SECOND, to_host_bandwidth=4.7 * GIGABYTE_PER_SECOND)
"""An early version of the authors' code: the slower copies in both directions."""
