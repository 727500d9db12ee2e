"""Reads the task table of Alibaba's PAI trace of 2020 (github.com/alibaba/clusterdata, cluster-trace-gpu-v2020).

The file comes without a header, which is in another file; with it put on top it reads the same. A task is a gang of
`inst_num` instances, each of which asks for `plan_gpu` percent of a GPU: 50 is half of one, 200 two. The table has no
time of submission, so that a task arrives when it started. It may run on the GPU type that it ran on, since its length
is known for that one only. Tasks without a GPU, and those without an end, are skipped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from fairway.errors import InputError
from fairway.traces.rows import (
    NO_GPU,
    Cells,
    csv_trace,
    first_line,
    has_header,
    named_cells,
    number_in,
    numbered_lines,
    optional,
    split_csv,
    text_in,
    trace_of,
    whole_number_in,
)
from fairway.traces.trace import LeftOutError, Trace, TraceJob

NAME = "pai"

_COLUMNS = (
    "job_name",
    "task_name",
    "inst_num",
    "status",
    "start_time",
    "end_time",
    "plan_cpu",
    "plan_mem",
    "plan_gpu",
    "gpu_type",
)
_NEEDED = tuple(column for column in _COLUMNS if column not in {"plan_cpu", "plan_mem"})
_NUMBERS = (2, 4, 5, 6, 7, 8)
_STATUSES = frozenset({"Terminated", "Failed", "Running", "Waiting", "Ready", "Interrupted", "Cancelled"})


def recognises(head: str) -> bool:
    """Whether the text begins with the header of the task table, or with a row that can only be one of its rows."""
    return has_header(head, _NEEDED) or _is_row(first_line(head))


def read(text: str, name: str) -> Trace:
    """Read the text of a task table; `name` is the file's name in errors."""
    if has_header(text, _NEEDED):
        return csv_trace(text, name, NAME, _NEEDED, _job)
    return trace_of(
        _rows(text, name),
        lambda row: _job(named_cells(split_csv(row), _COLUMNS)),
        name=name,
        format=NAME,
        from_first=True,
    )


def _is_row(line: str) -> bool:
    cells = [cell.strip() for cell in line.split(",")]
    if not len(_COLUMNS) - 2 <= len(cells) <= len(_COLUMNS) + 2 or cells[3] not in _STATUSES:
        return False
    return len(cells) != len(_COLUMNS) or all(_is_number(cells[index]) for index in _NUMBERS)


def _is_number(cell: str) -> bool:
    try:
        float(cell or "0")
    except ValueError:
        return False
    return True


def _rows(text: str, name: str) -> Iterator[tuple[int, str]]:
    for count, (line, row) in enumerate(numbered_lines(text)):
        if count == 0 and row.count(",") + 1 != len(_COLUMNS):
            raise InputError(
                f"{name}, line {line}: {row.count(',') + 1} columns given, expected {len(_COLUMNS)}: "
                f"{', '.join(_COLUMNS)}"
            )
        yield line, row


def _job(cells: Cells) -> TraceJob:
    if optional(cells, "plan_gpu") is None or number_in(cells, "plan_gpu", at_least=0) == 0:
        raise LeftOutError(NO_GPU)
    if optional(cells, "start_time") is None or optional(cells, "end_time") is None:
        raise LeftOutError("without a start or an end, so how long it runs is not known")
    start, end = number_in(cells, "start_time", at_least=0), number_in(cells, "end_time")
    if end <= start:
        raise InputError("ended no later than it started")
    gpus_per_instance = number_in(cells, "plan_gpu") / 100
    whole = math.ceil(gpus_per_instance)
    gpu_type = optional(cells, "gpu_type")
    return TraceJob(
        id=f"{text_in(cells, 'job_name')}/{text_in(cells, 'task_name')}",
        arrival=start,
        scale_factor=whole_number_in(cells, "inst_num") * whole,
        duration_seconds=end - start,
        accelerators=(gpu_type,) if gpu_type else None,
        gpu_fraction=gpus_per_instance / whole,
        status=optional(cells, "status"),
    )
