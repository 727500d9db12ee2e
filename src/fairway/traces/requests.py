"""Reads traces of inference requests: when each arrived, which model or workflow it asked for, and how long it ran.

Two forms are known by their header: Alibaba's image-generation requests of 2024 (github.com/alibaba/clusterdata,
cluster-trace-v2026-GenAI, `lora_request_trace.csv`), where each request names one checkpoint; and plain CSV with the
columns `arrival_seconds`, `workflow` and, if wanted, `seconds`. Of any other CSV, the columns can be named
(`request_csv`). Rows that name no model, or that never ran, are left out.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fairway.errors import InputError
from fairway.traces.request_csv import RequestCsv
from fairway.traces.request_trace import RequestTrace
from fairway.traces.rows import (
    Cells,
    csv_rows,
    first_line,
    has_header,
    named_cells,
    number_in,
    split_csv,
    text_in,
    timestamp,
)
from fairway.traces.text import read_text
from fairway.traces.trace import LeftOutError, SkippedRow

_GENAI = ("gmt_create", "exec_time_seconds", "checkpoint_model_version_id")
_PLAIN = "arrival_seconds"

__all__ = ["RequestTrace", "parse_requests", "read_requests"]


def read_requests(path: Path | str, columns: str | None = None) -> RequestTrace:
    """Read a trace of requests from a file; `columns` says which column of a CSV means what."""
    return parse_requests(read_text(path), str(path), columns)


def parse_requests(text: str, name: str, columns: str | None = None) -> RequestTrace:
    """Read the text of a trace; `name` is the file's name in errors."""
    if not text.strip():
        raise InputError(f"{name}: empty, expected a trace of requests")
    if columns is not None:
        return RequestCsv.named(columns).read(text, name)
    if has_header(text[:65536], _GENAI):
        return _generated(text, name)
    try:
        header = split_csv(first_line(text))
    except InputError:
        header = []
    form = RequestCsv(arrival=_PLAIN) if _PLAIN in header else RequestCsv()
    if form.recognises(header):
        return form.read(text, name)
    raise InputError(
        f"{name}: not a trace of requests; expected CSV with the columns {_PLAIN} and workflow (and seconds), or with "
        f"{', '.join(_GENAI)}; or name its columns, as in --columns arrival=TIMESTAMP,workflow=NAME"
    )


def _generated(text: str, name: str) -> RequestTrace:
    """Image-generation requests, which are in no order."""
    rows: list[tuple[float, str, float]] = []
    skipped: list[SkippedRow] = []
    for number, line, columns in csv_rows(text, name, _GENAI):
        try:
            rows.append(_generated_row(named_cells(split_csv(line), columns)))
        except InputError as error:
            skipped.append(SkippedRow.because(number, error))
    rows.sort(key=lambda row: row[0])
    arrival, seconds = (np.array([row[which] for row in rows], dtype=float) for which in (0, 2))
    return RequestTrace.of(arrival, [row[1] for row in rows], seconds, name, skipped)


def _generated_row(cells: Cells) -> tuple[float, str, float]:
    seconds = number_in(cells, "exec_time_seconds", at_least=0)
    if seconds == 0:
        raise LeftOutError("ran for 0 seconds")
    arrival = timestamp(text_in(cells, "gmt_create"), "gmt_create")
    return arrival, text_in(cells, "checkpoint_model_version_id"), seconds
