"""The serving engine when things take longer than expected, workers die of a request, and models are pinned."""

from __future__ import annotations

import math

import pytest

from fairway.engine.serving.messages import (
    FAILED,
    Evict,
    InputsArrived,
    Load,
    ModelLoaded,
    PeerJoined,
    PeerLost,
    Pin,
    ProgressAsked,
    ProgressTold,
    Refuse,
    Replanned,
    RequestArrived,
    Run,
    Send,
    StageMoved,
    TaskDone,
    TimePassed,
)
from fairway.place.memory import DoesNotFitError
from tests.engine.serving.test_engine import Single, answered, chain, kinds, only


def test_a_task_that_overruns_keeps_its_worker_busy() -> None:
    cluster = Single(workers=2, watches_time=True)
    engine = cluster.engine
    assert engine.due == math.inf
    run = only(cluster.tell(RequestArrived(0, cluster.graph(chain(None)))), Run)
    assert engine.due == 2.0  # expected to take 1 s
    assert cluster.tell(TimePassed(), at=1.5) == []
    assert cluster.table.view(1, 1.5).load(0, 1.5) == 0.0  # it may end any moment
    cluster.tell(TimePassed(), at=2.0)
    assert cluster.table.view(1, 2.0).load(0, 2.0) == 2.0  # as long again as so far
    assert engine.due == 4.0
    cluster.tell(TimePassed(), at=4.0)
    assert cluster.table.view(1, 4.0).load(0, 4.0) == 4.0
    cluster.tell(TaskDone(run.run), at=5.0)
    assert cluster.table.view(1, 5.0).load(0, 5.0) > 0.5  # it was slow, so it may be again
    assert engine.due == 7.0
    for second in range(7, 60, 2):
        cluster.tell(TimePassed(), at=float(second))
    assert cluster.table.view(1, 60.0).load(0, 60.0) == 0.0
    assert engine.due == math.inf


def test_tasks_go_past_a_slow_worker() -> None:
    cluster = Single(workers=2, watches_time=True)
    graph = cluster.graph(chain(None))
    run = only(cluster.tell(RequestArrived(0, graph)), Run)
    cluster.tell(TaskDone(run.run), at=15.0)
    sent = only(cluster.tell(RequestArrived(1, graph), at=15.5), Send)
    assert sent.worker == 1
    for second in range(17, 100, 2):
        cluster.tell(TimePassed(), at=float(second))
    assert kinds(cluster.tell(RequestArrived(2, graph), at=100.0)) == ["Run"]  # that was long ago


def test_without_being_asked_the_engine_does_not_look_at_the_time() -> None:
    cluster = Single(workers=2)
    run = only(cluster.tell(RequestArrived(0, cluster.graph(chain(None)))), Run)
    assert cluster.engine.due == math.inf
    cluster.tell(TimePassed(), at=50.0)
    cluster.tell(TaskDone(run.run), at=60.0)
    assert cluster.table.view(1, 60.0).load(0, 60.0) == 0.0


def test_a_pinned_model_is_loaded_and_never_evicted() -> None:
    cluster = Single(workers=1, memory=10.0)
    (load,) = cluster.tell(Pin(0))
    assert load == Load(load.copy, 0)
    cluster.tell(ModelLoaded(load.copy, 0), at=0.1)
    for number, name in enumerate("bcbc"):
        commands = cluster.tell(RequestArrived(number, cluster.graph(chain(name))), at=1.0 + 2 * number)
        assert Evict(0) not in commands
        loads = [command for command in commands if isinstance(command, Load)]
        if loads:
            commands = cluster.tell(ModelLoaded(loads[0].copy, loads[0].model))
        cluster.tell(TaskDone(only(commands, Run).run), at=2.0 + 2 * number)
    assert 0 in cluster.engine.memory
    with pytest.raises(DoesNotFitError):
        cluster.tell(Pin(3))


def test_a_request_whose_workers_are_lost_again_and_again_is_refused() -> None:
    cluster = Single(workers=4, recovers=True, most_attempts=3)
    cluster.load_others(0.0)
    cluster.keep_busy(50.0)
    commands = cluster.tell(RequestArrived(7, cluster.graph(chain(None))))
    for lost in range(3):
        (place,) = {command.worker for command in commands if isinstance(command.message, InputsArrived)}
        commands = cluster.tell(PeerLost(place), at=float(lost))
        commands = [command for command in commands if isinstance(command, Send | Refuse)]
        if lost == 2:
            refused = only(commands, Refuse)
            assert (refused.key, refused.code) == (7, FAILED)
            assert "lost 3 times" in refused.reason
    assert not cluster.engine.ingress.open


def test_a_task_is_not_forgotten_if_its_worker_is_back_before_its_loss_is_heard_of() -> None:
    """With a table that all share, a worker may be seen again before the news of its loss has come."""
    cluster = Single(workers=2, recovers=True)
    cluster.keep_busy(50.0)
    sent = only(cluster.tell(RequestArrived(7, cluster.graph(chain(None)))), Send)
    assert sent.worker == 1
    cluster.table.leave(1)
    cluster.table.join(1)
    cluster.engine.ingress.worker_lost(cluster.engine, 1)
    cluster.tell(ProgressTold(7, 1))
    assert cluster.engine.ingress.open[7].flow.attempt == 1


def test_what_went_to_a_worker_before_it_was_lost_is_planned_again_when_it_is_back() -> None:
    cluster = Single(workers=3, recovers=True)
    graph = cluster.graph(chain(None))
    cluster.keep_busy(50.0)
    sent = only(cluster.tell(RequestArrived(7, graph)), Send)
    other = 3 - sent.worker
    cluster.tell(PeerLost(other))
    cluster.table.join(other)
    assert cluster.tell(StageMoved(7, 0, other, 0)) == []  # sent before the loss, but heard of now
    commands = answered(cluster, cluster.tell(PeerJoined(other)))
    assert {type(command.message) for command in commands} == {ProgressAsked, Replanned, InputsArrived}
