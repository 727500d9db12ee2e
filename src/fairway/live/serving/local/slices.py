"""Slices of a worker on this machine: copies of models in processes, under control groups where there are any.

A worker that stands for an emulated accelerator has as many CPUs as its stages may have threads, and a slice a part of
those. Under a GPU of NVIDIA, a slice is a percentage of its threads and so much of its memory, which the control daemon
of MPS holds a process to (`devices.mps`). What is not held here is said (`not_enforced`).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from fairway.configure.slices.parts import Slice
from fairway.live.devices.mps import MpsDaemons, MpsError
from fairway.live.machine.abandoned_groups import hold, undisturbed
from fairway.live.machine.containment import Bounds, Containment
from fairway.live.machine.machine_size import machine_size
from fairway.live.serving.local.model_process import ModelProcess, program
from fairway.live.serving.supervise.environment import stage_environment
from fairway.live.serving.supervise.settings import ServingSettings

NOT_ENFORCED = "slices are not enforced in {}: no control group can be bounded here"
GPU_NOT_ENFORCED = "slices are not enforced on the GPU: {}"

_NVIDIA = ("GPU-", "MIG-")
_LOAD_SECONDS = 600.0
"""A bound for what hangs; the limit of a load is kept by the supervisor."""


class LocalSlices:
    """The slices of one worker, in one of its lives."""

    def __init__(self, settings: ServingSettings, number: int) -> None:
        self._settings, self._number = settings, number
        self._numbers = itertools.count()
        self._daemons = MpsDaemons(settings.directory)
        self._trouble: str | None = None

    @property
    def not_enforced(self) -> tuple[str, ...]:
        """What processes are not held to here, a sentence each."""
        words = {"cpu": "CPU time", "memory": "memory"}
        free = [text for kind, text in words.items() if kind not in self._containment.enforced]
        said = (NOT_ENFORCED.format(" and ".join(free)),) if free else ()
        return said if self._trouble is None else (*said, GPU_NOT_ENFORCED.format(self._trouble))

    def load(self, model: str, held: Slice) -> ModelProcess:
        """Load a model in a process of its own."""
        settings = self._settings
        group = self._containment.group_of(f"{settings.name_of(self._number)}-{next(self._numbers)}")
        command = program(str(settings.directory / "settings.json"), model)
        copy = ModelProcess(
            model,
            lambda descriptor: [*command(descriptor), *map(str, group.paths)],
            {**stage_environment(settings.threads), **self._on_device(held)},
            group,
            Bounds(held.part * settings.threads),
            self.memory_bytes(held),
            _LOAD_SECONDS,
        )
        try:
            copy.start()
        except BaseException:
            copy.close()
            raise
        return copy

    def memory_bytes(self, held: Slice) -> int:
        """What a slice has: as given, or its part of what the worker has, or of what the machine has for one."""
        if held.memory_bytes is not None:
            return held.memory_bytes
        return int(held.part * max(self._settings.memory_bytes or 0.0, self._of_machine))

    @cached_property
    def _containment(self) -> Containment:
        """Where groups of copies are made, in use for as long as this process lives, also while there is no copy."""
        with undisturbed(Containment.places()):
            containment = Containment.found(self._settings.directory)
            hold((*containment.parents, *containment.bounding))
        return containment

    @cached_property
    def _of_machine(self) -> float:
        return machine_size().memory_bytes / self._settings.workers

    def _on_device(self, held: Slice) -> Mapping[str, str]:
        """What a process finds by which it comes to its part of the worker's GPU."""
        if not self._settings.devices:
            return {}
        device = self._settings.devices[self._number]
        if not device.startswith(_NVIDIA):
            self._trouble = f"{device} is no GPU of NVIDIA"
            return {}
        memory = held.memory_bytes
        if memory is None and self._settings.memory_bytes is not None:
            memory = int(held.part * self._settings.memory_bytes)
        try:
            found = self._daemons.client_environment(device, held.part, memory)
        except MpsError as error:
            self._trouble = str(error)
            return {}
        self._trouble = None
        return found


def clear_slices(directory: Path, devices: tuple[str, ...]) -> None:
    """Remove the control groups and end the daemons that the workers of a directory have used; all have ended."""
    containment = Containment.found(directory)
    containment.clear(())
    containment.discard()
    daemons = MpsDaemons(directory)
    for device in devices:
        daemons.end(device)
