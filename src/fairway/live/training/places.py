"""Which worker is which accelerator of the backend.

A worker has its number for ever, also when others of its type are lost. A backend numbers what it has at the moment.
They are the same until, say, a GPU breaks and those behind it move up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairway.live.backend.accelerators import Accelerator
from fairway.store.records import Worker
from fairway.store.workers import Device


def devices_of(accelerators: Sequence[Accelerator]) -> list[Device]:
    """The accelerators of a backend by names that stay: that of the device, or the number of an emulated one."""
    return [Device(one.type, one.lasting_name, one.emulated) for one in accelerators]


@dataclass(frozen=True, slots=True)
class Places:
    """The numbers at the backend by those of the workers, and the other way round, each with its accelerator type."""

    at_the_backend: Mapping[tuple[str, int], int]
    of_workers: Mapping[tuple[str, int], int]

    @classmethod
    def of(cls, workers: Sequence[Worker], accelerators: Sequence[Accelerator]) -> Places:
        """From the workers as they were registered for these accelerators, in the same order."""
        pairs = [(worker.accelerator, worker.number, one.number)
                 for worker, one in zip(workers, accelerators, strict=True)]  # fmt: skip
        return cls(
            {(kind, worker): place for kind, worker, place in pairs},
            {(kind, place): worker for kind, worker, place in pairs},
        )
