"""Reads the workloads of Pollux and Sia (github.com/petuum/adaptdl and github.com/siasosp23/artifacts, CSV).

The columns are `name,time,application,num_replicas,batch_size`, in order of arrival. How long a job runs is not in the
file: it follows from the application and what is known about its rates. The job type is the application with its batch
size, written as in throughput tables: `cifar10 (batch size 512)`.
"""

from __future__ import annotations

from fairway.traces.rows import Cells, csv_trace, has_header, number_in, optional, text_in, whole_number_in
from fairway.traces.trace import Trace, TraceJob

NAME = "pollux"

_COLUMNS = ("name", "time", "application", "num_replicas", "batch_size")


def recognises(head: str) -> bool:
    """Whether the text begins with the header of such a workload."""
    return has_header(head, _COLUMNS)


def read(text: str, name: str) -> Trace:
    """Read the text of a workload; `name` is the file's name in errors."""
    return csv_trace(text, name, NAME, _COLUMNS, _job, in_order=True, from_first=False)


def _job(cells: Cells) -> TraceJob:
    application = text_in(cells, "application")
    batched = optional(cells, "batch_size") is not None
    size = f" (batch size {whole_number_in(cells, 'batch_size')})" if batched else ""
    return TraceJob(
        id=text_in(cells, "name"),
        arrival=number_in(cells, "time", at_least=0),
        job_type=application + size,
        scale_factor=whole_number_in(cells, "num_replicas"),
    )
