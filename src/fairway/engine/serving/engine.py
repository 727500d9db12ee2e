"""The serving engine: receives requests, plans them, runs batches of their tasks, and passes results on.

It takes in what happens (`messages`) and answers with what is to be done; it reads no clock, touches nothing. Every
worker has one, and whatever schedules is a choice of parts in it:

- who plans: every worker the requests that it receives (Compass), or one engine for all, whose number is `OUTSIDE`;
- the placer (floor 3): where tasks go. Without a configurator it plans a request when it arrives (`ingress`), and each
  worker that finishes a task decides where the tasks go that take its output (`forwarding`); tasks wait at their
  workers;
- the configurator (floor 2): with one, tasks wait in queues at the engine that plans (`desk`) until it says how many
  run at once on how large a share of a worker, and the placer says which;
- the worker's own part (`station`, `side_by_side`): what runs next, and which models memory holds (`residency`).

When a worker is lost, the engines that planned its tasks plan them again. A task may then run twice, but a reply is
given once. The requests received by a lost engine itself fail: their clients have to ask another one, and all others
drop what they hold of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairway.engine.protocol import InvariantError, Story, TransitionError
from fairway.engine.serving.batch_rule import GraphBatches
from fairway.engine.serving.desk import Desk, DeskOptions
from fairway.engine.serving.forwarding import Returned, Shares
from fairway.engine.serving.ingress import Ingress
from fairway.engine.serving.invariants import desk_contradiction, worker_contradiction
from fairway.engine.serving.messages import (
    BatchArrived,
    BatchDone,
    BatchStopped,
    Cancelled,
    Command,
    Event,
    Forget,
    InputsArrived,
    ModelFailed,
    ModelLoaded,
    OutputGone,
    PeerCopies,
    PeerJoined,
    PeerLoad,
    PeerLost,
    PeerModels,
    Pin,
    ProgressAsked,
    ProgressTold,
    PublishLoad,
    PublishModels,
    Replanned,
    RequestArrived,
    RowAsked,
    RowTold,
    Send,
    SendAgain,
    StageDone,
    StageMoved,
    StageStuck,
    TakesUntil,
    TaskDone,
    TasksWanted,
    TimePassed,
    Warm,
)
from fairway.engine.serving.residency import OwnPart
from fairway.engine.serving.sharing import Sharing
from fairway.engine.serving.stage_facts import StageFacts
from fairway.engine.serving.tasks_here import KEPT_REQUESTS
from fairway.made import made
from fairway.place.fleet import OUTSIDE
from fairway.place.graph import TaskGraph
from fairway.place.placer import BatchPlacer
from fairway.place.plan import Request
from fairway.place.state import StateTable

STORY_EVENTS = 256
"""Of how many of the last events a story is told: more of them would not stay in the processor's caches."""


@dataclass(frozen=True, slots=True)
class ServingEngineOptions:
    """How an engine works.

    `recovers`: workers keep outputs until the reply, and can say how far a request is, so that nothing is lost with a
    worker. `publishes`: changes of the own row are commands; not needed with a table that all
    share. `forgets`: an ingress lets workers know which requests are over, so that they let go of outputs at once; if
    not, each keeps its last ones only, and an output that is needed after all is made again. `epoch` is larger each
    time that a worker comes back, and makes the numbers of its runs and copies its own. `most_attempts`: a request that
    has been planned so often, since workers were lost each time, is refused: it may be what they die of.
    `watches_time`: it compares how long tasks take with what was expected, and wants to be woken when it is `due`, so
    that a worker that is slow, or stuck, does not look idle. `batches` says which workflows have stages that run
    several requests at once, and how many; the placer's rules may forbid it all the same. `shares` are the CPUs and
    slices that the stages of workflows hold on divided workers, where no configurator chooses them. `returned` are
    stages whose outputs belong to the reply, beside those that end a workflow. `desk` is there if a configurator
    chooses batches. Every worker starts with `initial_copies` of each model, but for one that comes back, and a
    copy that has been idle for `keep_alive_seconds` goes. `facts` are for all engines that share these options: the
    first that needs some of them works them out; they also share the `story` that an error is told with.
    """

    recovers: bool = True
    publishes: bool = True
    forgets: bool = True
    epoch: int = 0
    most_attempts: float = math.inf
    watches_time: bool = True
    batches: Mapping[TaskGraph, GraphBatches] = field(default_factory=dict)
    shares: Shares = field(default_factory=dict)
    returned: Returned = field(default_factory=dict)
    desk: DeskOptions | None = None
    initial_copies: int = 0
    keep_alive_seconds: float = math.inf
    facts: dict[TaskGraph, list[StageFacts]] = field(default_factory=dict)
    story: Story[Event] = field(default_factory=lambda: Story(STORY_EVENTS))


