"""How long to wait before something that has failed is tried again: longer after each failure in a row, up to a limit.

What keeps failing is tried ever more rarely, and what failed by chance is tried again soon. The wait follows from the
number of failures alone, so there is nothing to remember but that number, and nothing here reads a clock.
"""

from __future__ import annotations

from dataclasses import dataclass

_MOST_TIMES = 60
"""The wait has long reached its limit after so many failures, and its power would become too large for a number."""


@dataclass(frozen=True, slots=True)
class BackOff:
    """`first_seconds` after the first failure, `factor` times as long after each further one, never longer than
    `longest_seconds`.
    """

    first_seconds: float
    longest_seconds: float
    factor: float = 2.0

    def seconds(self, failures: int) -> float:
        """The wait after so many failures in a row; none after none."""
        if failures < 1:
            return 0.0
        return min(self.first_seconds * self.factor ** min(failures - 1, _MOST_TIMES), self.longest_seconds)
