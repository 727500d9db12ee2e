"""Reads a cluster, however it is described: in a few words, in a YAML file, or as Alibaba's list of nodes.

The words are `v100=36,p100=36,k80=36`. The YAML (or JSON) file has the fields of `Cluster`: `workers` and, where they
matter, `prices` (dollars per worker and hour), `workers_per_node`, `cpus_per_node` and `memory_per_node`, each by
accelerator type. The list of nodes is the CSV of the openb trace, with one line per node.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field, PlainValidator
from pydantic.dataclasses import dataclass

from fairway.cluster import Cluster, nodes_as_machines
from fairway.documents import Form, Name
from fairway.errors import InputError
from fairway.magnitudes import FACTORS, MOST_WORKERS
from fairway.quantities import A_MEMORY, A_NUMBER_OF_CPUS, cpus_of, memory_of
from fairway.traces import read_openb_nodes
from fairway.traces.text import read_text

_LONGEST_SHOWN = 60
_EXAMPLE = "v100=8,k80=16"
_FILE_SUFFIXES = {".yaml", ".yml", ".json"}

Count = Annotated[int, Field(ge=0, le=MOST_WORKERS)]
NodeSize = Annotated[int, Field(ge=1, le=MOST_WORKERS)]
Dollars = Annotated[float, Field(ge=FACTORS.least, le=FACTORS.most, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class ClusterFile:
    """The fields of a cluster file; null is the same as left out."""

    workers: dict[Name, Count]
    prices: dict[Name, Dollars] | None = None
    workers_per_node: dict[Name, NodeSize] | None = None
    cpus_per_node: dict[Name, Annotated[float, PlainValidator(cpus_of)]] | None = None
    memory_per_node: dict[Name, Annotated[int, PlainValidator(memory_of)]] | None = None


_FORM = Form(
    ClusterFile,
    {
        "": "the workers of each accelerator type, as in 'workers: {v100: 8, k80: 16}'",
        "workers": "counts by accelerator type, as in {v100: 8, k80: 16}",
        "workers.*": f"a whole number from 0 to {MOST_WORKERS}",
        "prices": "dollars per hour by accelerator type, as in {v100: 0.74, k80: 0.135}",
        "prices.*": f"a number > 0 (dollars per hour), from {FACTORS}",
        "workers_per_node": "node sizes by accelerator type, as in {v100: 4}",
        "workers_per_node.*": f"a whole number from 1 to {MOST_WORKERS}",
        "cpus_per_node": "CPUs of a node by accelerator type, as in {v100: 32}",
        "cpus_per_node.*": A_NUMBER_OF_CPUS,
        "memory_per_node": "memory of a node by accelerator type, as in {v100: 256GB}",
        "memory_per_node.*": A_MEMORY,
    },
    {"": ClusterFile},
)


def read_cluster(text: str) -> Cluster:
    """Read a cluster from the words themselves or from the file that they name; refuses one without workers."""
    path = Path(text)
    suffix = path.suffix.lower()
    source = text
    if suffix == ".csv":
        cluster = read_openb_nodes(path).cluster()
    elif suffix in _FILE_SUFFIXES or _is_file(path):
        cluster = parse_cluster(read_text(path), text)
    elif "=" in text:
        cluster, source = Cluster.parse(text), "cluster"
    else:
        given = text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"
        raise InputError(
            f"cluster: '{given}' given, expected TYPE=COUNT as in '{_EXAMPLE}', a YAML file or a list of nodes (.csv), "
            "and there is no such file"
        )
    if not any(cluster.workers.values()):
        raise InputError(f"{source}: 0 workers in total; give at least one accelerator type some, as in '{_EXAMPLE}'")
    return cluster


def parse_cluster(text: str, source: str) -> Cluster:
    """Read the text of a cluster file; `source` is its name in errors."""
    file = _FORM.read(text, source)
    sizes, cpus, memory = file.workers_per_node or {}, file.cpus_per_node or {}, file.memory_per_node or {}
    for field, given in (("cpus_per_node", cpus), ("memory_per_node", memory)):
        unknown = next((name for name in given if name not in file.workers), None)
        if unknown is not None:
            raise InputError(
                f"{source}: {field}.{unknown}: no such accelerator type; known: {', '.join(file.workers) or 'none'}"
            )
    try:
        return Cluster(file.workers, file.prices or {}, sizes, *nodes_as_machines(file.workers, sizes, cpus, memory))
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


def _is_file(path: Path) -> bool:
    try:
        return path.exists() and not path.is_dir()
    except (OSError, ValueError):  # a name that no file can have
        return False
