"""The engine's messages as plain tuples for the wire, with the values that they speak of beside them.

Workflows go by their number. The values are not the engine's business: it only knows that an output goes somewhere, and
whoever carries the message packs the output with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairway.engine.flow import Flow
from fairway.engine.serving_messages import (
    Event,
    Forget,
    InputsArrived,
    Replanned,
    SendAgain,
    StageDone,
    StageMoved,
    StageStuck,
)
from fairway.place.graph import TaskGraph
from fairway.place.plan import Request

_KINDS = (InputsArrived, StageDone, StageMoved, StageStuck, Replanned, SendAgain, Forget)
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
        if kind not in _WITH_FLOW:
            return (_NUMBERS[kind], *message)
        content: tuple[Any, ...] = message
        flow, *rest = content
        assert isinstance(flow, Flow)
        request = flow.request
        return (
            _NUMBERS[kind],
            (request.key, self._number[flow.graph], request.ingress, request.deadline, flow.workers, flow.attempt),
            *rest,
        )

    def decode(self, coded: Coded) -> Event:
        """The message again."""
        kind: Any = _KINDS[coded[0]]
        event: Event
        if kind not in _WITH_FLOW:
            event = kind(*coded[1:])
            return event
        key, number, ingress, deadline, workers, attempt = coded[1]
        graph = self._graphs[number]
        flow = Flow(Request(key, graph, ingress, deadline=deadline), graph, workers, attempt)
        event = kind(flow, *coded[2:])
        return event
