"""Where requests go: against the formulas of FGD (ATC'23) worked out plainly, and on cases that a reader can check."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.allocate.packing.packer import Nodes, Packer, Rule, rule_named
from fairway.allocate.packing.requests import Mix, Request
from fairway.errors import InputError

HALF, THIRD, FIFTH, ONE, TWO = Request(part=500), Request(part=300), Request(part=200), Request(), Request(2)


def room_of(*accelerators: list[int]) -> tuple[Nodes, np.ndarray]:
    nodes = Nodes.alike(len(accelerators), len(accelerators[0]))
    return nodes, np.array([room for node in accelerators for room in node])


def found(rule: Rule, request: Request, mix: list[Request], *accelerators: list[int]) -> tuple[int, ...]:
    nodes, room = room_of(*accelerators)
    return Packer(nodes, Mix.of(mix), rule, room).find(request)


def fragment_of(room: list[int], request: Request, cpus: float, memory: float, kind: int) -> float:
    """F_n(m), by its definition."""
    able = request.kinds < 0 or bool(request.kinds >> kind & 1)
    enough = sum(left >= request.part for left in room) >= min(request.count, len(room))
    if able and enough and request.cpus <= cpus and request.memory_bytes <= memory:
        return float(sum(left for left in room if left < request.part))
    return float(sum(room))


def test_best_fit_takes_the_accelerator_with_the_least_room_that_is_enough() -> None:
    assert found("best-fit", THIRD, [THIRD], [1000, 400], [300, 900]) == (2,)


def test_best_fit_of_a_gang_is_the_node_with_the_least_room() -> None:
    assert found("best-fit", TWO, [TWO], [1000, 1000, 1000], [1000, 1000, 100]) == (3, 4)


def test_the_gradient_leaves_what_others_can_use_where_best_fit_does_not() -> None:
    """After 0.2 of the 0.5 nothing is left that a half can use; of the 0.7 a half is left (ATC'23, section 4)."""
    assert found("best-fit", FIFTH, [HALF], [500, 0], [700, 0]) == (0,)
    assert found("fgd", FIFTH, [HALF], [500, 0], [700, 0]) == (2,)


def test_a_request_that_fits_nowhere_gets_nothing() -> None:
    assert found("fgd", HALF, [HALF], [499, 400]) == ()
    assert found("fgd", TWO, [TWO], [1000, 900], [900, 1000]) == (), "a gang is on one node"


def test_cpus_memory_and_kinds_are_heeded() -> None:
    nodes = Nodes(np.array([1, 1, 1]), np.array([0, 1, 1]), np.array([8.0, 1.0, 8.0]), np.array([1.0, 8.0, 8.0]))
    packer = Packer(nodes, Mix.of([HALF]), "fgd")
    assert packer.find(Request(part=500, cpus=4, memory_bytes=4)) == (2,)
    assert packer.find(Request(part=500, kinds=1)) == (0,)
    packer.take(Request(part=500, cpus=6), (2,))
    assert packer.find(Request(part=500, cpus=4, memory_bytes=4)) == ()
    packer.give_back(Request(part=500, cpus=6), (2,))
    assert packer.find(Request(part=500, cpus=4, memory_bytes=4)) == (2,)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[Nodes, np.ndarray, list[Request]]:
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    parts = st.sampled_from([0, 100, 250, 333, 500, 700, 1000])
    room = draw(st.lists(parts, min_size=sum(sizes), max_size=sum(sizes)))
    kinds = draw(st.lists(st.integers(0, 2), min_size=len(sizes), max_size=len(sizes)))
    rest = st.lists(st.sampled_from([0.0, 2.0, 8.0]), min_size=len(sizes), max_size=len(sizes))
    nodes = Nodes(np.array(sizes), np.array(kinds), np.array(draw(rest)), np.array(draw(rest)))
    return nodes, np.array(room), draw(st.lists(requests(), min_size=1, max_size=6))


def requests() -> st.SearchStrategy[Request]:
    single = st.builds(
        Request,
        part=st.sampled_from([100, 250, 333, 500, 1000]),
        cpus=st.sampled_from([0.0, 1.0, 4.0]),
        memory_bytes=st.sampled_from([0.0, 3.0]),
        kinds=st.sampled_from([-1, 1, 6]),
    )
    gangs = st.builds(Request, count=st.integers(2, 3), part=st.sampled_from([500, 1000]))
    return st.one_of(single, gangs)


@settings(max_examples=150, deadline=None)
@given(clusters(), requests())
def test_the_gradient_is_that_of_the_formula(world: tuple[Nodes, np.ndarray, list[Request]], request: Request) -> None:
    nodes, room, mix = world
    packer = Packer(nodes, Mix.of(mix), "fgd", room)
    starts = np.concatenate([[0], np.cumsum(nodes.accelerators)])

    def fragmented(node: int, left: list[int], cpus: float, memory: float) -> float:
        kind = int(nodes.kinds[node])
        return sum(fragment_of(left, one, cpus, memory, kind) for one in mix) / len(mix)

    growths: dict[tuple[int, ...], float] = {}
    for node in range(len(nodes.kinds)):
        left = room[starts[node] : starts[node + 1]].tolist()
        cpus, memory = float(nodes.cpus[node]), float(nodes.memory_bytes[node])
        reachable = request.kinds < 0 or request.kinds >> int(nodes.kinds[node]) & 1
        if not reachable or request.cpus > cpus or request.memory_bytes > memory:
            continue
        fits = [place for place, free in enumerate(left) if free >= request.part]
        if len(fits) < request.count:
            continue
        fullest = sorted(fits, key=lambda place: (left[place], place))[: request.count]
        for places in [(place,) for place in fits] if request.count == 1 else [tuple(fullest)]:
            after = [free - request.part * (place in places) for place, free in enumerate(left)]
            growth = fragmented(node, after, cpus - request.cpus, memory - request.memory_bytes)
            names = tuple(int(starts[node]) + place for place in places)
            growths[names] = growth - fragmented(node, left, cpus, memory)
    places = packer.find(request)
    if not growths:
        assert places == ()
    else:
        assert growths[places] == pytest.approx(min(growths.values()), abs=1e-6)
    whole = [
        fragmented(n, room[starts[n] : starts[n + 1]].tolist(), float(nodes.cpus[n]), float(nodes.memory_bytes[n]))
        for n in range(len(nodes.kinds))
    ]
    assert packer.fragmented() == pytest.approx(math.fsum(whole) / 1000)


@settings(max_examples=80, deadline=None)
@given(clusters(), st.lists(requests(), min_size=1, max_size=25), st.sampled_from(["fgd", "best-fit"]), st.randoms())
def test_what_is_remembered_makes_no_difference(
    world: tuple[Nodes, np.ndarray, list[Request]], coming: list[Request], rule: Rule, chance: Random
) -> None:
    nodes, room, mix = world
    packer, held = Packer(nodes, Mix.of(mix), rule, room), list[tuple[Request, tuple[int, ...]]]()
    for request in coming:
        fresh_nodes = Nodes(nodes.accelerators, nodes.kinds, packer._cpus, packer._memory)
        places = packer.find(request)
        assert places == Packer(fresh_nodes, Mix.of(mix), rule, packer.room).find(request)
        if places:
            packer.take(request, places)
            held.append((request, places))
        elif held:
            packer.give_back(*held.pop(chance.randrange(len(held))))
        assert packer.room.min() >= 0
        assert packer.room.max() <= 1000


def test_the_most_frequent_requests_stand_for_all() -> None:
    mix = Mix.of({HALF: 3.0, ONE: 1.0, THIRD: 0.5}, most=2)
    assert mix.parts.tolist() == [500, 1000]
    assert mix.weights.tolist() == [0.75, 0.25]


@pytest.mark.parametrize("given", ["", "first-fit", "FGD"])
def test_a_rule_that_is_none_gets_one_line(given: str) -> None:
    with pytest.raises(InputError, match="expected one of fgd, best-fit, whole"):
        rule_named(given)


@pytest.mark.parametrize("given", [{"part": 0}, {"part": 1001}, {"count": 0}])
def test_a_request_for_nothing_is_refused(given: dict[str, int]) -> None:
    with pytest.raises(InputError, match="given, expected"):
        Request(**given)
