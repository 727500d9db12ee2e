"""The steps that the readers of traces share: rows with their line numbers, cells as values, jobs out of rows.

A reader gives its rows and a function that makes a job of one row. A row on which that function raises an `InputError`
is skipped for that reason, on purpose if it is a `LeftOutError`; an error about the whole file is raised by the rows
themselves and ends the reading.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeVar

from fairway.errors import InputError
from fairway.traces.trace import SkippedRow, Trace, TraceJob

Row = TypeVar("Row")
Cells = Mapping[str, str]

NO_GPU = "asks for no GPU"
_MISSING = frozenset({"", "none", "null", "nan", "na", "n/a", "\\n"})
_LONGEST_SHOWN = 60


def trace_of(
    rows: Iterable[tuple[int, Row]],
    job_of: Callable[[Row], TraceJob],
    *,
    name: str,
    format: str,  # noqa: A002
    in_order: bool = False,
    from_first: bool = False,
) -> Trace:
    """Make a trace of rows with their line numbers.

    Jobs are sorted by arrival, unless the file must have them `in_order` already; then a time that goes back is an
    error. With `from_first`, arrivals count from the first one.
    """
    jobs: dict[str, TraceJob] = {}
    skipped: list[SkippedRow] = []
    latest = 0.0
    for line, row in rows:
        try:
            job = job_of(row)
            if job.id in jobs:
                raise InputError(f"a second job '{shown(job.id)}'")
        except InputError as error:
            skipped.append(SkippedRow.because(line, error))
            continue
        if in_order and job.arrival < latest:
            raise InputError(
                f"{name}, line {line}: arrival time goes back from {latest} to {job.arrival} s; "
                "sort the rows by arrival time"
            )
        latest = job.arrival
        jobs[job.id] = job
    arrived = sorted(jobs.values(), key=lambda job: job.arrival)
    if from_first and arrived and arrived[0].arrival:
        first = arrived[0].arrival
        arrived = [replace(job, arrival=job.arrival - first) for job in arrived]
    return Trace(tuple(arrived), format, name, tuple(skipped))


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, with their numbers counted from 1."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line and not line.isspace():
            yield number, line.rstrip("\r")


def first_line(text: str) -> str:
    """The first line that is not blank, or nothing."""
    return next((line for _, line in numbered_lines(text)), "")


def split_csv(line: str) -> list[str]:
    """The cells of one line of CSV; each line stands for itself, so that a stray quote cannot swallow the next rows."""
    if '"' not in line:
        return [cell.strip() for cell in line.split(",")]
    try:
        return [cell.strip() for cell in next(csv.reader([line], skipinitialspace=True, strict=True))]
    except csv.Error as error:
        raise InputError(f"not valid CSV: {error}") from None


def csv_rows(
    text: str, name: str, needed: Sequence[str], check: Callable[[Sequence[str]], None] = lambda _: None
) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """The lines below a header that has the needed columns, each with its number and the columns of the header.

    `check` may refuse the columns for other reasons.
    """
    lines = numbered_lines(text)
    number, header = next(lines, (1, ""))
    try:
        columns = tuple(split_csv(header))
        check(columns)
    except InputError as error:
        raise InputError(f"{name}, line {number}: header: {error}") from None
    missing = [column for column in needed if column not in columns]
    if missing:
        raise InputError(
            f"{name}, line {number}: no column {', '.join(missing)} in the header; it needs {', '.join(needed)}"
        )
    for number, line in lines:
        yield number, line, columns


def csv_trace(
    text: str,
    name: str,
    format: str,  # noqa: A002
    needed: Sequence[str],
    job_of: Callable[[Cells], TraceJob],
    *,
    in_order: bool = False,
    from_first: bool = True,
) -> Trace:
    """Make a trace of CSV with a header; `job_of` gets the cells of a row by column."""
    rows = ((number, (line, columns)) for number, line, columns in csv_rows(text, name, needed))
    return trace_of(
        rows,
        lambda row: job_of(named_cells(split_csv(row[0]), row[1])),
        name=name,
        format=format,
        in_order=in_order,
        from_first=from_first,
    )


def has_header(head: str, columns: Sequence[str]) -> bool:
    """Whether the first line is CSV with most of these columns: a file that lacks one is still of that format."""
    given = set(first_line(head).replace('"', "").replace(" ", "").split(","))
    return sum(column in given for column in columns) * 2 > len(columns)


def named_cells(cells: Sequence[str], columns: Sequence[str]) -> dict[str, str]:
    """The cells of a row by column."""
    if len(cells) != len(columns):
        raise InputError(f"{len(cells)} columns given, expected {len(columns)}")
    return dict(zip(columns, cells, strict=True))


def optional(cells: Cells, column: str) -> str | None:
    """The text in a cell, or None where there is none or only a word for nothing."""
    value = cells.get(column, "")
    return None if value.lower() in _MISSING else value


def text_in(cells: Cells, column: str) -> str:
    """The text in a cell that needs one."""
    value = optional(cells, column)
    if value is None:
        raise InputError(f"{column}: nothing given")
    return value


def number_in(cells: Cells, column: str, at_least: float = -math.inf) -> float:
    """The number in a cell."""
    value = text_in(cells, column)
    try:
        number = float(value)
    except ValueError:
        raise InputError(f"{column}: '{shown(value)}' given, expected a number") from None
    if not (math.isfinite(number) and number >= at_least):
        bound = "" if at_least == -math.inf else f" of at least {at_least:g}"
        raise InputError(f"{column}: '{shown(value)}' given, expected a number{bound}")
    return number


def whole_number_in(cells: Cells, column: str, at_least: int = 1) -> int:
    """The whole number in a cell; `2.0` will do."""
    number = number_in(cells, column, at_least)
    if not number.is_integer():
        raise InputError(f"{column}: '{shown(cells[column])}' given, expected a whole number")
    return int(number)


def timestamp(value: str, column: str) -> float:
    """Seconds since 1970 of a date and time such as `2020-04-01 00:00:13`, in UTC unless it says otherwise."""
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise InputError(f"{column}: '{shown(value)}' given, expected a time as in 2020-04-01 00:00:13") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def shown(value: str) -> str:
    """The value as far as it fits into an error."""
    return value if len(value) <= _LONGEST_SHOWN else f"{value[: _LONGEST_SHOWN - 1]}…"
