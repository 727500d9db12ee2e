"""Three stages that do next to nothing on a Ray cluster of three nodes: ours, and Ray Serve on the same cluster.

The nodes are loopback addresses of this machine, with two accelerators each that are none: a worker of ours and a
deployment of Ray Serve's take one of them. Both are up all the time, and take turns. They share the cores of this
machine, of which whoever has more processes gets more. So the CPU time that a request takes is counted, too, in all
processes that only this system has, and in its client.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from statistics import median

from benchmarks._ray_cluster import NumberedCluster
from benchmarks._report import Result, ratios, spread
from benchmarks._serving_live_compared import FAST, TRIVIAL, rows_of
from benchmarks._serving_live_driver import Driver
from benchmarks._serving_live_load import Load

NODES = 3
_TARGET = 10.0
_OURS = ("ray::NodeAgent", "ray::WorkerActor", "fairway.live.serving", "fairway.service.inference")
_PEERS = ("ray::Serve", "ray::Proxy")
_CLIENT = "benchmarks._serving_live_driver {}"


def trivial(seconds: float = 3.0, repeats: int = 5) -> Iterator[Result]:
    """Latency and throughput; Ray Serve is tuned as its guide says."""
    with NumberedCluster(NODES, gpus=2) as cluster:
        own = {**TRIVIAL, "backend": "ray", "address": cluster.address}
        # Ours comes first, so that one accelerator of each node is left.
        with (
            Driver("ours", cluster.environment, **own) as ours,
            Driver("ray", {**cluster.environment, **FAST, "RAY_ADDRESS": cluster.address}) as ray,
        ):
            for driver in (ours, ray):
                driver.clients(8, 2 * seconds)
            peer = "Ray Serve, tuned"
            turns = [(ours.one_client(seconds), ray.clients(1, seconds)) for _ in range(repeats)]
            yield from rows_of("three stages on three nodes, 1 client", peer, turns, _TARGET, None)
            counted = [
                (*_counted(cluster, ours, "ours", _OURS, seconds), *_counted(cluster, ray, "ray", _PEERS, seconds))
                for _ in range(repeats)
            ]
            turns = [(mine, theirs) for mine, _, theirs, _ in counted]
            yield from rows_of("three stages on three nodes, 32 clients", peer, turns, _TARGET, None)
            mine, theirs = [each for _, each, _, _ in counted], [each for _, _, _, each in counted]
            yield Result(
                "three stages on three nodes, 32 clients: CPU time of a request", "s", median(mine), peer,
                median(theirs), median(theirs) / median(mine), _TARGET, spread(ratios(theirs, mine)),
            )  # fmt: skip


def _counted(
    cluster: NumberedCluster, driver: Driver, client: str, words: tuple[str, ...], seconds: float
) -> tuple[Load, float]:
    """A turn with 32 clients, and the CPU time that a request took, in all processes of one system."""
    known = (*words, _CLIENT.format(client))
    before = _cpu_seconds(cluster, known)
    load = driver.clients(32, seconds)
    after = _cpu_seconds(cluster, known)
    return load, sum(spent - before[pid] for pid, spent in after.items() if pid in before) / load.requests


def _cpu_seconds(cluster: NumberedCluster, words: tuple[str, ...]) -> dict[int, float]:
    """What the processes of the cluster, and of this benchmark, have used whose command line has one of these words."""
    found = {}
    children = [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    for pid in [*children, *(pid for node in range(NODES) for pid in cluster.processes(str(node)))]:
        with suppress(OSError):
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if any(word in command for word in words):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                found[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return found
