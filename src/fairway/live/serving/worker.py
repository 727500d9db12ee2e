"""A worker: one process with one accelerator, which plans what it receives and runs what is placed on it.

    python -m fairway.live.serving.worker SETTINGS NUMBER EPOCH PARENT

Its loop takes in what comes over its sockets and from its two side threads, tells the engine, and does what the engine
says: run a stage (`running`), load or evict a model (`models`), send something to another worker (`sending`), answer a
client (`answering`). Nothing but the engine decides.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from fairway.engine.batch_rule import GraphBatches, graph_batches
from fairway.engine.serving import ServingEngine, ServingEngineOptions
from fairway.engine.serving_messages import (
    Command,
    Event,
    Evict,
    Forget,
    Load,
    ModelFailed,
    ModelLoaded,
    PeerJoined,
    PeerLost,
    Pin,
    Refuse,
    Reply,
    Run,
    Send,
    TimePassed,
)
from fairway.live.serving.answering import Answering
from fairway.live.serving.application import ServedWorkflow
from fairway.live.serving.connections import Connections, Understood, hear
from fairway.live.serving.data import Parcel, SharedBuffers
from fairway.live.serving.held import Held
from fairway.live.serving.models import Models
from fairway.live.serving.process import serve_until_told
from fairway.live.serving.running import Running
from fairway.live.serving.sending import Sending
from fairway.live.serving.settings import ServingSettings
from fairway.live.serving.shared_table import SharedTable
from fairway.live.serving.side_thread import SideThread
from fairway.live.serving.spans import Spans
from fairway.live.serving.tally import Tally
from fairway.live.serving.timed import Timed
from fairway.live.serving.wire import Channel
from fairway.place.fleet import Fleet
from fairway.place.graph import TaskGraph
from fairway.place.homes import homes_under
from fairway.place.plan import NoPlaceError, Request
from fairway.place.registry import scheduler_of
from fairway.place.state import NEVER, StateTable

_MOST_ATTEMPTS = 10
"""A request whose workers were lost so often is taken to be the reason."""


class ServingWorker:
    """The process's one worker."""

    def __init__(self, settings: ServingSettings, number: int, epoch: int) -> None:
        self._settings, self.number = settings, number
        application = settings.application()
        fleet = settings.fleet(application)
        workflows = dict(zip(settings.graphs(application, fleet), application.workflows.values(), strict=True))
        self.tally = Tally()
        scheduler = scheduler_of(settings.scheduler)
        self._table = SharedTable(fleet, settings.table, homes_under(scheduler.rules, list(workflows), fleet))
        self.engine = ServingEngine(
            number,
            Timed(scheduler, self.tally.planning),
            self._table,
            np.random.default_rng([settings.seed, number, epoch]),
            ServingEngineOptions(
                publishes=False,
                epoch=epoch,
                most_attempts=_MOST_ATTEMPTS,
                watches_time=True,
                batches=_batches(workflows),
            ),
        )
        buffers = SharedBuffers(settings.memory_directory, f"w{number}-{epoch}-")
        self._held = Held(buffers)
        self._connections = Connections(settings.socket, buffers, self._take, self._client_left)
        self._spans = Spans.of(settings.traces, f"worker-{number}")
        self._loads = SideThread("fairway-loads")
        self._models = Models(application, self._loads)
        self._running = Running(
            self.engine, workflows, self._held, self._models, self.tally, self._spans, self._do_all, self._piece_made
        )
        self._answering = Answering(
            f"worker {number}",
            workflows,
            self._connections,
            self._held,
            self.tally,
            self._spans,
            self._tell,
            first_key=(epoch * settings.workers + number) << 32,
            most_open=settings.most_open,
        )
        self._sending = Sending(
            self.engine, workflows, self._connections, self._held, self._spans, self._answering.output_came
        )
        self._warm_up(fleet, workflows)

    def _warm_up(self, fleet: Fleet, graphs: Iterable[TaskGraph]) -> None:
        """Decide once in every way, so that no request waits until the code for it is there.

        Where a task goes is another question if its worker is idle, has too much to do, or is gone.
        """
        me, scheduler, draws = self.number, scheduler_of(self._settings.scheduler), np.random.default_rng(0)
        for graph in graphs:
            request = Request(0, graph, me)
            idle, busy, gone = (StateTable(fleet) for _ in range(3))
            workers = scheduler.plan(request, idle.view(me, 0.0), 0.0, draws).workers.tolist()
            scheduler.plan(request._replace(untimed=True), idle.view(me, 0.0), 0.0, draws)
            for stage, planned in enumerate(workers):
                busy.write_load(planned, 1e9, NEVER, 0.0)
                gone.leave(planned)
                for table in (idle, busy, gone):
                    with suppress(NoPlaceError):
                        scheduler.next_worker(request, stage, planned, table.view(me, 0.0), 0.0, draws)

    def serve(self) -> None:
        """Until the process is told to end."""
        connections, engine = self._connections, self.engine
        connections.heed_signals()
        connections.listen(self._settings.socket(self.number))
        for side in (self._running.stages, self._loads):
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
        hear(self, _UNDERSTOOD, channel, message)

    def _client_left(self, channel: Channel) -> None:
        self._answering.client_left(channel)

    def _asked(self, channel: Channel, *content: Any) -> None:
        self._answering.asked(channel, content)

    def _cancelled(self, channel: Channel, name: Any) -> None:
        self._answering.cancelled(channel, name)

    def _told(self, _: Channel, coded: tuple[Any, ...], values: dict[int, Any], given: Any, trace: str | None) -> None:
        """Another worker tells this one something."""
        message = self._sending.received(coded, values, given, trace)
        if message is None:
            return
        self._tell(message)
        if isinstance(message, Forget):
            self._held.let_go(message.key)
            self._spans.forget(message.key)

    def _piece_came(self, _: Channel, key: int, index: int, parcel: Any) -> None:
        self._answering.piece_came(key, index, Parcel(*parcel))

    def _peer_lost(self, _: Channel, worker: int) -> None:
        self._connections.leave_peer(worker)
        self._tell(PeerLost(worker))
        workers = self._settings.workers
        self._held.let_go_all(lambda key: (key >> 32) % workers == worker)
        self._answering.begin_again()

    def _peer_joined(self, channel: Channel, worker: int) -> None:
        # The others have heard of its loss, so all that they had sent to it is known here once they have been heard.
        self._connections.hear_others(channel)
        self._tell(PeerJoined(worker))

    def _pinged(self, channel: Channel, number: int) -> None:
        self._connections.write(channel, ("pong", number))

    def _asked_for_tally(self, channel: Channel) -> None:
        self.tally.waiting = len(self.engine.queue)
        self.tally.open = len(self._answering)
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
            return self._running.run(command)
        if isinstance(command, Send):
            return self._sending.send(command)
        if isinstance(command, Load):
            self.tally.loads += 1
            self._models.load(command.model, partial(self._loaded, command))
        elif isinstance(command, Evict):
            self.tally.evictions += 1
            self._models.evict(command.model)
        elif isinstance(command, Reply):
            self._answering.reply(command.key)
        elif isinstance(command, Refuse):
            self._answering.refuse(command)
        return ()

    def _piece_made(self, request: Request, index: int, parcel: Parcel) -> None:
        if request.ingress == self.number:
            self._answering.piece_came(request.key, index, parcel)
        else:
            self._sending.send_piece(request, index, parcel)

    def _loaded(self, load: Load, problem: BaseException | None) -> None:
        if problem is None:
            self._tell(ModelLoaded(load.copy, load.model))
        else:
            self._tell(ModelFailed(load.copy, load.model, self._models.why_not(load.model, problem)))


def _batches(workflows: dict[TaskGraph, ServedWorkflow]) -> dict[TaskGraph, GraphBatches]:
    """How many requests run together in the stages of each workflow that has such stages."""
    batches = {}
    for graph, served in workflows.items():
        streaming = [stage for stage in range(len(graph)) if served.is_streaming(stage)]
        found = graph_batches(graph, served.slo_seconds, streaming)
        if found is not None:
            batches[graph] = found
    return batches


_UNDERSTOOD: Understood = {
    "ask": (ServingWorker._asked, 5),
    "cancel": (ServingWorker._cancelled, 1),
    "told": (ServingWorker._told, 4),
    "chunk": (ServingWorker._piece_came, 3),
    "lost": (ServingWorker._peer_lost, 1),
    "joined": (ServingWorker._peer_joined, 1),
    "ping": (ServingWorker._pinged, 1),
    "tally": (ServingWorker._asked_for_tally, 0),
}
"""What can be said to a worker, and in how many parts."""


if __name__ == "__main__":
    serve_until_told(ServingWorker, *sys.argv[1:])
