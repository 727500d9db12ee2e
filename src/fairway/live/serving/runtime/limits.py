"""How long a stage may run and a model may load before its worker counts as stuck, and is replaced.

What takes several times as long as was expected, and a good while more, is taken to be stuck. The while is generous,
since expectations may come from an author's guess and the machine may be busy: it bounds how long a stage that never
returns keeps a worker. Whoever knows better gives the limits.

Well before its limit a stage is overdue: it takes several times as long as expected, and as any run of it that has
ended in this process. It is left alone then unless others wait for its worker (`supervise.monitor`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_TIMES = 10.0
_STAGE_SECONDS = 10.0
_UNKNOWN_STAGE_SECONDS = 30.0
_LATE_SECONDS = 5.0
_OVERDUE_TIMES = 3.0
_OVERDUE_SECONDS = 2.0
_FIRST_OVERDUE_SECONDS = 3.0
_LOAD_SECONDS = 15.0
_UNKNOWN_LOAD_SECONDS = 60.0
LOOP_SECONDS = 10.0
"""So long the loop may take to pack or to open one value."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits that were given, in seconds; None where they follow from what was measured or declared."""

    stage_seconds: float | None = None
    load_seconds: float | None = None

    def of_stage(self, expected: float, *, is_known: bool, left: float = math.inf) -> float:
        """How long a stage may run: `left` is how long its client waits at most, after which it is of no use."""
        if self.stage_seconds is not None:
            return self.stage_seconds
        if not is_known:
            return _TIMES * expected + _UNKNOWN_STAGE_SECONDS
        return min(_TIMES * expected + _STAGE_SECONDS, max(left, _TIMES * expected) + _LATE_SECONDS)

    @staticmethod
    def overdue_after(expected: float, *, is_known: bool, longest: float) -> float:
        """After how long a run of a stage is overdue; `longest` is that of those that have ended here, 0 if none has.

        The first run in a process has more time, since it may have to get ready; one of which nothing is known, all.
        """
        usual = max(expected if is_known else 0.0, longest)
        if usual == 0.0:
            return math.inf
        return _OVERDUE_TIMES * usual + (_OVERDUE_SECONDS if longest else _FIRST_OVERDUE_SECONDS)

    def of_load(self, expected: float | None) -> float:
        """How long a model may load, where it is known how long that takes, or not."""
        if self.load_seconds is not None:
            return self.load_seconds
        return _UNKNOWN_LOAD_SECONDS if expected is None else _TIMES * expected + _LOAD_SECONDS
