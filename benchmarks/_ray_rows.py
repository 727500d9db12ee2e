"""What it takes to bring state rows from node to node: four keepers, each a process, and 64 workers, never idle.

    python -m benchmarks._ray_rows NODE NODES WORKERS DIRECTORY
    python -m benchmarks._ray_rows SECONDS

The rows of all workers change in every period, written by a process beside the keepers. What counts is the CPU time of
the keepers, all together. What as many processes take that wake as often, and do nothing, stands beside it.
"""

from __future__ import annotations

import json
import mmap
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import numpy as np

from benchmarks._report import Result
from fairway.live.serving.local.shared_file import make_file, mapped
from fairway.live.serving.nodes.address_book import Place
from fairway.live.serving.nodes.backend import NodesBackend
from fairway.live.serving.nodes.guarded_channel import Credentials
from fairway.live.serving.nodes.keeper_lines import KeeperLines
from fairway.live.serving.nodes.node_keeper import LANES_BYTES, NodeKeeper, keeper_number
from fairway.live.serving.nodes.node_place import NodePlace, address_book
from fairway.live.serving.nodes.node_rows import NodeRows
from fairway.live.serving.seams.message_board import PERIOD_SECONDS
from fairway.live.serving.seams.state_board import SharedRows
from fairway.live.serving.supervise.settings import ServingSettings

_MODELS = 16
_SECRET = Credentials(b"rows" * 8)
_TARGET = 0.05


def keep(node: int, workers: int, directory: Path) -> None:
    """Be the keeper of a node; say at which port, and, for each line that is read, how much CPU time went by."""
    NodePlace(str(node), _host(node), _SECRET).write(directory)
    settings = ServingSettings("rows", directory, directory, workers=workers, has_planner=False)
    transport = NodesBackend(settings).transport(keeper_number(node))
    transport.announce_to(lambda port: print(port, flush=True))
    rows = NodeRows(_memory(directory, workers), np.full(workers, 1e9), _MODELS)
    keeper = NodeKeeper(
        keeper_number(node),
        transport,
        address_book(directory),
        rows,
        bytearray(workers * LANES_BYTES),
        directory,
        lambda process: directory / f"{process}.port",
        time.monotonic,
    )
    Thread(target=keeper.serve, daemon=True).start()
    for _ in sys.stdin:
        print(json.dumps([time.process_time(), time.monotonic()]), flush=True)


def wake(seconds: float) -> None:
    """Wake once in a period, and do nothing; print which part of a core that took."""
    began, end = time.process_time(), time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(PERIOD_SECONDS)
    print((time.process_time() - began) / seconds)


def rows(seconds: float = 10.0, workers: int = 64, nodes: int = 4) -> Iterator[Result]:
    """The keepers' share of one core, and how old the rows of other nodes are."""
    with tempfile.TemporaryDirectory(prefix="fairway-rows-") as place:
        directories = [Path(place) / str(node) for node in range(nodes)]
        for directory in directories:
            directory.mkdir()
            make_file(directory / "table", NodeRows.size(workers, _MODELS))
            NodeRows(_memory(directory, workers), np.full(workers, 1e9), _MODELS).clear()
        keepers = [
            subprocess.Popen(
                [sys.executable, "-m", "benchmarks._ray_rows", str(node), str(nodes), str(workers), str(directory)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for node, directory in enumerate(directories)
        ]
        lines = KeeperLines(_SECRET, lambda *_: None, lambda _: None)
        try:
            places = {}
            for node, keeper in enumerate(keepers):
                assert keeper.stdout is not None
                places[keeper_number(node)] = Place(_host(node), int(keeper.stdout.readline()), 0)
                lines.call(node, places[keeper_number(node)])
            places |= {worker: Place(_host(worker % nodes), 1, 0) for worker in range(workers)}
            for worker in range(workers):
                listens = directories[worker % nodes] / f"{worker}.port"
                listens.write_text(json.dumps({"port": 1, "pid": 1, "epoch": 0}))
                lines.tell(("host", worker, 0, True), worker % nodes)
            assert lines.book(places)
            before = [_asked(keeper) for keeper in keepers]
            ages = _worked(directories, workers, seconds)
            after = [_asked(keeper) for keeper in keepers]
            lines.pump()
        finally:
            lines.close()
            for keeper in keepers:
                keeper.kill()
                keeper.communicate()
    shares = [(one[0] - other[0]) / (one[1] - other[1]) for one, other in zip(after, before, strict=True)]
    extra = {"age_seconds": {"p50": float(np.median(ages)), "max": float(np.max(ages))}}
    what = f"rows of {workers} workers on {nodes} nodes every {1000 * PERIOD_SECONDS:g} ms"
    yield Result(f"{what}: the keeper of the busiest node", "cores", max(shares), target=_TARGET, extra=extra)
    yield Result(f"{what}: all keepers together", "cores", sum(shares), target=_TARGET)
    command = [sys.executable, "-m", "benchmarks._ray_rows", str(seconds)]
    idle = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(nodes)]
    wakes = sum(float(each.communicate()[0]) for each in idle)
    yield Result(f"{nodes} processes that wake every {1000 * PERIOD_SECONDS:g} ms and do nothing", "cores", wakes)


def _worked(directories: list[Path], workers: int, seconds: float) -> list[float]:
    """Change all rows on their own nodes in every period; returns how old those of other nodes are when looked at."""
    nodes, ages = len(directories), []
    tables = [SharedRows.arrays(_memory(directory, workers), workers, _MODELS)[0] for directory in directories]
    own = [np.arange(node, workers, nodes) for node in range(nodes)]
    end = time.monotonic() + seconds
    while (now := time.monotonic()) < end:
        for node, table in enumerate(tables):
            table[0, own[node]] = now  # what waits: any number will do, and so its time
        time.sleep(PERIOD_SECONDS)
        ages.append(float(time.monotonic() - tables[0][0, own[1][0]]))
    return ages[len(ages) // 10 :]


def _asked(keeper: subprocess.Popen[str]) -> list[float]:
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    keeper.stdin.write("\n")
    keeper.stdin.flush()
    found: list[float] = json.loads(keeper.stdout.readline())
    return found


def _memory(directory: Path, workers: int) -> mmap.mmap:
    return mapped(directory / "table", NodeRows.size(workers, _MODELS))


def _host(node: int) -> str:
    return f"127.0.0.{node + 2}"


if __name__ == "__main__":
    if len(sys.argv) == 2:
        wake(float(sys.argv[1]))
    else:
        keep(int(sys.argv[1]), int(sys.argv[3]), Path(sys.argv[4]))