class ServingEngine(Sharing):
    """Events in, commands out. `handle` is all that a driver needs; the rest can be looked at.

    The driver says when the time `due` has come.
    """

    __slots__ = (
        "_due_otherwise",
        "_has_more_to_do",
        "_lines",
        "_past",
        "_publishes",
        "_remember",
        "_runs_alone",
        "_to_me",
        "desk",
        "ingress",
        "placer",
    )

    def __init__(
        self,
        me: int,
        placer: BatchPlacer,
        table: StateTable,
        draws: np.random.Generator,
        options: ServingEngineOptions | None = None,
    ) -> None:
        options = options or ServingEngineOptions()
        desk, initial_copies = options.desk, 0 if options.epoch else options.initial_copies
        is_worker = me != OUTSIDE
        super().__init__(
            me,
            placer,
            table,
            draws,
            OwnPart(
                options.watches_time and is_worker,
                options.epoch,
                desk is not None and is_worker,
                options.keep_alive_seconds,
            ),
            recovers=options.recovers,
            kept=math.inf if options.forgets else KEPT_REQUESTS,
            # What comes in batches that floor 2 has planned is not batched once more.
            batches=options.batches if placer.rules.batches and desk is None else {},
            shares=options.shares,
            returned=options.returned,
            facts=options.facts,
        )
        self.placer = placer
        self.ingress = Ingress(
            recovers=options.recovers,
            forgets=options.forgets,
            most_attempts=options.most_attempts,
            follows=options.epoch > 0,
        )
        self.desk = None
        if desk is not None and me == OUTSIDE:
            self.desk = Desk(desk, placer, draws, epoch=options.epoch, initial_copies=initial_copies)
        self.here.is_wary = options.epoch > 0
        self._publishes = options.publishes
        self._use_mover(placer)
        self._due_otherwise = self.due
        self._runs_alone = not self._shared
        self._has_more_to_do = self._publishes or self._moves or self.desk is not None or self._urgent is not None
        if self._urgent is not None:
            table.show_lines()
        self._lines = table.lines if self._urgent is not None else None
        self._to_me: list[Event] = []  # messages of this engine to itself; rarely more than one
        self._past = options.story
        self._remember = options.story.remember
        if initial_copies and is_worker:
            for model in range(len(table.fleet.models)):
                for _ in range(initial_copies):
                    self.adopt(model, 0.0)

    def handle(self, now: float, events: Sequence[Event]) -> list[Command]:
        """Take in what has happened at one moment, and say what is to be done now."""
        if now < self.now:
            raise TransitionError(f"worker {self.me}: time went back from {self.now} s to {now} s: {events}")
        self.now = now
        self.out = []
        if self._moves:
            self.due = self._due_otherwise
        event: Any
        for event in events:
            self._remember((now, event))
            kind = type(event)
            if kind is InputsArrived:  # these two are most of them
                flow, stage, sources, gathered = event
                self._take(flow, stage, sources, gathered, True)
            elif kind is TaskDone and self._runs_alone:
                self._task_done(event)
            else:
                _HANDLERS[kind](self, event)
            if self._to_me:
                self._hear_itself()
            if self._ready or self._passed is not None:
                if self._urgent is None or self.running is not None or kind is TimePassed:
                    self._go_on()
                    if self._moves and self._ready and kind is InputsArrived and not event.gathered:
                        self._look(wants=False)  # its sender may not have known how busy this worker is
                        self._hear_itself()
                elif kind not in _NEWS or self._urgent.looks_at <= now:
                    self.due = now  # all that comes at this moment may run together
        if self._has_more_to_do:
            self._conclude()
        elif self._row_changed:
            self._row_changed = False
            load = self.load
            self._table.write_load(self.me, load.queued, load.busy_until, now)
        return self.out

    @property
    def waiting(self) -> int:
        """How many tasks wait here."""
        return len(self.queue) if self.desk is None else self.desk.waiting

    def _conclude(self) -> None:
        """Do what follows from all that has happened at this moment, where that is more than to write the own row."""
        if self.desk is not None:
            self.desk.decide(self)
        if self._moves:
            self._due_otherwise = self.due
            self.due = min(self.due, self._next_look())
        if self._row_changed:
            self._row_changed = False
            load = self.load
            self._table.write_load(self.me, load.queued, load.busy_until, self.now)
            if self._urgent is not None and self._lines is not None:
                self._lines.write(self.me, self._urgent.row(), self.now)
            if self._publishes:
                self._publish()

    def _hear_itself(self) -> None:
        """Take in what this engine has to say to itself."""
        while self._to_me:
            message = self._to_me.pop(0)
            _HANDLERS[type(message)](self, message)

    def _go_on(self) -> None:
        """Let tasks start that wait, or one pass that waits for its models."""
        while True:
            if self._shared:
                self._start_beside_each_other()
            elif self.running is None:
                self._start_next()
                if self._moves:
                    self._run_began()
            elif self._idles and self._overtakes and self.queue.ready:
                self._let_pass(self.running)
            if not self._to_me:
                return
            self._hear_itself()  # a task that could not start has failed, and its request was planned here

    def tell(self, worker: int, message: Event) -> None:
        """Bring a message to an engine; this one takes it in when it is done with what it does now."""
        if worker == self.me:
            self._to_me.append(message)
        else:
            self.out.append(made(Send, (worker, message)))

    def story(self, cause: str) -> str:
        """The last events of one cause, a line each, the oldest first."""
        return self._past.of(cause)

    def story_error(self, cause: str, what: str) -> TransitionError:
        """What cannot have happened, with the story of its cause."""
        return self._past.error(cause, f"worker {self.me}: {what}")

    def validate(self) -> None:
        """Raise an `InvariantError` if the engine contradicts itself."""
        wrong = worker_contradiction(self) or (None if self.desk is None else desk_contradiction(self.desk))
        if wrong is not None:
            raise InvariantError(f"worker {self.me}: {wrong}")

    def _is_open(self, request: Request) -> bool:
        ingress = request.ingress
        if ingress == self.me:
            return request.key in self.ingress.open
        return ingress == OUTSIDE or self._table.is_seen(ingress)

    def _time_passed(self, event: TimePassed) -> None:
        if self._moves:
            self._look_when_due()
        if self.desk is not None:
            self.desk.time_passed(self)
        else:
            super()._time_passed(event)

    # The others

    def _publish(self) -> None:
        """Push the load to the others and, if they have changed, the models."""
        self._numbers += 1
        line: tuple[float, ...] = ()
        if self._lines is not None:
            line = tuple(self._lines.own(self.me).ravel().tolist())
        self.out.append(PublishLoad(self._numbers, self.load.queued, self.load.busy_until, line))
        if self._models_changed:
            self._models_changed = False
            self._numbers += 1
            self.out.append(PublishModels(self._numbers, self.memory.resident))

    def _peer_load(self, event: PeerLoad) -> None:
        worker, sequence, queued, busy_until, line = event
        if self._table.receive_load(worker, sequence, queued, busy_until) and line and self._table.lines is not None:
            self._table.lines.receive(worker, line)

    def _peer_models(self, event: PeerModels) -> None:
        self._table.receive_cache(event.worker, event.sequence, list(event.models))

    def _peer_joined(self, event: PeerJoined) -> None:
        worker = event.worker
        self.here.is_wary = True
        if self._publishes:
            if worker != OUTSIDE and not self.is_present(worker):  # a table that all share knows it, and knows better
                self._table.join(worker)
            if self.me != OUTSIDE:  # the one that joins has heard of no row yet
                self._row_changed = self._models_changed = True
        if worker == OUTSIDE:
            self._planner_joined()
        elif self.desk is not None:
            self.desk.worker_joined(self, worker)
        elif self._recovers:  # news of what was sent to it before it was lost may come after the news of its loss
            self.ingress.worker_lost(self, worker)

    def _peer_lost(self, event: PeerLost) -> None:
        worker = event.worker
        self.here.is_wary = True
        if worker != OUTSIDE and self.is_present(worker):
            self._table.leave(worker)
        self._no_answer_from(worker)
        self._drop(self.here.let_go(lambda flow: flow.request.ingress == worker))
        if worker == OUTSIDE and self._reports_copies:
            self._drop_batches(lambda _: True)
        if self.desk is None:
            if self._recovers:
                self.ingress.worker_lost(self, worker)
        elif worker != OUTSIDE:
            self.desk.worker_lost(self, worker)

    def _planner_joined(self) -> None:
        """The engine that plans is a new one: no batch of the one before counts, and it hears which models are here."""
        if self._reports_copies:
            self._drop_batches(lambda _: True)
            for report in self.copies():
                self.tell(OUTSIDE, report)


