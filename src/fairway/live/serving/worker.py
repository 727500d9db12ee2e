"""A worker: one process with one accelerator, which plans what it receives and runs what is placed on it.

    python -m fairway.live.serving.worker SETTINGS NUMBER EPOCH PARENT

Its loop takes in what comes over its sockets and from its two side threads, tells the engine, and does what the engine
says: run a stage, load or evict a model, send something to another worker, answer a client. Nothing but the engine
decides. Stages that are done in a moment run in the loop itself; handing them to a thread would take longer.
"""

from __future__ import annotations

import gc
import logging
import math
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fairway.engine.serving import ServingEngine, ServingEngineOptions
from fairway.engine.serving_messages import (
    FAILED,
    Cancelled,
    Command,
    Event,
    Evict,
    Forget,
    InputsArrived,
    Load,
    ModelFailed,
    ModelLoaded,
    PeerJoined,
    PeerLost,
    Pin,
    Refuse,
    Reply,
    RequestArrived,
    Run,
    Send,
    StageDone,
    StageStuck,
    TaskDone,
    TaskFailed,
    TimePassed,
)
from fairway.live.serving.coded import Coder
from fairway.live.serving.connections import Connections
from fairway.live.serving.data import Parcel, SharedBuffers
from fairway.live.serving.held import Held, Value
from fairway.live.serving.models import Models
from fairway.live.serving.parent import allow_many_files, end_with_parent, has_ended
from fairway.live.serving.running import Running, explained
from fairway.live.serving.settings import ServingSettings
from fairway.live.serving.shared_table import SharedTable
from fairway.live.serving.side_thread import SideThread
from fairway.live.serving.spans import Spans
from fairway.live.serving.talk import Asked
from fairway.live.serving.tally import Tally
from fairway.live.serving.timed import Timed
from fairway.live.serving.wire import Channel, WireError
from fairway.place.fleet import Fleet
from fairway.place.plan import Request
from fairway.place.registry import scheduler_of
from fairway.place.state import StateTable

_LOG = logging.getLogger(__name__)

_PATIENCE_SECONDS = 2.0
_MOST_ATTEMPTS = 10
"""A request whose workers were lost so often is taken to be the reason."""


class _Open(NamedTuple):
    """A request that a client waits for."""

    channel: Channel
    asked: Asked
    since: float
    deadline: float


