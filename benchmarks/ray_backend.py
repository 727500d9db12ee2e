"""Does Fairway on a Ray cluster do what the simulator says, and lose nothing when nodes are killed?

- `simulator`: the 60 jobs of `benchmarks.live_training`, on three Ray nodes with a type each, against the simulator.
- `kills`: a node of three is killed, with all its processes, at random moments under load, and joins again; every fifth
  time it is the controller. Ray is started with raylets that give up after 2 s, so that the fence is 4 s.

The nodes are on this machine, each a Ray node of its own, and the accelerators are emulated. Needs `fairway[ray]`.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import mean
from typing import Annotated

import typer

from benchmarks import _live_against_sim as against_sim
from benchmarks._live_kills import Findings, kill_again_and_again
from benchmarks._live_system import System
from benchmarks._live_workload import generated
from benchmarks._ray_cluster import RayCluster
from benchmarks._report import Result, show, spread
from benchmarks.live_training import CLUSTER, FIRST_GUESS, POLICY, ROUND_SECONDS, TIME_SCALE

FENCE_SECONDS = 4.0
STUCK_SECONDS = 60.0
"""No longer than this may it take until a node that has been killed has an actor, and an agent, again."""

EVERY_FIFTH = 5
NODES = {"a": ("V100", 2), "b": ("P100", 1), "c": ("K80", 1)}
"""The nodes of `kills`, with the accelerators that its jobs know."""


def _labels(node: str, kind: str, count: int) -> str:
    return f"ray.io/accelerator-type={kind},fairway.io/accelerators={count},fairway.io/node={node}"


@contextmanager
def _cluster(nodes: dict[str, tuple[str, int]]) -> Iterator[RayCluster]:
    """A head that runs no jobs, and nodes that do."""
    with tempfile.TemporaryDirectory(prefix="fw-ray-") as name, RayCluster(Path(name)) as ray:
        ray.environment["RAY_gcs_rpc_server_reconnect_timeout_s"] = "2"
        os.environ.update(ray.environment)
        ray.start("head", head=True)
        for node, (kind, count) in nodes.items():
            ray.start(node, _labels(node, kind, count))
        yield ray


def simulator(quick: bool, seed: int, _: int) -> Iterator[Result]:
    counts = {f"node-{kind}": (kind.upper(), count) for kind, count in CLUSTER.workers.items()}
    with _cluster(counts) as ray, tempfile.TemporaryDirectory(prefix="fw-nodes-") as files:
        backend = f"ray:address={ray.address},node-directory={files}"
        _say("measuring what a restart costs")
        others = f"jobs={6 if quick else 24},rate=4.0,duration={7200 if quick else 14400},seed={seed + 1000}"
        before = against_sim.run_live(
            generated(others, CLUSTER, TIME_SCALE), POLICY, ROUND_SECONDS, FIRST_GUESS, backend=backend
        )
        restart_seconds = before.lost_per_lease
        _say(f"a restart costs {restart_seconds:.2f} s; running the jobs")
        jobs = f"jobs={6 if quick else 60},rate=1.0,seed={seed}"
        workload = generated(jobs if not quick else f"{jobs},duration=7200", CLUSTER, TIME_SCALE)
        live = against_sim.run_live(workload, POLICY, ROUND_SECONDS, restart_seconds, backend=backend)
    often = against_sim.simulated_often(
        workload, POLICY, ROUND_SECONDS, restart_seconds, runs=5 if quick else 50, seed=seed
    )
    for name, ours, each in zip(
        ("mean JCT", "makespan"), (live.mean_jct, live.makespan), zip(*often, strict=True), strict=True
    ):
        simulated = mean(each)
        yield Result(
            f"{name} of {len(workload.jobs)} jobs on 3 Ray nodes, live against simulated",
            "%",
            100 * abs(ours / simulated - 1),
            target=None if quick else 8.0,
            extra={
                "difference": ours / simulated - 1,
                "live_seconds": ours,
                "simulated_seconds": simulated,
                "simulated_runs": len(each),
                "simulated_spread": spread(each),
                "restart_seconds": restart_seconds,
                "restart_seconds_afterwards": live.lost_per_lease,
                "load_average": os.getloadavg()[1],
            },
        )


def kills(quick: bool, seed: int, count: int) -> Iterator[Result]:
    count = 3 if quick else count
    _say(f"killing {count} times")
    away: list[float] = []
    with _cluster(NODES) as ray, tempfile.TemporaryDirectory(prefix="fairway-") as name:

        def strike(system: System, draws: random.Random, findings: Findings) -> None:
            number = findings.killed.total()
            if number % EVERY_FIFTH == EVERY_FIFTH - 1:
                system.kill()
                findings.killed["controller"] += 1
                return
            node = draws.choice(list(NODES))
            ray.kill(node)
            findings.killed["node"] += 1
            began = time.monotonic()
            ray.start(node, _labels(node, *NODES[node]))
            while not _has_agent(ray, node) and time.monotonic() - began < 2 * STUCK_SECONDS:
                time.sleep(0.1)
            away.append(time.monotonic() - began)

        directory = Path(name)
        options = ["--backend", f"ray:node-directory={directory / 'home/nodes'},fence-seconds={FENCE_SECONDS:g}"]
        found = kill_again_and_again(
            directory, count, seed, options=[*options, "--address", ray.address], strike=strike, gap=(1.0, 6.0)
        )
    extra = {"kills": dict(found.killed), "jobs": found.jobs, "attempts": found.attempts, "seconds": found.seconds}
    for what, wrong in (
        ("jobs lost", found.lost),
        ("double leases", found.double),
        ("checkpoints lost, or steps left out", found.undone),
        ("processes left behind", found.left_behind),
    ):
        for each in wrong:
            _say(f"{what}: {each}")
        yield Result(f"{what}, {count} kills of Ray nodes and controllers", "", len(wrong), target=0.0, extra=extra)
    yield Result("longest until a node that was killed has an agent again", "s", max(away), target=STUCK_SECONDS)


def _has_agent(ray: RayCluster, node: str) -> bool:
    """Whether the agent runs, which the actor of the node has started."""
    return any(b"fairway.live.local.agent" in _command_of(pid) for pid in ray.processes(node))


def _command_of(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


PARTS: dict[str, Callable[[bool, int, int], Iterator[Result]]] = {"simulator": simulator, "kills": kills}


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(
    destination: Annotated[str | None, typer.Option("--json", help="Write the results here, - for stdout.")] = None,
    only: Annotated[list[str] | None, typer.Option(help=f"One of the parts: {', '.join(PARTS)}.")] = None,
    kills: Annotated[int, typer.Option(min=1, help="How often something is killed.")] = 20,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes, to see that it runs; few targets.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Other jobs, and other moments.")] = 0,
) -> None:
    unknown = set(only or ()) - set(PARTS)
    if unknown:
        raise typer.BadParameter(f"'{unknown.pop()}' given, expected one of {', '.join(PARTS)}", param_hint="--only")
    parts = [part for name, part in PARTS.items() if not only or name in only]
    show("ray_backend", (result for part in parts for result in part(quick, seed, kills)), destination)


if __name__ == "__main__":
    typer.run(main)
