"""Reads any CSV of jobs, once it is told which column means what: `csv:arrival=submit_time,duration=run_time`.

A job needs an arrival (seconds, or a date and time) and a length: its duration in seconds, its start and its end, or
steps of a job type. Everything else is optional; a column that has the name of its meaning need not be named. Jobs that
ask for no GPU or never ran are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import ClassVar

from fairway.errors import InputError
from fairway.options import nearest
from fairway.traces.rows import (
    NO_GPU,
    Cells,
    csv_rows,
    first_line,
    named_cells,
    number_in,
    optional,
    split_csv,
    text_in,
    timestamp,
    trace_of,
    whole_number_in,
)
from fairway.traces.trace import LeftOutError, Trace, TraceJob

NAME = "csv"


@dataclass(frozen=True, slots=True)
class CsvColumns:
    """The column of each fact about a job.

    `gpus` is how many workers a job asks for, `type` its job type, as in the table of rates, `slo` the multiple of its
    duration within which it should finish, `team` who it belongs to, and `accelerators` the types that it may run on,
    separated by `|`.
    """

    title: ClassVar[str] = "any CSV with the columns arrival and duration, or with others that are named"

    arrival: str = "arrival"
    duration: str = "duration"
    start: str = "start"
    end: str = "end"
    steps: str = "steps"
    id: str = "id"
    gpus: str = "gpus"
    type: str = "type"
    weight: str = "weight"
    slo: str = "slo"
    team: str = "team"
    user: str = "user"
    accelerators: str = "accelerators"
    status: str = "status"

    def recognises(self, head: str) -> bool:
        """Whether the text begins with a header that names an arrival and a duration."""
        try:
            header = split_csv(first_line(head))
        except InputError:
            return False
        return self.arrival in header and self.duration in header

    def read(self, text: str, name: str) -> Trace:
        """Read the text of a trace; `name` is the file's name in errors."""
        rows = ((number, (number, line, columns)) for number, line, columns in csv_rows(text, name, (), self._check))
        return trace_of(rows, self._job, name=name, format=NAME, from_first=True)

    def _check(self, columns: Sequence[str]) -> None:
        """Refuse a column that was named and is not there, and a file that does not say when jobs come or end."""
        for field in fields(self):
            column = getattr(self, field.name)
            is_needed = field.name == "arrival" or column != field.default
            if is_needed and column not in columns:
                raise InputError(
                    f"no column '{column}' for the {field.name} of a job{nearest(column, columns)}; the file has "
                    f"{', '.join(columns)}; name one, as in --columns {field.name}={columns[0]}"
                )
        if not ({self.duration, self.steps} & set(columns) or {self.start, self.end} <= set(columns)):
            raise InputError(
                f"no column says how long a job is; name one, as in --columns duration={columns[-1]}, or the "
                "columns of its start and its end"
            )

    def _job(self, row: tuple[int, str, Sequence[str]]) -> TraceJob:
        line, text, columns = row
        cells = named_cells(split_csv(text), columns)
        gpus = whole_number_in(cells, self.gpus, at_least=0) if optional(cells, self.gpus) else 1
        if gpus == 0:
            raise LeftOutError(NO_GPU)
        types = optional(cells, self.accelerators)
        return TraceJob(
            id=optional(cells, self.id) or str(line),
            arrival=_moment(cells, self.arrival),
            job_type=optional(cells, self.type),
            scale_factor=gpus,
            total_steps=number_in(cells, self.steps) if optional(cells, self.steps) else None,
            duration_seconds=self._duration(cells),
            weight=number_in(cells, self.weight) if optional(cells, self.weight) else 1.0,
            slo=number_in(cells, self.slo) if optional(cells, self.slo) else None,
            entity=optional(cells, self.team),
            user=optional(cells, self.user),
            accelerators=None if types is None else tuple(each.strip() for each in types.split("|")),
            status=optional(cells, self.status),
        )

    def _duration(self, cells: Cells) -> float | None:
        if self.duration in cells:
            if optional(cells, self.duration) is None and optional(cells, self.steps) is None:
                raise LeftOutError("never ran, or has not ended")
            seconds = number_in(cells, self.duration, at_least=0) if optional(cells, self.duration) else None
        elif self.start in cells and self.end in cells:
            if not (optional(cells, self.start) and optional(cells, self.end)):
                raise LeftOutError("never ran, or has not ended")
            seconds = _moment(cells, self.end) - _moment(cells, self.start)
            if seconds < 0:
                raise InputError("ends before it starts")
        else:
            return None
        if seconds == 0:
            raise LeftOutError("ran for 0 seconds")
        return seconds


def _moment(cells: Cells, column: str) -> float:
    """Seconds, whether they were written as a number or as a date and time."""
    text = text_in(cells, column)
    try:
        float(text)
    except ValueError:
        return timestamp(text, column)
    return number_in(cells, column)
