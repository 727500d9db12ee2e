"""Three stages that do next to nothing on a Ray cluster of three nodes: ours, and Ray Serve on the same cluster.

The nodes are loopback addresses of this machine, with two accelerators each that are none: a worker of ours and a
deployment of Ray Serve's take one of them. Both are up all the time, and take turns.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks._ray_cluster import NumberedCluster
from benchmarks._report import Result
from benchmarks._serving_live_compared import FAST, TRIVIAL, rows_of
from benchmarks._serving_live_driver import Driver

_TARGET = 10.0


def trivial(seconds: float = 3.0, repeats: int = 5) -> Iterator[Result]:
    """Latency and throughput; Ray Serve is tuned as its guide says."""
    with NumberedCluster(3, gpus=2) as cluster:
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
            turns = [(ours.clients(32, seconds), ray.clients(32, seconds)) for _ in range(repeats)]
            yield from rows_of("three stages on three nodes, 32 clients", peer, turns, _TARGET, None)
