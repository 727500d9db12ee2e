"""The results of a sweep in one parquet file, which grows row by row: interrupted, it is continued where it was.

Rows are in the order of the sweep's points, whatever order they came in, so that a file that was made in one go, in
two, or on other numbers of processes has the same bytes. It is written at most once a second, and is always whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fairway.errors import InputError
from fairway.experiments.rows import Row
from fairway.experiments.sweep import Point, Sweep
from fairway.report.tables import polars_frame, polars_module, write_parquet
from fairway.sim.comparison import Watcher, compare

_SECONDS_BETWEEN_WRITES = 1.0


class Results:
    """The rows of a sweep, those that a file has and those that come."""

    def __init__(self, sweep: Sweep, path: Path) -> None:
        self.path = path
        self.points = sweep.points
        self._rows: dict[int, Row] = {}
        self._due = 0.0
        polars_module()
        if path.exists():
            self._take_in(read_rows(path))
        self.begun = len(self._rows)

    def _take_in(self, rows: Sequence[Row]) -> None:
        positions = {_text(point.key): position for position, point in enumerate(self.points)}
        keys = list(self.points[0].key)
        for row in rows:
            position = positions.get(_text({name: row.get(name) for name in keys}))
            if position is None:
                what = ", ".join(f"{name} {row.get(name)}" for name in keys)
                raise InputError(
                    f"{self.path}: has a row that is not of this sweep ({what}); name another file, or remove this one"
                )
            self._rows[position] = row

    @property
    def missing(self) -> list[int]:
        """The points without a row."""
        return [position for position in range(len(self.points)) if position not in self._rows]

    @property
    def rows(self) -> list[Row]:
        """The rows that there are, in the order of the points."""
        return [self._rows[position] for position in sorted(self._rows)]

    def add(self, position: int, row: Row) -> None:
        """A run is over."""
        self._rows[position] = row
        if time.monotonic() >= self._due:
            self.save()
            self._due = time.monotonic() + _SECONDS_BETWEEN_WRITES

    def save(self) -> None:
        """Write all rows."""
        if self._rows:
            rows = self.rows
            write_parquet(polars_frame({name: [row.get(name) for row in rows] for name in rows[0]}), self.path)


class _Keeper(Watcher):
    def __init__(self, results: Results, positions: Sequence[int], told: Callable[[int], None] | None) -> None:
        self._results, self._positions, self._told = results, positions, told

    def ended(self, run: int, record: Any) -> None:
        """Keep the row."""
        self._results.add(self._positions[run], record)
        if self._told is not None:
            self._told(self._positions[run])


def sweep(
    given: Sweep | Mapping[str, Any],
    to: str | Path,
    *,
    processes: int | None = None,
    told: Callable[[int], None] | None = None,
) -> Any:
    """Do all runs that the file lacks, keep each as it ends, and give all rows as a data frame of polars.

    `told` is called with the position of each point that is done. The same call goes on after an interruption.
    """
    results = Results(given if isinstance(given, Sweep) else Sweep(**given), Path(to))
    complete(results, processes=processes, told=told)
    return polars_frame({name: [row.get(name) for row in results.rows] for name in results.rows[0]})


def complete(results: Results, *, processes: int | None = None, told: Callable[[int], None] | None = None) -> None:
    """Do all runs that are missing; whatever ends it, what is done is kept."""
    missing = results.missing
    runs: list[Point] = [results.points[position] for position in missing]
    try:
        if runs:
            compare(runs, processes=processes, watcher=_Keeper(results, missing, told))
    finally:
        results.save()


def read_rows(path: Path) -> list[Row]:
    """The rows of a file of results."""
    polars = polars_module()
    try:
        rows: list[Row] = polars.read_parquet(path).to_dicts()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {_reason(error)}; name a file of fairway sweep") from None
    except polars.exceptions.PolarsError:
        raise InputError(f"{path}: not a parquet file; name one that fairway sweep has written") from None
    if not rows or not {"rate", "seed"} <= rows[0].keys():
        raise InputError(f"{path}: not the results of a sweep; name a file that fairway sweep has written")
    return rows


def _reason(error: OSError) -> str:
    """What the system says; polars makes errors that have it in their text only, with the number and the file."""
    return error.strerror or str(error).split(" (os error", 1)[0]


def _text(key: Mapping[str, Any]) -> str:
    return "\0".join(f"{name}={value}" for name, value in key.items())