class ServingWorker:
    """The process's one worker."""

    def __init__(self, settings: ServingSettings, number: int, epoch: int) -> None:
        self._settings, self.number = settings, number
        application = settings.application()
        self._workflows = list(application.workflows.values())
        fleet = settings.fleet(application)
        self._graphs = settings.graphs(application, fleet)
        self._coder = Coder(self._graphs)
        self._number_of = {graph: index for index, graph in enumerate(self._graphs)}
        self.tally = Tally()
        self._table = SharedTable(fleet, settings.table)
        self.engine = ServingEngine(
            number,
            Timed(scheduler_of(settings.scheduler), self.tally.planning),
            self._table,
            np.random.default_rng([settings.seed, number, epoch]),
            ServingEngineOptions(publishes=False, epoch=epoch, most_attempts=_MOST_ATTEMPTS, watches_time=True),
        )
        self._buffers = SharedBuffers(settings.memory_directory, f"w{number}-{epoch}-")
        self._held = Held(self._buffers)
        self._connections = Connections(settings.socket, self._buffers, self._take, self._client_left)
        self._spans = Spans.of(settings.traces, f"worker-{number}")
        self._stages, self._loads = SideThread("fairway-stages"), SideThread("fairway-loads")
        self._models = Models(application, self._loads)
        self._running = Running(self._workflows, self._held, self._models, self._stages, self.tally)
        self._key = (epoch * settings.workers + number) << 32
        self._open: dict[int, _Open] = {}
        self._keys_of: dict[tuple[Channel, Any], int] = {}
        self._complete: set[int] = set()
        self._warm_up(fleet)

    def _warm_up(self, fleet: Fleet) -> None:
        """Plan once, so that the first request does not wait until the planner's code is there."""
        table, me, scheduler = StateTable(fleet), self.number, scheduler_of(self._settings.scheduler)
        draws = np.random.default_rng(0)
        for graph in self._graphs:
            request = Request(0, graph, me)
            workers = scheduler.plan(request, table.view(me, 0.0), 0.0, draws).workers.tolist()
            for stage, planned in enumerate(workers):
                scheduler.next_worker(request, stage, planned, table.view(me, 0.0), 0.0, draws)

    def serve(self) -> None:
        """Until the process is told to end."""
        connections, engine = self._connections, self.engine
        connections.listen(self._settings.socket(self.number))
        for side in (self._stages, self._loads):
            connections.watch(side.wake, side.deliver)
        self._table.join(self.number)
        for name in dict.fromkeys(self._settings.pinned):
            self._tell(Pin(self._models.names.index(name)))
        while True:
            due = engine.due
            connections.wait(None if due == math.inf else max(0.0, due - time.monotonic()))
            if engine.due <= time.monotonic():
                self._tell(TimePassed())

    def close(self) -> None:
        """Send the last spans."""
        self._spans.close()

    # What comes in

    def _take(self, channel: Channel, message: tuple[Any, ...]) -> None:
        kind, *content = message
        known = _TAKEN.get(kind) if isinstance(kind, str) else None
        if known is None or len(content) != known[1]:
            raise WireError(f"a message {str(kind)[:40]!r} with {len(content)} parts given, which means nothing here")
        known[0](self, channel, *content)

    def _client_left(self, channel: Channel) -> None:
        for key in [key for key, request in self._open.items() if request.channel is channel]:
            self._cancel(key)  # nobody is there to hear the answer

    def _asked(self, channel: Channel, *content: Any) -> None:
        """A client wants a workflow to be run."""
        asked = Asked.checked(content, len(self._workflows))
        now = time.monotonic()
        self.tally.asked += 1
        if len(self._open) >= self._settings.most_open:
            self.tally.refuse("busy")
            reason = f"worker {self.number} has {self._settings.most_open} requests already; try again later"
            self._connections.write(channel, ("refused", asked.name, "busy", reason))
            return
        try:
            given = Value(self._buffers, came=asked.parcel)
        except OSError as error:
            self._connections.write(channel, ("refused", asked.name, FAILED, f"its input is not there: {error}"))
            return
        deadline = math.inf if asked.seconds is None else now + asked.seconds
        self._begin(_Open(channel, asked, now, deadline), given)

    def _begin(self, request: _Open, given: Value) -> None:
        self._key += 1
        key, asked = self._key, request.asked
        self._open[key] = request
        self._keys_of[request.channel, asked.name] = key
        self._held.keep_input(key, given)
        self._spans.asked(key, self._workflows[asked.workflow].name, asked.trace)
        self._tell(RequestArrived(key, self._graphs[asked.workflow], request.deadline))

    def _cancelled(self, channel: Channel, name: Any) -> None:
        key = self._keys_of.get((channel, name))
        if key is not None:
            self._cancel(key)

    def _cancel(self, key: int) -> None:
        self.tally.cancelled += 1
        self._forget(key, "cancelled")
        self._tell(Cancelled(key))
        self._held.let_go(key)

    def _told(self, _: Channel, coded: tuple[Any, ...], values: dict[int, Any], given: Any, trace: str | None) -> None:
        """Another worker tells this one something."""
        message = self._coder.decode(coded)
        if isinstance(message, InputsArrived | StageDone):
            try:
                came = {stage: Value(self._buffers, came=Parcel(*parcel)) for stage, parcel in values.items()}
                payload = None if given is None else Value(self._buffers, came=Parcel(*given))
            except OSError as error:
                # Its maker has died or the request is over. Either way others know, and will do what is to be done.
                _LOG.info("what came with %s is gone: %s", type(message).__name__, error)
                return
            if isinstance(message, InputsArrived):
                request = message.flow.request
                key = request.key
                if self._held.is_over(key) or not self.engine.is_present(request.ingress):
                    return
                if payload is not None:
                    self._held.keep_input(key, payload)
                self._spans.passed(key, trace)
            else:
                key = message.key
            for stage, value in came.items():
                self._held.keep_output(key, stage, value)
            if key in self._complete:
                self._reply(key)
        self._tell(message)
        if isinstance(message, Forget):
            self._held.let_go(message.key)
            self._spans.forget(message.key)

    def _chunk_came(self, _: Channel | None, key: int, index: int, parcel: Any) -> None:
        request = self._open.get(key)
        if request is not None:
            self._connections.hand_over(request.channel, ("chunk", request.asked.name, index), Parcel(*parcel))
        else:
            self._buffers.discard(Parcel(*parcel))

    def _peer_lost(self, _: Channel, worker: int) -> None:
        self._connections.leave_peer(worker)
        self._tell(PeerLost(worker))
        workers = self._settings.workers
        self._held.let_go_all(lambda key: (key >> 32) % workers == worker)
        for key in list(self._complete):  # a part of its reply may be lost
            request, given = self._open[key], self._held.input(key)
            assert given is not None
            self._forget(key, "again")
            self._held.let_go(key)
            self._begin(request, given)

    def _peer_joined(self, _: Channel, worker: int) -> None:
        self._tell(PeerJoined(worker))

    def _pinged(self, channel: Channel, number: int) -> None:
        self._connections.write(channel, ("pong", number))

    def _asked_for_tally(self, channel: Channel) -> None:
        self.tally.waiting = len(self.engine.queue)
        self.tally.open = len(self._open)
        self.tally.held = len(self._held)
        self.tally.resident = [self._models.names[model] for model in self.engine.memory.resident]
        self._connections.write(channel, ("tally", self.tally.document()))

    # What the engine wants

    def _tell(self, event: Event) -> None:
        """Tell the engine what happened, and do what it wants done, and what it wants then."""
        self._do_all(self.engine.handle(time.monotonic(), event))

    def _do_all(self, commands: Sequence[Command]) -> None:
        while commands:
            commands = [later for command in commands for later in self._do(command)]

    def _do(self, command: Command) -> Sequence[Command]:
        """Do what the engine asks for; returns what it asks for next, if that is known at once."""
        if isinstance(command, Run):
            return self._run(command)
        if isinstance(command, Send):
            return self._send(command)
        if isinstance(command, Load):
            self.tally.loads += 1
            self._models.load(command.model, partial(self._loaded, command))
        elif isinstance(command, Evict):
            self.tally.evictions += 1
            self._models.evict(command.model)
        elif isinstance(command, Reply):
            self._reply(command.key)
        elif isinstance(command, Refuse):
            self._refuse(command)
        return ()

    def _run(self, run: Run) -> Sequence[Command]:
        index, now = self._number_of[run.flow.graph], time.monotonic()
        self.tally.ran(index, run.stage, run.found, now - run.queued, 1)
        pass_on = partial(self._piece_made, run.flow.request)
        try:
            work = self._running.prepared(index, run, self._is_dropped, pass_on)
            if self._running.is_long(index, run):
                self._stages.run(work, lambda value, problem: self._do_all(self._ran(run, now, value, problem)))
                return ()
            value, problem = work(), None
        except BaseException as error:  # a stage may raise anything, and the worker outlives it
            value, problem = None, error
        return self._ran(run, now, value, problem)

    def _is_dropped(self) -> bool:
        """Whether nobody waits any more for what runs now; any thread may ask."""
        running = self.engine.running
        return running is not None and running.dropped

    def _piece_made(self, request: Request, index: int, parcel: Parcel) -> None:
        if request.ingress == self.number:
            self._chunk_came(None, request.key, index, parcel)
            return
        channel = self._connections.peer(request.ingress)
        message = ("chunk", request.key, index, tuple(parcel))
        if channel is None or not self._connections.write(channel, message):
            self._buffers.discard(parcel)

    def _ran(self, run: Run, began: float, value: object, problem: BaseException | None) -> Sequence[Command]:
        now = time.monotonic()
        graph, stage, key = run.flow.graph, run.stage, run.flow.request.key
        index, name = self._number_of[graph], graph.workflow.stages[stage].name
        self._running.took(index, run, now - began)
        self._spans.ran(key, name, began, now, problem)
        if problem is None:
            in_reply = stage in self._workflows[index].exits
            self._held.keep_output(key, stage, Value(self._buffers, value, in_reply=in_reply))
            return self.engine.handle(now, TaskDone(run.run))
        if self._is_dropped():
            return self.engine.handle(now, TaskFailed(run.run, "nobody waits for it"))
        self.tally.failures += 1
        return self.engine.handle(now, TaskFailed(run.run, explained(f"stage '{name}'", problem)))

    def _loaded(self, load: Load, problem: BaseException | None) -> None:
        if problem is None:
            self._tell(ModelLoaded(load.copy, load.model))
            return
        reason = f"model '{self._models.names[load.model]}' cannot be loaded: {type(problem).__name__}: {problem}"
        _LOG.error("%s", reason)
        self._tell(ModelFailed(load.copy, load.model, reason))

    def _send(self, send: Send) -> Sequence[Command]:
        """Bring a message to another worker, with the values that it speaks of.

        If that one is gone, the supervisor will say so, and what it had is planned again.
        """
        message, trace = send.message, None
        values: dict[int, Parcel] = {}
        given: Parcel | None = None
        try:
            if isinstance(message, InputsArrived):
                key = message.flow.request.key
                workflow = self._workflows[self._number_of[message.flow.graph]]
                values = self._packed(key, message.sources)
                if workflow.takes_input(message.stage) and (payload := self._held.input(key)) is not None:
                    given = payload.packed()
                trace = self._spans.trace_of(key)
            elif isinstance(message, StageDone):
                value = self._held.output(message.key, message.stage)
                if value is not None and value.in_reply:
                    values = {message.stage: value.packed()}
        except Exception as error:  # it cannot be pickled, or there is no room for it
            assert isinstance(message, InputsArrived | StageDone)
            return self._stuck(message, send.worker, error)
        channel = self._connections.peer(send.worker)
        if channel is not None:
            self._connections.write(channel, ("told", self._coder.encode(message), values, given, trace))
        return ()

    def _packed(self, key: int, stages: Iterable[int]) -> dict[int, Parcel]:
        found = ((stage, self._held.output(key, stage)) for stage in stages)
        return {stage: value.packed() for stage, value in found if value is not None}

    def _stuck(self, message: InputsArrived | StageDone, worker: int, error: Exception) -> Sequence[Command]:
        """What a stage put out cannot go to another process: its request fails."""
        if isinstance(message, StageDone):
            key, ingress = message.key, worker
        else:
            key, ingress = message.flow.request.key, message.flow.request.ingress
        stuck = StageStuck(key, explained("what a stage put out cannot be sent: pickling", error), FAILED)
        if ingress == self.number:
            return self.engine.handle(time.monotonic(), stuck)
        channel = self._connections.peer(ingress)
        if channel is not None:
            self._connections.write(channel, ("told", self._coder.encode(stuck), {}, None, None))
        return ()

    # Answers

    def _reply(self, key: int) -> None:
        """Answer the client, as soon as all that belongs in the answer is here: messages may overtake each other."""
        request = self._open.get(key)
        if request is None:
            return
        workflow = self._workflows[request.asked.workflow]
        outputs = self._held.outputs(key, workflow.exits)
        if outputs is None:
            self._complete.add(key)
            return
        try:
            reply = workflow.reply({stage: value.get() for stage, value in outputs.items()})
            parcel = self._buffers.pack(reply)
        except Exception as error:  # it cannot be pickled, or there is no room for it
            self._refuse(Refuse(key, explained("the reply cannot be sent: pickling", error), FAILED))
            return
        seconds = time.monotonic() - request.since
        self._connections.hand_over(request.channel, ("reply", request.asked.name), parcel)
        self.tally.answered(request.asked.workflow, seconds, workflow.slo_seconds)
        self._forget(key, "replied")
        self._held.let_go(key)

    def _refuse(self, refuse: Refuse) -> None:
        self.tally.refuse(refuse.code)
        request = self._open.get(refuse.key)
        if request is not None:
            self._connections.write(request.channel, ("refused", request.asked.name, refuse.code, refuse.reason))
        self._forget(refuse.key, refuse.code)
        self._held.let_go(refuse.key)

    def _forget(self, key: int, outcome: str) -> None:
        request = self._open.pop(key, None)
        self._complete.discard(key)
        if request is not None:
            self._keys_of.pop((request.channel, request.asked.name), None)
            self._spans.ended(key, outcome)


