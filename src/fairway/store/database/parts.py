"""Long lists in parts: databases limit how many values one question may name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")

_AT_ONCE = 1000


def in_parts(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """The values in their order, so many at a time as one question may name."""
    for start in range(0, len(values), _AT_ONCE):
        yield values[start : start + _AT_ONCE]
