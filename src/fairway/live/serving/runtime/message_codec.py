"""The engine's messages as plain tuples, which go from worker to worker.

Workflows go by their number. The values that a message speaks of are not part of it: `peer_messages` sends them along.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairway.configure.configuration import Configuration
from fairway.engine.serving.flow import Flow
from fairway.engine.serving.messages import (
    BatchArrived,
    BatchDone,
    Event,
    Forget,
    InputsArrived,
    OutputGone,
    PeerCopies,
    ProgressAsked,
    ProgressTold,
    Replanned,
    RowAsked,
    RowTold,
    SendAgain,
    StageDone,
    StageMoved,
    StageStuck,
    TasksWanted,
    Warm,
)
from fairway.live.serving.seams.transport import WireError
from fairway.place.graph import TaskGraph
from fairway.place.plan import Request

_KINDS = (
    InputsArrived, StageDone, StageMoved, StageStuck, OutputGone, Replanned, SendAgain, Forget, BatchArrived, BatchDone,
    Warm, PeerCopies, ProgressAsked, ProgressTold, RowAsked, RowTold, TasksWanted,
)  # fmt: skip
_NUMBERS = {kind: number for number, kind in enumerate(_KINDS)}
_WITH_FLOW = {InputsArrived, Replanned, SendAgain}

Coded = tuple[Any, ...]


class Coder:
    """Knows the workflows by number."""

    def __init__(self, graphs: Sequence[TaskGraph]) -> None:
        self._graphs = graphs
        self._number = {graph: number for number, graph in enumerate(graphs)}

    def encode(self, message: Event) -> Coded:
        """A message of the engine as a tuple of numbers and the like."""
        kind = type(message)
        if isinstance(message, BatchArrived):
            flows = tuple(self._encode_flow(flow) for flow in message.flows)
            return (_NUMBERS[kind], *message._replace(flows=flows, configuration=tuple(message.configuration)))  # type: ignore[arg-type]
        if isinstance(message, BatchDone):
            return (_NUMBERS[kind], *message._replace(failed=dict(message.failed)))
        if kind not in _WITH_FLOW:
            return (_NUMBERS[kind], *message)
        content: tuple[Any, ...] = message
        flow, *rest = content
        assert isinstance(flow, Flow)
        return (_NUMBERS[kind], self._encode_flow(flow), *rest)

    def _encode_flow(self, flow: Flow) -> Coded:
        request = flow.request
        return (
            request.key,
            self._number[flow.graph],
            request.ingress,
            request.deadline,
            request.due,
            flow.workers,
            flow.attempt,
        )

    def _decode_flow(self, coded: Coded) -> Flow:
        key, number, ingress, deadline, due, workers, attempt = coded
        graph = self._graphs[number]
        return Flow(Request(key, graph, ingress, deadline=deadline, due=due), graph, workers, attempt)

    def decode(self, coded: Coded) -> Event:
        """The message again; raises `WireError` if it is none."""
        event: Event
        try:
            kind: Any = _KINDS[coded[0]]
            if kind is BatchArrived:
                batch = BatchArrived(*coded[1:])
                flows = tuple(self._decode_flow(flow) for flow in batch.flows)  # type: ignore[arg-type]
                return batch._replace(flows=flows, configuration=Configuration(*batch.configuration))
            if kind not in _WITH_FLOW:
                event = kind(*coded[1:])
                return event
            event = kind(self._decode_flow(coded[1]), *coded[2:])
        except (LookupError, TypeError, ValueError) as error:
            raise WireError(f"{str(coded)[:80]} given, expected a message of another worker: {error}") from None
        return event
