"""What a worker keeps of the requests that pass through it: their inputs, and what stages have put out for them.

Values stay here as they are, so that a stage that follows another on the same worker gets the very object. Only when a
value goes to another process is it packed, once. All of a request is let go when it is over. A worker that ran a batch
for the planner hands what its stage put out over: from then on, letting it go is for the planner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fairway.live.serving.runtime.limits import LOOP_SECONDS
from fairway.live.serving.seams.run_record import NO_MARK, Lane, workflow_of
from fairway.live.serving.seams.values import Opened, Parcel, Values

_MOST_OVER = 65536
"""How many requests that are over are remembered, so that what comes late for them is not kept."""


class Value:
    """A value that was made here, or came in a parcel; `in_reply` says that the answer to the client needs it.

    A parcel is opened when it comes: should its maker die, what is open stays.
    """

    __slots__ = ("_is_known", "_opened", "_packed", "_value", "_values", "in_reply")

    def __init__(
        self, values: Values, value: Any = None, came: Parcel | None = None, *, in_reply: bool = False
    ) -> None:
        self._values = values
        self.in_reply = in_reply
        self._value = value
        self._is_known = came is None
        self._opened: Opened | None = None if came is None else values.open(came)
        self._packed: Parcel | None = None  # only what was packed here is this worker's to let go

    def get(self) -> Any:
        """The value itself."""
        if not self._is_known:
            assert self._opened is not None
            self._value, self._is_known = self._opened.value(), True
        return self._value

    def packed(self) -> Parcel:
        """The value for another process."""
        if self._packed is not None:
            return self._packed
        if self._opened is not None and self._values.is_there(self._opened.parcel):
            return self._opened.parcel
        self._packed = self._values.pack(self.get())
        return self._packed

    def let_go(self) -> None:
        """Let go what was packed here."""
        if self._packed is not None:
            self._values.discard(self._packed)
            self._packed = None


class _Watched:
    """A block in which values of a request are packed or opened."""

    __slots__ = ("_lane", "_mark", "_now")

    def __init__(self, lane: Lane, now: Callable[[], float], mark: bytes) -> None:
        self._lane, self._now, self._mark = lane, now, mark

    def __enter__(self) -> None:
        now = self._now()
        self._lane.begin(workflow_of(self._mark), -1, now, now + LOOP_SECONDS, (self._mark,))

    def __exit__(self, *_: object) -> None:
        self._lane.end(self._now())


class RequestValues:
    """Values by request: its input, and the output of each stage that is known here; `values` packs and opens them.

    `marks` are what requests are known by when a worker dies of one.
    """

    def __init__(self, values: Values, lane: Lane, now: Callable[[], float]) -> None:
        self.values = values
        self._lane, self._now = lane, now
        self.marks: dict[int, bytes] = {}
        self._inputs: dict[int, Value] = {}
        self._outputs: dict[int, dict[int, Value]] = {}
        self._taken_over: dict[int, list[Parcel]] = {}
        self._over: dict[int, None] = {}

    def __len__(self) -> int:
        return len({*self._inputs, *self._outputs})

    def watched(self, key: int) -> _Watched:
        """Let the supervisor see whose values the loop packs and opens: code of their author runs then."""
        return _Watched(self._lane, self._now, self.marks.get(key, NO_MARK))

    def keep_input(self, key: int, value: Value) -> None:
        """The input of a request."""
        if key not in self._over:
            self._inputs.setdefault(key, value)

    def keep_output(self, key: int, stage: int, value: Value) -> None:
        """What a stage put out; after a repetition the first counts, which other workers may be about to open."""
        if key not in self._over:
            self._outputs.setdefault(key, {}).setdefault(stage, value)

    def take_over(self, key: int, stage: int, parcel: Parcel) -> None:
        """A worker hands over what a stage put out; raises `OSError` if it is gone."""
        if key in self._over:
            self.values.discard(parcel)
            return
        self._taken_over.setdefault(key, []).append(parcel)
        self.keep_output(key, stage, Value(self.values, came=parcel))

    def hand_over(self, key: int, stage: int) -> Parcel:
        """What a stage put out, for the planner, which lets it go in the end."""
        return self._outputs[key].pop(stage).packed()

    def begin_again(self, key: int) -> None:
        """What was put out for a request does not count any more; its input does."""
        self._let_outputs_go(key)

    def leave(self, key: int) -> None:
        """Nothing runs here for a request any more, for now: its values came from elsewhere, and are let go there."""
        self.marks.pop(key, None)
        self._inputs.pop(key, None)
        self._let_outputs_go(key)

    def input(self, key: int) -> Value | None:
        """The input of a request, if it is known here."""
        return self._inputs.get(key)

    def output(self, key: int, stage: int) -> Value | None:
        """The output of a stage, if it is known here."""
        return self._outputs.get(key, {}).get(stage)

    def outputs(self, key: int, stages: Sequence[int]) -> dict[int, Value] | None:
        """The outputs of these stages, once all of them are known here."""
        known = self._outputs.get(key, {})
        found = {stage: known[stage] for stage in stages if stage in known}
        return found if len(found) == len(stages) else None

    def is_over(self, key: int) -> bool:
        """Whether a request was let go."""
        return key in self._over

    def let_go(self, key: int) -> None:
        """The request is over."""
        self._over[key] = None
        if len(self._over) > _MOST_OVER:
            del self._over[next(iter(self._over))]
        self.marks.pop(key, None)
        given = self._inputs.pop(key, None)
        if given is not None:
            given.let_go()
        self._let_outputs_go(key)

    def let_go_all(self, concerned: Callable[[int], bool]) -> None:
        """Many requests are over."""
        for key in [key for key in {*self._inputs, *self._outputs} if concerned(key)]:
            self.let_go(key)

    def _let_outputs_go(self, key: int) -> None:
        for value in self._outputs.pop(key, {}).values():
            value.let_go()
        for parcel in self._taken_over.pop(key, ()):
            self.values.discard(parcel)
