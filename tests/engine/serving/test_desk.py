"""The desk of an engine that plans: requests wait by stage, floor 2 makes batches of them, floor 3 finds workers."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from fairway import Configuration, Model, Profile, Stage, Worker, Workflow
from fairway.engine.protocol import TransitionError, like
from fairway.engine.serving.messages import (
    HIT,
    MISS,
    BatchArrived,
    BatchDone,
    Evict,
    Forget,
    Load,
    ModelLoaded,
    PeerCopies,
    PeerJoined,
    PeerLoad,
    PeerModels,
    Pin,
    Reply,
    Send,
    TimePassed,
    Warm,
)
from fairway.errors import InputError
from fairway.links import NO_TRANSFERS
from fairway.place.fleet import OUTSIDE
from fairway.place.memory import DeviceMemory, MemoryPolicy
from fairway.sim.scenario import ColdStarts, Scenario
from tests.engine.serving.driver import Cluster

SINGLE = Profile.of({Configuration(1, 1, 1): 0.1})
PAIRS = Profile.of({Configuration(1, 1, 1): 0.1, Configuration(2, 1, 1): 0.12, Configuration(4, 1, 1): 0.15})
MODELS = {"a": Model("a", 10, 2.0), "b": Model("b", 10, 3.0)}
DIAMOND = (("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"))


def served(
    *edges: tuple[str, str],
    stages: str = "ab",
    profile: Profile = SINGLE,
    workers: int = 2,
    cpus: int = 4,
    slices: int = 1,
    memory: float = 1e9,
    cold: ColdStarts | None = None,
) -> Scenario:
    """One workflow, a chain unless edges are given; with `cold`, the first stage needs model a and the others b."""
    models = [() if cold is None else ("a" if number == 0 else "b",) for number in range(len(stages))]
    workflow = Workflow(
        tuple(Stage.of(name, 0.1, *needs) for name, needs in zip(stages, models, strict=True)),
        edges or tuple(pairwise(stages)),
        {} if cold is None else MODELS,
        "served",
    )
    machines = tuple(Worker(f"w{number}", memory, "gpu", None, cpus, slices) for number in range(workers))
    return Scenario(
        "desk",
        (workflow,),
        machines,
        NO_TRANSFERS,
        slo_seconds={"served": 1.0},
        profiles={"served": (profile,) * len(stages)},
        cold=ColdStarts() if cold is None else cold,
    )


def test_a_request_goes_through_its_stages_and_is_answered() -> None:
    cluster = Cluster(served(), "esg")
    cluster.ask(7)
    cluster.run(0.05)
    assert len(cluster.desk.batches) == 1
    cluster.run()
    first, second = cluster.ran
    assert [(ran.stage, ran.keys, ran.start) for ran in cluster.ran] == [(0, [7], 0.0), (1, [7], 0.1)]
    assert first.worker == second.worker, "where its input is"
    assert cluster.replies == {7: pytest.approx(0.2)}
    assert cluster.is_quiet()


def test_a_join_waits_for_all_stages_before_it() -> None:
    cluster = Cluster(served(*DIAMOND, stages="abcd"), "esg")
    cluster.takes = lambda run: 0.3 if run.stage == 2 else 0.1
    cluster.ask(0)
    cluster.run()
    first, left, right, last = cluster.ran
    assert {left.stage, right.stage} == {1, 2}
    assert left.start == right.start == first.end
    assert left.worker != right.worker
    assert (last.stage, last.start) == (3, max(left.end, right.end))


def test_jobs_wait_while_nothing_is_free_and_are_batched() -> None:
    cluster = Cluster(served(stages="a", profile=PAIRS, workers=1), "esg")
    cluster.ask(0)
    cluster.ask(1, 2, 3, at=0.01)
    cluster.run(0.05)
    assert cluster.desk.waiting == 3
    cluster.run()
    assert [(ran.keys, ran.run.seconds) for ran in cluster.ran] == [([0], 0.1), ([1, 2], 0.12), ([3], 0.1)]


def test_a_batch_that_waits_asks_to_be_woken_once() -> None:
    profile = Profile.of({Configuration(1, 2, 3): 0.9, Configuration(4, 2, 3): 0.1})
    cluster = Cluster(served(stages="a", profile=profile, slices=7, workers=2), "infless")
    cluster.ask(*range(9))
    cluster.run(0.0)
    planner = cluster.worker(OUTSIDE)
    due, ran = planner.due, len(cluster.ran)
    assert ran > 0
    assert 0.0 < due < math.inf
    cluster.run(due / 2)
    assert cluster.tell(OUTSIDE, TimePassed()) == []
    assert planner.due == due
    cluster.takes = lambda _: 100.0
    cluster.run(due)
    assert len(cluster.ran) > ran


def test_workers_that_push_their_rows_are_no_reason_to_decide_again() -> None:
    """A pass in which nothing fits counts: after some, ESG takes what fits."""
    cluster = Cluster(served(stages="a", workers=1), "esg", publishes=True)
    cluster.ask(0, 1)
    cluster.run(0.05)
    failures = dict(cluster.desk._turns.failures)
    assert failures
    assert cluster.tell(OUTSIDE, PeerLoad(0, 1 << 50, 3.0, -math.inf), PeerModels(0, 1 << 50, ())) == []
    assert cluster.desk._turns.failures == failures


# Models


def test_a_cold_model_is_loaded_for_a_job_that_holds_nothing_meanwhile() -> None:
    cluster = Cluster(served(cold=ColdStarts()), "esg")
    cluster.ask(0)
    cluster.run(0.0)
    assert cluster.of_kind(Warm) == [like(Warm, model=0, ahead=False)]
    assert cluster.of_kind(Load) == [like(Load, model=0, why="job")]
    assert cluster.desk.capacity.free_gpu.tolist() == [1, 1]
    cluster.run(1.0)
    cluster.tell(OUTSIDE, TimePassed())
    assert len(cluster.of_kind(Warm)) == 1
    cluster.run(2.0)
    (warmed,) = (worker for _, worker, command in cluster.commands if isinstance(command, Load) and command.model == 0)
    (ran,) = cluster.ran
    assert (ran.worker, ran.start, ran.run.found) == (warmed, 2.0, HIT)
    ahead = [command for _, _, command in cluster.commands if isinstance(command, Send) and command == like_warm(1)]
    assert [command.worker for command in ahead] == [warmed], "the next stage has its model begun where it will run"
    cluster.run()
    assert cluster.replies.keys() == {0}


def test_a_job_does_not_hold_a_cold_worker_while_the_warm_one_is_full() -> None:
    cluster = Cluster(served(stages="a", cold=ColdStarts(prewarms=False)), "esg")
    cluster.takes = lambda _: 9.0
    for _ in range(2):
        cluster.put(0, Warm(0, ahead=True, number=0))
    cluster.run(2.0)
    cluster.ask(0)
    cluster.ask(1, at=2.5)
    cluster.run(3.0)
    assert cluster.desk.capacity.free_gpu.tolist() == [0, 1]
    assert cluster.of_kind(Warm) == [like(Warm, model=0, ahead=False)]
    cluster.run(5.0)
    assert [(ran.worker, ran.start, ran.run.found) for ran in cluster.ran] == [(0, 2.0, HIT), (1, 4.5, HIT)]


def like_warm(model: int) -> object:
    """A message that wants one more copy of a model ahead of any job."""
    return like(Send, message=like(Warm, model=model, ahead=True))


def test_a_batch_can_hold_its_share_while_its_model_is_loaded() -> None:
    cluster = Cluster(served(cold=ColdStarts(held=True)), "esg")
    cluster.ask(0)
    cluster.run(1.0)
    assert cluster.desk.capacity.free_gpu.sum() == 1
    assert cluster.ran == []
    cluster.run()
    assert [(ran.stage, ran.start, ran.run.found) for ran in cluster.ran] == [(0, 2.0, MISS), (1, 5.1, MISS)]
    cluster.ask(1, at=6.0)
    cluster.run()
    assert [(ran.stage, ran.run.found) for ran in cluster.ran[2:]] == [(0, HIT), (1, HIT)]
    assert cluster.of_kind(Warm) == []


def test_a_copy_makes_room_for_another_but_not_in_its_first_second() -> None:
    cluster = Cluster(served(workers=1, memory=10, cold=ColdStarts()), "esg")
    cluster.ask(0, due=9.0)
    cluster.run(3.05)
    assert [ran.start for ran in cluster.ran] == [2.0]
    assert cluster.of_kind(Evict) == []
    refused = cluster.of_kind(PeerCopies)[-1]
    assert refused == like(PeerCopies, model=1, there=0, coming=0, failed=None)
    asked, steps = len(cluster.of_kind(Warm)), cluster.steps
    cluster.run(3.09)
    assert (len(cluster.of_kind(Warm)), cluster.steps) == (asked, steps), "it is asked again when that can change"
    cluster.run(3.11)
    assert (cluster.of_kind(Evict), cluster.of_kind(Load)[-1]) == ([Evict(0)], like(Load, model=1))
    assert cluster.commands[-3][0] == pytest.approx(3.1)
    cluster.run()
    assert cluster.replies.keys() == {0}


def test_a_worker_without_room_does_not_keep_a_model_from_another_one() -> None:
    """The first worker is full of a copy in its first second; the second has room."""
    cluster = Cluster(served(workers=2, memory=10, cold=ColdStarts(prewarms=False)), "esg")
    cluster.ask(0, due=9.0)
    cluster.run(2.11)
    loads = [(worker, command.model) for _, worker, command in cluster.commands if isinstance(command, Load)]
    assert {worker for worker, model in loads if model == 1} == {0, 1} - {
        worker for worker, model in loads if model == 0
    }


def test_idle_copies_go_after_their_time_and_the_planner_hears_of_it() -> None:
    cluster = Cluster(served(cold=ColdStarts(1, keep_alive_seconds=5.0)), "esg")
    assert cluster.desk.warming is not None
    assert cluster.desk.warming.there.tolist() == [[1, 1], [1, 1]]
    cluster.run(4.9)
    assert cluster.commands == []
    cluster.run(5.0)
    assert sorted(cluster.of_kind(Evict)) == [Evict(0), Evict(0), Evict(1), Evict(1)]
    assert not cluster.desk.warming.there.any()


def test_a_copy_that_came_ahead_goes_after_its_time_too() -> None:
    cluster = Cluster(served(stages="a", workers=1, slices=2, cold=ColdStarts(1, keep_alive_seconds=5.0)), "esg")
    cluster.ask(0)
    cluster.run(4.0)
    assert len(cluster.of_kind(Load)) == 1, "the batch took the last idle copy, so another one was begun"
    cluster.run()
    assert [at for at, _, command in cluster.commands if command == Evict(0)] == [
        pytest.approx(5.1),
        pytest.approx(7.0),
    ]


def test_what_was_used_last_is_used_again_first() -> None:
    memory = DeviceMemory(10, [1], MemoryPolicy("least-recent", 0, 0))
    for _ in range(2):
        memory.adopt(0, 0.0)
        assert memory.claim(0)
    memory.release(0, 1.0)
    memory.release(0, 2.0)
    assert memory.claim(0)
    assert memory.next_expiry(5.0) == 6.0, "the one that has been idle since 1.0 is left"


def test_a_pinned_model_is_the_planners_to_use_and_stays() -> None:
    cluster = Cluster(served(workers=1, stages="a", cold=ColdStarts(keep_alive_seconds=1.0)), "esg")
    cluster.tell(0, Pin(0))
    cluster.run(2.5)
    cluster.ask(0)
    cluster.run()
    assert cluster.ran[0].start == 2.5
    assert cluster.now < 9.0
    assert cluster.of_kind(Evict) == []


# Who comes and goes


def test_what_a_planner_knows_of_copies_it_has_from_reports() -> None:
    cluster = Cluster(served(workers=2, cold=ColdStarts(1)), "esg")
    cluster.tell(OUTSIDE, PeerCopies(0, 0, 0, 0, 0), PeerCopies(1, 0, 3, 0, 0), PeerCopies(1, 1, 0, 1, 0))
    assert cluster.desk.warming is not None
    assert cluster.desk.warming.there.tolist() == [[0, 3], [1, 0]]
    assert cluster.desk.warming.coming.tolist() == [[0, 0], [0, 1]]


def test_what_a_worker_said_before_it_was_lost_counts_no_more_when_it_comes_late() -> None:
    cluster = Cluster(served(workers=2, cold=ColdStarts(1)), "esg")
    cluster.lose(1)
    cluster.run()
    warming = cluster.desk.warming
    assert warming is not None
    assert (warming.there[:, 1].tolist(), warming.coming[:, 1].tolist()) == ([0, 0], [0, 0])
    cluster.tell(OUTSIDE, PeerCopies(1, 0, 3, 1, 0), PeerCopies(0, 0, 4, 0, 0))
    assert (warming.there[:, 1].tolist(), warming.coming[:, 1].tolist()) == ([0, 0], [0, 0])
    assert warming.there[0, 0] == 4


def test_a_planner_that_comes_back_hears_of_the_copies_that_are_there() -> None:
    cluster = Cluster(served(workers=2, cold=ColdStarts()), "esg")
    cluster.ask(0)
    cluster.run(2.05)
    cluster.lose(OUTSIDE)
    cluster.run(2.2)
    cluster.bring_back(OUTSIDE)
    cluster.run(2.2)
    held = [[engine.memory.copies(model) for engine in cluster.engines[:2] if engine is not None] for model in (0, 1)]
    warming = cluster.desk.warming
    assert warming is not None
    assert (warming.there + warming.coming).tolist() == held
    assert sum(map(sum, held)) > 0
    cluster.ask(1)
    cluster.run()
    assert cluster.replies.keys() == {1}


def test_batches_of_a_planner_that_is_gone_are_dropped_and_do_not_count() -> None:
    """One batch runs and one waits at a worker when the planner is lost; the next one starts with the same queue."""
    cluster = Cluster(served(stages="a", workers=1), "esg")
    cluster.takes = lambda _: 5.0
    cluster.ask(0)
    cluster.run(0.0)
    running = cluster.of_kind(BatchArrived)[0]
    waiting = running._replace(number=running.number + 1)
    cluster.put(0, waiting)
    cluster.run(1.0)
    assert len(cluster.worker(0).queue) == 1
    cluster.lose(OUTSIDE)
    cluster.run(1.0)
    assert len(cluster.worker(0).queue) == 0
    assert cluster.worker(0).load.queued == 0.0
    cluster.bring_back(OUTSIDE)
    cluster.ask(1)
    cluster.run(1.5)
    assert len(cluster.desk.batches) == 1, "for all that the new planner knows, the worker is free"
    assert len(cluster.ran) == 1, "but it is not"
    cluster.run(5.5)
    assert len(cluster.desk.batches) == 1, "what ended was not its own"
    assert [ran.keys for ran in cluster.ran] == [[0], [1]]
    cluster.run()
    assert cluster.answers == {1: 1}
    assert cluster.is_quiet()


def test_a_planner_may_be_another_one_before_any_worker_has_heard_of_a_loss() -> None:
    cluster = Cluster(served(stages="a", workers=1), "esg")
    cluster.ask(0)
    cluster.run(0.0)
    batch = cluster.of_kind(BatchArrived)[0]
    cluster.put(0, batch._replace(number=batch.number + 1))
    cluster.run(0.0)
    assert len(cluster.worker(0).queue) == 1
    cluster.tell(0, PeerJoined(OUTSIDE))
    assert len(cluster.worker(0).queue) == 0


def test_a_worker_that_is_back_is_another_one_with_the_same_number() -> None:
    cluster = Cluster(served(workers=1, cold=ColdStarts(1)), "esg")
    cluster.takes = lambda _: 1.0
    cluster.ask(0)
    cluster.run(0.5)
    (ran,) = cluster.ran
    cluster.lose(0)
    cluster.run(0.6)
    assert cluster.desk.waiting == 1
    cluster.bring_back(0)
    cluster.run(1.5)
    assert cluster.desk.warming is not None
    assert cluster.desk.warming.there.tolist() == [[0], [0]], "it came back with nothing"
    assert cluster.ran == [ran], "late news of a run before the loss are of no use"
    cluster.run()
    assert cluster.replies.keys() == {0}
    assert cluster.worker(0)._numbers > ran.run.run


def test_a_late_end_of_a_batch_that_was_lost_changes_nothing() -> None:
    cluster = Cluster(served(stages="a", workers=1), "esg")
    cluster.ask(0)
    cluster.run(0.0)
    (batch,) = cluster.desk.batches
    cluster.lose(0)
    cluster.run(0.01)
    cluster.bring_back(0)
    cluster.run(0.02)
    assert cluster.tell(OUTSIDE, BatchDone(batch, 0, 0.1, {})) == []
    cluster.run()
    assert cluster.answers == {0: 1}


# What cannot be


def test_news_that_cannot_be_true_are_refused_with_the_story() -> None:
    cluster = Cluster(served(), "esg")
    with pytest.raises(TransitionError, match="batch 5 has ended, but was never started") as caught:
        cluster.tell(OUTSIDE, BatchDone(5, 0, 0.1, {}))
    assert "BatchDone(number=5, worker=0" in str(caught.value)
    cluster = Cluster(served(), "esg")
    cluster.ask(3)
    cluster.run(0.05)
    cluster.ask(3)
    with pytest.raises(TransitionError, match="request 3 arrives but is here already") as caught:
        cluster.run()
    assert str(caught.value).count("RequestArrived(key=3") == 2
    assert cluster.tell(0, ModelLoaded(99, 0)) == []
    with pytest.raises(InputError, match="containers: -1 given"):
        ColdStarts(-1)


def test_a_batch_ends_once() -> None:
    cluster = Cluster(served(stages="a"), "esg")
    cluster.ask(0)
    cluster.run()
    assert cluster.of_kind(Reply) == [like(Reply, key=0)]
    (done,) = cluster.of_kind(BatchDone)
    with pytest.raises(TransitionError, match="had ended before"):
        cluster.tell(OUTSIDE, done)


def test_members_of_a_batch_whose_requests_are_over_are_dropped() -> None:
    """One batch runs, and one for the same requests waits at the worker; one of them is over, then the other."""
    cluster = Cluster(served(stages="a", profile=PAIRS, workers=1), "esg")
    cluster.ask(0, 1)
    cluster.run(0.0)
    batch = cluster.of_kind(BatchArrived)[0]
    cluster.put(0, batch._replace(number=batch.number + 1))
    cluster.run(0.0)
    worker = cluster.worker(0)
    (running,) = (each.task for each in worker.beside.values())
    (waiting,) = worker.queue
    cluster.tell(0, Forget(1))
    assert [task.dropped for task in (running, *running.mates)] == [False, True]
    assert [task.dropped for task in (waiting, *waiting.mates)] == [False, True]
    assert cluster.tell(0, Forget(0)) == [
        Send(OUTSIDE, BatchDone(batch.number + 1, 0, 0.0, dict.fromkeys((0, 1), "its requests are over")))
    ]
    assert len(worker.queue) == 0
    assert worker.load.queued == 0.0
