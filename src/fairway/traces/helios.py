"""Reads the job logs of SenseTime's Helios clusters (github.com/S-Lab-System-Group/HeliosData, `cluster_log.csv`).

A job's virtual cluster is its entity. Its length is `duration`, the seconds that it ran. Jobs without a GPU, and those
that never ran, are skipped.
"""

from __future__ import annotations

from fairway.traces.rows import (
    NO_GPU,
    Cells,
    csv_trace,
    has_header,
    number_in,
    optional,
    text_in,
    timestamp,
    whole_number_in,
)
from fairway.traces.trace import LeftOutError, Trace, TraceJob

NAME = "helios"

_COLUMNS = ("job_id", "user", "vc", "gpu_num", "state", "submit_time", "duration")


def recognises(head: str) -> bool:
    """Whether the text begins with the header of such a log."""
    return has_header(head, _COLUMNS)


def read(text: str, name: str) -> Trace:
    """Read the text of a log; `name` is the file's name in errors."""
    return csv_trace(text, name, NAME, _COLUMNS, _job)


def _job(cells: Cells) -> TraceJob:
    gpus = whole_number_in(cells, "gpu_num", at_least=0)
    if gpus == 0:
        raise LeftOutError(NO_GPU)
    duration = number_in(cells, "duration", at_least=0)
    if duration == 0:
        raise LeftOutError("ran for 0 seconds")
    return TraceJob(
        id=text_in(cells, "job_id"),
        arrival=timestamp(text_in(cells, "submit_time"), "submit_time"),
        scale_factor=gpus,
        duration_seconds=duration,
        entity=optional(cells, "vc"),
        user=optional(cells, "user"),
        status=optional(cells, "state"),
    )
