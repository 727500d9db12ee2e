"""A trace of inference requests: when each arrived, what it asks for, and how long it ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairway.errors import InputError
from fairway.traces.trace import SkippedRow, skipped_words

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RequestTrace:
    """Requests in order of arrival: seconds since the first, what each asks for, its run time (NaN: not known).

    `asks_for` is empty where the trace does not say. A request came at most `within` seconds after its arrival, where
    only a window of time is known; None if all moments are.
    """

    arrival: _Floats
    asks_for: tuple[str, ...]
    seconds: _Floats
    source: str
    skipped: tuple[SkippedRow, ...] = ()
    within: _Floats | None = None

    @classmethod
    def of(
        cls,
        arrival: _Floats,
        asks_for: Sequence[str],
        seconds: _Floats,
        source: str,
        skipped: Sequence[SkippedRow],
        within: _Floats | None = None,
        *,
        begin: float | None = None,
    ) -> RequestTrace:
        """A trace of rows in order; refuses one without any. Time begins at the first request, or at `begin`."""
        if not len(arrival):
            why = f"; the first row: {skipped[0].reason}" if skipped else ""
            raise InputError(f"{source}: no request that can be used{why}")
        named = tuple(asks_for) if any(asks_for) else ()
        known = within is not None and within.any()
        since = arrival - (arrival[0] if begin is None else begin)
        return cls(since, named, seconds, source, tuple(skipped), within if known else None)

    def __len__(self) -> int:
        return len(self.arrival)

    @property
    def names(self) -> tuple[str, ...]:
        """What is asked for, each once, in order of first appearance."""
        return tuple(dict.fromkeys(self.asks_for))

    @property
    def unreadable(self) -> int:
        """How many rows could not be read."""
        return sum(not row.on_purpose for row in self.skipped)

    def summary(self) -> str:
        """What was read, in a line."""
        asked = f" for {len(self.names)} models or workflows" if self.asks_for else ""
        return f"{self.source}: {len(self)} requests{asked}" + skipped_words(self.skipped)
