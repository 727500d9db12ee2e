"""The loops behind a placement, one by one, against the definition of fragments (ATC'23, section 3)."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fairway.allocate.packing.fragmentation import (
    _count_fitting,
    _is_better,
    _with_less,
    best_node,
    fragments,
    fullest,
    judge,
)

MIX = st.lists(
    st.tuples(
        st.integers(1, 3), st.sampled_from([200, 300, 500, 1000]), st.integers(0, 4), st.integers(0, 4),
        st.sampled_from([-1, 1, 2, 3]), st.integers(1, 9),
    ),
    min_size=1,
    max_size=4,
)  # fmt: skip
ROOM = st.lists(st.sampled_from([0, 200, 300, 500, 700, 1000]), min_size=1, max_size=4)


def columns(mix: list[tuple[int, ...]]) -> tuple[np.ndarray, ...]:
    """Counts, parts, CPUs, memory, kinds and weights."""
    dtypes = (np.int64, np.int64, float, float, np.int64, float)
    return tuple(np.array([one[at] for one in mix], dtype=dtype) for at, dtype in enumerate(dtypes))


def defined(room: list[int], kind: int, cpus: float, memory: float, mix: list[tuple[int, ...]]) -> float:
    """F_n(M): what is free of no use to each request, by its weight."""
    lost = 0.0
    for count, part, asks_cpus, asks_memory, kinds, weight in mix:
        able = kinds < 0 or bool(kinds >> kind & 1)
        enough = sum(left >= part for left in room) >= min(count, len(room))
        fits = able and enough and asks_cpus <= cpus and asks_memory <= memory
        lost += weight * (sum(left for left in room if left < part) if fits else sum(room))
    return lost


@given(ROOM, MIX, st.integers(0, 1), st.integers(0, 4), st.integers(0, 4))
def test_fragments_are_those_of_the_definition(
    room: list[int], mix: list[tuple[int, ...]], kind: int, cpus: int, memory: int
) -> None:
    around = np.array([1000, *room, 1000])  # other nodes beside it
    found = fragments(around, 1, 1 + len(room), kind, float(cpus), float(memory), *columns(mix))
    assert math.isclose(found, defined(room, kind, cpus, memory, mix), abs_tol=1e-9)


@given(ROOM, MIX, st.integers(0, 1), st.integers(0, 4), st.integers(0, 4), st.data())
def test_with_less_room_on_one_accelerator_they_are_those_of_that_node(
    room: list[int], mix: list[tuple[int, ...]], kind: int, cpus: int, memory: int, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(room) - 1))
    less = data.draw(st.sampled_from([left for left in (0, 200, 300, 500, 700, 1000) if left <= room[place]]))
    counts, parts, *rest = columns(mix)
    fitting, useless = np.zeros(len(mix), np.int64), np.zeros(len(mix), np.int64)
    _count_fitting(np.array(room), 0, len(room), parts, fitting, useless)
    assert fitting.tolist() == [sum(left >= one[1] for left in room) for one in mix]
    assert useless.tolist() == [sum(left for left in room if left < one[1]) for one in mix]
    found = _with_less(
        room[place],
        less,
        sum(room),
        len(room),
        kind,
        float(cpus),
        float(memory),
        fitting,
        useless,
        counts,
        parts,
        *rest,
    )
    after = [*room[:place], less, *room[place + 1 :]]
    assert math.isclose(found, defined(after, kind, cpus, memory, mix), abs_tol=1e-9)
    same = _with_less(
        0, 0, sum(room), len(room), kind, float(cpus), float(memory), fitting, useless, counts, parts, *rest
    )
    assert math.isclose(same, defined(room, kind, cpus, memory, mix), abs_tol=1e-9)


@given(ROOM, st.sampled_from([200, 500, 1000]), st.integers(1, 3))
def test_the_fullest_that_have_room_are_chosen_the_first_of_equals(room: list[int], part: int, count: int) -> None:
    able = sorted((left, place) for place, left in enumerate(room) if left >= part)
    if len(able) < count:
        return
    found = fullest(np.array([0, *room]), 1, 1 + len(room), count, part)
    assert found.tolist() == [1 + place for _, place in able[:count]]


def test_better_is_what_grows_less_and_of_equals_what_is_fuller() -> None:
    assert _is_better(1.0, 9.0, 2.0, 1.0)
    assert not _is_better(2.0, 1.0, 1.0, 9.0)
    assert _is_better(1.0, 1.0, 1.0, 2.0)
    assert not _is_better(1.0, 2.0, 1.0, 2.0)
    assert _is_better(1.0 + 1e-8, 1.0, 1.0, 2.0), "the same but for rounding"
    assert not _is_better(1.0 + 1e-6, 1.0, 1.0, 2.0)
    growth, fullness = np.array([np.inf, 3.0, 1.0, 1.0]), np.array([np.inf, 1.0, 5.0, 4.0])
    assert best_node(growth, fullness) == 3
    assert best_node(growth[:3], fullness[:3]) == 2
    assert best_node(growth[:1], fullness[:1]) == -1


@given(
    st.lists(ROOM, min_size=1, max_size=3), MIX, st.integers(1, 3), st.sampled_from([200, 500, 1000]),
    st.integers(0, 3), st.sampled_from([-1, 1, 2]), st.booleans(),
)  # fmt: skip
def test_each_node_is_judged_by_its_best_place(
    rooms: list[list[int]], mix: list[tuple[int, ...]], count: int, part: int, cpus: int, accepted: int, by: bool
) -> None:
    part = part if count == 1 else 1000
    nodes = len(rooms)
    room = np.array([left for one in rooms for left in one])
    starts = np.cumsum([0, *map(len, rooms)])
    kind, cpus_left, memory_left = np.arange(nodes) % 2, np.full(nodes, 2.0), np.full(nodes, 3.0)
    growth, fullness, place = np.zeros(nodes), np.zeros(nodes), np.zeros(nodes, np.int64)
    counted, judged = np.full(nodes, -1), np.full(nodes, -1)
    tables = [np.zeros((nodes, len(mix)), np.int64) for _ in range(2)]
    judge(
        by, np.zeros(nodes, np.int64), judged, count, part, float(cpus), 1.0, accepted, room, starts, kind, cpus_left,
        memory_left, *columns(mix), counted, *tables, np.zeros(nodes), growth, fullness, place,
    )  # fmt: skip
    assert judged.tolist() == [0] * nodes
    assert room.tolist() == [left for one in rooms for left in one], "nothing is placed"
    for number, one in enumerate(rooms):
        able = [at for at, left in enumerate(one) if left >= part]
        if cpus > 2 or len(able) < count or not (accepted < 0 or accepted >> kind[number] & 1):
            assert (growth[number], fullness[number], place[number]) == (np.inf, np.inf, -1)
            continue

        def grown(taken: list[int], one: list[int] = one, number: int = number) -> float:
            after = [left - part * (at in taken) for at, left in enumerate(one)]
            if not by:
                return 0.0
            then = defined(after, int(kind[number]), 2 - cpus, 2, mix)
            return then - defined(one, int(kind[number]), 2, 3, mix)

        if count > 1:
            taken = [int(at) for at in fullest(np.array(one), 0, len(one), count, part)]
            assert math.isclose(growth[number], grown(taken), abs_tol=1e-6)
            assert fullness[number] == sum(one)
        else:
            least = min(grown([at]) for at in able)
            at = int(place[number] - starts[number])
            assert math.isclose(growth[number], least, abs_tol=1e-6)
            assert math.isclose(grown([at]), least, abs_tol=1e-6)
            assert one[at] == min(one[other] for other in able if math.isclose(grown([other]), least, abs_tol=1e-6))
            assert fullness[number] == one[at] * 1e7 + sum(one)
