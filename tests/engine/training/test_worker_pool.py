"""Which workers a gang gets: of the fullest node that has room, else of as few nodes as it can span."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.cluster import Cluster
from fairway.engine.training.worker_pool import WorkerPool

SIZE = 8


def pool_with(rooms: list[int]) -> WorkerPool:
    """Nodes of eight workers, of which so many are free on each."""
    pool = WorkerPool(Cluster({"v100": SIZE * len(rooms)}, workers_per_node={"v100": SIZE}))
    for node, room in enumerate(rooms):
        if room < SIZE:
            assert pool.hold(0, tuple(range(SIZE * node + room, SIZE * (node + 1))), lease=1)
    return pool


def nodes_of(workers: tuple[int, ...]) -> dict[int, int]:
    """How many workers of each node there are."""
    counts: dict[int, int] = {}
    for worker in workers:
        counts[worker // SIZE] = counts.get(worker // SIZE, 0) + 1
    return counts


@pytest.mark.parametrize(
    ("rooms", "count", "nodes"),
    [
        ([5, 3, 4], 3, {1: 3}),
        ([8, 3, 4], 4, {2: 4}),
        ([2, 8, 5, 6], 6, {3: 6}),
        # No node has room for all: the largest, and for the rest the fullest that has room for it.
        ([3, 2, 4], 5, {2: 4, 1: 1}),
        ([2, 3, 4], 5, {2: 4, 0: 1}),
        ([2, 3, 4], 7, {2: 4, 1: 3}),
        ([3, 2, 4], 9, {2: 4, 0: 3, 1: 2}),
    ],
)
def test_a_gang_goes_where_it_leaves_the_most_room_for_others(
    rooms: list[int], count: int, nodes: dict[int, int]
) -> None:
    workers, spread = pool_with(rooms).take(0, count, lease=2)
    assert nodes_of(workers) == nodes
    assert spread is (len(nodes) > 1)


@given(rooms=st.lists(st.integers(0, SIZE), min_size=1, max_size=6), draw=st.data())
def test_a_gang_spans_as_few_nodes_as_it_can_and_gets_free_workers_only(rooms: list[int], draw: st.DataObject) -> None:
    free = sum(rooms)
    if free == 0:
        return
    count = draw.draw(st.integers(1, free))
    pool = pool_with(rooms)
    workers, spread = pool.take(0, count, lease=2)
    fewest = next(number for number in range(1, len(rooms) + 1) if sum(sorted(rooms, reverse=True)[:number]) >= count)
    assert len(nodes_of(workers)) == fewest
    assert spread is (fewest > 1)
    assert all(worker % SIZE < rooms[worker // SIZE] for worker in workers), "the others were held"
    assert (len(set(workers)), int(pool.free[0])) == (count, free - count)
    if fewest == 1:
        (node,) = nodes_of(workers)
        assert rooms[node] == min(room for room in rooms if room >= count)


class PlainPool:
    """The same, kept as one state per worker: the lease that holds it, None if free, or gone."""

    def __init__(self, count: int) -> None:
        self.state: list[int | str | None] = [None] * count
        self.node = [worker // SIZE for worker in range(count)]
        self.leaving: set[int] = set()
        self.departures = 0

    def leave(self, workers: tuple[int, ...], kept: set[int]) -> list[int]:
        broken: list[int] = []
        for worker in workers:
            state = self.state[worker]
            if state == "gone":
                continue
            if state in kept:
                self.leaving.add(worker)
                continue
            if isinstance(state, int) and state not in broken:
                broken.append(state)
            self.state[worker] = "gone"
            self.leaving.discard(worker)
            self.departures += 1
        return broken

    def give_back(self, lease: int) -> None:
        self.state = [None if state == lease else state for state in self.state]
        self.leave(tuple(worker for worker in sorted(self.leaving) if self.state[worker] is None), set())

    def held(self, lease: int) -> tuple[int, ...]:
        return tuple(worker for worker, state in enumerate(self.state) if state == lease)

    def free(self) -> list[int]:
        return [worker for worker, state in enumerate(self.state) if state is None]

    def check(self, pool: WorkerPool, column: int, leases: int) -> None:
        assert pool.free[column] == len(self.free())
        assert pool.present[column] == sum(state != "gone" for state in self.state)
        assert pool.departures == self.departures
        assert pool.count(column) == len(self.state)
        gone = {worker for worker, state in enumerate(self.state) if state == "gone"}
        assert pool.gone(column) == tuple(sorted(gone | self.leaving))
        for lease in range(leases):
            assert pool.held_by(column, lease) == self.held(lease)
        everything = tuple(range(len(self.state)))
        assert pool.holders(column, everything) == list(dict.fromkeys(s for s in self.state if isinstance(s, int)))
        assert pool.holders(column, everything[:3]) == list(
            dict.fromkeys(s for s in self.state[:3] if isinstance(s, int))
        )
        assert (pool.free[0], pool.present[0], pool.gone(0)) == (2, 2, ()), "the other type is left alone"


@pytest.mark.parametrize("seed", range(12))
def test_a_pool_is_what_its_leases_departures_and_returns_make_it(seed: int) -> None:
    draws = random.Random(seed)
    pool = WorkerPool(Cluster({"k80": 2, "v100": 12}, workers_per_node={"v100": SIZE}))
    plain, leases = PlainPool(12), 0
    assert pool._node[1].tolist() == [0] * 8 + [1] * 4
    for _ in range(60):
        some = tuple(draws.sample(range(len(plain.state)), draws.randint(1, 3)))
        held = [lease for lease in range(leases) if plain.held(lease)]
        match draws.choice(["take", "hold", "give", "hand", "leave", "leave", "back", "join"]):
            case "take" if plain.free():
                workers, spread = pool.take(1, draws.randint(1, min(5, len(plain.free()))), leases)
                assert {plain.state[worker] for worker in workers} == {None}
                assert spread is (len({plain.node[worker] for worker in workers}) > 1) is pool.spans_nodes(1, workers)
                for worker in workers:
                    plain.state[worker] = leases
                leases += 1
            case "hold":
                beyond = draws.choice([(), (), (-1,), (len(plain.state),)])
                fits = not beyond and all(plain.state[worker] is None for worker in some)
                assert pool.hold(1, some + beyond, leases) is fits
                if fits:
                    for worker in some:
                        plain.state[worker] = leases
                    leases += 1
            case "give" if held:
                lease = draws.choice(held)
                pool.give_back(1, lease)
                plain.give_back(lease)
            case "hand" if held:
                lease = draws.choice(held)
                workers = plain.held(lease)
                spread = len({plain.node[worker] for worker in workers}) > 1
                assert pool.hand_over(1, lease, leases) == (workers, spread)
                for worker in workers:
                    plain.state[worker] = leases
                leases += 1
            case "leave":
                kept = set(held[: draws.randint(0, 2)])
                assert pool.leave(1, some, except_held_by=kept) == plain.leave(some, kept)
            case "back":
                absent = [worker for worker in range(len(plain.state)) if plain.state[worker] == "gone"]
                some = tuple(draws.sample(sorted({*absent, *plain.leaving, 0}), 1))
                pool.come_back(1, some)
                plain.leaving -= set(some)
                plain.state = [
                    None if worker in some and state == "gone" else state for worker, state in enumerate(plain.state)
                ]
            case "join" if len(plain.state) < 30:
                count = draws.randint(1, 9)
                pool.join(1, count)
                first = max(plain.node) + 1
                plain.node += [first + worker // SIZE for worker in range(count)]
                plain.state += [None] * count
        plain.check(pool, 1, leases)


def test_workers_of_a_type_whose_nodes_have_no_size_are_all_together() -> None:
    pool = WorkerPool(Cluster({"v100": 3}))
    pool.join(0, 30)
    workers, spread = pool.take(0, 33, lease=0)
    assert (workers, spread) == (tuple(range(33)), False)
    assert not pool.spans_nodes(0, workers)
