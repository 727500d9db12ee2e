"""The dispatcher: takes all requests, lets a configurator such as ESG decide, and has the invokers do it.

    python -m fairway.live.serving.dispatcher SETTINGS NUMBER EPOCH PARENT

It runs the `ServerlessEngine`, the same as in the simulator: batches are made of the requests of all clients, so one
place has to see all of them. Its loop takes in what comes over its sockets, tells the engine all of it at once, and
does what the engine says. Values do not pass through it: it knows the names of their files, and hands them on.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from fairway.configure.registry import configurator_of
from fairway.engine import serving_messages
from fairway.engine.serverless import ServerlessEngine
from fairway.engine.serverless_messages import (
    NO_CONTAINER,
    Command,
    ContainerFailed,
    ContainerReady,
    Event,
    InvokerJoined,
    InvokerLost,
    Reply,
    RequestArrived,
    Restarted,
    StartContainer,
    StartTask,
    StopContainer,
    TaskDone,
    TimeReached,
    Wake,
)
from fairway.engine.serving_messages import HIT, MISS, NO_MODEL, Cancelled, Refuse
from fairway.live.serving.answering import Answering
from fairway.live.serving.application import ServedWorkflow
from fairway.live.serving.connections import Connections, Understood, hear
from fairway.live.serving.data import Parcel, SharedBuffers
from fairway.live.serving.entrusted import Entrusted
from fairway.live.serving.invoked import container_rule, invoked_workflows
from fairway.live.serving.orders import Member, Order, Told
from fairway.live.serving.process import serve_until_told
from fairway.live.serving.running import explained
from fairway.live.serving.settings import ServingSettings
from fairway.live.serving.spans import Spans
from fairway.live.serving.tally import Tally
from fairway.live.serving.timed_configurator import TimedConfigurator
from fairway.live.serving.wire import Channel

_LOOK_SECONDS = 0.05
"""How often it looks for invokers that are not there, as long as there are such."""


class _Started(NamedTuple):
    """A task that an invoker runs; in `keys`, a request that has begun again meanwhile is None."""

    invoker: int
    stage: int
    keys: list[int | None]


class Dispatcher:
    """The process's one dispatcher."""

    def __init__(self, settings: ServingSettings, number: int, epoch: int) -> None:
        self._settings, self._number = settings, number
        application = settings.application()
        graphs = settings.graphs(application, settings.fleet(application))
        self._workflows = list(application.workflows.values())
        self._number_of = {graph: index for index, graph in enumerate(graphs)}
        invoked = invoked_workflows(settings, application)
        self._slo = [served.application.slo_seconds for served in invoked.applications]
        self._tally = Tally()
        self.engine = ServerlessEngine(
            invoked.applications,
            invoked.functions,
            TimedConfigurator(configurator_of(settings.scheduler), self._tally.planning),
            invoked.platform,
            settings.workers,
            np.random.default_rng([settings.seed, epoch]),
            container_rule(settings, invoked),
        )
        names = list(application.models)
        self._model_of = [names.index(function.name) for function in invoked.functions]
        self._function_of = {model: function for function, model in enumerate(self._model_of)}
        self._buffers = SharedBuffers(settings.memory_directory, f"w{number}-{epoch}-")
        self._held = Entrusted(self._buffers)
        self._connections = Connections(settings.socket, self._buffers, self._take, self._left)
        self._spans = Spans.of(settings.traces, "dispatcher")
        self._answering = Answering(
            "the dispatcher",
            dict(zip(graphs, self._workflows, strict=True)),
            self._connections,
            self._held,
            self._tally,
            self._spans,
            self._happened,
            first_key=epoch << 32,
            most_open=settings.most_open * settings.workers,
        )
        self._ready: set[int] = set()
        self._asked: set[int] = set()
        self._tasks: dict[int, _Started] = {}
        self._begun: set[int] = set()
        self._wakes: list[float] = []
        self._events: list[Event] = [InvokerLost(invoker) for invoker in range(settings.workers)]

    def serve(self) -> None:
        """Until the process is told to end."""
        self._turn()  # nobody is there yet
        self._look_for_invokers()
        self._connections.heed_signals()
        self._connections.listen(self._settings.socket(self._number))
        while True:
            self._connections.wait(self._patience())
            self._look_for_invokers()
            self._turn()

    def close(self) -> None:
        """Send the last spans."""
        self._spans.close()

    def _patience(self) -> float | None:
        if self._events:
            return 0.0
        seconds = _LOOK_SECONDS if len(self._asked) < self._settings.workers else math.inf
        if self._wakes:
            seconds = min(seconds, max(0.0, self._wakes[0] - time.monotonic()))
        return None if seconds == math.inf else seconds

    def _look_for_invokers(self) -> None:
        if len(self._asked) == self._settings.workers:
            return
        for invoker in range(self._settings.workers):
            if invoker not in self._asked:
                channel = self._connections.peer(invoker)
                if channel is not None and self._connections.write(channel, ("serve",)):
                    self._asked.add(invoker)

    # What comes in

    def _take(self, channel: Channel, message: tuple[Any, ...]) -> None:
        understood = _UNDERSTOOD_FROM_INVOKERS if isinstance(channel.peer, int) else _UNDERSTOOD_FROM_OTHERS
        hear(self, understood, channel, message)

    def _left(self, channel: Channel) -> None:
        if not isinstance(channel.peer, int):
            self._answering.client_left(channel)
            return
        invoker = channel.peer
        self._asked.discard(invoker)
        if invoker in self._ready:
            self._ready.discard(invoker)
            self._tasks = {key: task for key, task in self._tasks.items() if task.invoker != invoker}
            self._events.append(InvokerLost(invoker))

    def _happened(self, event: serving_messages.Event) -> None:
        """What clients want, as it is said to workers."""
        if isinstance(event, serving_messages.RequestArrived):
            workflow = self._number_of[event.graph]
            due = time.monotonic() + self._slo[workflow]
            self._events.append(RequestArrived(event.key, workflow, due, event.deadline))
        elif isinstance(event, Cancelled):
            self._events.append(event)
            self._forget_in_tasks(event.key)

    def _client_asks(self, channel: Channel, *content: Any) -> None:
        self._answering.asked(channel, content)

    def _client_cancels(self, channel: Channel, name: Any) -> None:
        self._answering.cancelled(channel, name)

    def _invoker_is_ready(self, channel: Channel, models: Sequence[int]) -> None:
        invoker = channel.peer
        assert isinstance(invoker, int)
        self._ready.add(invoker)
        self._events.append(InvokerJoined(invoker, tuple(self._function_of[model] for model in models)))

    def _task_done(self, _: Channel, task: int, seconds: float, told: Sequence[Told]) -> None:
        started = self._tasks.pop(task)
        failed = []
        for key, (parcel, reason) in zip(started.keys, told, strict=True):
            if key is None:
                if parcel is not None:
                    self._buffers.discard(parcel)
            elif parcel is None:
                failed.append((key, str(reason)))
            else:
                try:
                    self._held.take_output(key, started.stage, parcel)
                except OSError as error:
                    failed.append((key, f"what a stage put out is not there: {error}"))
        self._events.append(TaskDone(task, seconds, tuple(failed)))

    def _container_done(self, _: Channel, container: int, reason: str | None) -> None:
        if reason is not None:
            self._begun.discard(container)
        self._events.append(ContainerReady(container) if reason is None else ContainerFailed(container, reason))

    def _piece_came(self, _: Channel, key: int, index: int, parcel: Any) -> None:
        self._answering.piece_came(key, index, Parcel(*parcel))

    def _worker_lost(self, _: Channel, worker: int) -> None:
        self._connections.leave_peer(worker)

    def _worker_joined(self, _: Channel, worker: int) -> None:
        """It is looked for anyway."""

    def _pinged(self, channel: Channel, number: int) -> None:
        self._connections.write(channel, ("pong", number))

    def _asked_for_tally(self, channel: Channel) -> None:
        self._tally.waiting = self.engine.waiting
        self._tally.open = len(self._answering)
        self._tally.held = len(self._held)
        self._connections.write(channel, ("tally", self._tally.document()))

    # What the engine wants

    def _turn(self) -> None:
        """Tell the engine all that has happened, and do what it wants done."""
        now = time.monotonic()
        while self._wakes and self._wakes[0] <= now:
            heappop(self._wakes)
            if not self._events:
                self._events.append(TimeReached())
        if not self._events:
            return
        events, self._events = self._events, []
        for command in self.engine.handle(now, events):
            self._do(command)

    def _do(self, command: Command) -> None:
        if isinstance(command, StartTask):
            self._start(command)
        elif isinstance(command, StartContainer):
            if not command.ahead:
                self._begun.add(command.container)
            self._tell(command.invoker, "load", command.container, self._model_of[command.function])
        elif isinstance(command, StopContainer):
            self._begun.discard(command.container)
            self._tell(command.invoker, "evict", self._model_of[command.function])
        elif isinstance(command, Reply):
            self._answering.reply(command.key)
        elif isinstance(command, Refuse):
            self._answering.refuse(command)
            self._forget_in_tasks(command.key)
        elif isinstance(command, Restarted):
            self._held.begin_again(command.key)
            self._forget_in_tasks(command.key)
        elif isinstance(command, Wake):
            heappush(self._wakes, command.at)

    def _start(self, start: StartTask) -> None:
        workflow, stage, container = self._workflows[start.application], start.stage, start.container
        invoker = start.dispatch.invoker
        found = NO_MODEL
        if container != NO_CONTAINER:
            found = MISS if container in self._begun else HIT
            self._begun.discard(container)
        self._tasks[start.task] = _Started(invoker, stage, list(start.requests))
        try:
            members = [self._member(workflow, stage, key) for key in start.requests]
        except Exception as error:  # a value whose files are gone has to be packed again, and there is no room for it
            reason = explained("what a stage takes cannot be sent: pickling", error)
            del self._tasks[start.task]
            self._events.append(TaskDone(start.task, 0.0, tuple((key, reason) for key in start.requests)))
            return
        order = Order(start.task, start.application, stage, members, start.profile_seconds, start.waited, found)
        self._tell(invoker, *order.message())

    def _member(self, workflow: ServedWorkflow, stage: int, key: int) -> Member:
        given = self._held.input(key) if workflow.takes_input(stage) else None
        outputs = {}
        for source in workflow.workflow.predecessors[stage]:
            value = self._held.output(key, source)
            assert value is not None, "the engine runs a stage when its inputs are there"
            outputs[source] = value.packed()
        return Member(key, None if given is None else given.packed(), outputs, self._spans.trace_of(key))

    def _tell(self, invoker: int, *message: Any) -> None:
        """Tell an invoker something; if it is gone, that has been heard or will be."""
        channel = self._connections.peer(invoker) if invoker in self._ready else None
        if channel is not None:
            self._connections.write(channel, message)

    def _forget_in_tasks(self, key: int) -> None:
        """What runs for a request is of no use; a task that runs for nobody else may end at once."""
        for number, task in self._tasks.items():
            if key in task.keys:
                task.keys[task.keys.index(key)] = None
                if not any(each is not None for each in task.keys):
                    self._tell(task.invoker, "drop", number)


_UNDERSTOOD_FROM_OTHERS: Understood = {
    "ask": (Dispatcher._client_asks, 5),
    "cancel": (Dispatcher._client_cancels, 1),
    "lost": (Dispatcher._worker_lost, 1),
    "joined": (Dispatcher._worker_joined, 1),
    "ping": (Dispatcher._pinged, 1),
    "tally": (Dispatcher._asked_for_tally, 0),
}
"""What clients and the supervisor can say, and in how many parts."""

_UNDERSTOOD_FROM_INVOKERS: Understood = {
    "ready": (Dispatcher._invoker_is_ready, 1),
    "done": (Dispatcher._task_done, 3),
    "loaded": (Dispatcher._container_done, 2),
    "chunk": (Dispatcher._piece_came, 3),
}
"""What invokers can say."""


if __name__ == "__main__":
    serve_until_told(Dispatcher, *sys.argv[1:])
