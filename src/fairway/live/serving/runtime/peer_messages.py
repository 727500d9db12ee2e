"""What workers say to each other: the engine's messages, with the values that they speak of.

The engine only knows that an output goes somewhere; here it is packed, sent along, and kept where it arrives. Batches
are in `batch_messages`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fairway.engine.serving.messages import (
    FAILED,
    Event,
    InputsArrived,
    Replanned,
    Send,
    SendAgain,
    StageDone,
    StageStuck,
)
from fairway.live.serving.application.definition import ServedWorkflow
from fairway.live.serving.runtime.explanation import explained
from fairway.live.serving.runtime.lives import Lives
from fairway.live.serving.runtime.message_codec import Coder
from fairway.live.serving.runtime.request_values import RequestValues, Value
from fairway.live.serving.runtime.spans import Spans
from fairway.live.serving.seams.run_record import NO_MARK
from fairway.live.serving.seams.transport import Transport
from fairway.live.serving.seams.values import Parcel
from fairway.place.graph import TaskGraph
from fairway.place.plan import Request

_LOG = logging.getLogger(__name__)


class PeerMessages:
    """The ways from worker `me` to the others.

    `lives` says which processes are there. `happened` tells the own engine something; `output_came` is called with the
    key of a request when something that a stage put out for it came here.
    """

    def __init__(
        self,
        me: int,
        workflows: Mapping[TaskGraph, ServedWorkflow],
        transport: Transport,
        coder: Coder,
        values: RequestValues,
        spans: Spans,
        *,
        lives: Lives,
        happened: Callable[[Event], None],
        output_came: Callable[[int], None],
    ) -> None:
        self._me, self._workflows = me, workflows
        self._lives, self._number_of = lives, lives.number_of
        self._early: list[tuple[Any, ...]] = []
        self._transport, self._values, self._spans = transport, values, spans
        self._happened, self._output_came = happened, output_came
        self._coder = coder

    def received(
        self, coded: tuple[Any, ...], values: dict[int, Any], given: Any, trace: str | None, mark: bytes
    ) -> Event | None:
        """What another worker says, once its values are kept here; None if it is of no use any more.

        Raises `WireError` if no worker would say it.
        """
        message = self._coder.decode(coded)
        if isinstance(message, InputsArrived | Replanned | SendAgain):
            key = message.flow.request.key
            if self._lives.is_over(key):
                return None
            if self._lives.is_early(key):
                self._early.append((coded, values, given, trace, mark))
                return None
        if not isinstance(message, InputsArrived | StageDone):
            return message
        kept = self._values
        try:
            came = {stage: Value(kept.values, came=Parcel(*parcel)) for stage, parcel in values.items()}
            payload = None if given is None else Value(kept.values, came=Parcel(*given))
        except OSError as error:
            # Its maker has died or the request is over. Either way the ingress knows, and does what is to be done.
            _LOG.info("what came with %s is gone: %s", type(message).__name__, error)
            return None
        if isinstance(message, InputsArrived):
            key = message.flow.request.key
            if kept.is_over(key):
                return None
            if payload is not None:
                kept.keep_input(key, payload)
            self._spans.passed(key, trace)
            kept.marks[key] = mark
        else:
            key = message.key
            if self._lives.is_over(key):  # the one before this process has received it: the sender will hear that
                return message
        for stage, value in came.items():
            kept.keep_output(key, stage, value)
        self._output_came(key)
        return message

    def early(self) -> list[tuple[Any, ...]]:
        """What has come from processes before it was known that they are there, to be received once more."""
        early, self._early = self._early, []
        return early

    def send(self, send: Send) -> None:
        """Bring a message to another worker, with the values that it speaks of.

        If that worker is gone, the supervisor will say so, and what it had is planned again.
        """
        message, trace, mark = send.message, None, NO_MARK
        values: dict[int, Parcel] = {}
        given: Parcel | None = None
        try:
            if isinstance(message, InputsArrived):
                key = message.flow.request.key
                workflow = self._workflows[message.flow.graph]
                with self._values.watched(key):
                    values = self._packed(key, message.sources)
                    if workflow.takes_input(message.stage) and (payload := self._values.input(key)) is not None:
                        given = payload.packed()
                trace = self._spans.trace_of(key)
                mark = self._values.marks.get(key, NO_MARK)
            elif isinstance(message, StageDone):
                value = self._values.output(message.key, message.stage)
                if value is not None and value.in_reply:
                    with self._values.watched(message.key):
                        values = {message.stage: value.packed()}
        except BaseException as error:  # it cannot be pickled, or there is no room for it
            assert isinstance(message, InputsArrived | StageDone)
            self._stuck(message, send.worker, error)
            return
        self._send(send.worker, message, values, given, trace, mark)

    def send_piece(self, request: Request, index: int, parcel: Parcel) -> None:
        """Bring a piece of a result to the process that received the request."""
        if not self._transport.send(self._number_of(request.ingress), ("chunk", request.key, index, tuple(parcel))):
            self._values.values.discard(parcel)

    def _send(
        self,
        worker: int,
        message: Event,
        values: dict[int, Parcel],
        given: Parcel | None = None,
        trace: str | None = None,
        mark: bytes = NO_MARK,
    ) -> None:
        number = self._number_of(worker)
        self._transport.send(number, ("event", self._coder.encode(message), values, given, trace, mark))

    def _packed(self, key: int, stages: Iterable[int]) -> dict[int, Parcel]:
        found = ((stage, self._values.output(key, stage)) for stage in stages)
        return {stage: value.packed() for stage, value in found if value is not None}

    def _stuck(self, message: InputsArrived | StageDone, worker: int, error: BaseException) -> None:
        """What a stage put out cannot go to another process: its request fails."""
        if isinstance(message, StageDone):
            key, ingress = message.key, worker
        else:
            key, ingress = message.flow.request.key, message.flow.request.ingress
        stuck = StageStuck(key, explained("what a stage put out cannot be sent: pickling", error), FAILED)
        if ingress == self._me:
            self._happened(stuck)
        else:
            self._send(ingress, stuck, {})
