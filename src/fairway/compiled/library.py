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
import inspect
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

MOST_WORDS = 96
"""So many words, at most, a function may take or answer (`calls.c`)."""

PYTHON = (
    "PyFloat_AsDouble",
    "PyLong_AsLongLong",
    "PyObject_IsTrue",
    "PyTuple_Size",
    "PyTuple_GetItem",
    "PyTuple_New",
    "PyTuple_SetItem",
    "PyFloat_FromDouble",
    "PyLong_FromLongLong",
    "PyBool_FromLong",
    "PyObject_CallFunctionObjArgs",
    "PyErr_Occurred",
    "PyErr_ExceptionMatches",
    "PyErr_Clear",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
    "PyCapsule_GetPointer",
    "PyCapsule_New",
    "PyCFunction_NewEx",
    "Py_IncRef",
    "Py_DecRef",
)
"""Functions of Python's stable interface that `calls.c` calls, in its order."""

SCALARS = "dq?"


class _Failure(ctypes.Structure):
    _fields_ = (("pickled", ctypes.c_void_p), ("length", ctypes.c_int32))


class Library:
    """The opened library."""

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        self._native = ctypes.PyDLL(str(path))
        self._manifest = manifest
        self._native.fairway_open.argtypes = [ctypes.py_object]
        self._native.fairway_open(np.ndarray)
        functions = (ctypes.c_void_p * len(PYTHON))(
            *[ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value for name in PYTHON]
        )
        self._native.fairway_begin.argtypes = [ctypes.c_void_p] + [ctypes.py_object] * 3
        self._native.fairway_begin(functions, None, TypeError, np.empty)
        self._bind = self._native.fairway_bind
        text, thing, number = ctypes.c_char_p, ctypes.py_object, ctypes.c_int
        self._bind.argtypes = [
            text, text, thing, ctypes.c_void_p, text, number, text, number, number, number, thing, thing,
        ]  # fmt: skip
        self._bind.restype = ctypes.py_object
        self._texts: list[bytes] = []  # which functions go on using

    def has(self, name: str) -> bool:
        """Whether there is a function of that name."""
        return name in self._manifest["functions"]

    def bind(self, name: str, function: Callable[P, R]) -> Callable[P, R]:
        """The compiled function of that name."""
        entry = self._manifest["functions"][name]
        kinds: list[str | list[str]] = entry["takes"]
        returns: list[str] = entry["returns"]
        signature = inspect.signature(function)

        def otherwise(code: int, failure: int, given: tuple[Any, ...], names: tuple[str, ...] | None) -> Any:
            """Raise the error that the loop has met; or call it again with arguments that are brought into form."""
            if code == RAISED:
                raise _error(failure)
            first = len(given) - len(names or ())
            bound = signature.bind(*given[:first], **dict(zip(names or (), given[first:], strict=True)))
            bound.apply_defaults()
            return _in_form(call, kinds, bound.args, name)

        takes = "".join(_letters_taken(kind) for kind in kinds)
        texts = [text.encode() for text in (function.__name__, function.__doc__ or "", takes, "".join(returns))]
        self._texts += texts
        code = ctypes.cast(getattr(self._native, entry["symbol"]), ctypes.c_void_p).value
        types = tuple(DTYPES[kind[-1]] for kind in returns if kind not in SCALARS)
        call: Callable[P, R] = self._bind(
            texts[0], texts[1], function.__module__, code, texts[2], len(kinds), texts[3], len(returns),
            entry["is_tuple"], entry["releases_gil"], types, otherwise,
        )  # fmt: skip
        return call


def _letters_taken(kind: str | list[str]) -> str:
    """One parameter as `calls.c` knows it."""
    if isinstance(kind, list):
        return "t" + chr(ord("0") + len(kind))
    return kind if kind in SCALARS else "a"


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


def _in_form(call: Callable[..., Any], kinds: list[str | list[str]], given: tuple[Any, ...], name: str) -> Any:
    """Call with what has been brought into the form that compiled code takes."""
    copies: list[tuple[Any, Any]] = []

    def formed(kind: str, value: Any) -> Any:
        if kind in SCALARS:
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


def _error(at: int) -> BaseException:
    """The error that compiled code has met."""
    failure = _Failure.from_address(at)
    kind, arguments = pickle.loads(ctypes.string_at(failure.pickled, failure.length))[:2]
    error: BaseException = kind(*(arguments or ()))
    return error
