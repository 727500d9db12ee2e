"""Reads the traces of Gavel and of the schedulers built on it: tab-separated, without a header, in order of arrival.

The number of columns tells the version: 7 in Gavel's first traces (those made from Microsoft's Philly log), 10 in its
later ones, and 11 or 12 in those of Shockwave, which add a mode and, in the last version, a duration. The mode says how
a job would change its batch size by itself; here it keeps the batch size that its type names. Jobs are numbered from 0,
as Gavel numbers them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fairway.errors import InputError
from fairway.traces.rows import (
    first_line,
    named_cells,
    number_in,
    numbered_lines,
    optional,
    text_in,
    trace_of,
    whole_number_in,
)
from fairway.traces.trace import Trace, TraceJob

NAME = "gavel"

_SEVEN = ("job_type", "command", "num_steps_arg", "needs_data_dir", "total_steps", "arrival_time", "scale_factor")
_COMMON = ("job_type", "command", "working_directory", "num_steps_arg", "needs_data_dir", "total_steps", "scale_factor")
_COLUMNS: Mapping[int, Sequence[str]] = {
    7: _SEVEN,
    10: (*_COMMON, "priority_weight", "SLO", "arrival_time"),
    11: (*_COMMON, "mode", "priority_weight", "SLO", "arrival_time"),
    12: (*_COMMON, "mode", "priority_weight", "SLO", "duration", "arrival_time"),
}


def recognises(head: str) -> bool:
    """Whether the text is tab-separated; no other known format is."""
    return first_line(head).count("\t") >= 3


def read(text: str, name: str) -> Trace:
    """Read the text of a trace; `name` is the file's name in errors."""
    return trace_of(_rows(text, name), _job, name=name, format=NAME, in_order=True)


def _rows(text: str, name: str) -> Iterator[tuple[int, tuple[int, list[str], Sequence[str]]]]:
    columns: Sequence[str] | None = None
    for index, (line, row) in enumerate(numbered_lines(text)):
        cells = [cell.strip() for cell in row.split("\t")]
        if columns is None:
            columns = _COLUMNS.get(len(cells))
            if columns is None:
                raise InputError(
                    f"{name}, line {line}: {len(cells)} columns given, expected 7, 10, 11 or 12, separated by tabs; "
                    f"10 are {', '.join(_COLUMNS[10])}"
                )
        # A row of another width is a table of another version or with a column lost, not a row gone bad; only a line
        # without any tab is not of the table at all.
        if len(cells) != len(columns) and len(cells) > 1:
            raise InputError(
                f"{name}, line {line}: {len(cells)} columns given, expected {len(columns)} as in the rows above: "
                f"{', '.join(columns)}"
            )
        yield line, (index, cells, columns)


def _job(row: tuple[int, list[str], Sequence[str]]) -> TraceJob:
    index, values, columns = row
    cells = named_cells(values, columns)
    slo = number_in(cells, "SLO") if "SLO" in cells else -1.0
    return TraceJob(
        id=str(index),
        arrival=number_in(cells, "arrival_time", at_least=0),
        job_type=text_in(cells, "job_type"),
        scale_factor=whole_number_in(cells, "scale_factor"),
        total_steps=number_in(cells, "total_steps"),
        duration_seconds=number_in(cells, "duration") if optional(cells, "duration") else None,
        weight=number_in(cells, "priority_weight") if "priority_weight" in cells else 1.0,
        slo=slo if slo > 0 else None,
    )
