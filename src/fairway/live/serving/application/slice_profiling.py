"""Measures stages in slices of a worker: each alone on its part, and each beside every other model on the rest.

A slice is a control group that holds the stage's process to its part of the worker's CPUs. What two models cost each
other beyond that, since they share caches and memory, is by which factor a stage takes longer while a stage of the
other model runs over and over on the rest of the worker; the times with and without it are taken one after the other.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import permutations, product
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from fairway.configure.slices.parts import WHOLE, Slice
from fairway.errors import InputError
from fairway.live.machine.containment import Bounds, Containment
from fairway.live.serving.application.measuring import Task

_PATIENCE_SECONDS = 120.0
_LOOK_SECONDS = 0.02

OnParts = dict[tuple[str, int], dict[int, dict[int, float]]]
"""By workflow and stage, its seconds by thousandths of a worker and batch size."""


@dataclass
class SliceProfiler:
    """Has tasks done in slices: `measure` has a process do one and says where, `start` starts a process for one."""

    measure: Callable[[Task, str], dict[str, Any]]
    start: Callable[[Task], subprocess.Popen[bytes]]

    def __enter__(self) -> Self:
        self._containment = Containment.found(Path(tempfile.gettempdir()) / f"fairway-profile-{os.getpid()}")
        if "cpu" not in self._containment.enforced:
            self.__exit__(None, None, None)
            raise InputError(
                "--slices: no control group can be bounded here, so that nothing would hold a stage to its part"
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._containment.clear(())
        self._containment.discard()

    def on_parts(self, tasks: Sequence[Task], parts: Sequence[Slice]) -> OnParts:
        """The times of stages on each part, with nothing beside them."""
        found: OnParts = {}
        for task, own in product(tasks, parts):
            assert task.stage is not None
            by_part = found.setdefault((task.workflow, task.stage), {})
            by_part[own.thousandths] = self._times(self._held(task, own, "measured"), f" on {own.part:g} of a worker")
        return found

    def pairs(self, tasks: dict[str, Task], own: Slice) -> dict[str, dict[str, float]]:
        """By model, the factor by which its stage takes longer beside each other model; `own` is its part."""
        rest = Slice(WHOLE - own.thousandths)
        found: dict[str, dict[str, float]] = {name: {} for name in tasks}
        for name, other in permutations(tasks, 2):
            task = replace(self._held(tasks[name], own, "measured"), batches=(1,))
            alone = self._times(task, f" on {own.part:g} of a worker")[1]
            with self._busy(self._held(tasks[other], rest, "neighbour")):
                beside = self._times(task, f" beside {other}")[1]
            found[name][other] = beside / alone
        return found

    def _held(self, task: Task, own: Slice, name: str) -> Task:
        group, bounds = self._containment.group_of(name), Bounds(own.part * task.threads)
        group.make(bounds.cpus, period_seconds=bounds.period_seconds)
        answer = f"{task.answer}-{name}-{own.thousandths}.answer"
        return replace(task, answer=answer, groups=tuple(map(str, group.paths)))

    def _times(self, task: Task, where: str) -> dict[int, float]:
        return {int(batch): seconds for batch, seconds in self.measure(task, where)["seconds"].items()}

    @contextmanager
    def _busy(self, task: Task) -> Iterator[None]:
        """Let a process run a stage over and over."""
        ready = Path(task.answer)
        ready.unlink(missing_ok=True)
        process = self.start(replace(task, loops=True))
        try:
            deadline = time.monotonic() + _PATIENCE_SECONDS
            while not ready.exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise InputError(f"{task.workflow}: the neighbour that should keep a slice busy has ended")
                time.sleep(_LOOK_SECONDS)
            yield
        finally:
            process.kill()
            process.wait()
