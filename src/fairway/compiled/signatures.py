"""What a compiled function takes, read from its annotations and written in a few letters.

`d` is a float, `q` a whole number and `?` a truth value; an array is its number of dimensions and the letter of what is
in it (`2d`, `1q`; `h` are short numbers and `Q` hashes); a named tuple of arrays is its members in brackets.
"""

from __future__ import annotations

import typing
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np

LETTERS: dict[np.dtype[Any], str] = {
    np.dtype(np.float64): "d",
    np.dtype(np.int64): "q",
    np.dtype(np.int16): "h",
    np.dtype(np.uint64): "Q",
    np.dtype(np.bool_): "?",
}
DTYPES = {letter: dtype for dtype, letter in LETTERS.items()}
_SCALARS: dict[Any, str] = {float: "d", int: "q", bool: "?"}


def parameters_of(function: Callable[..., Any]) -> list[str | list[str]]:
    """What each parameter takes."""
    hints = typing.get_type_hints(function, include_extras=True)
    return [
        _kind(hint, f"{function.__module__}.{function.__name__}: {name}")
        for name, hint in hints.items()
        if name != "return"
    ]


def _kind(hint: Any, where: str) -> str | list[str]:
    if hint in _SCALARS:
        return _SCALARS[hint]
    if isinstance(hint, type) and hasattr(hint, "_fields"):
        members = typing.get_type_hints(hint, include_extras=True)
        return [_array(members[field], f"{where}.{field}") for field in members]
    return _array(hint, where)


def _array(hint: Any, where: str) -> str:
    dimensions = 1
    if typing.get_origin(hint) is Annotated:
        hint, dimensions = typing.get_args(hint)
    parts = typing.get_args(hint)
    if typing.get_origin(hint) is np.ndarray and len(parts) == 2:
        letter = LETTERS.get(np.dtype(typing.get_args(parts[1])[0]))
        if letter is not None:
            return f"{dimensions}{letter}"
    raise TypeError(f"{where} is a {hint}, which compiled code does not take; use an array of fairway.compiled.arrays")
