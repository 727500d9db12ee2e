"""Values of simulated processes, which all of them find by name, and memory that all of them write to."""

from __future__ import annotations

import errno
import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from fairway.live.serving.seams.run_record import LANE_BYTES, Lane, LaneKind, RunRecord
from fairway.live.serving.seams.state_board import SharedRows
from fairway.live.serving.seams.values import Opened, Parcel, packed
from fairway.live.serving.simulated.background import SimulatedBackground
from fairway.live.serving.simulated.life import Life
from fairway.place.arrays import BoolArray
from fairway.place.fleet import Fleet


class SimulatedValues:
    """The values of one process; `kept` is where all processes keep theirs, if there `is_room`."""

    def __init__(
        self,
        kept: dict[str, bytes],
        owner: str,
        life: Life | None = None,
        is_room: Callable[[dict[str, bytes], str], bool] = lambda *_: True,
    ) -> None:
        self._kept, self._owner, self._is_room = kept, owner, is_room
        self._life = Life(owner) if life is None else life
        self._numbers = itertools.count()

    def pack(self, value: object) -> Parcel:
        """A value as a parcel."""
        return packed(value, self._keep, self._let_go)

    def open(self, parcel: Parcel) -> Opened:
        """A parcel with its bytes; raises `OSError` if they are not kept any more."""
        self._life.reach("open")
        return Opened(parcel, [self._found(buffer) for buffer in parcel.buffers])

    def is_there(self, parcel: Parcel) -> bool:
        """Whether the bytes of a parcel are kept."""
        return all(name in self._kept for name in parcel.names)

    def discard(self, parcel: Parcel) -> None:
        """Let the bytes of a parcel go."""
        for name in parcel.names:
            self._let_go(name)

    def clear(self, owner: str) -> None:
        """Let all go that an owner has kept."""
        for name in [name for name in self._kept if name.startswith(owner)]:
            self._let_go(name)

    def _keep(self, raw: memoryview) -> str:
        self._life.reach("keep")
        if not self._is_room(self._kept, self._owner):
            raise OSError(errno.ENOSPC, "no room is left")
        name = f"{self._owner}{next(self._numbers)}"
        self._kept[name] = bytes(raw)
        self._life.reach("kept")
        return name

    def _let_go(self, name: str) -> None:
        self._life.reach("let-go")
        self._kept.pop(name, None)

    def _found(self, buffer: bytes | str) -> bytes:
        if isinstance(buffer, bytes):
            return buffer
        if buffer not in self._kept:
            raise FileNotFoundError(f"{buffer} is not kept any more")
        return self._kept[buffer]


class SimulatedRows(SharedRows):
    """Shared rows that a process writes as long as it lives; from then on it writes to a copy."""

    def __init__(self, fleet: Fleet, memory: bytearray, homes: BoolArray | None, life: Life) -> None:
        super().__init__(fleet, memory, homes)
        self._life = life
        life.at_end.append(self._detach)

    def write_load(self, worker: int, queued: float, busy_until: float, now: float) -> None:
        """Set a worker's own load."""
        write = partial(super().write_load, worker, queued, busy_until, now)
        self._life.write("row-load", self._memory, 0, len(self._memory), write)

    def write_cache(self, worker: int, model: int, held: bool, now: float) -> None:
        """Say that a worker's memory takes in, or gives up, a model."""
        write = partial(super().write_cache, worker, model, held, now)
        self._life.write("row-models", self._memory, 0, len(self._memory), write)

    def join(self, worker: int) -> None:
        """Take a worker back."""
        self._life.write("row-join", self._memory, 0, len(self._memory), partial(super().join, worker))

    def _detach(self) -> None:
        self._use_rows(self._queued.copy(), self._busy_until.copy(), self._free.copy(), self._cached.copy())


class SimulatedLane(Lane):
    """A lane that a process writes as long as it lives; what runs in its background has ended when that has."""

    __slots__ = ("_background", "_life")

    def __init__(
        self,
        memory: Any,
        offset: int,
        kind: LaneKind,
        life: Life,
        background: Callable[[], SimulatedBackground | None],
    ) -> None:
        super().__init__(memory, offset, kind)
        self._life, self._background = life, background
        life.at_end.append(self.turn_off)

    def begin(
        self,
        number: int,
        stage: int,
        since: float,
        until: float,
        marks: Sequence[bytes],
        holder: int = 0,
        overdue: float = math.inf,
    ) -> None:
        """Something begins."""
        background = self._background()
        if background is None or not background.hangs:
            write = partial(super().begin, number, stage, since, until, marks, holder, overdue)
            self._life.write(f"begin-{self.kind.name}", self._memory, self._offset, LANE_BYTES, write)

    def end(self, now: float, holder: int = 0) -> None:
        """It has ended."""
        background = self._background()
        if background is None:
            write = partial(super().end, now, holder)
            self._life.write(f"end-{self.kind.name}", self._memory, self._offset, LANE_BYTES, write)
        elif not background.hangs:
            write_end = super().end
            background.ends_later.append(lambda: write_end(background.now(), holder))


class SimulatedRunRecord(RunRecord):
    """The lanes as one process has them."""

    def __init__(self, memory: Any, life: Life, background: Callable[[], SimulatedBackground | None]) -> None:
        super().__init__(memory)
        self._life, self._background = life, background

    def lanes(self, process: int) -> tuple[Lane, ...]:
        """The lanes of a process, by their kind."""
        first = process * len(LaneKind)
        return tuple(
            SimulatedLane(self._memory, (first + kind) * LANE_BYTES, kind, self._life, self._background)
            for kind in LaneKind
        )