def _of_requests(name: str) -> Callable[[ServingEngine, Any], None]:
    """What concerns the requests that came to an engine is for its desk, if it has one, else for its ingress."""

    def handle(engine: ServingEngine, event: Any) -> None:
        getattr(engine.ingress if engine.desk is None else engine.desk, name)(engine, event)

    return handle


_NEWS = frozenset((PeerLoad, PeerModels, RowAsked, RowTold, TasksWanted))
"""What others say of themselves: no reason to look again at a batch that waits for more."""

_HANDLERS: dict[type, Callable[[ServingEngine, Any], None]] = {
    TaskDone: ServingEngine._task_beside_done,
    RequestArrived: _of_requests("arrived"),
    Cancelled: _of_requests("cancelled"),
    BatchArrived: ServingEngine._take_batch,
    BatchStopped: ServingEngine._stop_batch,
    BatchDone: lambda engine, event: engine.desk.batch_done(engine, event) if engine.desk is not None else None,
    PeerCopies: lambda engine, event: engine.desk.copies_reported(engine, event) if engine.desk is not None else None,
    StageDone: lambda engine, event: engine.ingress.stage_done(engine, event),
    ProgressAsked: ServingEngine._progress_asked,
    ProgressTold: lambda engine, event: engine.ingress.progress_told(engine, event),
    StageMoved: lambda engine, event: engine.ingress.stage_moved(engine, event),
    StageStuck: lambda engine, event: engine.ingress.stage_stuck(engine, event),
    OutputGone: lambda engine, event: engine.ingress.output_gone(engine, event),
    TakesUntil: ServingEngine._takes_until,
    TimePassed: ServingEngine._time_passed,
    Pin: ServingEngine._pin,
    Warm: ServingEngine._warm,
    ModelLoaded: ServingEngine._model_loaded,
    ModelFailed: ServingEngine._model_failed,
    PeerLoad: ServingEngine._peer_load,
    PeerModels: ServingEngine._peer_models,
    RowAsked: ServingEngine._row_asked,
    RowTold: ServingEngine._row_told,
    TasksWanted: ServingEngine._tasks_wanted,
    PeerLost: ServingEngine._peer_lost,
    PeerJoined: ServingEngine._peer_joined,
    Replanned: ServingEngine._replanned,
    SendAgain: ServingEngine._send_again,
    Forget: ServingEngine._forget,
}
