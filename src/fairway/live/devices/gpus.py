"""What is known of the GPUs of a machine at one moment, whoever made them.

A value that the driver does not have is None: chips whose memory is the machine's report none, consumer cards no ECC.
`sick` is why a GPU is not to be given work any more, in words of the driver where it has some.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

_VENDOR_WORDS = {"nvidia", "tesla", "geforce", "quadro", "graphics", "device", "amd", "radeon", "instinct"}
_FAMILIES = {"rtx", "gtx", "titan", "rx", "pro"}


class ComputeMode(StrEnum):
    """Who may use a GPU at the same time."""

    DEFAULT = "default"
    """Any number of processes."""
    EXCLUSIVE_PROCESS = "exclusive-process"
    """One process, which may be a control daemon of MPS that lets others in."""
    PROHIBITED = "prohibited"
    """No process at all."""


@dataclass(frozen=True, slots=True)
class DeviceReading:
    """How a device is doing: `utilization` from 0 to 1, `ecc_errors` since its last reset, beyond repair."""

    utilization: float | None = None
    memory_used_bytes: int | None = None
    power_watts: float | None = None
    temperature_celsius: float | None = None
    ecc_errors: int | None = None


@dataclass(frozen=True, slots=True)
class MigInstance:
    """A part of a GPU with memory and processors of its own: its profile as in `3g.20gb`, and its slices."""

    uuid: str
    profile: str
    slices: int | None = None
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU.

    `mig` is whether it is cut into instances, None where it cannot be. `links` are the UUIDs of the GPUs that it
    reaches over NVLink.
    """

    name: str
    uuid: str
    memory_bytes: int | None = None
    unified_memory: bool = False
    mig: bool | None = None
    instances: tuple[MigInstance, ...] = ()
    compute_mode: ComputeMode | None = None
    links: tuple[str, ...] = ()
    sick: str | None = None
    reading: DeviceReading = DeviceReading()


@dataclass(frozen=True, slots=True)
class Findings:
    """The GPUs of a machine, and in a sentence each why there are none, or what could not be read of them."""

    gpus: tuple[Gpu, ...] = ()
    remarks: tuple[str, ...] = ()
    driver: str | None = None


def type_of_product(product: str) -> str:
    """The short name of a GPU, as people say it: `Tesla V100-SXM2-16GB` is a `v100`, `RTX A6000` an `rtx-a6000`."""
    words = [word for word in product.lower().split() if word not in _VENDOR_WORDS]
    if not words:
        return "gpu"
    taken = words[:2] if words[0] in _FAMILIES else words[:1]
    return re.sub(r"[^a-z0-9.-]", "", "-".join(word.split("-")[0] for word in taken)) or "gpu"
