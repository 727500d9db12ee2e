"""Batches between the planner and the workers: what their requests bring, and what their stages put out.

With a batch go the inputs of each of its requests, as parcels; with word of its end, what its stage put out for each.
The planner keeps these until a request is over. A request that begins again meanwhile, or is over, has no use for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from fairway.engine.serving.messages import NONE_FAILED, BatchArrived, BatchDone, Event
from fairway.live.serving.application.definition import ServedWorkflow
from fairway.live.serving.runtime.explanation import explained
from fairway.live.serving.runtime.message_codec import Coder
from fairway.live.serving.runtime.request_values import RequestValues, Value
from fairway.live.serving.runtime.spans import Spans
from fairway.live.serving.seams.run_record import NO_MARK
from fairway.live.serving.seams.transport import Transport, WireError
from fairway.live.serving.seams.values import Parcel
from fairway.place.fleet import OUTSIDE
from fairway.place.graph import TaskGraph

_CANNOT_BE_SENT = "what a stage takes cannot be sent: pickling"


class _Batch(NamedTuple):
    """A batch that is under way: its stage, its requests (None for one that has begun again since), and its worker."""

    stage: int
    keys: list[int | None]
    worker: int = OUTSIDE


class BatchMessages:
    """The way of batches: of those that this process has sent, and of those that it runs.

    `number_of` is the number of the process with an engine; `happened` tells the own engine something.
    """

    def __init__(
        self,
        workflows: Mapping[TaskGraph, ServedWorkflow],
        transport: Transport,
        coder: Coder,
        values: RequestValues,
        spans: Spans,
        *,
        number_of: Callable[[int], int],
        happened: Callable[[Event], None],
    ) -> None:
        self._workflows, self._transport, self._coder = workflows, transport, coder
        self._values, self._spans = values, spans
        self._number_of, self._happened = number_of, happened
        self._sent: dict[int, _Batch] = {}
        self._here: dict[int, _Batch] = {}
        self._running: Counter[int] = Counter()  # by request, how many batches with it are here

    # At the planner

    def send(self, worker: int, batch: BatchArrived) -> None:
        """Bring a batch to its worker, with the inputs of its requests."""
        keys = [flow.request.key for flow in batch.flows]
        workflow = self._workflows[batch.flows[0].graph]
        try:
            with self._values.watched(keys[0]):
                members = [self._member(workflow, batch.stage, key) for key in keys]
        except (
            BaseException
        ) as error:  # a value whose maker is gone has to be packed again, and there is no room for it
            reason = explained(_CANNOT_BE_SENT, error)
            self._happened(BatchDone(batch.number, worker, 0.0, dict.fromkeys(range(len(keys)), reason)))
            return
        self._sent[batch.number] = _Batch(batch.stage, list(keys), worker)
        self._transport.send(self._number_of(worker), ("batch", self._coder.encode(batch), members))

    def ended(self, coded: tuple[Any, ...], outputs: Mapping[int, Any]) -> BatchDone | None:
        """A worker says that a batch has ended; what it put out is kept here. None if the batch is not known."""
        event = self._coder.decode(coded)
        if not isinstance(event, BatchDone):
            raise WireError("the end of a batch expected")
        batch = self._sent.pop(event.number, None)
        failed = dict(event.failed)
        for position, parcel in outputs.items():
            key = None if batch is None else batch.keys[position]
            if key is None or batch is None:
                self._values.values.discard(Parcel(*parcel))
                continue
            try:
                self._values.take_over(key, batch.stage, Parcel(*parcel))
            except OSError as error:
                failed[position] = f"what a stage put out is not there: {error}"
        return None if batch is None else event._replace(failed=failed)

    def begins_again(self, key: int) -> None:
        """What runs for a request is of no use."""
        for batch in self._sent.values():
            if key in batch.keys:
                batch.keys[batch.keys.index(key)] = None

    def worker_lost(self, worker: int) -> None:
        """A worker is gone, with the batches that it had."""
        for number in [number for number, batch in self._sent.items() if batch.worker == worker]:
            del self._sent[number]

    def _member(self, workflow: ServedWorkflow, stage: int, key: int) -> tuple[Any, ...]:
        """What a request brings to a stage, the outputs of the stages before, its trace and its mark."""
        given = self._values.input(key) if workflow.takes_input(stage) else None
        outputs = {}
        for source in workflow.workflow.predecessors[stage]:
            value = self._values.output(key, source)
            if value is not None:
                outputs[source] = tuple(value.packed())
        return None if given is None else tuple(given.packed()), outputs, self._spans.trace_of(key), self._mark(key)

    def _mark(self, key: int) -> bytes:
        return self._values.marks.get(key, NO_MARK)

    # At a worker

    def received(self, coded: tuple[Any, ...], members: Sequence[tuple[Any, ...]]) -> BatchArrived:
        """A batch is here, and what its requests bring is kept."""
        event = self._coder.decode(coded)
        if not isinstance(event, BatchArrived) or len(members) != len(event.flows):
            raise WireError("a batch with the inputs of its requests expected")
        keys = [flow.request.key for flow in event.flows]
        for key, (given, outputs, trace, mark) in zip(keys, members, strict=True):
            self._spans.passed(key, trace)
            self._values.marks[key] = mark
            try:
                if given is not None:
                    self._values.keep_input(key, Value(self._values.values, came=Parcel(*given)))
                for source, parcel in outputs.items():
                    self._values.keep_output(key, source, Value(self._values.values, came=Parcel(*parcel)))
            except OSError:  # its maker is gone: the stage will say so for this request alone
                continue
        self._here[event.number] = _Batch(event.stage, list(keys))
        self._running.update(keys)
        return event

    def send_end(self, planner: int, done: BatchDone) -> None:
        """Say to the planner that a batch has ended, and hand over what its stage put out."""
        batch = self._here.pop(done.number, None)
        if batch is None:
            return
        outputs: dict[int, tuple[Any, ...]] = {}
        failed = dict(done.failed)
        for position, key in enumerate(batch.keys):
            if position in failed or key is None:
                continue
            try:
                with self._values.watched(key):
                    outputs[position] = tuple(self._values.hand_over(key, batch.stage))
            except BaseException as error:  # it cannot be pickled, or there is no room for it, or the request is over
                failed[position] = explained("what a stage put out cannot be sent: pickling", error)
        message = ("batch-done", self._coder.encode(done._replace(failed=failed or NONE_FAILED)), outputs)
        if not self._transport.send(self._number_of(planner), message):
            for parcel in outputs.values():
                self._values.values.discard(Parcel(*parcel))
        self._leave(batch)

    def planner_lost(self) -> None:
        """What is here for the planner before does not count any more."""
        for batch in self._here.values():
            for key in batch.keys:
                if key is not None:
                    self._values.let_go(key)
        self._here.clear()
        self._running.clear()

    def _leave(self, batch: _Batch) -> None:
        for key in batch.keys:
            if key is not None:
                self._running[key] -= 1
                if self._running[key] <= 0:
                    del self._running[key]
                    self._values.leave(key)
                    self._spans.forget(key)
