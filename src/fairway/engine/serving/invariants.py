"""What must hold in an engine between two events: each function says what contradicts what, None if nothing does.

Nothing here changes anything. Tests ask after every event (`ServingEngine.validate`), a running system does not: to
look at everything takes much longer than to handle an event.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from fairway.configure.slices.places import EMPTY, Places, State
from fairway.place.batch import NOWHERE
from fairway.place.fleet import OUTSIDE

if TYPE_CHECKING:
    from fairway.engine.serving.desk import Desk
    from fairway.engine.serving.engine import ServingEngine

_ROUNDING = 1e-6


def worker_contradiction(engine: ServingEngine) -> str | None:
    """What is wrong with a worker's shares, memory, queue, load or requests."""
    if engine.me == OUTSIDE and (len(engine.queue) or engine.running is not None or engine.beside):
        return "it is no worker, but has tasks"
    if engine._to_me:
        return f"it has said {type(engine._to_me[0]).__name__} to itself, and has not heard it"
    return _shares(engine) or _memory(engine) or _copies(engine) or _tasks(engine) or _load(engine) or _requests(engine)


def _shares(engine: ServingEngine) -> str | None:
    cpu = engine.cpus - sum(each.cpu for each in engine.beside.values())
    gpu = engine.slices - sum(each.gpu for each in engine.beside.values())
    if (engine.free_cpu, engine.free_gpu) != (cpu, gpu):
        return f"{engine.free_cpu} CPUs and {engine.free_gpu} slices are free, but its tasks leave {cpu} and {gpu}"
    if min(cpu, gpu) < 0:
        return f"its tasks hold {-min(cpu, gpu)} CPUs or slices more than there are"
    if engine.beside and not engine.memory.counts_use:
        return f"{len(engine.beside)} tasks run beside each other, but it is not shared"
    if engine.beside and engine.running is not None:
        return "a task runs alone, and others beside it"
    return None


def _memory(engine: ServingEngine) -> str | None:
    memory, sizes = engine.memory, engine._table.model_bytes
    held = sum(sizes[model] * memory.copies(model) for model in memory.resident)
    if abs(memory.capacity - held - memory.free) > _ROUNDING * max(memory.capacity, 1.0):
        return f"models take {held} of {memory.capacity} bytes, but {memory.free} are said to be free"
    if memory.free < -_ROUNDING * max(memory.capacity, 1.0):
        return f"models take {-memory.free} bytes more than its memory has"
    under_way = Counter(model for model, _ in engine._copies.values())
    if under_way != Counter(memory.copying):
        return f"copies of {dict(under_way)} are under way, but memory expects {memory.copying}"
    return None


def _copies(engine: ServingEngine) -> str | None:
    """Where tasks have copies to themselves, each copy is idle, has a task, or is on its way."""
    memory = engine.memory
    if not memory.counts_use:
        return None
    tasks = [each.task for each in engine.beside.values()]
    claimed = Counter(model for task in tasks for model in task.models if model not in task.waits_for)
    awaited = Counter(model for task in tasks for model in task.waits_for)
    for model in memory.resident:
        copies, idle, coming = memory.copies(model), memory.idle(model), memory.copying.get(model, 0)
        if copies != idle + coming + claimed[model]:
            return f"of {copies} copies of model {model}, {idle} are idle, {coming} come, {claimed[model]} have tasks"
        if memory.available(model) != idle + coming - awaited[model]:
            return f"{awaited[model]} tasks wait for model {model}, but {memory.available(model)} copies are available"
    missing = [model for model in claimed + awaited if model not in memory]
    if missing:
        return f"tasks run with model {missing[0]}, or wait for it, but no copy is there or on its way"
    if engine.awaiting != [task for task in engine.awaiting if task.waits_for and task.run in engine.beside]:
        return "a task waits for models that are there, or holds no share meanwhile"
    return None


def _tasks(engine: ServingEngine) -> str | None:
    running, passed = engine.running, engine._passed
    if running is None and engine._idles:
        return "it waits for the models of no task"
    copying = engine.memory.copying
    for task in (passed, running if engine._idles else None):
        if task is not None and not task.waits_for <= set(copying):
            lost = sorted(task.waits_for - set(copying))
            return f"a task of request {task.flow.request.key} waits for models {lost}, which are not on their way"
    waiting = set(map(id, engine.queue))
    for task in (running, passed, *(each.task for each in engine.beside.values())):
        if task is not None and id(task) in waiting:
            return f"a task of request {task.flow.request.key} runs and waits at once"
    ready = set(map(id, engine.queue.ready_tasks()))
    for task in engine.queue:
        if task.arrived < 0 and id(task) not in ready:
            return f"a task of request {task.flow.request.key} has all inputs, but its turn will never come"
    return None


