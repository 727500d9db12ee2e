"""Parcels: which buffers are kept apart, what is undone when packing fails, and whose they are."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from fairway.live.serving.seams.run_record import (
    MARK_BYTES,
    NO_MARK,
    Lane,
    LaneKind,
    RunRecord,
    mark_of,
    workflow_of,
)
from fairway.live.serving.seams.values import LARGE, Opened, Parcel, client_owner, packed, worker_owner


class Shelf:
    """Keeps buffers by name; one that is `full` has no room."""

    def __init__(self, full: bool = False) -> None:
        self.kept: dict[str, bytes] = {}
        self.full = full
        self.names = 0

    def keep(self, raw: memoryview) -> str:
        if self.full:
            raise OSError("no room")
        self.names += 1
        self.kept[f"b{self.names}"] = bytes(raw)
        return f"b{self.names}"

    def let_go(self, name: str) -> None:
        del self.kept[name]

    def pack(self, value: object) -> Parcel:
        return packed(value, self.keep, self.let_go)

    def value(self, parcel: Parcel) -> Any:
        return Opened(parcel, [self.kept[str(name)] for name in parcel.buffers]).value()


SMALL, JUST = b"s" * (LARGE - 1), b"l" * LARGE


@pytest.mark.parametrize(
    ("value", "apart"),
    [
        (SMALL, 0), (JUST, 1), ({"a": JUST, "b": SMALL, "c": 1}, 1), ({"a": JUST, "b": JUST}, 2), ({"a": 1}, 0),
        ([JUST, SMALL, JUST], 2), ((JUST, 1), 1), ([SMALL], 0), ("x" * LARGE, 0), (bytearray(LARGE - 1), 0),
        ({"a": {"b": JUST}}, 0), ([], 0), (None, 0),
    ],
)  # fmt: skip
def test_large_bytes_are_kept_apart_where_they_mostly_are(value: object, apart: int) -> None:
    shelf = Shelf()
    parcel = shelf.pack(value)
    assert len(parcel.buffers) == len(shelf.kept) == apart
    found = shelf.value(parcel)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(("count", "apart"), [(LARGE // 8, 1), (LARGE // 8 - 1, 0)])
def test_arrays_are_kept_apart_if_they_are_large(count: int, apart: int) -> None:
    shelf = Shelf()
    parcel = shelf.pack(np.arange(float(count)))
    assert len(parcel.buffers) == apart
    np.testing.assert_array_equal(shelf.value(parcel), np.arange(float(count)))


def test_what_there_is_no_room_for_goes_with_the_message() -> None:
    parcel = Shelf(full=True).pack([JUST, 1])
    assert parcel.buffers == ()
    assert pickle.loads(parcel.pickled) == [JUST, 1]


def test_what_was_kept_is_let_go_if_packing_fails() -> None:
    shelf = Shelf()
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        shelf.pack([JUST, lambda: 0])
    assert (shelf.kept, shelf.names) == ({}, 1)


def test_no_owner_begins_with_another() -> None:
    owners = [worker_owner(1, 0), worker_owner(1, 1), worker_owner(11, 0), client_owner(1, "a"), client_owner(1, "b")]
    owners += [client_owner(11, "a"), worker_owner(1, 11)]
    assert not [(one, two) for one in owners for two in owners if one != two and one.startswith(two)]
    assert len(set(owners)) == len(owners)


def test_a_request_is_known_by_its_workflow_and_its_input() -> None:
    parcels = [Parcel(b"a"), Parcel(b"b"), Parcel(b"a", ("x",)), Parcel(b"a", ("y",)), Parcel(b"a", (b"y", "z"))]
    marks = [mark_of(workflow, parcel) for workflow in (0, 1, 300) for parcel in parcels]
    assert len(set(marks)) == len(marks)
    assert {len(mark) for mark in marks} == {MARK_BYTES} == {len(NO_MARK)}
    assert [workflow_of(mark) for mark in marks] == [0] * 5 + [1] * 5 + [300] * 5
    assert mark_of(1, Parcel(b"a", (b"y",))) == mark_of(1, Parcel(b"a", ("y",)))


def test_a_lane_says_what_is_done_in_it_and_touches_no_other() -> None:
    memory = bytearray(RunRecord.size(2))
    record = RunRecord(memory)
    lanes = [lane for process in range(2) for lane in record.lanes(process)]
    assert [lane.kind for lane in lanes] == [LaneKind.STAGE, LaneKind.LOAD, LaneKind.LOOP] * 2
    for lane in lanes:
        lane.clear()
    marks = [mark_of(number, Parcel(b"x")) for number in range(200)]
    for number, lane in enumerate(lanes):
        assert lane.read() is None
        lane.begin(number, number + 10, 1.0 + number, 2.0 + number, marks)
    for number, lane in enumerate(lanes):
        found = lane.read()
        assert found is not None
        assert found[:6] == (lane.kind, True, number, number + 10, 1.0 + number, 2.0 + number)
        assert found.marks == tuple(marks[: len(found.marks)])
        assert 100 < len(found.marks) < 200, "as many as there is room for"


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_a_lane_is_ended_by_what_has_begun_in_it_only(count: int) -> None:
    lane: Lane = RunRecord(bytearray(RunRecord.size(1))).lanes(0)[0]
    marks = tuple(mark_of(number, Parcel(b"x")) for number in range(count))
    lane.begin(3, 1, 1.0, 2.0, marks, holder=7)
    lane.end(5.0, holder=6)
    found = lane.read()
    assert found is not None
    assert (found.is_active, found.marks) == (True, marks)
    lane.end(5.0, holder=7)
    found = lane.read()
    assert found is not None
    assert (found.is_active, found.ended, found.marks) == (False, 5.0, marks)
    lane.turn_off()
    lane.begin(4, 1, 1.0, 2.0, marks)
    lane.end(9.0)
    again = lane.read()
    assert again == found
