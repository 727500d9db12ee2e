"""Which workers a gang gets: of the fullest node that has room, else of as few nodes as it can span."""

from __future__ import annotations

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
