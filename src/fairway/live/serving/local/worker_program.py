"""The program of a worker process on this machine.

python -m fairway.live.serving.local.worker_program SETTINGS NUMBER EPOCH PARENT
python -m fairway.live.serving.local.worker_program SETTINGS standby PARENT

In the second form it reads and prepares all that does not depend on the application, and then waits until it hears
over its standard input which worker it becomes.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from fairway.engine.serving.schedule import schedule_of
from fairway.live.serving.local.lifetime import serve_until_ended
from fairway.live.serving.local.worker_pool import open_worker_log
from fairway.live.serving.runtime.warm_up import warm_up
from fairway.live.serving.runtime.worker import ServingWorker
from fairway.live.serving.seams.backend import backend_of
from fairway.live.serving.sockets.connections import Connections
from fairway.live.serving.supervise.parent_process import end_with_parent
from fairway.live.serving.supervise.settings import ServingSettings
from fairway.place.fleet import Fleet, Worker
from fairway.place.graph import TaskGraph
from fairway.place.placer import Placer
from fairway.workflows import Stage, Workflow

STANDBY = "standby"


def worker(settings: ServingSettings, number: int, epoch: int) -> ServingWorker:
    """The worker that this process is."""
    made = ServingWorker(settings, number, epoch, backend_of(settings))
    assert isinstance(made.transport, Connections), "this program serves over sockets"
    made.transport.heed_signals()
    os.register_at_fork(after_in_child=made.forked)
    return made


def stand_by(path: str, parent: str) -> None:
    """Prepare, wait for a word, and be the worker that it names; without one, end."""
    end_with_parent(int(parent))
    _prepare(ServingSettings.read(Path(path)))
    word = sys.stdin.readline()
    if not word:
        return
    become = json.loads(word)
    os.environ.update(become["environment"])
    _write_to(become["log"])
    serve_until_ended(worker, path, str(become["number"]), str(become["epoch"]), parent)


def _prepare(settings: ServingSettings) -> None:
    """Have the code there that decides, on a workflow that has a bit of everything."""
    backend_of(settings)
    placer = schedule_of(settings.scheduler).placer
    if not isinstance(placer, Placer):
        return
    names = ("start", "left", "right", "end")
    edges = (("start", "left"), ("start", "right"), ("left", "end"), ("right", "end"))
    fleet = Fleet.of([Worker(f"worker-{number}", 1.0) for number in range(settings.workers)])
    graph = TaskGraph.of(Workflow(tuple(Stage.of(name, 1.0) for name in names), edges, {}), fleet)
    warm_up(placer, fleet, [graph], me=0)


def _write_to(log: str) -> None:
    """Write to the log of the worker, and read from nowhere."""
    output = open_worker_log(Path(log))
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    os.close(nowhere)


if __name__ == "__main__":
    if sys.argv[2] == STANDBY:
        stand_by(sys.argv[1], sys.argv[3])
    else:
        serve_until_ended(worker, *sys.argv[1:])
