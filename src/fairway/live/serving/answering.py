"""The requests that clients have brought to a worker, from the question to the answer, the refusal or the cancellation.

A reply is put together here, as soon as all that belongs in it is here, too: what the last stages put out on other
workers comes with messages that may overtake each other.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fairway.engine.serving_messages import FAILED, Cancelled, Event, Refuse, RequestArrived
from fairway.live.serving.application import ServedWorkflow
from fairway.live.serving.connections import Connections
from fairway.live.serving.data import Parcel
from fairway.live.serving.held import Held, Value
from fairway.live.serving.running import explained
from fairway.live.serving.spans import Spans
from fairway.live.serving.talk import Asked
from fairway.live.serving.tally import Tally
from fairway.live.serving.wire import Channel
from fairway.place.graph import TaskGraph


class OpenRequest(NamedTuple):
    """A request that a client waits for."""

    channel: Channel
    asked: Asked
    since: float
    deadline: float


class Answering:
    """The open requests of a worker by key; `tell` tells its engine something, and does what that wants then.

    Clients know it by its `name`. Keys count up from `first_key`, and are of this worker only. No more than `most_open`
    requests are taken at a time.
    """

    def __init__(
        self,
        name: str,
        workflows: dict[TaskGraph, ServedWorkflow],
        connections: Connections,
        held: Held,
        tally: Tally,
        spans: Spans,
        tell: Callable[[Event], None],
        *,
        first_key: int,
        most_open: int,
    ) -> None:
        self._name = name
        self._graphs, self._workflows = list(workflows), list(workflows.values())
        self._connections, self._held, self._tally, self._spans = connections, held, tally, spans
        self._tell = tell
        self._key, self._most_open = first_key, most_open
        self._open: dict[int, OpenRequest] = {}
        self._keys_of: dict[tuple[Channel, Any], int] = {}
        self._complete: set[int] = set()

    def __len__(self) -> int:
        return len(self._open)

    def asked(self, channel: Channel, content: Sequence[Any]) -> None:
        """A client wants a workflow to be run."""
        asked = Asked.checked(content, len(self._workflows))
        now = time.monotonic()
        self._tally.asked += 1
        if len(self._open) >= self._most_open:
            self._tally.refuse("busy")
            reason = f"{self._name} has {self._most_open} requests already; try again later"
            self._connections.write(channel, ("refused", asked.name, "busy", reason))
            return
        try:
            given = Value(self._held.buffers, came=asked.parcel)
        except OSError as error:
            self._connections.write(channel, ("refused", asked.name, FAILED, f"its input is not there: {error}"))
            return
        deadline = math.inf if asked.seconds is None else now + asked.seconds
        self._begin(OpenRequest(channel, asked, now, deadline), given)

    def cancelled(self, channel: Channel, name: Any) -> None:
        """A client has changed its mind."""
        key = self._keys_of.get((channel, name))
        if key is not None:
            self._cancel(key)

    def client_left(self, channel: Channel) -> None:
        """Nobody is there to hear the answers."""
        for key in [key for key, request in self._open.items() if request.channel is channel]:
            self._cancel(key)

    def piece_came(self, key: int, index: int, parcel: Parcel) -> None:
        """A piece of a result that comes in pieces."""
        request = self._open.get(key)
        if request is not None:
            self._connections.hand_over(request.channel, ("chunk", request.asked.name, index), parcel)
        else:
            self._held.buffers.discard(parcel)

    def output_came(self, key: int) -> None:
        """Something that a stage put out elsewhere is here: a reply may have waited for it."""
        if key in self._complete:
            self.reply(key)

    def begin_again(self) -> None:
        """A worker is lost, and with it perhaps a part of a reply that is not all here yet."""
        for key in list(self._complete):
            request, given = self._open[key], self._held.input(key)
            assert given is not None
            self._forget(key, "again")
            self._held.let_go(key)
            self._begin(request, given)

    def reply(self, key: int) -> None:
        """Answer the client, as soon as all that belongs in the answer is here."""
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
            parcel = self._held.buffers.pack(reply)
        except Exception as error:  # it cannot be pickled, or there is no room for it
            self.refuse(Refuse(key, explained("the reply cannot be sent: pickling", error), FAILED))
            return
        # Before the client hears of it: who has an answer may end this process at once, and the span should be there.
        self._forget(key, "replied")
        self._connections.hand_over(request.channel, ("reply", request.asked.name), parcel)
        self._tally.answered(request.asked.workflow, time.monotonic() - request.since, workflow.slo_seconds)
        self._held.let_go(key)

    def refuse(self, refuse: Refuse) -> None:
        """Tell the client why there is no answer."""
        self._tally.refuse(refuse.code)
        request = self._open.get(refuse.key)
        self._forget(refuse.key, refuse.code)
        if request is not None:
            self._connections.write(request.channel, ("refused", request.asked.name, refuse.code, refuse.reason))
        self._held.let_go(refuse.key)

    def _begin(self, request: OpenRequest, given: Value) -> None:
        self._key += 1
        key, asked = self._key, request.asked
        self._open[key] = request
        self._keys_of[request.channel, asked.name] = key
        self._held.keep_input(key, given)
        self._spans.asked(key, self._workflows[asked.workflow].name, asked.trace)
        self._tell(RequestArrived(key, self._graphs[asked.workflow], request.deadline))

    def _cancel(self, key: int) -> None:
        self._tally.cancelled += 1
        self._forget(key, "cancelled")
        self._tell(Cancelled(key))
        self._held.let_go(key)

    def _forget(self, key: int, outcome: str) -> None:
        request = self._open.pop(key, None)
        self._complete.discard(key)
        if request is not None:
            self._keys_of.pop((request.channel, request.asked.name), None)
            self._spans.ended(key, outcome)
