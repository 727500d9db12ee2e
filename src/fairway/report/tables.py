"""Rows for other tools: a table of named columns as CSV, as parquet, and as a data frame of polars or pandas.

CSV needs nothing beside Python. Parquet and data frames need polars (or pandas, for its own), which comes with
the extra `tables`. What is not known is empty, and null in a frame. The same columns give the same bytes.
"""

from __future__ import annotations

import csv
import io
import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairway.errors import InputError
from fairway.extras import missing
from fairway.report.whole_file import write_whole

if TYPE_CHECKING:
    import polars

Columns = Mapping[str, Sequence[Any]]
"""Values by column, all columns of the same length."""

SUFFIXES = (".csv", ".parquet")


class Tabular:
    """What can be shown as a table; `table` has its columns."""

    @abstractmethod
    def table(self) -> Columns:
        """The columns by name."""

    def to_polars(self) -> polars.DataFrame:
        """The rows as a data frame of polars."""
        return polars_frame(self.table())

    def to_pandas(self) -> Any:
        """The rows as a data frame of pandas."""
        try:
            import pandas  # noqa: PLC0415 - not needed by anything else, and heavy
        except ImportError:
            raise InputError("pandas is not installed, which to_pandas needs; pip install pandas") from None
        return pandas.DataFrame({name: list(values) for name, values in self.table().items()})

    def to_csv(self) -> str:
        """The rows as CSV with a header."""
        return csv_text(self.table())


def polars_frame(columns: Columns) -> polars.DataFrame:
    """A data frame of polars; NaN becomes null."""
    plain = {name: [_known(value) for value in values] for name, values in columns.items()}
    frame: polars.DataFrame = polars_module().DataFrame(plain, strict=False, infer_schema_length=None)
    return frame


def polars_module() -> Any:
    """The library, or one line that says how to get it."""
    try:
        import polars  # noqa: PLC0415 - an extra, and heavy
    except ModuleNotFoundError as error:
        raise InputError(missing(error) or str(error)) from None
    return polars


def csv_text(columns: Columns) -> str:
    """The rows as CSV with a header; numbers are written so that they can be read back without loss."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow(["" if (known := _known(value)) is None else known for value in row])
    return text.getvalue()


def stacked(tables: Iterable[tuple[Mapping[str, Any], Columns]]) -> dict[str, list[Any]]:
    """Several tables under each other, each with facts on all of its rows; a column that one lacks is empty."""
    together: dict[str, list[Any]] = {}
    length = 0
    for facts, columns in tables:
        rows = len(next(iter(columns.values()), ()))
        for name, values in {**{name: [value] * rows for name, value in facts.items()}, **columns}.items():
            together.setdefault(name, [None] * length).extend(values)
        length += rows
        for values in together.values():
            values.extend([None] * (length - len(values)))
    return together


def check_table_file(option: str, target: str) -> None:
    """Refuse a name that does not say which of the two forms is wanted, or a form that cannot be written here."""
    suffix = Path(target).suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"{option}: '{target}' given, expected the name of a .csv or .parquet file")
    if suffix == ".parquet":
        polars_module()


def write_table(columns: Columns, target: str) -> None:
    """Write the rows to a file, as its name says."""
    if Path(target).suffix.lower() == ".csv":
        write_whole(target, csv_text(columns))
    else:
        write_parquet(polars_frame(columns), Path(target))


def write_parquet(frame: polars.DataFrame, path: Path) -> None:
    """Write a frame to a file that is there whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    try:
        frame.write_parquet(part)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InputError(f"{path}: cannot be written: {error.strerror or error}; name a file that can") from None


def _known(value: Any) -> Any:
    """The value as Python's own, None for NaN."""
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and math.isnan(value) else value
