"""What a backend has to run jobs on: GPUs that are found on a machine, or emulated ones that are declared.

A GPU that is cut into MIG instances is as many accelerators, each of a type of its own, as in `a100-3g.20gb`; a whole
one is one. An emulated accelerator is a slot for a real process that is slowed down to the rate of its type; whatever
is said about it says so. The libraries are looked for only when a program asks for the accelerators of its machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fairway.cluster import Cluster
from fairway.errors import InputError
from fairway.live.devices.gpus import DeviceReading, Findings, type_of_product
from fairway.live.devices.look import found_gpus

GONE = "the driver does not list it any more: it fell off the bus, or its MIG instance was removed"


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One accelerator: its type, and its number among those of its type as the backend counts them.

    `device` is what CUDA calls it, if it is a real one. `node` is the machine that it is in, where there are several,
    and `slot` its number among those of its type there. `links` are the devices that it reaches over NVLink, `sick` is
    why it should get no work, `reading` how it is doing.
    """

    type: str
    number: int
    device: str | None = None
    product: str | None = None
    memory_bytes: int | None = None
    node: str | None = None
    slot: int | None = None
    unified_memory: bool = False
    links: tuple[str, ...] = ()
    sick: str | None = None
    reading: DeviceReading | None = None

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
        memory = memory or (", memory of the machine" if self.unified_memory else "")
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
    return accelerators_of(found_gpus())


def accelerators_of(findings: Findings) -> list[Accelerator]:
    """Each GPU, or each MIG instance of one that is cut, numbered within its type."""
    found: list[Accelerator] = []
    numbers: Counter[str] = Counter()
    for gpu in findings.gpus:
        name = type_of_product(gpu.name)
        whole = Accelerator(
            name,
            0,
            device=gpu.uuid,
            product=gpu.name,
            memory_bytes=gpu.memory_bytes,
            unified_memory=gpu.unified_memory,
            links=gpu.links,
            sick=gpu.sick,
            reading=gpu.reading,
        )
        parts = [
            replace(whole, type=f"{name}-{one.profile}", device=one.uuid, product=f"{gpu.name} MIG {one.profile}",
                    memory_bytes=one.memory_bytes, links=())
            for one in gpu.instances
        ]  # fmt: skip
        for one in parts if gpu.mig else [whole]:
            found.append(replace(one, number=numbers[one.type]))
            numbers[one.type] += 1
    return found


def seen_again(before: Sequence[Accelerator], findings: Findings) -> list[Accelerator]:
    """Accelerators as they are now: each keeps its number, one that is gone is sick, and what is new comes last."""
    now = {one.device: one for one in accelerators_of(findings)}
    after = [
        replace(seen, number=one.number) if (seen := now.pop(one.device, None)) is not None
        else replace(one, sick=one.sick or GONE, reading=None)
        for one in before
    ]  # fmt: skip
    numbers = Counter(one.type for one in before)
    for one in now.values():
        after.append(replace(one, number=numbers[one.type]))
        numbers[one.type] += 1
    return after


def described(accelerators: Sequence[Accelerator]) -> str:
    """All of them in a few words, as in `2 v100 (emulated), 1 k80 (emulated)`."""
    kinds = Counter((one.type, one.emulated) for one in accelerators)
    words = [f"{count} {name}{' (emulated)' if fake else ''}" for (name, fake), count in kinds.items()]
    return ", ".join(words) or "none"
