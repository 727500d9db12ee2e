"""What workers say to each other: the engine's messages, with the values that they speak of.

The engine only knows that an output goes somewhere; here it is packed, sent along, and kept where it arrives.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fairway.engine.serving import ServingEngine
from fairway.engine.serving_messages import FAILED, Command, Event, InputsArrived, Send, StageDone, StageStuck
from fairway.live.serving.application import ServedWorkflow
from fairway.live.serving.coded import Coder
from fairway.live.serving.connections import Connections
from fairway.live.serving.data import Parcel
from fairway.live.serving.held import Held, Value
from fairway.live.serving.running import explained
from fairway.live.serving.spans import Spans
from fairway.place.graph import TaskGraph
from fairway.place.plan import Request

_LOG = logging.getLogger(__name__)


class Sending:
    """The ways from a worker to the others; `output_came` is called with the key of a request when one came here."""

    def __init__(
        self,
        engine: ServingEngine,
        workflows: Mapping[TaskGraph, ServedWorkflow],
        connections: Connections,
        held: Held,
        spans: Spans,
        output_came: Callable[[int], None],
    ) -> None:
        self._engine, self._workflows = engine, workflows
        self._connections, self._held, self._spans = connections, held, spans
        self._output_came = output_came
        self._coder = Coder(list(workflows))

    def received(self, coded: tuple[Any, ...], values: dict[int, Any], given: Any, trace: str | None) -> Event | None:
        """What another worker tells this one, once its values are kept here; None if it is of no use any more."""
        message = self._coder.decode(coded)
        if not isinstance(message, InputsArrived | StageDone):
            return message
        buffers = self._held.buffers
        try:
            came = {stage: Value(buffers, came=Parcel(*parcel)) for stage, parcel in values.items()}
            payload = None if given is None else Value(buffers, came=Parcel(*given))
        except OSError as error:
            # Its maker has died or the request is over. Either way others know, and will do what is to be done.
            _LOG.info("what came with %s is gone: %s", type(message).__name__, error)
            return None
        if isinstance(message, InputsArrived):
            request = message.flow.request
            key = request.key
            if self._held.is_over(key) or not self._engine.is_present(request.ingress):
                return None
            if payload is not None:
                self._held.keep_input(key, payload)
            self._spans.passed(key, trace)
        else:
            key = message.key
        for stage, value in came.items():
            self._held.keep_output(key, stage, value)
        self._output_came(key)
        return message

    def send(self, send: Send) -> Sequence[Command]:
        """Bring a message to another worker, with the values that it speaks of; returns what the engine wants then.

        If that one is gone, the supervisor will say so, and what it had is planned again.
        """
        message, trace = send.message, None
        values: dict[int, Parcel] = {}
        given: Parcel | None = None
        try:
            if isinstance(message, InputsArrived):
                key = message.flow.request.key
                workflow = self._workflows[message.flow.graph]
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
        self._tell(send.worker, message, values, given, trace)
        return ()

    def send_piece(self, request: Request, index: int, parcel: Parcel) -> None:
        """Bring a piece of a result to the worker that received the request."""
        channel = self._connections.peer(request.ingress)
        message = ("chunk", request.key, index, tuple(parcel))
        if channel is None or not self._connections.write(channel, message):
            self._held.buffers.discard(parcel)

    def _tell(
        self, worker: int, message: Event, values: dict[int, Parcel], given: Parcel | None, trace: str | None
    ) -> None:
        channel = self._connections.peer(worker)
        if channel is not None:
            self._connections.write(channel, ("told", self._coder.encode(message), values, given, trace))

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
        if ingress == self._engine.me:
            return self._engine.handle(time.monotonic(), stuck)
        self._tell(ingress, stuck, {}, None, None)
        return ()
