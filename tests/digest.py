"""One short word for many results, by which a test knows that all of them are what they were.

A digest says that something has changed, not what; it stands beside the tests that say what must hold. Where a change
is meant, the new word is what the failed test found. Numbers count to nine digits, so that the order of additions does
not matter.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np


def digest(value: object) -> str:
    """The word for a value made of numbers, words, sequences, dictionaries and arrays."""
    return hashlib.sha256(repr(_plain(value)).encode()).hexdigest()[:12]


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, bool | None | str):
        return value
    if isinstance(value, int | float):
        return format(float(value) + 0.0, ".9g")
    if isinstance(value, dict):
        return [(_plain(key), _plain(each)) for key, each in value.items()]
    return [_plain(each) for each in value]
