"""`validate` finds contradictions that a test plants, and says what contradicts what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from fairway import Configuration, Worker
from fairway.engine.protocol import InvariantError
from fairway.engine.serving.desk import Desk
from fairway.engine.serving.engine import ServingEngine
from fairway.engine.serving.messages import TimePassed
from fairway.place.fleet import OUTSIDE
from fairway.sim.scenario import ColdStarts, Scenario
from tests.engine.serving.driver import Cluster
from tests.engine.serving.test_batches import staged
from tests.engine.serving.test_desk import DIAMOND, served
from tests.engine.serving.test_engine import chain

FEW = Scenario("few", (staged("a", "b", name="chain"),), (Worker("w0", 20.0),))


def whole(engine: ServingEngine) -> None:
    engine.validate()


def found(engine: ServingEngine, what: str) -> None:
    with pytest.raises(InvariantError, match=what) as caught:
        engine.validate()
    assert str(caught.value).startswith(f"worker {engine.me}: ")


def undivided() -> ServingEngine:
    """A worker that runs a task while two others wait."""
    cluster = Cluster(FEW, "compass:no-batching")
    cluster.ask(0, 1, 2)
    cluster.run(0.5)
    engine = cluster.worker(0)
    assert engine.running is not None
    assert len(engine.queue) == 2
    return engine


def awaiting() -> ServingEngine:
    """A worker whose task waits for its model."""
    cluster = Cluster(FEW)
    cluster.ask(0)
    cluster.run(0.0)
    engine = cluster.worker(0)
    assert engine._idles
    return engine


def divided() -> ServingEngine:
    """A worker that runs a batch, with a copy of another model on its way and one idle."""
    cluster = Cluster(served(workers=1, slices=3, cold=ColdStarts(1)), "esg")
    cluster.takes = lambda _: 5.0
    cluster.ask(0)
    cluster.run(0.5)
    engine = cluster.worker(0)
    assert len(engine.beside) == 1
    assert engine.memory.copying
    return engine


def planner() -> ServingEngine:
    """An engine that plans: of two requests one is half done, and one waits."""
    cluster = Cluster(served(*DIAMOND, stages="abcd", workers=1, cold=ColdStarts(1)), "esg")
    cluster.takes = lambda _: 1.0
    cluster.ask(0, 1, due=90.0)
    cluster.run(2.5)
    assert cluster.desk.batches
    assert cluster.desk.waiting
    return cluster.worker(OUTSIDE)


def lose_share(engine: ServingEngine) -> None:
    engine.free_gpu += 1


def overbook(engine: ServingEngine) -> None:
    (run,) = engine.beside
    engine.beside[run] = engine.beside[run]._replace(cpu=9)
    engine.free_cpu = engine.cpus - 9


def run_alone_too(engine: ServingEngine) -> None:
    engine.running = next(iter(engine.beside.values())).task


def leak_memory(engine: ServingEngine) -> None:
    engine.memory.free -= 0.1 * engine.memory.capacity


def forget_copy(engine: ServingEngine) -> None:
    engine._copies.clear()


def lose_copy(engine: ServingEngine) -> None:
    idle = next(idle for idle in engine.memory._idle.values() if idle)
    idle.clear()


def promise_twice(engine: ServingEngine) -> None:
    model = next(iter(engine.memory.copying))
    engine.memory.claim(model)


def await_what_is_there(engine: ServingEngine) -> None:
    engine.awaiting.append(next(iter(engine.beside.values())).task)


def wait_for_nothing(engine: ServingEngine) -> None:
    engine.running = None


def wait_for_what_does_not_come(engine: ServingEngine) -> None:
    assert engine.running is not None
    engine.running.waits_for.add(2)


def run_and_wait(engine: ServingEngine) -> None:
    engine.running = next(iter(engine.queue))


def lose_turn(engine: ServingEngine) -> None:
    task = next(iter(engine.queue))
    task.arrived = -1
    engine.queue.ready.clear()


def forget_load(engine: ServingEngine) -> None:
    engine.load.drop(0.25)


def answer_and_keep(engine: ServingEngine) -> None:
    engine.ingress.open[0].left = 0


def mistake_request(engine: ServingEngine) -> None:
    engine.ingress.open[7] = engine.ingress.open[0]


@pytest.mark.parametrize(
    ("state", "plant", "what"),
    [
        (divided, lose_share, "3 slices are free, but its tasks leave 3 and 2"),
        (divided, overbook, "its tasks hold 5 CPUs or slices more than there are"),
        (divided, run_alone_too, "a task runs alone, and others beside it"),
        (divided, leak_memory, "bytes, but .* are said to be free"),
        (divided, forget_copy, "copies of {} are under way, but memory expects"),
        (divided, lose_copy, "copies of model 1, 0 are idle, 0 come, 0 have tasks"),
        (divided, promise_twice, "0 tasks wait for model 0, but 0 copies are available"),
        (divided, await_what_is_there, "waits for models that are there"),
        (awaiting, wait_for_nothing, "it waits for the models of no task"),
        (awaiting, wait_for_what_does_not_come, r"request 0 waits for models \[2\], which are not on their way"),
        (undivided, leak_memory, "are said to be free"),
        (undivided, run_and_wait, "request 1 runs and waits at once"),
        (undivided, lose_turn, "request 1 has all inputs, but its turn will never come"),
        (undivided, forget_load, "s of work wait by its load, 2.0 s by its queue"),
        (undivided, answer_and_keep, "request 0 has ended, but is open"),
        (undivided, mistake_request, "request 0 is open as request 7"),
    ],
)
def test_a_worker_that_contradicts_itself_is_found(
    state: Callable[[], ServingEngine], plant: Callable[[ServingEngine], None], what: str
) -> None:
    engine = state()
    whole(engine)
    plant(engine)
    found(engine, what)


def test_tasks_beside_each_other_need_a_worker_that_is_shared() -> None:
    engine, other = undivided(), divided()
    engine.beside.update(other.beside)
    engine.free_cpu, engine.free_gpu = 0, 0
    found(engine, "1 tasks run beside each other, but it is not shared")


def test_one_that_is_no_worker_has_no_tasks() -> None:
    engine = planner()
    engine.beside.update(divided().beside)
    found(engine, "it is no worker, but has tasks")


# The desk


def take_share(desk: Desk) -> None:
    desk.capacity.free_cpu[0] += 1


def keep_batch(desk: Desk) -> None:
    number, started = next(iter(desk.batches.items()))
    desk.batches[number] = started._replace(configuration=Configuration(1, 2, 1))


def lose_worker(desk: Desk) -> None:
    desk.absent.add(0)


def use_copy(desk: Desk) -> None:
    assert desk.warming is not None
    desk.warming.busy[0, 0] += 1


def forget_use(desk: Desk) -> None:
    assert desk.warming is not None
    desk.warming.busy[:] = 0


def answer_unasked(desk: Desk) -> None:
    assert desk.warming is not None
    desk.warming._answered[0, 0] += 1


def lose_job(desk: Desk) -> None:
    next(queue for queue in desk.queues.all if queue.jobs).jobs.popleft()


def miscount_waiting(desk: Desk) -> None:
    desk.queues.waiting[0] += 1


def lose_job_everywhere(desk: Desk) -> None:
    number = next(number for number, queue in enumerate(desk.queues.all) if queue.jobs)
    desk.queues.take(number, 1)


def close_request(desk: Desk) -> None:
    job = next(queue for queue in desk.queues.all if queue.jobs).jobs[0]
    del desk.open[job.request.key]


def miscount_stages(desk: Desk) -> None:
    next(iter(desk.open.values())).left += 1


def queue_twice(desk: Desk) -> None:
    number = next(number for number, queue in enumerate(desk.queues.all) if queue.jobs)
    desk.queues.put_back(number, [desk.queues.all[number].jobs[0]])


@pytest.mark.parametrize(
    ("plant", "what"),
    [
        (take_share, r"worker 0 has .* free, but its batches leave"),
        (keep_batch, r"worker 0 has .* free, but its batches leave"),
        (lose_worker, "worker 0 is gone, but has batches"),
        (use_copy, "copies of model 0 are in use at worker 0, but"),
        (forget_use, "a batch uses a copy that is not counted"),
        (answer_unasked, "fewer copies of a model than none"),
        (lose_job, "queues have .* jobs, counted are"),
        (miscount_waiting, "jobs wait for model 0, counted are"),
        (lose_job_everywhere, "is in 0 queues and batches, not 1"),
        (close_request, "waits, but the request is not open"),
        (miscount_stages, "stages to go, counted are"),
        (queue_twice, "is in 2 queues and batches, not 1"),
    ],
)
def test_a_desk_that_contradicts_itself_is_found(plant: Callable[[Desk], None], what: str) -> None:
    engine = planner()
    whole(engine)
    assert engine.desk is not None
    plant(engine.desk)
    found(engine, what)


# Stories


def test_the_story_of_a_request_is_what_happened_to_it_wherever_that_was() -> None:
    cluster = Cluster(replace(FEW, workflows=(chain(None, None),), workers=(Worker("w0", 1.0), Worker("w1", 1.0))))
    cluster.takes = lambda _: 1.5
    for key in range(3):
        cluster.ask(key, at=0.1 * key)
    cluster.run()
    story = cluster.worker(1).story("request 1")
    told = [line.strip() for line in story.splitlines()]
    assert told[0].startswith("0.100000 s: RequestArrived(key=1")
    assert len(told) >= 4
    assert all("key=1" in line and len(line) < 300 for line in told)
    assert {"RequestArrived", "InputsArrived", "StageDone", "Forget"} >= {
        line.split()[2].partition("(")[0] for line in told
    }
    assert "Forget" in told[-1]
    assert cluster.worker(0).story("request 77") == "  nothing is remembered of request 77"


def test_every_event_names_its_cause() -> None:
    cluster = Cluster(served(cold=ColdStarts()), "esg")
    cluster.ask(4)
    cluster.run()
    story = cluster.options.story
    causes = {event.cause for _, event in story._past}
    assert causes >= {"request 4", "batch 0", "batch 1", "model 0", "model 1"}
    assert TimePassed().cause == "time"
    assert any(cause.startswith("worker ") for cause in causes)
