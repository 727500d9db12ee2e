"""Reads Alibaba's GPU cluster trace of 2023 (github.com/alibaba/clusterdata, cluster-trace-gpu-v2023): pods and nodes.

A pod asks for `num_gpu` GPUs; one that asks for a single GPU may want only `gpu_milli` thousandths of it. `gpu_spec`
names the models it accepts, as in `V100M16|V100M32`. It ran from `scheduled_time` to `deletion_time`. Pods without a
GPU, and those that were never scheduled, whose running time is not known, are skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fairway.cluster import Cluster
from fairway.errors import InputError
from fairway.traces.rows import (
    NO_GPU,
    Cells,
    csv_rows,
    csv_trace,
    has_header,
    named_cells,
    number_in,
    optional,
    shown,
    split_csv,
    text_in,
    whole_number_in,
)
from fairway.traces.text import read_text
from fairway.traces.trace import LeftOutError, Trace, TraceJob

NAME = "openb"

_POD_COLUMNS = (
    "name",
    "num_gpu",
    "gpu_milli",
    "gpu_spec",
    "pod_phase",
    "creation_time",
    "deletion_time",
    "scheduled_time",
)
_NODE_COLUMNS = ("sn", "gpu", "model")


@dataclass(frozen=True, slots=True)
class GpuNodes:
    """The nodes of a cluster: for each GPU model, how many nodes there are of each size."""

    nodes_by_size: Mapping[str, Mapping[int, int]]

    @property
    def workers(self) -> dict[str, int]:
        """The number of GPUs of each model."""
        return {model: sum(s * n for s, n in sizes.items()) for model, sizes in self.nodes_by_size.items()}

    def cluster(self) -> Cluster:
        """The same as a cluster; where nodes of a model differ in size, the one that holds most GPUs stands for all."""
        usual = {model: max(sizes, key=lambda s: (s * sizes[s], s)) for model, sizes in self.nodes_by_size.items()}
        return Cluster(self.workers, workers_per_node=usual)


def recognises(head: str) -> bool:
    """Whether the text begins with the header of the pod list."""
    return has_header(head, _POD_COLUMNS)


def read(text: str, name: str) -> Trace:
    """Read the text of a pod list; `name` is the file's name in errors."""
    return csv_trace(text, name, NAME, _POD_COLUMNS, _job)


def read_openb_nodes(path: Path | str) -> GpuNodes:
    """Read a node list: how many nodes with how many GPUs of each model. Nodes without a GPU count for nothing."""
    name = str(path)
    found: dict[str, dict[int, int]] = {}
    for line, row, columns in csv_rows(read_text(path), name, _NODE_COLUMNS):
        try:
            cells = named_cells(split_csv(row), columns)
            size = whole_number_in(cells, "gpu", at_least=0)
            if size:
                sizes = found.setdefault(text_in(cells, "model"), {})
                sizes[size] = sizes.get(size, 0) + 1
        except InputError as error:
            raise InputError(f"{name}, line {line}: {error}") from None
    if not found:
        raise InputError(f"{name}: no node with a GPU, expected at least one below the header")
    return GpuNodes(found)


def _job(cells: Cells) -> TraceJob:
    gpus = whole_number_in(cells, "num_gpu", at_least=0)
    if gpus == 0:
        raise LeftOutError(NO_GPU)
    if optional(cells, "scheduled_time") is None:
        raise LeftOutError("never scheduled, so how long it would have run is not known")
    duration = number_in(cells, "deletion_time") - number_in(cells, "scheduled_time")
    if duration <= 0:
        raise InputError("deleted no later than scheduled")
    fraction = number_in(cells, "gpu_milli") / 1000
    if not 0 < fraction <= 1:
        raise InputError(f"gpu_milli: '{shown(cells['gpu_milli'])}' given, expected a number above 0 and up to 1000")
    models = optional(cells, "gpu_spec")
    return TraceJob(
        id=text_in(cells, "name"),
        arrival=number_in(cells, "creation_time", at_least=0),
        scale_factor=gpus,
        duration_seconds=duration,
        accelerators=tuple(dict.fromkeys(models.split("|"))) if models else None,
        gpu_fraction=fraction,
        status=optional(cells, "pod_phase"),
    )
