"""Reads any CSV of requests, once it is told which column means what: `arrival=TIMESTAMP,workflow=func`.

A row is a request, with the moment at which it arrived (seconds, or a date and time) or, where only its end is known,
its end and its run time; or, with a column of counts, a row is a window of time and says how many requests came in it.
Requests of a window are spread over it at random, by the seed of a run, or evenly. A column that has the name of its
meaning need not be named. Times have to rise: a file in which they go back is of several parts, or out of order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np

from fairway import quantities
from fairway.errors import InputError
from fairway.options import chosen_options, nearest
from fairway.traces.request_trace import RequestTrace
from fairway.traces.rows import (
    Cells,
    csv_rows,
    named_cells,
    number_in,
    optional,
    split_csv,
    text_in,
    timestamp,
    whole_number_in,
)
from fairway.traces.trace import LeftOutError, SkippedRow

_MOST_REQUESTS = 5_000_000
_NOT_COLUMNS = frozenset({"only", "every", "even"})


@dataclass(frozen=True, slots=True)
class RequestCsv:
    """The column of each fact about a request.

    `workflow` is what it asks for, `seconds` how long it ran, `end` when it was done, `count` how many requests a
    window has. `only` keeps the rows that have a value in a column, as in `window:bursty`. `every` is the length of a
    window, where the times of the rows do not say it. With `even`, the requests of a window come at equal distances.
    """

    arrival: str = "arrival"
    workflow: str = "workflow"
    seconds: str = "seconds"
    end: str = "end"
    count: str = "count"
    only: str = ""
    every: str = ""
    even: bool = False

    @classmethod
    def named(cls, text: str) -> RequestCsv:
        """The columns as an option names them."""
        try:
            columns = cls(**chosen_options("trace", "csv", cls, text))
            if columns.every:
                quantities.seconds_of(columns.every)
        except InputError as error:
            raise InputError(f"--columns: {error}") from None
        if columns.only and ":" not in columns.only:
            raise InputError(f"--columns: 'only={columns.only}' given, expected a column and its value, as in only=a:b")
        return columns

    def recognises(self, header: Sequence[str]) -> bool:
        """Whether a file with these columns can be read."""
        return self.arrival in header or self.count in header or {self.end, self.seconds} <= set(header)

    def read(self, text: str, name: str) -> RequestTrace:
        """Read the text of a trace; `name` is the file's name in errors."""
        rows: list[tuple[int, Cells]] = []
        skipped: list[SkippedRow] = []
        columns: Sequence[str] = ()
        for number, line, header in csv_rows(text, name, (), self._check):
            columns = header
            try:
                cells = named_cells(split_csv(line), header)
            except InputError as error:
                skipped.append(SkippedRow.because(number, error))
                continue
            if self._is_meant(cells):
                rows.append((number, cells))
        if self.only and not rows:
            raise InputError(f"{name}: no row with --columns only={self.only}")
        if self.count in columns:
            return self._windows(rows, skipped, name)
        return self._requests(rows, skipped, name, by_end=self.arrival not in columns)

    def _check(self, columns: Sequence[str]) -> None:
        """Refuse a column that was named and is not there, and a file that does not say when requests come."""
        only = self.only.partition(":")[0]
        asked = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in _NOT_COLUMNS}
        named = {meaning: column for meaning, column in asked.items() if column != _DEFAULTS[meaning]}
        for meaning, column in {**named, **({"only": only} if only else {})}.items():
            if column not in columns:
                raise InputError(
                    f"no column '{column}' for the {meaning} of a request{nearest(column, columns)}; the file has "
                    f"{', '.join(columns)}"
                )
        if not self.recognises(columns):
            raise InputError(
                f"no column says when requests come; the file has {', '.join(columns)}; name one, as in "
                f"--columns arrival={columns[0]}, or the columns of their end and seconds, or a count for each window"
            )

    def _is_meant(self, cells: Cells) -> bool:
        column, _, value = self.only.partition(":")
        return not self.only or cells[column] == value

    def _requests(
        self, rows: Iterable[tuple[int, Cells]], skipped: list[SkippedRow], name: str, *, by_end: bool
    ) -> RequestTrace:
        """One row for each request."""
        found: list[tuple[float, str, float]] = []
        latest = -np.inf
        for line, cells in rows:
            try:
                seconds = number_in(cells, self.seconds, at_least=0) if optional(cells, self.seconds) else np.nan
                moment = _moment(cells, self.end if by_end else self.arrival)
                asks_for = text_in(cells, self.workflow) if self.workflow in cells else ""
                if by_end and np.isnan(seconds):
                    raise LeftOutError("never ran, or has not ended")
            except InputError as error:
                skipped.append(SkippedRow.because(line, error))
                continue
            if not by_end:  # what ends in order need not have begun in order
                _refuse_past(name, line, latest, moment)
            latest = moment
            found.append((moment - seconds if by_end else moment, asks_for, seconds))
        found.sort(key=lambda row: row[0])
        return RequestTrace.of(
            np.array([row[0] for row in found]),
            [row[1] for row in found],
            np.array([row[2] for row in found]),
            name,
            skipped,
        )

    def _windows(self, rows: Iterable[tuple[int, Cells]], skipped: list[SkippedRow], name: str) -> RequestTrace:
        """One row for each window of time, and for each workflow in it where they are apart."""
        starts: list[float] = []
        counts: list[int] = []
        asked: list[str] = []
        every = quantities.seconds_of(self.every) if self.every else None
        latest = -np.inf
        for line, cells in rows:
            try:
                count = whole_number_in(cells, self.count, at_least=0)
                timed = self.arrival in cells
                if not timed and every is None:
                    raise InputError("nothing says how long a window is")
                start = _moment(cells, self.arrival) if timed else len(starts) * (every or 0.0)
                asks_for = text_in(cells, self.workflow) if self.workflow in cells else ""
            except InputError as error:
                skipped.append(SkippedRow.because(line, error))
                continue
            _refuse_past(name, line, latest, start)
            latest = start
            starts.append(start)
            counts.append(count)
            asked.append(asks_for)
        if sum(counts) > _MOST_REQUESTS:
            raise InputError(
                f"{name}: {sum(counts)} requests, expected at most {_MOST_REQUESTS}; keep some of the rows"
            )
        if not starts:
            return RequestTrace.of(np.empty(0), [], np.empty(0), name, skipped)
        begins, number = np.array(starts), np.array(counts)
        length = np.full(len(begins), every) if every is not None else _lengths(begins, name)
        within = np.repeat(length, number)
        arrival = np.repeat(begins, number)
        if self.even:
            first = np.repeat(np.cumsum(number) - number, number)
            arrival = arrival + within * (np.arange(number.sum()) - first) / np.repeat(number, number)
            within = np.zeros(len(arrival))
        order = np.argsort(arrival, kind="stable")
        row = np.repeat(np.arange(len(begins)), number)[order]
        asked_for = [asked[each] for each in row] if any(asked) else []
        unknown = np.full(len(arrival), np.nan)
        return RequestTrace.of(arrival[order], asked_for, unknown, name, skipped, within[order], begin=starts[0])


_DEFAULTS = {field.name: field.default for field in fields(RequestCsv)}


def _moment(cells: Cells, column: str) -> float:
    """Seconds, whether they were written as a number or as a date and time."""
    text = text_in(cells, column)
    try:
        float(text)
    except ValueError:
        return timestamp(text, column)
    return number_in(cells, column, at_least=0)


def _refuse_past(name: str, line: int, latest: float, moment: float) -> None:
    if moment < latest:
        raise InputError(
            f"{name}, line {line}: the time goes back from {latest:g} to {moment:g} s; sort the rows by time, or keep "
            "one part of the file, as in --columns only=COLUMN:VALUE"
        )


def _lengths(start: np.ndarray, name: str) -> np.ndarray:
    """Each window lasts until the next one begins, the last as long as the one before it."""
    moments = np.unique(start)
    if len(moments) < 2:
        raise InputError(f"{name}: one window, whose length nothing says; add it, as in --columns every=60s")
    gaps = np.append(np.diff(moments), moments[-1] - moments[-2])
    return gaps[np.searchsorted(moments, start)]
