"""The models that a worker's memory holds: which copies are under way, which have come, and what others hear of them.

The memory manager (`place.memory`) decides what stays; here its decisions become commands to copy and to evict, rows of
the state table, and reports to the engine that plans, if there is one.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import NamedTuple

from fairway.engine.serving.messages import (
    Command,
    Event,
    Evict,
    Load,
    ModelFailed,
    ModelLoaded,
    PeerCopies,
    Pin,
    Warm,
    Why,
)
from fairway.made import made
from fairway.place.fleet import OUTSIDE
from fairway.place.memory import DeviceMemory
from fairway.place.placer import WorkerRules
from fairway.place.state import StateTable

EPOCH_BITS = 40
"""Numbers that an engine gives begin with the epoch of its process, above so many bits: no life uses one of another."""


class OwnPart(NamedTuple):
    """How an engine looks after its own worker.

    If it `watches_time`, it compares how long tasks take with what was expected, and wants to be woken when it is
    `due`. `epoch` is larger each time that the worker comes back. With `reports_copies`, the engine that plans hears of
    every copy of a model, and each task needs one to itself. A copy that has been idle for `keep_alive_seconds` goes.
    """

    watches_time: bool
    epoch: int
    reports_copies: bool = False
    keep_alive_seconds: float = math.inf


class Residency(ABC):
    """A worker's memory and the copies under way. Commands go to `out`; `now` is the time of what is happening.

    `_row_changed` and `_models_changed` say that others should hear of it.
    """

    __slots__ = (
        "_copied_until",
        "_copies",
        "_fetch_seconds",
        "_keep_alive_seconds",
        "_models_changed",
        "_numbers",
        "_reports_copies",
        "_row_changed",
        "_table",
        "_warmed",
        "me",
        "memory",
        "now",
        "out",
    )

    def __init__(self, me: int, rules: WorkerRules, table: StateTable, own: OwnPart) -> None:
        self.me = me
        worker = None if me == OUTSIDE else table.fleet.workers[me]
        self.memory = DeviceMemory(
            0.0 if worker is None else worker.memory_bytes,
            table.model_bytes,
            rules.memory,
            table.homes_at(me),
            shared=worker is not None and (worker.is_divided or own.reports_copies),
        )
        self.now = -math.inf
        self.out: list[Command] = []
        self._table = table
        self._fetch_seconds = table.fetch_seconds
        self._copies: dict[int, tuple[int, float]] = {}  # by number, the model of a copy and when it should end
        self._copied_until = -math.inf
        self._numbers = own.epoch << EPOCH_BITS
        self._reports_copies = own.reports_copies
        self._keep_alive_seconds = own.keep_alive_seconds
        self._warmed: dict[int, int] = {}  # by model, the number of the last `Warm` message
        self._row_changed = False
        self._models_changed = False

    @abstractmethod
    def tell(self, worker: int, message: Event) -> None:
        """Bring a message to an engine, this one too."""

    @abstractmethod
    def _model_came(self, model: int) -> None:
        """A copy of a model is there."""

    @abstractmethod
    def _model_did_not_come(self, model: int, reason: str) -> None:
        """A copy of a model has failed for good."""

    @abstractmethod
    def _rest(self) -> None:
        """Work out when to look again."""

    def adopt(self, model: int, now: float) -> None:
        """A copy of a model is there from the start, if there is room for it."""
        if self._table.model_bytes[model] <= self.memory.free:
            self.memory.adopt(model, now)
            self._table.write_cache(self.me, model, True, now)
            self._row_changed = self._models_changed = True
            self._rest()

    def _change_memory(self, evict: Iterable[int], load: Iterable[int], why: Why = "task") -> None:
        me, now, table, out, memory = self.me, self.now, self._table, self.out, self.memory
        for model in evict:
            if model not in memory.held:
                table.write_cache(me, model, False, now)
            if self._copies:
                self._stop_copy(model)
            out.append(made(Evict, (model,)))
        for model in load:
            self._numbers += 1
            self._copied_until = max(self._copied_until, now) + self._fetch_seconds[model]
            self._copies[self._numbers] = (model, self._copied_until)
            table.write_cache(me, model, True, now)
            out.append(made(Load, (self._numbers, model, why)))
        self._row_changed = self._models_changed = True
        if self._reports_copies:
            for model in {*evict, *load}:
                self._report_copies(model)

    def _stop_copy(self, model: int) -> None:
        """The last copy of a model that was begun is not wanted any more, unless all that are on their way are."""
        under_way = [number for number, (each, _) in self._copies.items() if each == model]
        if len(under_way) > self.memory.copying.get(model, 0):
            del self._copies[under_way[-1]]

    def copies(self) -> list[PeerCopies]:
        """What the engine that plans has to know of the models here."""
        return [self._copies_of(model) for model in self.memory.resident]

    def _copies_of(self, model: int, failed: str | None = None) -> PeerCopies:
        copies, coming = self.memory.copies(model), self.memory.copying.get(model, 0)
        return PeerCopies(self.me, model, copies - coming, coming, self._warmed.get(model, 0), failed)

    def _report_copies(self, model: int, failed: str | None = None) -> None:
        """Let the engine that plans know how many copies of a model there are."""
        self.tell(OUTSIDE, self._copies_of(model, failed))

    def _pin(self, event: Pin) -> None:
        evict, fetch, _ = self.memory.prepare((event.model,), ())
        self.memory.pin(event.model)
        self._change_memory(evict, fetch)

    def _load_homes(self) -> None:
        """Bring in the models that are at home here, before any task needs them."""
        for model in self._table.homes_at(self.me):
            if model not in self.memory.held and self._table.model_bytes[model] <= self.memory.free:
                evict, fetch, _ = self.memory.prepare((model,), ())
                self._change_memory(evict, fetch, "ahead")

    def _warm(self, event: Warm) -> None:
        """The engine that plans wants one more copy of a model here; it hears what came of that."""
        model, ahead, number = event
        self._warmed[model] = number
        evicted = self.memory.warm(model, self.now, ahead=ahead)
        if evicted is None:
            self._report_copies(model)
        else:
            self._change_memory(evicted, (model,), "ahead" if ahead else "job")

    def _model_loaded(self, event: ModelLoaded) -> None:
        copy, model = event
        if self._copies.pop(copy, None) is None:
            return  # it was evicted meanwhile
        self.memory.copied(model, self.now)
        if self._reports_copies:
            self._report_copies(model)
        self._model_came(model)

    def _model_failed(self, event: ModelFailed) -> None:
        copy, model, reason = event
        if self._copies.pop(copy, None) is None:
            return  # it was evicted meanwhile
        self.memory.failed(model)
        if model not in self.memory.held:
            self._table.write_cache(self.me, model, False, self.now)
        self._row_changed = self._models_changed = True
        if self._reports_copies:
            self._report_copies(model, reason)
        self._model_did_not_come(model, reason)
