"""What a worker keeps of requests: the very objects, each packed once, and nothing of a request that is over."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from fairway.live.serving.runtime import request_values
from fairway.live.serving.runtime.request_values import RequestValues, Value
from fairway.live.serving.seams.run_record import LANE_BYTES, Lane, LaneKind
from fairway.live.serving.seams.values import LARGE, Parcel
from fairway.live.serving.simulated.memory import SimulatedValues

LARGE_VALUE = bytearray(2 * LARGE)


class Node:
    """Two processes that keep large buffers in one place."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.lane = Lane(bytearray(LANE_BYTES), 0, LaneKind.LOOP)
        self.here, self.there = (self.values(owner) for owner in ("w0-1-", "w1-1-"))

    def values(self, owner: str) -> RequestValues:
        return RequestValues(SimulatedValues(self.kept, owner), self.lane, lambda: 5.0)

    def parcel(self, value: Any = LARGE_VALUE) -> Parcel:
        """A value that the other process has packed."""
        return self.there.values.pack(_Apart(value))


class _Apart:
    """A value with a large buffer, so that it shows whether the buffer is kept."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _Apart, (pickle.PickleBuffer(self.value),)


@pytest.fixture
def node() -> Node:
    return Node()


def made(node: Node) -> Value:
    return Value(node.here.values, _Apart(LARGE_VALUE))


def test_a_value_stays_the_very_object_and_is_packed_once(node: Node) -> None:
    thing = object()
    assert Value(node.here.values, thing).get() is thing
    assert Value(node.here.values, None).get() is None
    value = made(node)
    assert value.packed() == value.packed()
    assert len(node.kept) == 1
    value.let_go()
    assert node.kept == {}
    value.let_go()
    assert len(node.here.values.open(value.packed()).buffers) == 1, "packed anew"


def test_what_came_is_passed_on_as_it_came_and_packed_here_only_if_its_maker_is_gone(node: Node) -> None:
    parcel = node.parcel()
    value = Value(node.here.values, came=parcel)
    assert value.packed() == parcel
    assert value.get() is value.get()
    value.let_go()
    assert len(node.kept) == 1, "it is its maker's to let go"
    node.there.values.discard(parcel)
    assert value.packed() != parcel
    assert len(node.kept) == 1
    value.let_go()
    assert node.kept == {}
    with pytest.raises(FileNotFoundError):
        Value(node.here.values, came=parcel)


def test_the_first_output_of_a_stage_counts_and_all_are_told_once_all_are_known(node: Node) -> None:
    here = node.here
    first, second, third = (Value(here.values, number) for number in range(3))
    here.keep_output(1, 0, first)
    here.keep_output(1, 0, second)
    assert here.output(1, 0) is first
    assert here.outputs(1, [0, 2]) is None
    here.keep_output(1, 2, third)
    assert here.outputs(1, [2, 0]) == {2: third, 0: first}
    assert here.outputs(1, []) == here.outputs(7, []) == {}
    assert here.output(1, 9) is here.output(7, 0) is None
    here.keep_input(1, second)
    here.keep_input(1, third)
    assert here.input(1) is second
    here.keep_input(4, first)
    assert len(here) == 2


def test_of_a_request_that_is_over_nothing_is_kept_or_taken_over(node: Node) -> None:
    here = node.here
    given, put_out, parcel = made(node), made(node), node.parcel()
    given.packed()
    put_out.packed()
    here.keep_input(1, given)
    here.keep_output(1, 0, put_out)
    here.take_over(1, 1, parcel)
    here.marks[1] = b"m" * 16
    assert (len(node.kept), here.is_over(1)) == (3, False)
    here.let_go(1)
    assert (node.kept, len(here), here.is_over(1), here.marks) == ({}, 0, True, {})
    here.keep_input(1, given)
    here.keep_output(1, 0, put_out)
    here.take_over(1, 1, node.parcel())
    assert (node.kept, len(here)) == ({}, 0)


def test_what_was_put_out_counts_no_more_when_a_request_begins_again_but_its_input_does(node: Node) -> None:
    here = node.here
    given = made(node)
    given.packed()
    here.keep_input(1, given)
    here.take_over(1, 1, node.parcel())
    here.begin_again(1)
    assert here.input(1) is given
    assert here.output(1, 1) is None
    assert len(node.kept) == 1
    here.keep_output(1, 1, Value(here.values, 4))
    assert here.output(1, 1) is not None, "it is not over"


def test_what_is_handed_over_is_not_let_go_here(node: Node) -> None:
    here = node.here
    here.keep_output(1, 3, made(node))
    parcel = here.hand_over(1, 3)
    here.leave(1)
    assert list(node.kept) == list(parcel.names)
    assert here.output(1, 3) is None


def test_a_worker_that_is_left_by_a_request_may_see_it_again(node: Node) -> None:
    here = node.here
    here.marks[1] = b"m" * 16
    here.keep_input(1, Value(here.values, came=node.parcel()))
    here.keep_output(1, 0, made(node))
    here.output(1, 0).packed()  # type: ignore[union-attr]
    here.leave(1)
    assert (len(here), here.marks, len(node.kept)) == (0, {}, 1), "the input is its maker's to let go"
    assert not here.is_over(1)
    here.keep_input(1, Value(here.values, 3))
    assert len(here) == 1


def test_many_are_let_go_at_once_and_only_so_many_are_remembered(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_values, "_MOST_OVER", 2)
    here = node.here
    for key in range(4):
        here.keep_input(key, Value(here.values, key))
    here.let_go_all(lambda key: key != 1)
    assert [here.input(key) is None for key in range(4)] == [True, False, True, True]
    assert [here.is_over(key) for key in range(4)] == [False, False, True, True]


def test_whose_values_are_opened_can_be_seen_meanwhile(node: Node) -> None:
    mark = b"\0" * 14 + b"\7\0"
    node.here.marks[1] = mark
    with node.here.watched(1):
        running = node.lane.read()
        assert running is not None
        assert (running.is_active, running.stage, running.since, running.marks) == (True, -1, 5.0, (mark,))
        assert running.until > running.since
    ended = node.lane.read()
    assert ended is not None
    assert (ended.is_active, ended.ended) == (False, 5.0)
