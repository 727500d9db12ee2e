"""What a backend has to run jobs on: GPUs that NVIDIA's library finds on a machine, or emulated ones that are declared.

An emulated accelerator is a slot for a real process that is slowed down to the rate of its type; whatever is said about
it says so. The library is looked for only when a program asks for the accelerators of its machine.
"""

from __future__ import annotations

import importlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fairway.cluster import Cluster
from fairway.errors import InputError

_VENDOR_WORDS = {"nvidia", "tesla", "geforce", "quadro", "graphics", "device"}
_FAMILIES = {"rtx", "gtx", "titan"}


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One accelerator: its type, and its number among those of its type as the backend counts them.

    `device` is what CUDA calls it, if it is a real one. `node` is the machine that it is in, where there are several,
    and `slot` its number among those of its type there.
    """

    type: str
    number: int
    device: str | None = None
    product: str | None = None
    memory_bytes: int | None = None
    node: str | None = None
    slot: int | None = None

    @property
    def emulated(self) -> bool:
        """Whether there is no such device in this machine."""
        return self.device is None

    @property
    def description(self) -> str:
        """For people."""
        where = f" in {self.node}" if self.node is not None else ""
        if self.emulated:
            return f"{self.type} {self.number} (emulated{where})"
        memory = f", {self.memory_bytes / 2**30:.0f} GiB" if self.memory_bytes else ""
        return f"{self.type} {self.number} ({self.product}{memory}{where})"

    @property
    def lasting_name(self) -> str:
        """A name that stays when others of its type are lost, which its number does not."""
        name = self.device or f"emulated-{self.number if self.slot is None else self.slot}"
        return name if self.node is None else f"{self.node}/{name}"


def emulated_accelerators(text: str) -> list[Accelerator]:
    """The slots that `v100=2,k80=1` declares."""
    try:
        counts = Cluster.parse(text).workers
    except InputError as error:
        raise InputError(f"emulate: {str(error).removeprefix('cluster: ')}") from None
    return [Accelerator(name, number) for name, count in counts.items() for number in range(count)]


def found_accelerators() -> list[Accelerator]:
    """The GPUs of this machine; none where there is no driver. Needs the extra `fairway[nvidia]`."""
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError:
        return []
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:  # no driver, or none that answers
        return []
    try:
        return _listed(nvml)
    finally:
        nvml.nvmlShutdown()


def _listed(nvml: Any) -> list[Accelerator]:
    found: list[Accelerator] = []
    numbers: Counter[str] = Counter()
    for index in range(nvml.nvmlDeviceGetCount()):
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        product, device = _text(nvml.nvmlDeviceGetName(handle)), _text(nvml.nvmlDeviceGetUUID(handle))
        try:
            memory = int(nvml.nvmlDeviceGetMemoryInfo(handle).total)
        except nvml.NVMLError:  # unified memory has no size of its own
            memory = None
        name = type_of_product(product)
        found.append(Accelerator(name, numbers[name], device, product, memory))
        numbers[name] += 1
    return found


def type_of_product(product: str) -> str:
    """The short name of a GPU, as people say it: `Tesla V100-SXM2-16GB` is a `v100`, `RTX A6000` an `rtx-a6000`."""
    words = [word for word in product.lower().split() if word not in _VENDOR_WORDS]
    if not words:
        return "gpu"
    taken = words[:2] if words[0] in _FAMILIES else words[:1]
    return re.sub(r"[^a-z0-9.-]", "", "-".join(word.split("-")[0] for word in taken)) or "gpu"


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def described(accelerators: Sequence[Accelerator]) -> str:
    """All of them in a few words, as in `2 v100 (emulated), 1 k80 (emulated)`."""
    kinds = Counter((one.type, one.emulated) for one in accelerators)
    words = [f"{count} {name}{' (emulated)' if fake else ''}" for (name, fake), count in kinds.items()]
    return ", ".join(words) or "none"
