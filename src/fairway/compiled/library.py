"""The library of compiled functions, and calls into it.

The library is one file for all versions of Python, made by `ahead` for an operating system and a kind of processor. A
manifest beside it says what each function takes and returns, and from which source it was made: where a file has
another digest, the library is not used. A call hands over the arrays themselves. The compiled code looks at the fields
that every numpy array begins with, which is checked once when the library is opened; it refuses an array of other
contents, of another number of dimensions or not in row-major order, which is then brought into the right form and, if
the function may have written to it, back.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np

from fairway.compiled.signatures import DTYPES

P = ParamSpec("P")
R = TypeVar("R")
HERE = Path(__file__).parent
LIBRARY = HERE / "kernels.so"
MANIFEST = HERE / "kernels.json"
RAISED = -1
"""What a function answers that has raised an error; a positive number is that of an array that it refuses."""

# Where the fields of an array begin, as numpy's own headers have it: data, dimensions, their number, type and flags.
HEAD, DATA, DIMENSIONS, DESCRIPTION, FLAGS, TYPE_NUMBER = 16, 16, 32, 56, 64, 28
COUNT = 24
ROW_MAJOR_AND_ALIGNED = 0x0101

_C_TYPES: dict[str, Any] = {"d": ctypes.c_double, "q": ctypes.c_int64, "?": ctypes.c_int64}
# No name of a function or of a parameter of ours begins and ends like those that are used here.
_CALL = """
def __call__({parameters}):
    __answer__ = __Answer__()
    try:
        __code__ = __native__({values}__by_reference__(__answer__))
    except __ArgumentError__:
        return __again__(({given}))
    if __code__:
        if __code__ > 0:
            return __again__(({given}))
        __raise__(__answer__)
    {made}
    return {result}
