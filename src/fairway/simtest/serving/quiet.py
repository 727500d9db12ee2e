"""Whether a served system has come to rest: what is left in its processes and its memory, a sentence for each thing."""

from __future__ import annotations

from collections.abc import Iterator

from fairway.live.serving.runtime.worker import ServingWorker
from fairway.live.serving.simulated.system import SimulatedSystem

_ROUNDING = 1e-6


def left_over(system: SimulatedSystem) -> Iterator[str]:
    """All that should not be there when no client waits any more."""
    monitor = system.monitor
    if not monitor.is_complete:
        missing = [worker.name for worker in monitor.workers if not worker.is_there]
        yield f"not all workers are back: {', '.join(missing) or 'some have not heard of the others'}"
        return
    for number, worker in sorted(system.workers.items()):
        for what in _of_worker(worker):
            yield f"worker {number} {what}"
    for lane in (each for worker in monitor.workers for each in system.seams.run_record().lanes(worker.number)):
        doing = lane.read()
        if doing is not None and doing.is_active:
            what = f"{doing.kind.name.lower()} {doing.number}"
            yield f"a lane says that {what} is under way, which began at {doing.since:.4f} s"
    yield from _of_rows(system)


def left_in_memory(system: SimulatedSystem) -> Iterator[str]:
    """Values that no process will let go."""
    if kept := sorted(system.machine.kept):
        yield f"{len(kept)} values are left in memory: {', '.join(kept[:4])}"


def _of_worker(worker: ServingWorker) -> Iterator[str]:
    engine, values, clients = worker.engine, worker._values, worker._clients
    if len(clients):
        yield f"has {len(clients)} open requests"
    if engine.ingress.open:
        yield f"has {len(engine.ingress.open)} requests that it planned"
    if len(engine.queue) or engine.running is not None or engine.beside:
        yield f"has {len(engine.queue)} tasks that wait or runs one"
    if engine.here.tasks:
        yield f"holds tasks of {len(engine.here.tasks)} requests that are over"
    if len(values) or values._taken_over:
        yield f"holds values of {len(values) or len(values._taken_over)} requests that are over"
    if values.marks:
        yield f"holds marks of {len(values.marks)} requests that are over"
    desk = engine.desk
    if desk is not None and (desk.open or desk.batches or desk.waiting):
        yield f"plans {len(desk.open)} requests, {len(desk.batches)} batches"
    if desk is not None and desk.absent:
        yield f"counts workers {sorted(desk.absent)} as absent"
    if worker._batch_messages._sent or worker._batch_messages._here:
        yield "holds batches that are over"


def _of_rows(system: SimulatedSystem) -> Iterator[str]:
    """All workers are present and idle, in the eyes of each."""
    now = system.time.now()
    for number, worker in sorted(system.workers.items()):
        view = worker.engine._table.view(worker.engine.me, now)
        for other in range(system.settings.workers):
            if not view.is_present(other):
                yield f"worker {number} takes worker {other} for absent"
            elif (load := view.load(other, now)) > (own := _idle_load(system.workers[other])) + _ROUNDING:
                yield f"worker {number} sees a load of {load:.4f} s at worker {other}, which is idle ({own:.4f} s)"


def _idle_load(worker: ServingWorker) -> float:
    """What an idle worker says of its load: by how much its tasks take longer than expected, if they do."""
    return max(0.0, worker.engine.load.pace.extra)
