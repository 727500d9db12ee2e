"""Reads traces of inference requests: when each arrived, which model or workflow it asked for, and how long it ran.

Two forms are known by their header: Alibaba's image-generation requests of 2024 (github.com/alibaba/clusterdata,
cluster-trace-v2026-GenAI, `lora_request_trace.csv`), where each request names one checkpoint; and plain CSV with the
columns `arrival_seconds`, `workflow` and, if wanted, `seconds`. Rows that name no model, or that never ran, are left
out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fairway.errors import InputError
from fairway.traces.rows import (
    Cells,
    csv_rows,
    has_header,
    named_cells,
    number_in,
    optional,
    split_csv,
    text_in,
    timestamp,
)
from fairway.traces.text import read_text
from fairway.traces.trace import LeftOutError, SkippedRow, skipped_words

_GENAI = ("gmt_create", "exec_time_seconds", "checkpoint_model_version_id")
_PLAIN = ("arrival_seconds", "workflow")

Row = tuple[float, str, float]


@dataclass(frozen=True, eq=False)
class RequestTrace:
    """Requests in order of arrival: seconds since the first, what each asks for, its run time (NaN: not known)."""

    arrival: npt.NDArray[np.float64]
    asks_for: tuple[str, ...]
    seconds: npt.NDArray[np.float64]
    source: str
    skipped: tuple[SkippedRow, ...] = ()

    def __len__(self) -> int:
        return len(self.asks_for)

    @property
    def names(self) -> tuple[str, ...]:
        """What is asked for, each once, in order of first appearance."""
        return tuple(dict.fromkeys(self.asks_for))

    @property
    def unreadable(self) -> int:
        """How many rows could not be read."""
        return sum(not row.on_purpose for row in self.skipped)

    def summary(self) -> str:
        """What was read, in a line."""
        text = f"{self.source}: {len(self)} requests for {len(self.names)} models or workflows"
        return text + skipped_words(self.skipped)


def read_requests(path: Path | str) -> RequestTrace:
    """Read a trace of requests from a file."""
    return parse_requests(read_text(path), str(path))


def parse_requests(text: str, name: str) -> RequestTrace:
    """Read the text of a trace; `name` is the file's name in errors."""
    if not text.strip():
        raise InputError(f"{name}: empty, expected a trace of requests")
    if has_header(text[:65536], _GENAI):
        return _read(text, name, _GENAI, _generated)
    if has_header(text[:65536], _PLAIN):
        return _read(text, name, _PLAIN, _plain)
    raise InputError(
        f"{name}: not a trace of requests; expected CSV with the columns {', '.join(_PLAIN)} (and seconds), "
        f"or with {', '.join(_GENAI)}"
    )


def _read(text: str, name: str, needed: tuple[str, ...], row_of: Callable[[Cells], Row]) -> RequestTrace:
    rows: list[Row] = []
    skipped: list[SkippedRow] = []
    for number, line, columns in csv_rows(text, name, needed):
        try:
            rows.append(row_of(named_cells(split_csv(line), columns)))
        except InputError as error:
            skipped.append(SkippedRow.because(number, error))
    if not rows:
        why = f"; the first row: {skipped[0].reason}" if skipped else ""
        raise InputError(f"{name}: no request that can be used{why}")
    rows.sort(key=lambda row: row[0])
    arrival = np.array([row[0] for row in rows])
    return RequestTrace(
        arrival - arrival[0], tuple(row[1] for row in rows), np.array([row[2] for row in rows]), name, tuple(skipped)
    )


def _generated(cells: Cells) -> Row:
    seconds = number_in(cells, "exec_time_seconds", at_least=0)
    if seconds == 0:
        raise LeftOutError("ran for 0 seconds")
    arrival = timestamp(text_in(cells, "gmt_create"), "gmt_create")
    return arrival, text_in(cells, "checkpoint_model_version_id"), seconds


def _plain(cells: Cells) -> Row:
    given = optional(cells, "seconds")
    seconds = float("nan") if given is None else number_in(cells, "seconds", at_least=0)
    return number_in(cells, "arrival_seconds", at_least=0), text_in(cells, "workflow"), seconds
