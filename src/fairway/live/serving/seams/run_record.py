"""What each process of an application does at this moment that could end it: in memory that its supervisor sees, too.

A process that dies of a stage cannot say so any more, nor can one that hangs. So it writes down what it is about to do,
for which requests and until when at the latest, before it does it; when it is dead, the supervisor reads what it did.
There is a lane for stages, one for loads of models, and one for what the loop itself does with values of stages.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum
from hashlib import blake2b
from struct import Struct
from typing import Any, NamedTuple

from fairway.live.serving.seams.values import CarriedBytes, Parcel

MARK_BYTES = 16
NO_MARK = bytes(MARK_BYTES)

_WORKFLOW_BYTES = 2

_STATE = Struct("=qd")
"""Whether something is under way, and when the last thing ended."""
_FACTS = Struct("=iiqddd")
_MARK = Struct(f"={MARK_BYTES}s")
_MARKS_AT = _STATE.size + _FACTS.size
_LANE = Struct(f"=qdiiqddd{MARK_BYTES}s")
"""All of a lane with one mark, as most have: one call writes it."""
LANE_BYTES = 2048
_MOST_MARKS = (LANE_BYTES - _MARKS_AT) // MARK_BYTES

_IDLE, _ACTIVE = 0, 1


def mark_of(workflow: int, parcel: Parcel) -> bytes:
    """What a request is known by, however often a client asks for it: its workflow and its input."""
    digest = blake2b(parcel.pickled, digest_size=MARK_BYTES - _WORKFLOW_BYTES)
    for buffer in parcel.buffers:
        name = buffer.name if isinstance(buffer, CarriedBytes) else buffer  # one mark, whichever way it has come
        digest.update(name.encode() if isinstance(name, str) else name)
    return workflow.to_bytes(_WORKFLOW_BYTES) + digest.digest()


def workflow_of(mark: bytes) -> int:
    """The number of the workflow that a request is for, by its mark; that of no request means nothing."""
    return int.from_bytes(mark[:_WORKFLOW_BYTES])


class LaneKind(IntEnum):
    """What is done in a lane."""

    STAGE = 0
    LOAD = 1
    LOOP = 2


class Running(NamedTuple):
    """What a lane says: a workflow and a stage of it, or a model (`number`), and the marks of the requests.

    `until` is when it should have ended, `ended` when it has, unless it `is_active`. From `overdue` on it takes so much
    longer than it usually does that it may hang.
    """

    kind: LaneKind
    is_active: bool
    number: int
    stage: int
    since: float
    until: float
    ended: float
    marks: tuple[bytes, ...]
    overdue: float = math.inf


class Lane:
    """One lane of one process: `begin` and `end` are called by whichever thread does the work."""

    __slots__ = ("_holder", "_memory", "_offset", "_on", "kind")

    def __init__(self, memory: Any, offset: int, kind: LaneKind) -> None:
        self._memory, self._offset, self.kind = memory, offset, kind
        self._on = True
        self._holder = 0

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
        if not self._on:
            return
        memory, offset, count = self._memory, self._offset, len(marks)
        self._holder = holder
        if count > 1:
            count = min(count, _MOST_MARKS)
            at = offset + _MARKS_AT
            for mark in marks[1:count]:
                at += MARK_BYTES
                _MARK.pack_into(memory, at, mark)
        first = marks[0] if marks else NO_MARK
        _LANE.pack_into(memory, offset, _ACTIVE, math.inf, number, stage, count, since, until, overdue, first)

    def end(self, now: float, holder: int = 0) -> None:
        """It has ended; nothing if something else has begun here since, with another `holder`."""
        if self._on and self._holder == holder:
            _STATE.pack_into(self._memory, self._offset, _IDLE, now)

    def turn_off(self) -> None:
        """This process is not the one that the lane is about: a stage has forked."""
        self._on = False

    def clear(self) -> None:
        """A new process begins, which has done nothing yet."""
        _LANE.pack_into(
            self._memory, self._offset, _IDLE, -math.inf, -1, -1, 0, -math.inf, -math.inf, math.inf, NO_MARK
        )

    def read(self) -> Running | None:
        """What it says; None if nothing was done here in this life."""
        state, ended, number, stage, count, since, until, overdue, _ = _LANE.unpack_from(self._memory, self._offset)
        if number < 0:
            return None
        at = self._offset + _MARKS_AT
        marks = tuple(
            bytes(self._memory[at + MARK_BYTES * each : at + MARK_BYTES * (each + 1)])
            for each in range(max(0, min(count, _MOST_MARKS)))
        )
        return Running(self.kind, state == _ACTIVE, number, stage, since, until, ended, marks, overdue)


class RunRecord:
    """The lanes of all processes, in memory that they share."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory

    @staticmethod
    def size(processes: int) -> int:
        """How many bytes it takes."""
        return processes * len(LaneKind) * LANE_BYTES

    def lanes(self, process: int) -> tuple[Lane, ...]:
        """The lanes of a process, by their kind."""
        first = process * len(LaneKind)
        return tuple(Lane(self._memory, (first + kind) * LANE_BYTES, kind) for kind in LaneKind)
