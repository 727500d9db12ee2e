"""A worker: one process with one accelerator, which plans what it receives and runs what is placed on it.

The planner, where the scheduler wants one for all, is the same program without an accelerator: its number comes after
those of the workers, and its engine's is `OUTSIDE`.

Its loop takes in what comes over its transport and from the background, tells the engine, and does what the engine
says: run a stage (`stages`), load or evict a model (`model_copies`), send something to another worker
(`peer_messages`), answer a client (`client_requests`), show its row (the board). Nothing but the engine decides, and it
is asked in one place (`_tell`). What is under the worker it knows by the seams only (`seams.backend`): the same program
runs in a process of its own, and in virtual time.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fairway.engine.serving.engine import ServingEngine, ServingEngineOptions
from fairway.engine.serving.messages import (
    HOPELESS,
    BatchArrived,
    BatchDone,
    Command,
    Event,
    Evict,
    Forget,
    Load,
    PeerCopies,
    PeerJoined,
    PeerLost,
    Pin,
    PublishLoad,
    PublishModels,
    Refuse,
    Reply,
    Restarted,
    Run,
    Send,
    TakesUntil,
    TimePassed,
)
from fairway.engine.serving.residency import EPOCH_BITS
from fairway.engine.serving.schedule import schedule_of
from fairway.live.serving.runtime.batch_messages import BatchMessages
from fairway.live.serving.runtime.client_requests import ClientRequests
from fairway.live.serving.runtime.door import Door
from fairway.live.serving.runtime.greetings import Greetings
from fairway.live.serving.runtime.in_slices import Slices
from fairway.live.serving.runtime.limits import Limits
from fairway.live.serving.runtime.lives import Lives
from fairway.live.serving.runtime.message_codec import Coder
from fairway.live.serving.runtime.model_copies import ModelCopies
from fairway.live.serving.runtime.models import Models
from fairway.live.serving.runtime.peer_messages import PeerMessages
from fairway.live.serving.runtime.planning import batches_of, desk_options, stages_planned
from fairway.live.serving.runtime.request_values import RequestValues
from fairway.live.serving.runtime.spans import Spans
from fairway.live.serving.runtime.stages import StageRunner
from fairway.live.serving.runtime.tally import Tally
from fairway.live.serving.runtime.warm_up import warm_up
from fairway.live.serving.seams.backend import Seams
from fairway.live.serving.seams.transport import Address, Arrival, Message, WireError
from fairway.live.serving.seams.values import Parcel, worker_owner
from fairway.live.serving.supervise.blame import Notice
from fairway.live.serving.supervise.settings import ServingSettings
from fairway.place.fleet import OUTSIDE
from fairway.place.homes import homes_under
from fairway.place.placer import Placer
from fairway.place.plan import Request
from fairway.stopwatch import TimedPlacer

_LOG = logging.getLogger(__name__)

_MOST_ATTEMPTS = 10
"""A request whose workers were lost so often is taken to be the reason."""


class ServingWorker:
    """One worker, in one of its lives, over any seams."""

    def __init__(self, settings: ServingSettings, number: int, epoch: int, seams: Seams) -> None:
        self._settings, self.number = settings, number
        self._now = seams.now
        application = settings.application()
        fleet = settings.fleet(application)
        served = list(application.workflows.values())
        self.tally = Tally(epoch)
        schedule = schedule_of(settings.scheduler)
        planned = stages_planned(schedule, dict(zip(settings.graphs(application, fleet), served, strict=True)))
        workflows = dict(zip(planned, served, strict=True))
        self._plans = number == settings.planner
        self._lives = Lives(settings, number, epoch)
        self.transport = transport = seams.transport(number)
        self._greetings = Greetings(transport, self._lives)
        self._board = seams.board(number, fleet, homes_under(schedule.rules, list(workflows), fleet), transport)
        took, shares = self.tally.planning.add, settings.shares(workflows)
        self.engine = ServingEngine(
            self._lives.engine_of(number),
            TimedPlacer(schedule.placer, took, hops=True),
            self._board.table,
            np.random.default_rng([settings.seed, number, epoch]),
            ServingEngineOptions(
                publishes=self._board.publishes,
                epoch=epoch,
                most_attempts=_MOST_ATTEMPTS,
                batches=batches_of(workflows),
                returned={graph: frozenset(workflow.exits) for graph, workflow in workflows.items()},
                shares=shares,
                desk=desk_options(schedule, fleet, workflows, took, plans=self._plans, shares=shares),
            ),
        )
        self._inbox: deque[Arrival] = deque()
        self._events: deque[Event] = deque()
        self._is_telling = False
        self._turned_away = 0  # requests since the last sign that would have had to wait for too long
        self._owner = worker_owner(number, epoch)
        self._lanes = stage_lane, load_lane, loop_lane = seams.run_record().lanes(number)
        self._values = RequestValues(seams.values(self._owner), loop_lane, self._now)
        self._spans = Spans.of(settings.traces, f"worker-{number}")
        stages, loads = (seams.background(f"fairway-{name}", transport.wake) for name in ("stages", "loads"))
        self._background = (stages, loads)
        limits = Limits(settings.stage_limit_seconds, settings.load_limit_seconds)
        self._slices = slices = Slices(
            dict(settings.slices),
            application,
            seams.slices(number) if settings.slices and not self._plans else None,
            lambda name: seams.background(f"fairway-{name}", transport.wake),
        )
        self._models = Models(application, loads, load_lane, limits, self._now, slices.ways())
        numbers = {name: position for position, name in enumerate(self._models.names)}
        self._door = Door(number, [[numbers[name] for name in each.recording.uses] for each in workflows.values()])
        self._supervisor: Address | None = None
        self._copies = ModelCopies(self._models, self.tally, self._now, happened=self._tell, came=self._model_came)
        self._stages = StageRunner(
            workflows,
            self._values,
            self._models,
            self.tally,
            self._spans,
            stages,
            self._now,
            happened=self._tell,
            is_dropped=self._is_dropped,
            pass_on=self._piece_made,
            lane=stage_lane,
            limits=limits,
            is_suspect=self._door.is_suspect,
            may_hang=self._door.may_hang,
            takes_until=lambda until: self._tell(TakesUntil(until)),
            slices=slices,
        )
        self._clients = ClientRequests(
            "the planner" if self._plans else f"worker {number}",
            workflows,
            transport,
            self._values,
            self.tally,
            self._spans,
            self._tell,
            self._now,
            self._door,
            self._cleared,
            number=number,
            first_key=self._lives.first_key,
            most_open=settings.most_open * (settings.workers if self._plans else 1),
        )
        coder = Coder(list(workflows))
        self._peers = PeerMessages(
            self.engine.me,
            workflows,
            transport,
            coder,
            self._values,
            self._spans,
            lives=self._lives,
            happened=self._tell,
            output_came=self._clients.output_came,
        )
        self._batch_messages = BatchMessages(
            workflows, transport, coder, self._values, self._spans, number_of=self._lives.number_of, happened=self._tell
        )
        self._done_by: Mapping[type[Command], Callable[[Any], None]] = {
            Run: self._stages.run,
            Send: self._send,
            Load: self._copies.load,
            Evict: self._copies.evict,
            PublishLoad: self._board.publish,
            PublishModels: self._board.publish,
            Reply: lambda reply: self._clients.reply(reply.key),
            Refuse: self._refuse,
            Restarted: self._restarted,
        }
        if isinstance(schedule.placer, Placer) and schedule.configurator is None:
            warm_up(schedule.placer, fleet, workflows, self.engine.me)

    def serve(self) -> None:
        """Take turns until the process ends."""
        self.start()
        while True:
            due = self.due
            self.turn(None if due == math.inf else max(0.0, due - self._now()))

    def start(self) -> None:
        """Be there for the others, and begin to load what is pinned."""
        self.transport.listen()
        if self._plans:
            seen = self._board.table.is_seen
            self._greetings.greet(worker for worker in range(self._settings.workers) if seen(worker))
            return
        self._board.join()
        for name in dict.fromkeys(self._settings.pinned):
            self._tell(Pin(self._models.names.index(name)))

    @property
    def due(self) -> float:
        """When the next turn has to be taken, if nothing comes before."""
        return min(self.engine.due, self._board.due)

    def turn(self, seconds: float | None) -> None:
        """Take in what has come, waiting for it no longer than this, and do what follows from it."""
        self._inbox.extend(self.transport.receive(seconds))
        while self._inbox:
            self._take(*self._inbox.popleft())
        for background in (*self._background, *self._slices.backgrounds):
            background.deliver()
        if self.engine.due <= (now := self._now()):
            self._tell(TimePassed())
        if self._board.due <= now:
            self._board.push(now)

    def forked(self) -> None:
        """In a child that a stage has forked: it is not this worker, and must not keep its connections."""
        for lane in self._lanes:
            lane.turn_off()
        self.transport.close()

    def close(self) -> None:
        """Send the last spans."""
        self._spans.close()

    # What comes in

    def _take(self, sender: Address, message: Message | None) -> None:
        """Take in a message, or that its sender is gone; a sender of nonsense is let go."""
        if message is None:
            if isinstance(sender, int):
                self._board.line_ended(sender)
            self._clients.client_left(sender)
            return
        try:
            word, *content = message
            understood = _UNDERSTOOD.get(word) if isinstance(word, str) else None
            if understood is None or len(content) != understood[1]:
                raise WireError(f"a message {str(word)[:40]!r} with {len(content)} parts given, which means nothing")
            understood[0](self, sender, *content)
        except WireError as error:
            _LOG.warning("a connection is closed: %s", error)
            self.transport.hang_up(sender)
            self._inbox = deque(arrival for arrival in self._inbox if arrival.sender != sender)
            self._clients.client_left(sender)

    def _take_others(self, but: Address) -> None:
        """Take in all that has come by now, but for what this sender has sent."""
        arrived = [*self._inbox, *self.transport.receive(0.0)]
        self._inbox = deque(arrival for arrival in arrived if arrival.sender == but)
        for arrival in arrived:
            if arrival.sender != but:
                self._take(*arrival)

    def _peer_says(self, _: Address, *content: Any) -> None:
        """Another worker has an event for the engine here."""
        event = self._peers.received(*content)
        if event is None:
            return
        self._tell(event)
        if isinstance(event, Forget):
            self._values.let_go(event.key)
            self._spans.forget(event.key)

    def _batch_ended(self, _: Address, coded: tuple[Any, ...], outputs: Any) -> None:
        event = self._batch_messages.ended(coded, outputs)
        if event is not None:
            self._tell(event)

    def _row_came(self, _: Address, content: Any) -> None:
        event = self._board.received(content)
        if event is not None and not self._lives.has_ended(event.worker, event.sequence >> EPOCH_BITS):
            self._tell(event)
        if self._plans and content[0] == "present":
            self._greetings.greet(content[1])

    def _planner_greets(self, sender: Address, epoch: int) -> None:
        """A planner is there: nothing of the one before counts any more, nor what was handed over to it."""
        is_known = self._lives.is_there(OUTSIDE, epoch)
        if not self._lives.is_greeted_by(OUTSIDE, epoch):
            return
        if not is_known:
            self._batch_messages.planner_lost()
            self._values.values.clear(self._owner)
            self._tell(PeerJoined(OUTSIDE))
        copies = tuple(tuple(each) for each in self.engine.copies())
        self.transport.send(self._lives.number_of(OUTSIDE), ("ready", self.number, self._lives.epoch, copies))
        self._take_early(sender)

    def _worker_is_ready(self, _: Address, worker: int, epoch: int, copies: Any) -> None:
        if self._greetings.answered(worker, epoch):
            self._tell(PeerJoined(worker), *(PeerCopies(*each) for each in copies))

    def _peer_lost(self, _: Address, worker: int, epoch: int) -> None:
        self._lives.lost(worker, epoch)
        self.transport.hang_up(worker)
        engine = self._lives.engine_of(worker)
        if engine != OUTSIDE:
            self._board.peer_lost(worker)
            self._greetings.forget(worker)
            self._batch_messages.worker_lost(engine)
        self._tell(PeerLost(engine))
        if engine == OUTSIDE:
            self._batch_messages.planner_lost()
        self._values.let_go_all(self._lives.is_over)
        self._clients.begin_again()
        self._clients.worker_lost(worker)

    def _peer_joined(self, sender: Address, worker: int, epoch: int) -> None:
        self._lives.check(worker, epoch)
        self._clients.worker_joined(worker)
        # The others have heard of its loss, so all that they had sent to it is known here once they have been heard.
        self._take_others(sender)
        engine = self._lives.engine_of(worker)
        if not self._plans and engine != OUTSIDE:  # the planner greets each worker itself
            self._tell(PeerJoined(engine))
        if engine != OUTSIDE:
            self._board.peers_present([worker])
        self._peers_live(sender, [(worker, epoch)])

    def _peers_live(self, sender: Address, lives: Any) -> None:
        """The supervisor says which processes are there."""
        for worker, epoch in lives:
            self._lives.joined(worker, epoch)
            if self._plans:
                if (former := self._greetings.replaced(worker, epoch)) is not None:
                    self._peer_lost(sender, worker, former)
                self._greetings.named(worker, epoch)
        self._take_early(sender)

    def _take_early(self, sender: Address) -> None:
        """Take in what has come before the news of the process that it is about."""
        for content in self._peers.early():
            self._peer_says(sender, *content)

    def _sign_wanted(self, sender: Address, number: int) -> None:
        self._supervisor = sender
        self._clients.time_passed()
        self.transport.stay_reachable()
        self.transport.send(sender, ("pong", number, self.engine.waiting + self._turned_away))
        self._turned_away = 0

    def _notice_came(self, sender: Address, content: Any) -> None:
        """The supervisor says which requests, workflows and models workers die of."""
        self._supervisor = sender
        self._clients.heard(Notice.checked(content))

    def _cleared(self, mark: bytes) -> None:
        if self._supervisor is not None:
            self.transport.send(self._supervisor, ("cleared", mark))

    def _tally_wanted(self, sender: Address) -> None:
        tally = self.tally
        tally.waiting, tally.open, tally.held = self.engine.waiting, len(self._clients), len(self._values)
        tally.resident = [self._models.names[model] for model in self.engine.memory.resident]
        tally.not_enforced = list(self._slices.not_enforced)
        self.transport.send(sender, ("tally", tally.document()))

    # What the engine wants

    def _tell(self, *events: Event) -> None:
        """Tell the engine what happened, and do what it wants done; what comes of that is handled after it."""
        self._events.extend(events)
        if self._is_telling:
            return
        self._is_telling = True
        try:
            while self._events:
                events = tuple(self._events)
                self._events.clear()
                for command in self.engine.handle(self._now(), events):
                    self._done_by[type(command)](command)
        finally:
            self._is_telling = False

    def _is_dropped(self, position: int) -> bool:
        """Whether the client of one of the requests that run now has gone; any thread may ask."""
        running = self.engine.running
        return running is not None and (running, *running.mates)[position].dropped

    def _send(self, send: Send) -> None:
        message = send.message
        if isinstance(message, BatchArrived):
            self._batch_messages.send(send.worker, message)
        elif isinstance(message, BatchDone):
            self._batch_messages.send_end(send.worker, message)
        else:
            self._peers.send(send)

    def _model_came(self, model: int) -> None:
        if self._supervisor is not None and self._door.is_on_trial(model):
            self.transport.send(self._supervisor, ("loaded", model))

    def _refuse(self, refuse: Refuse) -> None:
        self._turned_away += refuse.code == HOPELESS
        self._clients.refuse(refuse)
        self._batch_messages.begins_again(refuse.key)

    def _restarted(self, restarted: Restarted) -> None:
        self._values.begin_again(restarted.key)
        self._batch_messages.begins_again(restarted.key)

    def _piece_made(self, request: Request, index: int, parcel: Parcel) -> None:
        if request.ingress == self.engine.me:
            self._clients.piece_came(request.key, index, parcel)
        else:
            self._peers.send_piece(request, index, parcel)


_UNDERSTOOD: Mapping[str, tuple[Callable[..., None], int]] = {
    "ask": (lambda worker, client, *content: worker._clients.take(client, content), 5),
    "ask-again": (lambda worker, client, *content: worker._clients.take(client, content), 6),
    "cancel": (lambda worker, client, name: worker._clients.cancelled(client, name), 1),
    "event": (ServingWorker._peer_says, 5),
    "planner": (ServingWorker._planner_greets, 1),
    "ready": (ServingWorker._worker_is_ready, 3),
    "batch": (lambda worker, _, coded, members: worker._tell(worker._batch_messages.received(coded, members)), 2),
    "batch-done": (ServingWorker._batch_ended, 2),
    "row": (ServingWorker._row_came, 1),
    "chunk": (lambda worker, _, key, index, parcel: worker._clients.piece_came(key, index, Parcel(*parcel)), 3),
    "lost": (ServingWorker._peer_lost, 2),
    "joined": (ServingWorker._peer_joined, 2),
    "lives": (ServingWorker._peers_live, 1),
    "notice": (ServingWorker._notice_came, 1),
    "ping": (ServingWorker._sign_wanted, 1),
    "tally": (ServingWorker._tally_wanted, 0),
    "recent": (lambda at, asker: at.transport.send(asker, ("recent", at.tally.recent.document(at._now()))), 0),
}
"""What can be said to a worker: by its first word, what takes it in, and how many parts follow."""
