"""The serving engine of a worker: events in, commands out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fairway import Fleet, Model, Stage, StateTable, TaskGraph, Worker, Workflow, placer_of
from fairway.engine.protocol import TransitionError
from fairway.engine.serving.engine import ServingEngine, ServingEngineOptions
from fairway.engine.serving.flow import Flow
from fairway.engine.serving.messages import (
    HIT,
    MISS,
    NO_MODEL,
    PARTIAL,
    Cancelled,
    Command,
    Evict,
    Forget,
    InputsArrived,
    Load,
    ModelLoaded,
    OutputGone,
    PeerJoined,
    PeerLoad,
    PeerLost,
    PeerModels,
    ProgressAsked,
    ProgressTold,
    PublishLoad,
    PublishModels,
    Refuse,
    Replanned,
    Reply,
    RequestArrived,
    Run,
    Send,
    SendAgain,
    StageDone,
    StageMoved,
    StageStuck,
    TaskDone,
)
from fairway.links import Links
from fairway.place.fleet import OUTSIDE
from fairway.place.plan import Request
from fairway.place.state import Load as OwnLoad

MODELS = {name: Model(name, size) for name, size in (("a", 4), ("b", 4), ("c", 4), ("big", 10))}


def chain(*models: str | None, seconds: float = 1.0) -> Workflow:
    stages = [Stage.of(f"s{number}", seconds, model, output_bytes=1) for number, model in enumerate(models)]
    edges = [(f"s{number}", f"s{number + 1}") for number in range(len(models) - 1)]
    return Workflow(tuple(stages), tuple(edges), MODELS)


DIAMOND = Workflow(
    tuple(Stage.of(name, 1.0, output_bytes=1) for name in ("start", "left", "right", "end")),
    (("start", "left"), ("start", "right"), ("left", "end"), ("right", "end")),
    MODELS,
)


class Single:
    """One engine that a test talks to, and what it knows of two others; nothing happens by itself.

    It is validated after every event, unless a test has changed what it holds.
    """

    def __init__(
        self,
        scheduler: str = "compass",
        workers: int = 3,
        memory: float = 10.0,
        me: int = 0,
        links: Links | None = None,
        fleet: Fleet | None = None,
        **options: Any,
    ) -> None:
        gpus = [Worker(f"w{number}", memory) for number in range(workers)]
        self.fleet = Fleet.of(gpus, MODELS.values(), links) if fleet is None else fleet
        self.table = StateTable(self.fleet)
        self.engine = ServingEngine(
            me,
            placer_of(scheduler),
            self.table,
            np.random.default_rng(0),
            ServingEngineOptions(**{"recovers": False, "publishes": False, "watches_time": False, **options}),
        )
        self.now = 0.0
        self.validates = True

    def graph(self, workflow: Workflow) -> TaskGraph:
        return TaskGraph.of(workflow, self.fleet)

    def tell(self, event: Any, at: float | None = None) -> list[Command]:
        self.now = self.now if at is None else at
        commands = self.engine.handle(self.now, [event])
        if self.validates:
            self.engine.validate()
        return commands

    def keep_busy(self, seconds: float) -> None:
        """Give the engine a task that takes so long, of a request that came to some other place."""
        graph = self.graph(chain(None, seconds=seconds))
        request = Request(10_000, graph, OUTSIDE, None, math.inf, True)
        self.tell(InputsArrived(Flow(request, graph, [self.engine.me]), 0))

    def load_others(self, seconds: float) -> None:
        for worker in range(1, len(self.fleet)):
            self.table.write_load(worker, seconds, -np.inf, self.now)


def only(commands: Sequence[Command], kind: type) -> Any:
    found = [command for command in commands if isinstance(command, kind)]
    assert len(found) == 1, commands
    return found[0]


def kinds(commands: Sequence[Command]) -> list[str]:
    return [type(command).__name__ for command in commands]


def test_a_request_runs_where_it_arrived_if_all_are_idle_and_is_answered() -> None:
    cluster = Single()
    first = cluster.tell(RequestArrived(7, cluster.graph(chain(None, None))))
    run = only(first, Run)
    assert (run.stage, run.seconds, run.found) == (0, 1.0, NO_MODEL)
    second = only(cluster.tell(TaskDone(run.run), at=1.0), Run)
    assert second.stage == 1
    assert cluster.tell(TaskDone(second.run), at=2.0) == [Reply(7, 2.0)]
    assert not cluster.engine.ingress.open


def test_a_missing_model_is_loaded_before_its_task_runs_and_kept_for_the_next() -> None:
    cluster = Single(workers=1)
    graph = cluster.graph(chain("a"))
    (load,) = cluster.tell(RequestArrived(0, graph))
    assert load == Load(load.copy, 0)
    run = only(cluster.tell(ModelLoaded(load.copy, 0), at=0.5), Run)
    assert (run.turn, run.found) == (0.0, MISS)
    assert cluster.tell(RequestArrived(1, graph), at=0.6) == []
    commands = cluster.tell(TaskDone(run.run), at=1.5)
    assert kinds(commands) == ["Reply", "Run"]
    assert only(commands, Run).found == HIT


def test_a_model_of_the_next_task_is_copied_while_a_task_runs() -> None:
    cluster = Single("compass:no-overtaking", workers=1)
    (load,) = cluster.tell(RequestArrived(0, cluster.graph(chain("a"))))
    cluster.tell(RequestArrived(1, cluster.graph(chain("b"))))
    cluster.tell(RequestArrived(2, cluster.graph(chain("a"))))
    run = only(cluster.tell(ModelLoaded(load.copy, 0), at=0.5), Run)
    commands = cluster.tell(TaskDone(run.run), at=1.5)  # b is next: there was nothing waiting when a began
    second = only(commands, Load)
    assert second.model == 1
    cluster.tell(RequestArrived(3, cluster.graph(chain("b"))), at=1.6)
    run = only(cluster.tell(ModelLoaded(second.copy, 1), at=2.0), Run)
    assert run.found == MISS
    run = only(cluster.tell(TaskDone(run.run), at=3.0), Run)
    assert (run.flow.request.key, run.found) == (2, HIT)


def test_an_unfinished_prefetch_is_waited_for() -> None:
    cluster = Single(workers=1)
    first = only(cluster.tell(RequestArrived(0, cluster.graph(chain(None)))), Run)
    cluster.tell(RequestArrived(1, cluster.graph(chain(None))))
    cluster.tell(RequestArrived(2, cluster.graph(chain("b"))))
    commands = cluster.tell(TaskDone(first.run), at=1.0)
    load = only(commands, Load)
    assert load.model == 1
    commands = cluster.tell(TaskDone(only(commands, Run).run), at=2.0)
    assert kinds(commands) == ["Reply"]
    run = only(cluster.tell(ModelLoaded(load.copy, 1), at=2.5), Run)
    assert (run.turn, run.found) == (2.0, PARTIAL)


def test_room_is_made_by_giving_up_what_nobody_waits_for() -> None:
    cluster = Single(workers=1)
    for key, (model, number) in enumerate((("a", 0), ("b", 1))):
        (load,) = cluster.tell(RequestArrived(key, cluster.graph(chain(model))))
        run = only(cluster.tell(ModelLoaded(load.copy, number)), Run)
        cluster.tell(TaskDone(run.run))
    commands = cluster.tell(RequestArrived(2, cluster.graph(chain("c"))))
    assert commands[0] == Evict(0)
    assert only(commands, Load).model == 2
    assert cluster.engine.memory.resident == (1, 2)


def test_the_copy_of_a_model_that_was_given_up_counts_no_more() -> None:
    cluster = Single(workers=1)
    (load,) = cluster.tell(RequestArrived(0, cluster.graph(chain("a"))))
    assert cluster.tell(ModelLoaded(load.copy + 1000, 0)) == []
    assert only(cluster.tell(ModelLoaded(load.copy, 0)), Run)


def test_a_task_without_all_inputs_holds_nobody_up() -> None:
    cluster = Single(workers=1)
    graph, simple = cluster.graph(DIAMOND), cluster.graph(chain(None))
    flow = only(cluster.tell(RequestArrived(0, graph)), Run).flow
    cluster.tell(InputsArrived(flow, 3, (1,)))  # takes its place in the queue
    cluster.tell(RequestArrived(1, simple))
    run = cluster.engine._run
    commands = cluster.tell(TaskDone(run), at=1.0)
    assert only(commands, Run).flow.request.key == 1
    assert [task.stage for task in cluster.engine.queue] == [3, 1, 2]


def test_a_task_moves_if_too_much_waits_where_it_was_planned() -> None:
    cluster = Single(me=0)
    graph = cluster.graph(chain(None, None))
    flow = only(cluster.tell(RequestArrived(0, graph)), Run).flow
    planned = replace(flow, workers=[0, 1])
    cluster.engine.running.flow = planned  # type: ignore[union-attr]
    cluster.load_others(1.6)
    commands = cluster.tell(TaskDone(cluster.engine._run), at=1.0)
    assert only(commands, Run).stage == 1, "1.6 s of work wait at worker 1, and a task takes 1 s: it stays here"


def test_outputs_go_to_the_planned_worker_and_the_ingress_hears_of_the_end() -> None:
    cluster = Single(me=1)
    graph = cluster.graph(chain(None, None))
    home = Single(me=0)
    flow = only(home.tell(RequestArrived(5, home.graph(chain(None, None)))), Run).flow
    flow = replace(flow, graph=graph, workers=[1, 2])
    run = only(cluster.tell(InputsArrived(flow, 0)), Run)
    assert cluster.tell(TaskDone(run.run), at=1.0) == [Send(2, InputsArrived(flow, 1, (0,)))]
    run = only(cluster.tell(InputsArrived(flow, 1, (0,))), Run)
    assert cluster.tell(TaskDone(run.run), at=2.0) == [Send(0, StageDone(5, 1, 1, 0, 2.0))]
    assert home.tell(StageDone(5, 1, 1, 0, 2.0), at=2.1) == [Reply(5, 2.0)]


def test_inputs_of_a_join_are_gathered_and_then_placed_once() -> None:
    cluster = Single("jit", me=1)
    home = Single("jit", me=0)
    graph = cluster.graph(DIAMOND)
    home.tell(RequestArrived(5, home.graph(DIAMOND)))
    flow = replace(home.engine.ingress.open[5].flow, graph=graph, workers=[0, 0, 0, 1])
    assert cluster.tell(InputsArrived(flow, 3, (1,))) == []
    assert len(cluster.engine.queue) == 0
    cluster.keep_busy(5.0)
    (send,) = cluster.tell(InputsArrived(flow, 3, (2,)))
    assert send.worker in {0, 2}
    assert send.message == InputsArrived(flow, 3, (1, 2), gathered=True)
    other = Single("jit", me=send.worker)
    assert only(other.tell(InputsArrived(flow, 3, (1, 2), gathered=True)), Run).stage == 3


def test_a_row_is_published_when_it_changes() -> None:
    cluster = Single(workers=1, publishes=True)
    commands = cluster.tell(RequestArrived(0, cluster.graph(chain("a"))))
    load, models = only(commands, PublishLoad), only(commands, PublishModels)
    assert models.models == (0,)
    assert load.queued == 0.0
    assert load.busy_until >= 1.0
    assert cluster.tell(RequestArrived(1, cluster.graph(chain("a"))), at=0.1)[-1].queued == 1.0  # type: ignore[union-attr]


def test_rows_of_peers_are_taken_in_order_and_leave_with_them() -> None:
    cluster = Single(publishes=True)
    cluster.tell(PeerLoad(1, 2, 3.0, -np.inf))
    cluster.tell(PeerLoad(1, 1, 9.0, -np.inf))
    cluster.tell(PeerModels(2, 1, (0,)))
    view = cluster.engine.view()
    assert view.load(1, 0.0) == 3.0
    assert view.holds(2, 0)
    cluster.tell(PeerLost(1))
    assert not cluster.engine.is_present(1)
    cluster.tell(PeerJoined(1))
    assert cluster.engine.view().load(1, 0.0) == 0.0


def test_time_does_not_go_back_and_a_request_does_not_come_twice() -> None:
    cluster = Single()
    graph = cluster.graph(chain(None))
    cluster.tell(RequestArrived(0, graph), at=1.0)
    with pytest.raises(TransitionError, match="arrives but is here already"):
        cluster.tell(RequestArrived(0, graph))
    with pytest.raises(TransitionError, match="time went back"):
        cluster.tell(RequestArrived(1, graph), at=0.5)


def test_a_request_that_no_worker_present_can_run_is_refused_with_a_reason() -> None:
    cluster = Single(workers=1, me=OUTSIDE)
    graph = cluster.graph(chain("big"))
    cluster.tell(PeerLost(0))
    (refuse,) = cluster.tell(RequestArrived(3, graph))
    assert isinstance(refuse, Refuse)
    assert "'s0' can run on 1 of 1 workers, and none of these is there" in refuse.reason


# When workers are lost


def recovering(me: int = 0, scheduler: str = "compass") -> Single:
    return Single(scheduler, me=me, recovers=True)


def planned(cluster: Single, workflow: Workflow, workers: list[int], key: int = 0) -> Any:
    """A request at this ingress whose tasks are where the test wants them."""
    cluster.tell(RequestArrived(key, cluster.graph(workflow)))
    request = cluster.engine.ingress.open[key]
    request.flow = replace(request.flow, workers=workers)
    request.at, request.named = list(workers), set(workers)
    cluster.engine.here.tasks.clear()
    for task in list(cluster.engine.queue):
        cluster.engine.queue.drop(task)
    cluster.engine.running = None
    cluster.engine.load = OwnLoad()
    return request


def answered(cluster: Single, commands: Sequence[Command], at: float = 0.0) -> list[Command]:
    """Let workers that are asked how far requests are say that they have nothing to add; all commands so far."""
    asked = [each for each in commands if isinstance(each, Send) and isinstance(each.message, ProgressAsked)]
    told = [ProgressTold(each.message.key, each.worker) for each in asked]  # type: ignore[union-attr]
    return [*commands, *(command for event in told for command in cluster.tell(event, at=at))]


def lose(cluster: Single, worker: int, at: float) -> list[Command]:
    """A worker is lost."""
    return answered(cluster, cluster.tell(PeerLost(worker), at=at), at)


def test_a_task_at_a_lost_worker_is_planned_again_and_its_input_sent_again() -> None:
    cluster = recovering()
    request = planned(cluster, chain(None, None), [1, 2])
    cluster.tell(StageDone(0, 0, 1, 0, 1.0), at=1.0)
    commands = lose(cluster, 2, at=2.0)
    assert request.flow.attempt == 1
    assert request.flow.workers[0] == 1
    assert request.flow.workers[1] in {0, 1}
    again = [command.message for command in commands if isinstance(command, Send)]
    assert SendAgain(request.flow, 0, (1,)) in again


def test_a_task_that_ended_at_a_lost_worker_runs_again_if_its_output_may_be_needed() -> None:
    cluster = recovering()
    request = planned(cluster, chain(None, None), [1, 2])
    cluster.tell(StageDone(0, 0, 1, 0, 1.0), at=1.0)
    commands = lose(cluster, 1, at=2.0)
    assert request.flow.workers[1] == 2, "its successor stays where it is"
    assert not request.is_done(0)
    assert Send(2, Replanned(request.flow)) in commands


def test_a_worker_that_came_back_has_lost_what_it_put_out() -> None:
    cluster = recovering()
    request = planned(cluster, chain(None, None, None), [1, 2, 2])
    cluster.tell(StageDone(0, 0, 1, 0, 1.0), at=1.0)
    cluster.tell(StageDone(0, 1, 2, 0, 2.0), at=2.0)
    lose(cluster, 1, at=2.1)
    assert request.flow.attempt == 0, "nobody needs that output any more"
    answered(cluster, cluster.tell(PeerJoined(1), at=2.2), at=2.2)
    lose(cluster, 2, at=2.3)
    assert not request.is_done(0)
    assert not request.is_done(1)


def test_a_task_that_moved_to_a_worker_that_is_gone_is_planned_again() -> None:
    cluster = recovering()
    request = planned(cluster, chain(None, None), [1, 1])
    cluster.tell(StageDone(0, 0, 1, 0, 1.0), at=1.0)
    lose(cluster, 2, at=1.0)
    assert request.flow.attempt == 0
    cluster.tell(StageMoved(0, 1, 2, 0), at=1.1)
    assert request.flow.attempt == 1
    assert request.at[1] != 2


def test_a_move_to_a_worker_that_is_gone_counts_even_if_others_were_planned_again_meanwhile() -> None:
    cluster = recovering()
    request = planned(cluster, DIAMOND, [1, 1, 2, 2])
    cluster.tell(StageDone(0, 0, 1, 0, 1.0), at=1.0)
    lose(cluster, 2, at=1.1)
    assert (request.flow.attempt, request.at[1]) == (1, 1)
    moved = request.at[3]
    cluster.tell(StageMoved(0, 3, 2, 0), at=1.2)  # of the old plan, and sent anew since then
    assert (request.flow.attempt, request.at[3]) == (1, moved)
    cluster.tell(StageMoved(0, 1, 2, 0), at=1.3)  # of the old plan, and still what counts
    assert request.flow.attempt == 2
    assert request.at[1] != 2


def test_what_ended_by_an_old_plan_counts_but_its_output_is_sent_again() -> None:
    cluster = recovering()
    request = planned(cluster, DIAMOND, [1, 1, 2, 2])
    cluster.tell(StageDone(0, 0, 1, 0, 1.0), at=1.0)
    lose(cluster, 2, at=1.5)
    assert request.flow.attempt == 1
    commands = cluster.tell(StageDone(0, 1, 1, 0, 2.0), at=2.0)
    assert Send(1, SendAgain(request.flow, 1, (3,))) in commands


def test_one_reply_however_often_the_last_task_ran_and_everybody_may_forget() -> None:
    cluster = recovering()
    planned(cluster, chain(None), [1])
    commands = cluster.tell(StageDone(0, 0, 1, 0, 1.0), at=1.0)
    assert commands == [Reply(0, 1.0), Send(1, Forget(0))]
    assert cluster.tell(StageDone(0, 0, 2, 1, 1.5), at=1.5) == [Send(2, Forget(0))]


def test_soon_after_a_loss_every_worker_may_forget_a_request_that_was_over() -> None:
    cluster = recovering()
    planned(cluster, chain(None), [1])
    cluster.tell(StageDone(0, 0, 1, 0, 1.0), at=1.0)
    lose(cluster, 2, at=1.5)
    late = (StageDone(0, 0, 0, 0, 1.6), StageMoved(0, 0, 0, 0))
    for news in late:
        assert cluster.tell(news, at=2.0) == [Send(1, Forget(0))], "worker 1 may have passed it on"
    for news in late:
        assert cluster.tell(news, at=99.0) == []


def test_inputs_that_come_twice_or_too_late_change_nothing() -> None:
    home, cluster = recovering(), recovering(me=1)
    request = planned(home, chain(None, None), [1, 2])
    flow = replace(request.flow, graph=cluster.graph(chain(None, None)))
    run = only(cluster.tell(InputsArrived(flow, 0)), Run)
    assert cluster.tell(InputsArrived(flow, 0)) == []
    assert cluster.tell(TaskDone(run.run), at=1.0) == [Send(2, InputsArrived(flow, 1, (0,)))]
    assert cluster.tell(InputsArrived(flow, 0)) == [], "it has run"
    assert cluster.tell(SendAgain(flow, 0, (1,))) == [Send(2, InputsArrived(flow, 1, (0,)))]
    cluster.tell(Forget(0))
    assert cluster.tell(SendAgain(flow, 0, (1,))) == [Send(0, OutputGone(0, 0, 1, 0))]
    home.tell(Cancelled(0))
    assert home.tell(OutputGone(0, 0, 1, 0)) == [], "the request is over"
    assert cluster.tell(InputsArrived(flow, 0)) == []
    assert not cluster.engine.here


def test_everything_of_a_lost_ingress_is_dropped() -> None:
    home, cluster = recovering(), recovering(me=1)
    request = planned(home, chain(None, None), [1, 1])
    flow = replace(request.flow, graph=cluster.graph(chain(None, None)))
    run = only(cluster.tell(InputsArrived(flow, 0)), Run)
    cluster.tell(InputsArrived(flow, 1, (0,)))
    cluster.tell(PeerLost(0))
    assert len(cluster.engine.queue) == 0
    assert cluster.engine.load.queued == 0.0
    assert cluster.tell(TaskDone(run.run), at=1.0) == [], "what ran, ran for nothing"
    assert cluster.tell(InputsArrived(flow, 1, (0,))) == []


def test_a_task_that_can_run_nowhere_any_more_ends_the_request() -> None:
    cluster = recovering()
    planned(cluster, chain(None), [1])
    commands = cluster.tell(StageStuck(0, "no worker is left"))
    assert commands[0] == Refuse(0, "no worker is left")
    assert not cluster.engine.ingress.open