_TAKEN: dict[str, tuple[Callable[..., None], int]] = {
    "ask": (ServingWorker._asked, 5),
    "cancel": (ServingWorker._cancelled, 1),
    "told": (ServingWorker._told, 4),
    "chunk": (ServingWorker._chunk_came, 3),
    "lost": (ServingWorker._peer_lost, 1),
    "joined": (ServingWorker._peer_joined, 1),
    "ping": (ServingWorker._pinged, 1),
    "tally": (ServingWorker._asked_for_tally, 0),
}
"""What can be said to a worker, and in how many parts."""


def main(settings: str, number: str, epoch: str, parent: str) -> int:
    """Be a worker until told to stop, or until the supervisor is gone."""
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s worker-{number} %(levelname)s %(message)s")
    read = ServingSettings.read(Path(settings))

    worker: ServingWorker | None = None

    def end(*_: Any) -> None:
        if worker is not None:
            worker.close()
        os._exit(0)  # there is nothing to be saved, and a stage may be running

    def abandoned(*_: Any) -> None:
        if has_ended(int(parent), _PATIENCE_SECONDS):  # then nobody else is left to do it
            shutil.rmtree(read.memory_directory, ignore_errors=True)
        end()

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the supervisor, which stops its workers in order
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGHUP, abandoned)
    end_with_parent(int(parent))
    allow_many_files()
    worker = ServingWorker(read, int(number), int(epoch))
    gc.freeze()  # what was imported stays: looking through all of it would take 45 ms each time that a model goes
    worker.serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
