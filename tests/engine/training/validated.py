"""Lets every training engine check itself after each event that it handles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import Command, Event

_CROWD = 100
"""With more jobs than this, an engine does not check itself, which takes longer the more jobs there are."""


class _ValidatedAfterEach(list[Event]):
    """Events that are handed over one by one: when the engine asks for the next, it is done with the one before."""

    def __init__(self, events: Sequence[Event], engine: TrainingEngine) -> None:
        super().__init__(events)
        self._engine = engine

    def __iter__(self) -> Iterator[Event]:
        for event in super().__iter__():
            yield event
            if len(self._engine.jobs) <= _CROWD:
                self._engine.validate()


@contextmanager
def validated_engines() -> Iterator[None]:
    handle = TrainingEngine.handle

    def handle_and_validate(engine: TrainingEngine, now: float, events: Sequence[Event]) -> list[Command]:
        return handle(engine, now, _ValidatedAfterEach(events, engine))

    with patch.object(TrainingEngine, "handle", handle_and_validate):
        yield
