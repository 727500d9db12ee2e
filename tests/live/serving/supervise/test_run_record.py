"""What a process writes down of what it does, as its supervisor reads it when the process is dead."""

from __future__ import annotations

import math
from itertools import product

import pytest

from fairway.live.serving.seams.run_record import NO_MARK, LaneKind, Running, RunRecord, mark_of, workflow_of
from fairway.live.serving.seams.values import CarriedBytes, Parcel

MARKS = [bytes([number]) * 16 for number in range(1, 200)]


def _record(processes: int = 3) -> RunRecord:
    record = RunRecord(bytearray(RunRecord.size(processes)))
    for process in range(processes):
        for lane in record.lanes(process):
            lane.clear()
    return record


def test_every_process_has_a_lane_of_each_kind_that_none_other_writes() -> None:
    record = _record()
    for process, kind in product(range(3), LaneKind):
        record.lanes(process)[kind].begin(process, kind.value, float(process), 9.0, MARKS)
    for process, kind in product(range(3), LaneKind):
        lane = record.lanes(process)[kind]
        assert lane.kind is kind
        read = lane.read()
        assert read is not None
        assert (read.kind, read.number, read.stage, read.since) == (kind, process, kind.value, float(process))
        assert list(read.marks) == MARKS[: len(read.marks)]
        assert len(read.marks) > 100


def test_a_process_that_has_just_begun_has_done_nothing() -> None:
    record = _record()
    assert [lane.read() for lane in record.lanes(1)] == [None] * len(LaneKind)
    lane = record.lanes(1)[0]
    lane.begin(0, 0, 1.0, 2.0, MARKS[:1])
    lane.clear()
    assert lane.read() is None


@pytest.mark.parametrize("count", [0, 1, 2, 3, 50])
def test_what_is_under_way_is_read_as_it_was_written(count: int) -> None:
    lane = _record().lanes(2)[LaneKind.LOOP]
    lane.begin(4, 2, 10.0, 25.0, MARKS[:count])
    assert lane.read() == Running(LaneKind.LOOP, True, 4, 2, 10.0, 25.0, math.inf, tuple(MARKS[:count]))
    lane.end(12.5)
    assert lane.read() == Running(LaneKind.LOOP, False, 4, 2, 10.0, 25.0, 12.5, tuple(MARKS[:count]))


def test_a_run_that_was_followed_by_another_does_not_end_that_one() -> None:
    lane = _record().lanes(0)[0]
    lane.begin(0, 0, 1.0, 2.0, MARKS[:1], holder=1)
    lane.begin(0, 1, 1.5, 2.0, MARKS[:1], holder=2)
    lane.end(1.75, holder=1)
    read = lane.read()
    assert read is not None
    assert read.is_active
    lane.end(1.75, holder=2)
    read = lane.read()
    assert read is not None
    assert not read.is_active


def test_a_process_that_a_stage_has_forked_writes_nothing_of_its_parent() -> None:
    lane = _record().lanes(0)[0]
    lane.begin(0, 0, 1.0, 2.0, MARKS[:1])
    before = lane.read()
    lane.turn_off()
    lane.begin(1, 1, 3.0, 4.0, MARKS[1:2])
    lane.end(5.0)
    assert lane.read() == before


def test_a_mark_says_its_workflow_and_tells_inputs_apart_but_not_the_ways_in_which_they_came() -> None:
    named = Parcel(b"input", ("segment-1",))
    carried = Parcel(b"input", (CarriedBytes.of("segment-1", b"bytes"),))
    assert mark_of(3, named) == mark_of(3, carried)
    marks = {mark_of(*what) for what in ((3, named), (4, named), (3, Parcel(b"input")), (3, Parcel(b"other")),
                                         (3, Parcel(b"input", ("segment-2",))))}  # fmt: skip
    assert len(marks) == 5
    assert {len(mark) for mark in marks} == {len(NO_MARK)} == {16}
    assert [workflow_of(mark_of(number, named)) for number in (0, 1, 300, 65_535)] == [0, 1, 300, 65_535]
