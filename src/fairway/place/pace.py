"""Learns how much longer than expected tasks take at a worker, so that what it says of its load is true.

Expectations come from a profile, and a worker may be slower than that: its machine has other work, its clock is low, it
swaps. What its tasks took beyond their expected time is kept as an average over the last ones, weighted by their
length, that begins with a few tasks that were on time: the first run of a model is always slow. While nothing runs the
excess fades, so that a worker that all planners avoid is tried again.
"""

from __future__ import annotations

_KEPT = 0.9
_ON_TIME_AT_FIRST = 5.0
_HALF_LIFE_SECONDS = 10.0
_ROUNDING = 1e-9
_LEAST_FACTOR, _LEAST_EXTRA_SECONDS = 1.5, 1e-3
"""What is less than this is noise, and does not count."""


class Pace:
    """A worker's pace: `factor` times the expected time is what tasks take; `extra` is the excess of a usual task."""

    __slots__ = ("_excess", "_expected", "_last", "_tasks", "extra", "factor")

    def __init__(self) -> None:
        self.factor = 1.0
        self.extra = 0.0
        self._expected = self._excess = self._tasks = 0.0
        self._last = 0.0

    def ran(self, expected: float, began: float, ended: float) -> bool:
        """A task has run; whether it was, or is, slower here than expected."""
        excess = ended - began - expected
        tasks = self._tasks
        if tasks and not self._excess and -_ROUNDING < excess < _ROUNDING:  # nothing to say of it, as ever
            self._last = ended
            self._tasks = _KEPT * tasks + 1.0
            self._expected = _KEPT * self._expected + expected
            return False
        before = self.extra
        if not tasks:
            self._tasks, self._expected = _ON_TIME_AT_FIRST, _ON_TIME_AT_FIRST * expected
            self._last = began
        self.fade(began)
        self._last = ended
        self._tasks = _KEPT * self._tasks + 1.0
        self._expected = _KEPT * self._expected + expected
        self._excess = _KEPT * self._excess + (0.0 if -_ROUNDING < excess < _ROUNDING else excess)
        self._judge()
        return bool(before or self.extra)

    def fade(self, now: float) -> None:
        """Nothing has run until now."""
        if now > self._last:
            self._excess *= 0.5 ** ((now - self._last) / _HALF_LIFE_SECONDS)
            self._last = now
            self._judge()

    def _judge(self) -> None:
        factor = 1.0 + self._excess / self._expected if self._expected > 0 else 1.0
        extra = self._excess / self._tasks if self._tasks else 0.0
        noticed = factor >= _LEAST_FACTOR and extra >= _LEAST_EXTRA_SECONDS
        self.factor, self.extra = (factor, extra) if noticed else (1.0, 0.0)
