"""How small and how large numbers from outside may be: the one rule that every door checks by.

Files, options, the REST API, traces, tables of profiles and the reports of jobs all bring numbers. A number far beyond
what a cluster can yield is refused where it comes in, because sums and ratios of such numbers overflow or vanish, and
then no decision about any job is worth anything. A size of 0 is no matter of magnitude: whether a field may be 0 is the
field's own rule.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairway.documents import shown
from fairway.errors import InputError


@dataclass(frozen=True, slots=True)
class Magnitude:
    """The sizes that a number may have, unless it is 0; the sign does not matter."""

    least: float
    most: float

    def __contains__(self, number: float) -> bool:
        return number == 0 or self.least <= abs(number) <= self.most

    def __str__(self) -> str:
        return f"{self.least:g} to {self.most:g}"

    def refusal(self, number: float) -> str:
        """What to say of a number whose size is not among these."""
        return f"{shown(number)} given, expected a size from {self}; choose other units"

    def checked(self, number: float) -> float:
        """The number itself, and 0 for -0; raises an error that does not yet say where the number was given."""
        if number not in self:
            raise InputError(self.refusal(number))
        return number or type(number)(0)

    def above_zero(self, number: float) -> float:
        """The same for a field that may not be 0 or less."""
        if not number > 0:
            raise InputError(f"{shown(number)} given, expected a number above 0, from {self}")
        return self.checked(number)

    def zero_or_more(self, number: float) -> float:
        """The same for a field that may be 0 but not less."""
        if not number >= 0:
            raise InputError(f"{shown(number)} given, expected a number of at least 0, of a size from {self}")
        return self.checked(number)

    def clamped(self, number: float) -> float:
        """The nearest number of at least the smallest size; for what was measured, where no one can be asked again."""
        return min(max(number, self.least), self.most)


FACTORS = Magnitude(1e-9, 1e12)
"""Rates (steps per second), weights, prices (dollars per hour) and other factors."""

AMOUNTS = Magnitude(1e-30, 1e15)
"""Steps and seconds, such as those that are left of a job."""

SPANS = Magnitude(1e-9, 1e9)
"""Lengths of time that a person writes, in seconds: from a nanosecond to 30 years."""

MOST_WORKERS = 10**9
"""Workers of a type, of a node and of a gang."""

MOST_STEPS = 10**15