"""


class _Failure(ctypes.Structure):
    _fields_ = (("pickled", ctypes.c_void_p), ("length", ctypes.c_int32))


class Library:
    """The opened library."""

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        self._holding, self._releasing = ctypes.PyDLL(str(path)), ctypes.CDLL(str(path))
        self._manifest = manifest
        self._holding.fairway_open.argtypes = [ctypes.py_object]
        self._holding.fairway_open(np.ndarray)
        self._take = self._holding.fairway_take
        self._take.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.py_object, ctypes.c_int64]
        self._take.restype = None

    def has(self, name: str) -> bool:
        """Whether there is a function of that name."""
        return name in self._manifest["functions"]

    def bind(self, name: str, function: Callable[P, R]) -> Callable[P, R]:
        """The compiled function of that name."""
        entry = self._manifest["functions"][name]
        native = getattr(self._releasing if entry["releases_gil"] else self._holding, entry["symbol"])
        native.restype = ctypes.c_int64
        kinds: list[str | list[str]] = entry["takes"]
        returns: list[str] = entry["returns"]
        parameters = function.__code__.co_varnames[: function.__code__.co_argcount]
        flat = [kind for each in kinds for kind in (each if isinstance(each, list) else [each])]
        answer = type("Answer", (ctypes.Structure,), {"_fields_": _fields(returns)})
        native.argtypes = [_C_TYPES.get(kind, ctypes.py_object) for kind in flat] + [ctypes.c_void_p]
        values = "".join(
            f"{'*' if isinstance(kind, list) else ''}{name}, " for name, kind in zip(parameters, kinds, strict=True)
        )
        made, result = _results(returns)
        source = _CALL.format(
            parameters=", ".join(parameters),
            values=values,
            given="".join(f"{name}, " for name in parameters),
            made="; ".join(made) or "pass",
            result=("(" + ", ".join(result) + ("," if entry["is_tuple"] else "") + ")") if result else "None",
        )
        scope: dict[str, Any] = {
            "__Answer__": answer,
            "__ArgumentError__": ctypes.ArgumentError,
            "__by_reference__": ctypes.addressof,
            "__native__": native,
            "__raise__": _raise,
            "__empty__": np.empty,
            "__take__": self._take,
            **{f"__{letter}__": dtype for letter, dtype in DTYPES.items() if letter != "?"},
            "__b__": np.dtype(np.bool_),
        }
        exec(source, scope)
        call: Callable[..., Any] = scope["__call__"]
        scope["__again__"] = lambda given: _in_form(call, kinds, given, name)
        functools.update_wrapper(call, function)
        return call


@functools.cache
def digest(path: Path) -> str:
    """That of a source file."""
    try:
        return hashlib.blake2b(path.read_bytes(), digest_size=12).hexdigest()
    except OSError:
        return ""


@functools.cache
def opened() -> Library | None:
    """The library, if it is there and this Python can call it."""
    try:
        manifest = json.loads(MANIFEST.read_text())
        if not (_is_of_this_source(manifest) and _fields_are_where_they_were()):
            return None
        return Library(LIBRARY, manifest)
    except (OSError, ValueError, KeyError, AttributeError):  # not there, cut short, or of another machine
        return None


def _is_of_this_source(manifest: dict[str, Any]) -> bool:
    """Whether no module has changed since: functions call each other, so that they are of one kind, or none is used."""
    sources: dict[str, str] = {path: made for each in manifest["modules"].values() for path, made in each.items()}
    return all(digest(HERE.parent / path) == made for path, made in sources.items())


def _fields_are_where_they_were() -> bool:
    """Whether this Python and this numpy lay out an array as those for which the code was compiled."""
    if ctypes.sizeof(ctypes.c_void_p) != 8 or sys.byteorder != "little" or object.__basicsize__ != HEAD:
        return False
    array = np.zeros((2, 3))
    at = id(array)
    word = ctypes.c_int64.from_address
    dimensions = word(at + DIMENSIONS).value
    return (
        word(at + 8).value == id(np.ndarray)
        and word(at + DATA).value == array.ctypes.data
        and ctypes.c_int32.from_address(at + COUNT).value == 2
        and (word(dimensions).value, word(dimensions + 8).value) == (2, 3)
        and word(at + DESCRIPTION).value == id(array.dtype)
        and ctypes.c_int32.from_address(id(array.dtype) + TYPE_NUMBER).value == array.dtype.num
        and ctypes.c_int32.from_address(at + FLAGS).value & ROW_MAJOR_AND_ALIGNED == ROW_MAJOR_AND_ALIGNED
    )


def _fields(returns: list[str]) -> list[tuple[str, Any]]:
    """What a function writes its answer to: an error first, then scalars and, of arrays, owner, address and lengths."""
    fields: list[tuple[str, Any]] = [("failure", ctypes.c_void_p)]
    for number, kind in enumerate(returns):
        if kind in _C_TYPES:
            fields.append((f"r{number}", _C_TYPES[kind]))
        else:
            fields += [(f"r{number}_{part}", ctypes.c_int64) for part in ("owner", "data", *_lengths(kind))]
    return fields


def _lengths(kind: str) -> list[str]:
    return [f"n{number}" for number in range(int(kind[:-1]))]


def _results(returns: list[str]) -> tuple[list[str], list[str]]:
    """Statements that make the arrays of an answer, and expressions for its values."""
    made, values = [], []
    for number, kind in enumerate(returns):
        if kind in _C_TYPES:
            values.append(f"__answer__.r{number} != 0" if kind == "?" else f"__answer__.r{number}")
            continue
        lengths = "".join(f"__answer__.r{number}_{part}, " for part in _lengths(kind))
        at = f"__answer__.r{number}"
        letter = kind[-1].replace("?", "b")
        made.append(f"__r{number}__ = __empty__(({lengths}), __{letter}__)")
        made.append(f"__take__({at}_owner, {at}_data, __r{number}__, __r{number}__.nbytes)")
        values.append(f"__r{number}__")
    return made, values


def _in_form(call: Callable[..., Any], kinds: list[str | list[str]], given: tuple[Any, ...], name: str) -> Any:
    """Call with what has been brought into the form that compiled code takes."""
    copies: list[tuple[Any, Any]] = []

    def formed(kind: str, value: Any) -> Any:
        if kind in _C_TYPES:
            return float(value) if kind == "d" else int(value)
        wanted = DTYPES[kind[-1]]
        if type(value) is np.ndarray and value.dtype == wanted and value.ndim == int(kind[:-1]) and value.flags.carray:
            return value
        before = np.asarray(value)
        if before.size and not np.can_cast(before.dtype, wanted, "same_kind"):
            raise TypeError(f"{name}: an array of {before.dtype} given, expected one of {wanted}")
        array = np.require(before, wanted, ["C", "A", "E"])
        if array.ndim != int(kind[:-1]):
            raise TypeError(f"{name}: an array of {array.ndim} dimensions given, expected {kind[:-1]}")
        if isinstance(value, np.ndarray) and value.flags.writeable and not np.shares_memory(array, value):
            copies.append((value, array))
        return array

    arguments = [
        [formed(part, member) for part, member in zip(kind, value, strict=True)]
        if isinstance(kind, list)
        else formed(kind, value)
        for kind, value in zip(kinds, given, strict=True)
    ]
    result = call(*arguments)
    for array, copy in copies:
        np.copyto(array, copy, casting="unsafe")
    return result


def _raise(answer: Any) -> None:
    """Raise the error that compiled code has met."""
    failure = _Failure.from_address(answer.failure)
    kind, arguments = pickle.loads(ctypes.string_at(failure.pickled, failure.length))[:2]
    raise kind(*(arguments or ()))
