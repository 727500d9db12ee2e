"""Reads the Standard Workload Format 2.2 of the Parallel Workloads Archive (cs.huji.ac.il/labs/parallel/workload).

A line is 18 numbers, of which -1 says that one is not known; lines that begin with `;` are comments. A job asks for as
many workers as it requested processors, or as it was given where the request is not known. Its group is its entity.
Lines with the status 2, 3 or 4 are parts of a job that has a line of its own; they, and jobs that never ran, are
skipped.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairway.errors import InputError
from fairway.traces.rows import Cells, named_cells, number_in, numbered_lines, trace_of, whole_number_in
from fairway.traces.trace import LeftOutError, Trace, TraceJob

NAME = "swf"

_COLUMNS = (
    "job number",
    "submit time",
    "wait time",
    "run time",
    "allocated processors",
    "average CPU time",
    "used memory",
    "requested processors",
    "requested time",
    "requested memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding job",
    "think time",
)
_STATUS = {0: "failed", 1: "completed", 5: "cancelled"}
_PARTIAL = {2, 3, 4}


def recognises(head: str) -> bool:
    """Whether the first line that is no comment consists of many numbers, or there are only comments."""
    commented = False
    for _, line in numbered_lines(head):
        if line.lstrip().startswith(";"):
            commented = True
        else:
            return commented or (len(line.split()) >= 12 and all(map(_is_number, line.split())))
    return commented


def read(text: str, name: str) -> Trace:
    """Read the text of a log; `name` is the file's name in errors."""
    return trace_of(
        _rows(text, name), lambda row: _job(named_cells(row, _COLUMNS)), name=name, format=NAME, from_first=True
    )


def _is_number(word: str) -> bool:
    return word.removeprefix("-").replace(".", "", 1).isdigit()


def _rows(text: str, name: str) -> Iterator[tuple[int, list[str]]]:
    first = True
    for line, row in numbered_lines(text):
        words = row.split()
        if words[0].startswith(";"):
            continue
        if first and len(words) != len(_COLUMNS):
            raise InputError(
                f"{name}, line {line}: {len(words)} columns given, expected {len(_COLUMNS)}: {', '.join(_COLUMNS)}"
            )
        first = False
        yield line, words


def _job(cells: Cells) -> TraceJob:
    status = whole_number_in(cells, "status", at_least=-1)
    if status in _PARTIAL:
        raise LeftOutError("part of a job that has a line of its own")
    duration = number_in(cells, "run time")
    if duration <= 0:
        raise LeftOutError("never ran")
    requested = whole_number_in(cells, "requested processors", at_least=-1)
    processors = requested if requested > 0 else whole_number_in(cells, "allocated processors", at_least=-1)
    if processors <= 0:
        raise InputError("without a number of processors")
    return TraceJob(
        id=cells["job number"],
        arrival=number_in(cells, "submit time", at_least=0),
        scale_factor=processors,
        duration_seconds=duration,
        entity=_known(cells, "group"),
        user=_known(cells, "user"),
        status=_STATUS.get(status),
    )


def _known(cells: Cells, column: str) -> str | None:
    return None if cells[column].startswith("-") else cells[column]
