"""The saved run: one file that holds one or more runs with all that the page shows of them.

It is one JSON document, compressed by gzip, which browsers and all languages read without a library:

    {"format": "fairway-run", "version": 2, "fairway": "0.1.0", "command": "…", "origin": {"kind": …, "meaning": …},
     "runs": [{"kind": "training", "label": …, "settings": {…}, "summary": {…}, "begins_at": …, "end": …, …tables…}]}

`tables` says which tables a run has. A reader takes every version up to its own; what it does not know in a file of
its own version it leaves alone. A file that is cut off, newer, or no run at all is refused in one line.
"""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from fairway.dashboard.tables import ADDED, LISTS, TABLES
from fairway.errors import InputError
from fairway.report.whole_file import write_whole_bytes

FORMAT = "fairway-run"
VERSION = 2
SUFFIX = ".fairway"
MOST_BYTES = 2 * 1024**3
"""Of the document without compression; a file that claims more is refused before it fills the memory."""

Document = dict[str, Any]
_GZIP = b"\x1f\x8b"
_KINDS: Mapping[str, tuple[type, ...]] = {
    "text": (str,),
    "number": (int, float),
    "whole": (int,),
    "bool": (bool,),
    "object": (dict,),
    "wholes": (list,),
}


def document(
    runs: Sequence[Mapping[str, Any]], *, command: str | None = None, origin: Mapping[str, str] | None = None
) -> Document:
    """Runs with what stands around them."""
    try:
        ours = version("fairway")
    except PackageNotFoundError:  # run from its source, without being installed
        ours = "unknown"
    return {
        "format": FORMAT,
        "version": VERSION,
        "fairway": ours,
        "command": command,
        "origin": dict(origin or {}),
        "runs": list(runs),
    }


def packed(content: Mapping[str, Any]) -> bytes:
    """The bytes of a saved run. The same document gives the same bytes."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    return gzip.compress(text.encode("utf-8", "replace"), compresslevel=6, mtime=0)


def save(content: Mapping[str, Any], target: str | Path) -> None:
    """Write a saved run; the file is there whole or not at all."""
    write_whole_bytes(target, packed(content))


def read_run(source: str | Path) -> Document:
    """Read a saved run and check all of it; refuses what is none, in one line."""
    path = Path(source)
    try:
        given = path.read_bytes()
    except OSError as error:
        raise InputError(f"{source}: cannot be read: {error.strerror or error}; name a file of --save") from None
    return unpacked(given, str(source))


def unpacked(given: bytes, source: str = "run") -> Document:
    """The document in the bytes of a saved run, checked."""
    if not given.startswith(_GZIP):
        raise InputError(f"{source}: not a saved run; give a file that --save or 'fairway history export' wrote")
    text = _decompressed(given, source)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        raise InputError(f"{source}: not a saved run: what is compressed in it is no JSON") from None
    check(content, source)
    checked: Document = content
    return checked


def _decompressed(given: bytes, source: str) -> bytes:
    stream = zlib.decompressobj(wbits=31)
    try:
        text = stream.decompress(given, MOST_BYTES)
    except zlib.error:
        raise InputError(f"{source}: damaged: the compressed data cannot be read; copy or write it again") from None
    if stream.unconsumed_tail:
        raise InputError(f"{source}: larger than {MOST_BYTES // 1024**3} GiB without compression; save fewer runs")
    if not stream.eof:
        raise InputError(f"{source}: cut off after {len(given)} bytes; copy or write it again")
    return text


def check(content: object, source: str = "run") -> None:
    """Refuse a document that is no saved run of a version that can be read here."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{source}: not a saved run; give a file that --save or 'fairway history export' wrote")
    number = content.get("version")
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise InputError(f"{source}: version: {json.dumps(number)[:40]} given, expected a whole number from 1")
    if number > VERSION:
        raise InputError(
            f"{source}: of version {number}, but this Fairway reads up to {VERSION}; open it with a newer Fairway"
        )
    runs = content.get("runs")
    if not isinstance(runs, list) or not runs:
        raise InputError(f"{source}: no runs in it; save it again")
    if number == 1:
        _raise_runs(runs)
    for position, run in enumerate(runs):
        _check_run(run, f"{source}: runs.{position}")


def _raise_runs(runs: list[Any]) -> None:
    """Give runs of the first version the columns that came later."""
    for run in runs:
        kind = run.get("kind") if isinstance(run, dict) else None
        for table, columns in (ADDED.get(kind, {}) if isinstance(kind, str) else {}).items():
            known = run.setdefault(table, {})
            if isinstance(known, dict):
                rows = max((len(column) for column in known.values() if isinstance(column, list)), default=0)
                for column, value in columns.items():
                    known.setdefault(column, [value] * rows)


def _check_run(run: object, where: str) -> None:
    kind = run.get("kind") if isinstance(run, dict) else None
    if not isinstance(run, dict) or not isinstance(kind, str) or kind not in TABLES:
        raise InputError(f"{where}.kind: {json.dumps(kind)[:40]} given, expected {' or '.join(TABLES)}")
    if not isinstance(run.get("label"), str):
        raise InputError(f"{where}.label: expected a text")
    end = run.get("end")
    if isinstance(end, bool) or not isinstance(end, int | float) or not math.isfinite(end):
        raise InputError(f"{where}.end: expected the seconds that the run lasted")
    sizes: dict[str, int] = {}
    for name in LISTS[kind]:
        if not isinstance(run.get(name), list):
            raise InputError(f"{where}.{name}: expected a list")
        sizes[name] = len(run[name])
    tables = TABLES[kind]
    for name, columns in tables.items():
        sizes[name] = _length(run.get(name), columns, f"{where}.{name}")
    for name, columns in tables.items():
        for column, form in columns.items():
            _check_column(run[name][column], form, sizes, f"{where}.{name}.{column}")


def _length(table: object, columns: Mapping[str, str], where: str) -> int:
    if not isinstance(table, dict):
        raise InputError(f"{where}: expected a table, an object of columns")
    lengths = set()
    for column in columns:
        if not isinstance(table.get(column), list):
            raise InputError(f"{where}.{column}: expected a column, a list")
        lengths.add(len(table[column]))
    if len(lengths) != 1:
        raise InputError(f"{where}: columns of {', '.join(map(str, sorted(lengths)))} rows; expected as many in each")
    return lengths.pop()


def _check_column(values: list[Any], form: str, sizes: Mapping[str, int], where: str) -> None:
    if form.startswith("-> "):
        last = sizes[form.removeprefix("-> ")] - 1
        wrong = next((k for k, value in enumerate(values) if not (_is(value, (int,)) and -1 <= value <= last)), None)
        expected = f"a whole number from -1 to {last}"
    else:
        optional, kinds = form.endswith("?"), _KINDS[form.removesuffix("?")]
        wrong = next(
            (k for k, value in enumerate(values) if not ((optional and value is None) or _is(value, kinds))), None
        )
        expected = form.removesuffix("?") + (" or null" if optional else "")
        if wrong is None and form == "wholes":
            wrong = next((k for k, value in enumerate(values) if not all(_is(one, (int,)) for one in value)), None)
            expected = "a list of whole numbers"
    if wrong is not None:
        raise InputError(f"{where}.{wrong}: {json.dumps(values[wrong])[:40]} given, expected {expected}")


def _is(value: object, kinds: tuple[type, ...]) -> bool:
    if isinstance(value, bool):
        return bool in kinds
    return isinstance(value, kinds)
