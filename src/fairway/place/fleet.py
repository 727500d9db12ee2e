"""The workers that tasks are placed on, the models that they may hold and the links between them: what never changes.

A worker has CPUs, accelerator slices and device memory. One that is not divided, with one of either, runs one task at a
time, or several at once that are for the same stage; on others, each task holds its share. Workers and
models are numbered in the order in which they are given; everything behind this edge knows them by number. A worker
that leaves keeps its number and comes back under it (`StateTable`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fairway.errors import InputError
from fairway.links import Links, Moves
from fairway.place.arrays import FloatArray, IntArray
from fairway.workflows import Model

OUTSIDE = -1
"""In place of a worker's number: somewhere that is no worker."""


@dataclass(frozen=True, slots=True)
class Worker:
    """One accelerator: its type, its memory for models in bytes, and the host that it sits in (its own without one).

    `cpus` and `slices` are what its tasks share.
    """

    name: str
    memory_bytes: float
    accelerator: str = "gpu"
    host: str | None = None
    cpus: int = 1
    slices: int = 1

    @property
    def is_divided(self) -> bool:
        """Whether several tasks can run at once, each on its share."""
        return (self.cpus, self.slices) != (1, 1)


@dataclass(frozen=True, eq=False)
class Fleet:
    """Workers and models as arrays: `hosts[w]` numbers the hosts, `memory[w]` and `model_bytes[m]` are in bytes.

    `fetch_seconds[m]` is how long model m takes into the accelerator's memory: as measured, or by the link.
    """

    workers: tuple[Worker, ...]
    models: tuple[Model, ...]
    links: Moves
    hosts: IntArray
    memory: FloatArray
    model_bytes: FloatArray
    fetch_seconds: FloatArray
    worker_numbers: dict[str, int]
    model_numbers: dict[str, int]

    @classmethod
    def of(cls, workers: Iterable[Worker], models: Iterable[Model] = (), links: Moves | None = None) -> Fleet:
        """Number workers and models; refuses names that are not unique."""
        workers, models = tuple(workers), tuple(models)
        links = Links() if links is None else links
        # Host names and worker names are apart: a worker without a host has one to itself, whatever it is called.
        hosts: dict[tuple[str, str], int] = {}
        keys = [("worker", worker.name) if worker.host is None else ("host", worker.host) for worker in workers]
        for position, worker in enumerate(workers):
            if not (np.isfinite(worker.memory_bytes) and worker.memory_bytes >= 0):
                raise InputError(
                    f"workers[{position}] ('{worker.name}').memory_bytes: {worker.memory_bytes} given, expected >= 0"
                )
        return cls(
            workers=workers,
            models=models,
            links=links,
            hosts=np.array([hosts.setdefault(key, len(hosts)) for key in keys], dtype=np.int64),
            memory=np.array([worker.memory_bytes for worker in workers], dtype=float),
            model_bytes=np.array([model.bytes for model in models], dtype=float),
            fetch_seconds=np.array([links.to_load(model) for model in models], dtype=float),
            worker_numbers=_numbered("workers", [worker.name for worker in workers]),
            model_numbers=_numbered("models", [model.name for model in models]),
        )

    def __len__(self) -> int:
        return len(self.workers)


def _numbered(kind: str, names: list[str]) -> dict[str, int]:
    numbers = {name: number for number, name in enumerate(names)}
    if len(numbers) < len(names):
        again = next(number for number, name in enumerate(names) if names.index(name) != number)
        raise InputError(
            f"{kind}[{again}].name: '{names[again]}' is also the name of {kind}[{names.index(names[again])}]; "
            "give each its own"
        )
    return numbers