def _load(engine: ServingEngine) -> str | None:
    load = engine.load
    if load.running == "counts" or load.pace.extra > 0:
        return None  # what runs, or is expected beyond the profile, is in the sum, too
    passed = 0.0 if engine._passed is None else engine._passed.seconds
    expected = sum(engine._load_of(task) for task in engine.queue) + passed
    if not math.isclose(load.queued, expected, rel_tol=1e-6, abs_tol=1e-9):
        return f"{load.queued} s of work wait by its load, {expected} s by its queue"
    return None


def _requests(engine: ServingEngine) -> str | None:
    for key, request in engine.ingress.open.items():
        if not request.left:
            return f"request {key} has ended, but is open"
        if request.flow.request.key != key:
            return f"request {request.flow.request.key} is open as request {key}"
    return None


def desk_contradiction(desk: Desk) -> str | None:
    """What is wrong with a desk's capacity, copies, queues or requests."""
    return _capacity(desk) or _warmth(desk) or _queues(desk) or _open(desk)


def _capacity(desk: Desk) -> str | None:
    cpu: Counter[int] = Counter()
    gpu: Counter[int] = Counter()
    for started in desk.batches.values():
        cpu[started.worker] += started.configuration.cpu
        gpu[started.worker] += started.configuration.gpu
    capacity = desk.capacity
    for worker in range(len(capacity)):
        free = (int(capacity.free_cpu[worker]), int(capacity.free_gpu[worker]))
        left = (capacity.cpu - cpu[worker], capacity.gpu - gpu[worker])
        if worker in desk.absent:
            if cpu[worker] or gpu[worker]:
                return f"worker {worker} is gone, but has batches"
            left = (0, 0)
        elif capacity.places is not None:
            left = (left[0], capacity.places.largest(_instances(desk, worker, capacity.places)))
        if free != left or min(free) < 0:
            return f"worker {worker} has {free} CPUs and slices free, but its batches leave {left}"
    return None


def _instances(desk: Desk, worker: int, places: Places) -> State:
    """What the instances of a worker's batches take of its GPU."""
    state = EMPTY
    for started in desk.batches.values():
        size = started.configuration.gpu
        if started.worker == worker and size:
            assert started.place in places.starts(state, size), f"two instances in one place of worker {worker}"
            state = places.with_instance(state, size, started.place)
    return state


def _warmth(desk: Desk) -> str | None:
    warming = desk.warming
    if warming is None:
        return None
    busy = Counter((desk.queues.all[each.queue].model, each.worker) for each in desk.batches.values())
    for model, worker in zip(*warming.busy.nonzero(), strict=True):
        if warming.busy[model, worker] != busy[model, worker]:
            counted = warming.busy[model, worker]
            return f"{counted} copies of model {model} are in use at worker {worker}, but {busy[model, worker]} batches"
    if sum(count for (model, _), count in busy.items() if model >= 0) != int(warming.busy.sum()):
        return "a batch uses a copy that is not counted"
    if (warming.there < 0).any() or (warming.coming < 0).any() or (warming.unanswered < 0).any():
        return "there are fewer copies of a model than none"
    return None


def _queues(desk: Desk) -> str | None:
    queues = desk.queues
    lengths = [len(queue.jobs) for queue in queues.all]
    if queues.lengths != lengths:
        return f"queues have {lengths} jobs, counted are {queues.lengths}"
    for model, counted in enumerate(queues.waiting):
        waiting = sum(len(queue.jobs) for queue in queues.all if queue.model == model)
        if counted != waiting:
            return f"{waiting} jobs wait for model {model}, counted are {counted}"
    return None


def _open(desk: Desk) -> str | None:
    """Each stage of an open request has ended, waits for stages before it, or is in one queue or batch."""
    found: Counter[tuple[int, int]] = Counter()
    for queue in desk.queues.all:
        for job in queue.jobs:
            if desk.open.get(job.request.key) is not job.request or not job.counts:
                return f"a job of request {job.request.key} waits, but the request is not open, or has begun again"
            found[job.request.key, queue.stage] += 1
    for started in desk.batches.values():
        stage = desk.queues.all[started.queue].stage
        found.update((job.request.key, stage) for job in started.jobs if job.counts)
    for key, request in desk.open.items():
        before = request.flow.graph.workflow.predecessors
        ended = [worker != NOWHERE for worker in request.ran_on]
        if request.left != ended.count(False) or not request.left:
            return f"request {key} has {ended.count(False)} stages to go, counted are {request.left}"
        for stage, done in enumerate(ended):
            expected = int(not done and all(ended[other] for other in before[stage]))
            if found[key, stage] != expected:
                return f"stage {stage} of request {key} is in {found[key, stage]} queues and batches, not {expected}"
    return None
