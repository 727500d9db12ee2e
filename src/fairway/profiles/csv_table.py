"""Reads and writes throughput tables as plain CSV.

    # measured on our cluster, March 2026
    job_type,scale_factor,accelerator,steps_per_second,spread_steps_per_second,partner,partner_steps_per_second
    resnet,1,v100,32.4,,,
    resnet,2,v100,100.1,35.3,,
    lm,1,v100,109.2,,,
    resnet,1,v100,20.5,,lm,61.0

The first four columns are needed, in any order; the other three may be left out. A row without a partner is the rate of
a gang that has its workers to itself. A row with a partner is a pair of the same scale factor: both rates hold while
the two share the workers. Rows may stand in any order. Comment lines above the header are the source of the table.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

from fairway.errors import InputError
from fairway.profiles.tables import IsolatedRate, PairRate, ThroughputTable

_NEEDED = ("job_type", "scale_factor", "accelerator", "steps_per_second")
_COLUMNS = (*_NEEDED, "spread_steps_per_second", "partner", "partner_steps_per_second")


def parse_csv(text: str, name: str) -> ThroughputTable:
    """Read the text of a CSV file; `name` is the file's name in errors, and the source if no comment gives it."""
    lines = io.StringIO(text, newline="").readlines()
    comments = list(takewhile(lambda line: line.startswith("#") or not line.strip(), lines))
    source = " ".join(" ".join(line.removeprefix("#") for line in comments).split())
    records = _records(lines[len(comments) :], len(comments), name)
    header_line, columns = next(records, (len(lines), []))
    _check_header(columns, f"{name}, line {header_line}")

    isolated: list[IsolatedRate] = []
    shared: list[PairRate] = []
    for line, cells in records:
        where = f"{name}, line {line}"
        if len(cells) != len(columns):
            raise InputError(f"{where}: {len(cells)} cells given, expected {len(columns)} as in the header")
        row = _row(dict(zip(columns, cells, strict=True)), where)
        if isinstance(row, PairRate):
            shared.append(row)
        else:
            isolated.append(row)
    if not isolated:
        raise InputError(f"{name}: no rates given, expected at least one row without a partner below the header")
    return ThroughputTable(tuple(isolated), tuple(shared), source=source or name)


def format_csv(table: ThroughputTable) -> str:
    """The table as CSV that `parse_csv` reads back without any loss."""
    out = io.StringIO(newline="")
    out.write(f"# {' '.join(table.source.split())}\n")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for row in table.isolated:
        spread = "" if row.spread_steps_per_second is None else row.spread_steps_per_second
        writer.writerow((row.job_type, row.scale_factor, row.accelerator, row.steps_per_second, spread, "", ""))
    for pair in table.shared:
        alone = (pair.job_type, pair.scale_factor, pair.accelerator, pair.steps_per_second, "")
        writer.writerow((*alone, pair.partner, pair.partner_steps_per_second))
    return out.getvalue()


def write_csv(table: ThroughputTable, path: Path | str) -> None:
    """Write the table to a CSV file."""
    Path(path).write_text(format_csv(table), encoding="utf-8", newline="")


def _records(lines: list[str], skipped: int, name: str) -> Iterator[tuple[int, list[str]]]:
    """The records that are not blank, each with its line number in the file and without the spaces around its cells."""
    reader = csv.reader(lines, skipinitialspace=True, strict=True)
    try:
        for record in reader:
            cells = [cell.strip() for cell in record]
            if any(cells):
                yield skipped + reader.line_num, cells
    except csv.Error as error:
        raise InputError(f"{name}, line {skipped + reader.line_num}: not valid CSV: {error}") from None


def _check_header(columns: list[str], where: str) -> None:
    for column in columns:
        if column not in _COLUMNS:
            raise InputError(f"{where}: column {column!r} given, expected one of {', '.join(_COLUMNS)}")
        if columns.count(column) > 1:
            raise InputError(f"{where}: column {column!r} given twice; keep one")
    missing = [column for column in _NEEDED if column not in columns]
    if missing:
        raise InputError(f"{where}: no column {', '.join(missing)} in the header; it needs {', '.join(_NEEDED)}")


def _row(cells: dict[str, str], where: str) -> IsolatedRate | PairRate:
    job_type, accelerator = cells["job_type"], cells["accelerator"]
    scale_factor = _whole_number(cells, "scale_factor", where)
    rate = _number(cells, "steps_per_second", where)
    spread, partner, partner_rate = (cells.get(column, "") for column in _COLUMNS[4:])
    if not partner and not partner_rate:
        spread_rate = _number(cells, "spread_steps_per_second", where) if spread else None
        return IsolatedRate(job_type, scale_factor, accelerator, rate, spread_rate, origin=where)
    if spread:
        raise InputError(
            f"{where}: spread_steps_per_second: {spread!r} given for a pair, expected none, since only "
            "consolidated gangs share"
        )
    if not partner_rate:
        raise InputError(f"{where}: partner {partner!r} given without partner_steps_per_second; give both or neither")
    partner_number = _number(cells, "partner_steps_per_second", where)
    return PairRate(job_type, partner, scale_factor, accelerator, rate, partner_number, origin=where)


def _number(cells: dict[str, str], column: str, where: str) -> float:
    try:
        return float(cells[column])
    except ValueError:
        raise InputError(f"{where}: {column}: {cells[column]!r} given, expected steps per second") from None


def _whole_number(cells: dict[str, str], column: str, where: str) -> int:
    try:
        return int(cells[column])
    except ValueError:
        raise InputError(f"{where}: {column}: {cells[column]!r} given, expected a whole number") from None
