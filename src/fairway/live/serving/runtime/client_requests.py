"""The requests that clients have brought to a worker, from the request to the reply, the refusal or the cancellation.

A reply is put together here, as soon as all that belongs in it is here, too: what the last stages put out on other
workers comes with messages that may overtake each other. What goes to a client with a reply is the client's to let go;
if it is gone before it could, that is done here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fairway.engine.serving.messages import FAILED, Cancelled, Event, Refuse, RequestArrived
from fairway.live.serving.application.definition import ServedWorkflow
from fairway.live.serving.clients.client_protocol import ClientRequest
from fairway.live.serving.runtime.door import Door
from fairway.live.serving.runtime.explanation import explained
from fairway.live.serving.runtime.request_values import RequestValues, Value
from fairway.live.serving.runtime.spans import Spans
from fairway.live.serving.runtime.tally import Tally
from fairway.live.serving.seams.run_record import mark_of
from fairway.live.serving.seams.transport import Address, Message, Transport
from fairway.live.serving.seams.values import Parcel, Values
from fairway.live.serving.supervise.blame import Notice
from fairway.place.graph import TaskGraph

_MANY_PARCELS = 64

_MOST_UNHEARD_SECONDS = 3.0
"""So long a request that was lost with a worker waits for word whether that worker died of it."""


class PendingRequest(NamedTuple):
    """A request whose client waits for the reply, until `deadline`; `mark` is what it is known by at the door."""

    client: Address
    request: ClientRequest
    since: float
    deadline: float
    mark: bytes


class ClientRequests:
    """The pending requests of a worker by key; `tell` tells its engine something, and does what that wants then.

    Clients know the worker by its `name`. Keys count up from `first_key`, and are of this worker only. No more than
    `most_open` requests are taken at a time. The `door` says which come in; `cleared` gets the mark of a suspect that
    was answered.
    """

    def __init__(
        self,
        name: str,
        workflows: dict[TaskGraph, ServedWorkflow],
        transport: Transport,
        values: RequestValues,
        tally: Tally,
        spans: Spans,
        tell: Callable[[Event], None],
        now: Callable[[], float],
        door: Door,
        cleared: Callable[[bytes], None],
        *,
        number: int,
        first_key: int,
        most_open: int,
    ) -> None:
        self._name = name
        self._graphs, self._workflows = list(workflows), list(workflows.values())
        self._transport, self._values, self._tally, self._spans = transport, values, tally, spans
        self._tell, self._now = tell, now
        self._door, self._cleared = door, cleared
        self._lets_in = False
        self._number, self._gone = number, set[int]()
        # The worker that each of these was lost with, of which the supervisor has said nothing yet, and until when.
        self._unheard: dict[int, tuple[int, float]] = {}
        self._waiting: dict[int, None] = {}  # the keys of those that have not come in yet
        self._key, self._most_open = first_key, most_open
        self._pending: dict[int, PendingRequest] = {}
        self._keys_of: dict[tuple[Address, Any], int] = {}
        self._complete: set[int] = set()
        self._handed_over = _HandedOver(transport, values.values)

    def __len__(self) -> int:
        return len(self._pending)

    def take(self, client: Address, content: Sequence[Any]) -> None:
        """A client wants a workflow to be run."""
        request = ClientRequest.checked(content, len(self._workflows))
        now = self._now()
        self._tally.asked += 1
        if len(self._pending) >= self._most_open:
            self._tally.refuse("busy")
            reason = f"{self._name} has {self._most_open} requests already; try again later"
            self._transport.send(client, ("refused", request.name, "busy", reason))
            return
        try:
            given = Value(self._values.values, came=request.parcel)
        except OSError as error:
            self._transport.send(client, ("refused", request.name, FAILED, f"its input is not there: {error}"))
            return
        deadline = math.inf if request.seconds is None else now + request.seconds
        mark = mark_of(request.workflow, request.parcel)
        self._begin(PendingRequest(client, request, now, deadline, mark), given, request.lost)

    def cancelled(self, client: Address, name: Any) -> None:
        """A client has changed its mind."""
        key = self._keys_of.get((client, name))
        if key is not None:
            self._cancel(key)

    def client_left(self, client: Address) -> None:
        """A client is gone: its requests are of no use, nor what it has not taken."""
        self._handed_over.client_left(client)
        for key in [key for key, pending in self._pending.items() if pending.client == client]:
            self._cancel(key)

    def piece_came(self, key: int, index: int, parcel: Parcel) -> None:
        """A piece of a result that comes in pieces."""
        pending = self._pending.get(key)
        if pending is not None:
            self._handed_over.send(pending.client, ("chunk", pending.request.name, index), parcel)
        else:
            self._values.values.discard(parcel)

    def output_came(self, key: int) -> None:
        """Something that a stage put out elsewhere is here: a reply may have waited for it."""
        if key in self._complete:
            self.reply(key)

    def begin_again(self) -> None:
        """A worker is lost, and with it perhaps a part of a reply that is not all here yet."""
        for key in list(self._complete):
            self._repeat(key)

    def heard(self, notice: Notice) -> None:
        """The supervisor has news: requests that a worker died of run no more, or later; others may come in now."""
        self._door.heard(notice)
        for key, pending in list(self._pending.items()):
            is_called_back = pending.mark in notice.again or self._door.calls_back(
                pending.request.workflow, pending.mark
            )
            if is_called_back and key not in self._waiting:
                self._tell(Cancelled(key))
                self._repeat(key)
        self._let_in()

    def worker_lost(self, worker: int) -> None:
        """The supervisor has said what there is to say about the loss of a worker."""
        self._gone.add(worker)
        self._let_in()

    def worker_joined(self, worker: int) -> None:
        """A worker is there, or another one in its place."""
        self._gone.discard(worker)

    def time_passed(self) -> None:
        """Some may have waited for long enough."""
        if self._unheard:
            self._let_in()

    def _is_heard(self, key: int) -> bool:
        """Whether the supervisor has spoken of the worker that a request was lost with, or will hardly do so."""
        worker, until = self._unheard.get(key, (-1, -math.inf))
        if worker not in self._gone and self._now() < until:
            return False
        self._unheard.pop(key, None)
        return True

    def _repeat(self, key: int) -> None:
        pending, given = self._pending[key], self._values.input(key)
        assert given is not None
        self._forget(key, "again")
        self._values.let_go(key)
        self._begin(pending, given)

    def _let_in(self) -> None:
        """Let those in that have waited, as far as the door does."""
        if self._lets_in:
            return
        self._lets_in = True
        for key in list(self._waiting):
            pending = self._pending.get(key)
            if pending is None or key not in self._waiting or not self._is_heard(key):
                continue
            request = pending.request
            refusal = self._door.refusal(request.workflow, pending.mark)
            if refusal is not None:
                self.refuse(Refuse(key, *refusal))
            elif self._door.lets_in(key, request.workflow, pending.mark):
                del self._waiting[key]
                self._come_in(key, pending)
        self._lets_in = False

    def reply(self, key: int) -> None:
        """Answer the client, as soon as all that belongs in the answer is here."""
        pending = self._pending.get(key)
        if pending is None:
            return
        request = pending.request
        workflow = self._workflows[request.workflow]
        outputs = self._values.outputs(key, workflow.exits)
        if outputs is None:
            self._complete.add(key)
            return
        try:
            with self._values.watched(key):
                reply = workflow.reply({stage: value.get() for stage, value in outputs.items()})
                parcel = self._values.values.pack(reply)
        except BaseException as error:  # it cannot be pickled, or there is no room for it
            self.refuse(Refuse(key, explained("the reply cannot be sent: pickling", error), FAILED))
            return
        # Before the client hears of it: a client that has its answer may end this process, and the span should be sent.
        self._forget(key, "replied")
        self._handed_over.send(pending.client, ("reply", request.name), parcel)
        if self._door.is_suspect(pending.mark):
            self._cleared(pending.mark)
        self._tally.answered(request.workflow, self._now() - pending.since, workflow.slo_seconds)
        self._values.let_go(key)

    def refuse(self, refuse: Refuse) -> None:
        """Tell the client why there is no answer."""
        self._tally.refuse(refuse.code)
        pending = self._pending.get(refuse.key)
        self._forget(refuse.key, refuse.code)
        if pending is not None:
            said = (refuse.code, refuse.reason, refuse.retry_seconds)
            self._transport.send(pending.client, ("refused", pending.request.name, *said))
        self._values.let_go(refuse.key)

    def _begin(self, pending: PendingRequest, given: Value, lost: int | None = None) -> None:
        self._key += 1
        key, request = self._key, pending.request
        self._pending[key] = pending
        self._keys_of[pending.client, request.name] = key
        self._values.keep_input(key, given)
        self._values.marks[key] = pending.mark
        self._spans.began(key, self._workflows[request.workflow].name, request.trace)
        refusal = self._door.refusal(request.workflow, pending.mark)
        if refusal is not None:
            self.refuse(Refuse(key, *refusal))
        elif lost is not None and lost not in {*self._gone, self._number}:
            self._unheard[key] = (lost, self._now() + _MOST_UNHEARD_SECONDS)
            self._waiting[key] = None
        elif self._door.lets_in(key, request.workflow, pending.mark):
            self._come_in(key, pending)
        else:
            self._waiting[key] = None

    def _come_in(self, key: int, pending: PendingRequest) -> None:
        request = pending.request
        slo = self._workflows[request.workflow].slo_seconds
        due = pending.deadline if slo is None else min(self._now() + slo, pending.deadline)
        self._tell(RequestArrived(key, self._graphs[request.workflow], pending.deadline, due))

    def _cancel(self, key: int) -> None:
        self._tally.cancelled += 1
        self._forget(key, "cancelled")
        self._tell(Cancelled(key))
        self._values.let_go(key)

    def _forget(self, key: int, outcome: str) -> None:
        pending = self._pending.pop(key, None)
        self._complete.discard(key)
        self._waiting.pop(key, None)
        self._unheard.pop(key, None)
        if pending is not None:
            self._door.is_over(key, pending.request.workflow)
            self._keys_of.pop((pending.client, pending.request.name), None)
            self._spans.ended(key, outcome)
            self._tally.recent.requests.append((key, pending.request.workflow, pending.since, self._now(), outcome))
        if self._waiting:
            self._let_in()


class _HandedOver:
    """The parcels that clients have been sent, and let go when they have opened them."""

    def __init__(self, transport: Transport, values: Values) -> None:
        self._transport, self._values = transport, values
        self._parcels: dict[Address, list[Parcel]] = {}

    def send(self, client: Address, message: Message, parcel: Parcel) -> None:
        """Send a message with a parcel, which is the client's from then on."""
        if not self._transport.send(client, (*message, tuple(parcel))):
            self._values.discard(parcel)
        elif parcel.names:
            parcels = self._parcels.setdefault(client, [])
            parcels.append(parcel)
            if len(parcels) > _MANY_PARCELS:
                parcels[:] = [each for each in parcels if self._values.is_there(each)]

    def client_left(self, client: Address) -> None:
        """A client is gone: let go what it has not."""
        for parcel in self._parcels.pop(client, ()):
            self._values.discard(parcel)
