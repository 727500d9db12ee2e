"""An invoker: a worker process that runs, loads and evicts what the dispatcher tells it to, and decides nothing.

    python -m fairway.live.serving.invoker SETTINGS NUMBER EPOCH PARENT

It runs one task at a time, and loads models beside it. What a stage puts out goes into shared memory, and its name to
the dispatcher, whose it is from then on. When another dispatcher comes, since the one before has died, the invoker ends
what it runs, removes what was put out for the one before, and tells which models it has.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from fairway.live.serving.application import ServedWorkflow
from fairway.live.serving.batch_run import Outcome, run_batch
from fairway.live.serving.connections import Connections, Understood, hear
from fairway.live.serving.data import Parcel, SharedBuffers, clear_files
from fairway.live.serving.held import Value
from fairway.live.serving.models import Models
from fairway.live.serving.orders import Member, Order, Told
from fairway.live.serving.pieces import collected
from fairway.live.serving.process import serve_until_told
from fairway.live.serving.running import arguments_of, explained
from fairway.live.serving.settings import ServingSettings
from fairway.live.serving.shared_table import SharedTable
from fairway.live.serving.side_thread import INLINE_SECONDS, SideThread
from fairway.live.serving.spans import Spans
from fairway.live.serving.tally import Tally
from fairway.live.serving.wire import Channel
from fairway.workflows import Arguments


class _Running:
    """The task that runs now; `dropped` says that nobody waits for it any more."""

    __slots__ = ("began", "channel", "dropped", "order")

    def __init__(self, channel: Channel, order: Order) -> None:
        self.channel, self.order = channel, order
        self.began = time.monotonic()
        self.dropped = False


class Invoker:
    """The process's one invoker."""

    def __init__(self, settings: ServingSettings, number: int, epoch: int) -> None:
        self._settings, self._number = settings, number
        application = settings.application()
        self._workflows = list(application.workflows.values())
        self._table = SharedTable(settings.fleet(application), settings.table)
        self._prefix = f"w{number}-{epoch}-"
        self._buffers = SharedBuffers(settings.memory_directory, self._prefix)
        self._connections = Connections(settings.socket, self._buffers, self._take, self._left)
        self._spans = Spans.of(settings.traces, f"worker-{number}")
        self._stages, self._loads = SideThread("fairway-stages"), SideThread("fairway-loads")
        self._models = Models(application, self._loads)
        self._loading: set[int] = set()
        self._tally = Tally()
        self._running: _Running | None = None
        self._dispatcher: Channel | None = None
        self._is_ready = False

    def serve(self) -> None:
        """Until the process is told to end."""
        self._connections.heed_signals()
        self._connections.listen(self._settings.socket(self._number))
        for side in (self._stages, self._loads):
            self._connections.watch(side.wake, side.deliver)
        self._table.join(self._number)
        while True:
            self._connections.wait(None)

    def close(self) -> None:
        """Send the last spans."""
        self._spans.close()

    # What comes in

    def _take(self, channel: Channel, message: tuple[Any, ...]) -> None:
        hear(self, _UNDERSTOOD, channel, message)

    def _left(self, channel: Channel) -> None:
        if channel is self._dispatcher:
            self._dispatcher = None
            self._drop_running()

    def _serves(self, channel: Channel) -> None:
        """A dispatcher is there: nothing of the one before counts any more."""
        self._dispatcher, self._is_ready = channel, False
        self._drop_running()
        for model in self._loading:
            self._models.evict(model)
        self._loading.clear()
        self._be_ready()

    def _be_ready(self) -> None:
        if self._running is None and not self._is_ready and self._dispatcher is not None:
            clear_files(self._settings.memory_directory, self._prefix)
            self._is_ready = True
            self._connections.write(self._dispatcher, ("ready", self._models.there))

    def _dropped(self, _: Channel, task: int) -> None:
        if self._running is not None and self._running.order.task == task:
            self._running.dropped = True

    def _drop_running(self) -> None:
        if self._running is not None:
            self._running.dropped = True

    def _loads_model(self, channel: Channel, container: int, model: int) -> None:
        self._tally.loads += 1
        self._loading.add(model)
        self._models.load(model, partial(self._loaded, channel, container, model))

    def _loaded(self, channel: Channel, container: int, model: int, problem: BaseException | None) -> None:
        self._loading.discard(model)
        reason = None if problem is None else self._models.why_not(model, problem)
        self._connections.write(channel, ("loaded", container, reason))

    def _evicts(self, _: Channel, model: int) -> None:
        self._tally.evictions += 1
        self._models.evict(model)

    def _pinged(self, channel: Channel, number: int) -> None:
        self._connections.write(channel, ("pong", number))

    def _hears_news(self, _: Channel, worker: int) -> None:
        """Others come and go; that is for the dispatcher to know."""

    def _asked_for_tally(self, channel: Channel) -> None:
        self._tally.resident = [self._models.names[model] for model in self._models.there]
        self._connections.write(channel, ("tally", self._tally.document()))

    # Running

    def _runs(self, channel: Channel, *content: Any) -> None:
        order = Order.read(content)
        running = self._running = _Running(channel, order)
        workflow, stage, members = self._workflows[order.workflow], order.stage, order.members
        self._tally.ran(order.workflow, stage, order.found, order.waited[0], len(members))
        for waited in order.waited[1:]:
            self._tally.waited(order.workflow, stage, waited)
        try:
            model = self._models.of(workflow.model_of(stage))
        except KeyError as error:  # it should be here: if not, the invoker outlives that too
            self._ended(running, None, error)
            return
        arguments = [self._arguments(workflow, stage, member) for member in members]
        work: Callable[[], list[Outcome]]
        if workflow.is_streaming(stage):
            work = partial(self._streamed, running, workflow, stage, model, arguments[0])
        else:
            work = partial(run_batch, workflow, stage, model, arguments)
        if order.seconds < INLINE_SECONDS and not workflow.is_streaming(stage):
            self._ended(running, work(), None)
        else:
            self._stages.run(work, partial(self._ended, running))

    def _arguments(self, workflow: ServedWorkflow, stage: int, member: Member) -> Callable[[], Arguments]:
        """A function that puts together what a stage is called with; what came is mapped here and now."""
        try:
            given = None if member.given is None else Value(self._buffers, came=member.given)
            outputs = {source: Value(self._buffers, came=parcel) for source, parcel in member.outputs.items()}
        except OSError as error:
            return partial(_raise, error)
        return partial(arguments_of, workflow, stage, given, outputs)

    def _streamed(
        self,
        running: _Running,
        workflow: ServedWorkflow,
        stage: int,
        model: object,
        arguments: Callable[[], Arguments],
    ) -> list[Outcome]:
        """Let the client have each piece as it comes; together they are the output."""
        (pieces,) = workflow.run(stage, model, [arguments()])
        assert isinstance(pieces, Iterator)

        def hand_on(index: int, piece: object) -> None:
            parcel = self._buffers.pack(piece)
            self._stages.tell(lambda *_: self._piece_made(running, index, parcel), None)

        return [Outcome(collected(pieces, hand_on, lambda: running.dropped))]

    def _piece_made(self, running: _Running, index: int, parcel: Parcel) -> None:
        message = ("chunk", running.order.members[0].key, index, tuple(parcel))
        if running.dropped or not self._connections.write(running.channel, message):
            self._buffers.discard(parcel)

    def _ended(self, running: _Running, outcomes: Sequence[Outcome] | None, problem: BaseException | None) -> None:
        """Tell the dispatcher how each request of the task has fared."""
        now = time.monotonic()
        order, members = running.order, running.order.members
        self._running = None
        self._tally.took(order.workflow, order.stage, now - running.began)
        name = self._workflows[order.workflow].workflow.stages[order.stage].name
        told: list[Told] = []
        for member, outcome in zip(members, outcomes or [Outcome(problem=problem)] * len(members), strict=True):
            self._spans.passed(member.key, member.trace)
            self._spans.ran(member.key, name, running.began, now, outcome.problem)
            self._spans.forget(member.key)
            told.append(Told(None, "nobody waits for it") if running.dropped else self._told(name, outcome))
        if not self._connections.write(running.channel, ("done", order.task, now - running.began, told)):
            for parcel in [each.parcel for each in told if each.parcel is not None]:
                self._buffers.discard(parcel)
        self._be_ready()

    def _told(self, stage: str, outcome: Outcome) -> Told:
        if outcome.problem is not None:
            self._tally.failures += 1
            return Told(None, explained(f"stage '{stage}'", outcome.problem))
        try:
            return Told(self._buffers.pack(outcome.value), None)
        except Exception as error:  # it cannot be pickled, or there is no room for it
            return Told(None, explained("what a stage put out cannot be sent: pickling", error))


def _raise(error: OSError) -> Arguments:
    raise error


_UNDERSTOOD: Understood = {
    "serve": (Invoker._serves, 0),
    "run": (Invoker._runs, len(Order._fields)),
    "drop": (Invoker._dropped, 1),
    "load": (Invoker._loads_model, 2),
    "evict": (Invoker._evicts, 1),
    "lost": (Invoker._hears_news, 1),
    "joined": (Invoker._hears_news, 1),
    "ping": (Invoker._pinged, 1),
    "tally": (Invoker._asked_for_tally, 0),
}
"""What can be said to an invoker, and in how many parts."""


if __name__ == "__main__":
    serve_until_told(Invoker, *sys.argv[1:])
