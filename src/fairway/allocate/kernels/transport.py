"""The cheapest way to bring units from where they are to where there is room (the transportation problem).

Each source has some units, each place takes so many; a unit has a cost by source and place. Sources come one after the
other, and each sends its units along the cheapest path that ends where room is left: straight to a place, or to a full
one from which a unit of another source moves on. Prices of the places keep the cost of such moves non-negative, so that
Dijkstra's search finds the path (successive shortest paths, Edmonds and Karp 1972). Because a place stands for all of
its room at once, this is much faster than an assignment with one column per unit of room.
"""

from __future__ import annotations

import numpy as np

from fairway.allocate.arrays import FloatArray, IntArray
from fairway.compiled import FloatTable, compiled


@compiled(releases_gil=True)
def cheapest_transport(costs: FloatTable, units: IntArray, room: IntArray) -> tuple[IntArray, FloatArray]:
    """Units sent from each source to each place at the least total cost, and the price (0 or less) of a unit of room.

    `costs[i, c]` is infinite where source i cannot send to place c. There must be room for everything: whatever the
    sources do, each of them has a place with room left that it can use. Fastest when expensive sources come first.
    """
    sources, places = costs.shape
    sent = np.zeros((sources, places), np.int64)
    prices = np.zeros(places)
    free = room.copy()
    inside = np.zeros((places, room.max()), np.int64)  # the sources with units in each place
    count = np.zeros(places, np.int64)
    distance = np.empty(places)
    settled = np.empty(places, np.bool_)
    mover = np.empty(places, np.int64)  # whose unit would come to this place, and from which other (-1: a new unit)
    origin = np.empty(places, np.int64)
    for source in range(sources):
        left = units[source]
        while left > 0:
            for c in range(places):
                distance[c] = costs[source, c] - prices[c]
                settled[c], mover[c], origin[c] = False, source, -1
            while True:
                nearest, end = np.inf, -1
                for c in range(places):
                    if not settled[c] and distance[c] < nearest:
                        nearest, end = distance[c], c
                assert end >= 0, "there must be room for everything"
                if free[end] > 0:
                    break
                settled[end] = True
                for k in range(count[end]):
                    other = inside[end, k]
                    start = nearest - (costs[other, end] - prices[end])
                    for c in range(places):
                        if not settled[c] and start + costs[other, c] - prices[c] < distance[c]:
                            distance[c] = start + costs[other, c] - prices[c]
                            mover[c], origin[c] = other, end
            for c in range(places):
                if settled[c]:
                    prices[c] += distance[c] - nearest
            amount, c = min(left, free[end]), end
            while origin[c] >= 0:
                amount = min(amount, sent[mover[c], origin[c]])
                c = origin[c]
            left -= amount
            free[end] -= amount
            c = end
            while True:
                other, before = mover[c], origin[c]
                if sent[other, c] == 0:
                    inside[c, count[c]] = other
                    count[c] += 1
                sent[other, c] += amount
                if before < 0:
                    break
                sent[other, before] -= amount
                if sent[other, before] == 0:
                    k = 0
                    while inside[before, k] != other:
                        k += 1
                    count[before] -= 1
                    inside[before, k] = inside[before, count[before]]
                c = before
    return sent, prices
