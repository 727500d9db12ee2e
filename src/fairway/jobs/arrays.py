"""The indexes of a job array: `0-9`, `0-9:2` (every second), `1,4,7-9`, and `0-99%4` for at most four at a time.

How many there are is known without writing them out, so that an array of a billion is refused as quickly as any.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from fairway.documents import shown
from fairway.errors import InputError

MOST_JOBS = 1000
"""Jobs that one submission may make, arrays, matrices and documents together."""

_LARGEST = 10**9
_PART = re.compile(r"(\d{1,10})(?:-(\d{1,10})(?::(\d{1,10}))?)?")
_LONGEST = 8000
_EXPECTED = "indexes such as '0-9', '0-9:2', '1,4,7-9' or '0-99%4' (at most four at a time)"


@dataclass(frozen=True, slots=True)
class ArrayIndexes:
    """Some indexes, and how many of their jobs may run at a time; None for all."""

    ranges: tuple[range, ...]
    limit: int | None = None

    @classmethod
    def read(cls, given: object) -> ArrayIndexes:
        """From text or one whole number; raises an error that does not yet say in which field."""
        if isinstance(given, ArrayIndexes):
            return given
        if isinstance(given, bool) or not isinstance(given, str | int) or len(text := str(given)) > _LONGEST:
            raise InputError(f"{shown(given)} given, expected {_EXPECTED}")
        listed, percent, most = text.replace(" ", "").partition("%")
        found = [_PART.fullmatch(part) for part in listed.split(",")]
        limit = int(most) if re.fullmatch(r"\d{1,9}", most) else 0
        if (percent and not limit) or None in found:
            raise InputError(f"{shown(given)} given, expected {_EXPECTED}")
        array = cls(tuple(_range(part, text) for part in found if part is not None), limit or None)
        if len(array) > MOST_JOBS:
            raise InputError(f"{shown(given)} given, which are {len(array)} jobs; at most {MOST_JOBS} are made at once")
        if len(set(array)) < len(array):
            raise InputError(f"{shown(given)} given, which has an index twice; keep one of them")
        return array

    def __len__(self) -> int:
        return sum(map(len, self.ranges))

    def __iter__(self) -> Iterator[int]:
        for some in self.ranges:
            yield from some

    def __str__(self) -> str:
        """The form in which it is stored, sent and shown."""
        parts = ",".join(_written(some) for some in self.ranges)
        return parts if self.limit is None else f"{parts}%{self.limit}"

    def only(self, index: int) -> ArrayIndexes:
        """The same for one of its jobs."""
        return ArrayIndexes((range(index, index + 1),), self.limit)


def _range(part: re.Match[str], text: str) -> range:
    first = int(part[1])
    last, step = int(part[2] or first), int(part[3] or 1)
    if last > _LARGEST or first > _LARGEST:
        raise InputError(f"{shown(text)} given, expected indexes of at most {_LARGEST}")
    if last < first or step < 1:
        raise InputError(f"{shown(text)} given, expected {_EXPECTED}, the smaller index first and steps of at least 1")
    return range(first, last + 1, step)


def _written(some: range) -> str:
    if len(some) == 1:
        return str(some[0])
    return f"{some[0]}-{some[-1]}" + (f":{some.step}" if some.step > 1 else "")
