"""The marks of functions that are compiled, and how: ahead of time, when first called, or not at all."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable
from typing import Any, Literal, ParamSpec, TypeVar

import numpy as np

from fairway.compiled.library import opened

P = ParamSpec("P")
R = TypeVar("R")
How = Literal["ahead", "jit", "no"]
WAYS: tuple[How, ...] = ("ahead", "jit", "no")

marked: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {}
"""By module and name, the functions that other code calls: as written, and as numba compiles it. Only for `ahead`."""

keeps: list[bool] = [True]
"""Whether numba is to keep what it compiles; not while building, as it does not keep all that `ahead` needs."""

_ways: dict[str, How] = {}
_told: list[bool] = []


def compiled(
    *, releases_gil: bool = False, divides_as_numpy: bool = False
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Mark a function that is called from elsewhere; its arrays are those of `arrays`, in row-major order.

    It may let other threads run (`releases_gil`); division by zero is infinite instead of an error where it
    `divides_as_numpy`. Sums are added up as they are written, so that all machines come to the same digits.
    """

    def mark(function: Callable[P, R]) -> Callable[P, R]:
        name = f"{function.__module__}.{function.__name__}"
        wanted = wants()
        if wanted == "ahead":
            library = opened()
            if library is not None and library.has(name):
                _ways[name] = "ahead"
                return library.bind(name, function)
        if wanted != "no":
            found = _by_numba(function, releases_gil, divides_as_numpy)
            if found is not None:
                marked[name] = (function, found)
                _ways[name] = "jit"
                return found
        _ways[name] = "no"
        return _interpreted(function)

    return mark


def compiled_within(
    *,
    releases_gil: bool = False,
    divides_as_numpy: bool = False,
    inline: bool = False,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Mark a function that only marked functions call: from elsewhere, it is what is written there."""

    def mark(function: Callable[P, R]) -> Callable[P, R]:
        wanted = wants()
        if wanted == "no" or (wanted == "ahead" and opened() is not None):
            return function
        return _by_numba(function, releases_gil, divides_as_numpy, inline) or function

    return mark


def wants() -> How:
    """How functions are to be compiled."""
    asked = os.environ.get("FAIRWAY_COMPILED", "ahead")
    for way in WAYS:
        if way == asked:
            return way
    warnings.warn(f'FAIRWAY_COMPILED is "{asked}", expected ahead, jit or no; going by ahead', stacklevel=2)
    return "ahead"


def how(function: Callable[..., Any]) -> How:
    """How a function that is marked with `compiled` is run."""
    return _ways[f"{function.__module__}.{function.__name__}"]


def _by_numba(
    function: Callable[P, R], nogil: bool, numpy_division: bool, inline: bool = False
) -> Callable[P, R] | None:
    try:
        from numba import njit  # noqa: PLC0415 - takes half a second, and a user need not have it
    except ImportError:
        if not _told:
            _told.append(True)
            warnings.warn(
                "Fairway was installed without its compiled code, and numba is not there to compile it now: numerical "
                "loops are interpreted, which takes some fifty times as long. Install numba (pip install numba).",
                RuntimeWarning,
                stacklevel=4,
            )
        return None
    made: Callable[P, R] = njit(
        cache=keeps[0],
        nogil=nogil,
        error_model="numpy" if numpy_division else "python",
        inline="always" if inline else "never",
    )(function)
    return made


def _interpreted(function: Callable[P, R]) -> Callable[P, R]:
    @functools.wraps(function)
    def interpreted(*args: P.args, **kwargs: P.kwargs) -> R:
        with np.errstate(all="ignore"):  # whole numbers wrap around in compiled code without a word
            return function(*args, **kwargs)

    return interpreted
