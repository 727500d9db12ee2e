"""ESG_1Q: the configuration of one queue as a path through layers of configurations, one layer for each stage of its
group.

Two blades cut partial paths p that have fixed layers 1..i:

    time:  time(p) + Σ_{j>i} least time of layer j          >  budget                   no completion is in time
    cost:  cost(p) + Σ_{j>i} least cost of layer j          >  k-th lowest upper bound  k others are cheaper for sure

where cost(p) + Σ_{j>i} cost of the fastest of layer j is an upper bound, because that completion is in time. A first
configuration has one upper bound, its lowest; otherwise k bounds might stand for fewer than k answers. `layered` widens
all paths by one layer at a time, `a-star` the one with the least bound first; both are exact, as is leaving out of the
later layers what is no faster and no cheaper than something else there. Layers are in order of time.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from fairway.configure.arrays import FloatArray, IntArray
from fairway.configure.search.answer import Answer, Candidate
from fairway.configure.search.front import named_plan
from fairway.configure.search.kernels import best_first_search, layered_search
from fairway.configure.tables import Tables

Form = Literal["layered", "a-star"]


class _Layers(NamedTuple):
    """Layers one after another; `numbers` are those of the configurations in their profiles."""

    seconds: FloatArray
    cost: FloatArray
    numbers: IntArray
    offsets: IntArray


def search_group(
    tables: Tables,
    group: tuple[int, ...],
    queue_length: int,
    budget: float,
    k: int,
    added: float = 0.0,
    *,
    form: Form = "layered",
    _guard: bool = True,
) -> Answer:
    """The k cheapest plans of a group of stages, one after another, that end within the budget; none if none does.

    The first stage takes `added` on top of its run time and batches that the queue can fill.
    """
    found: list[Candidate] = []
    expanded = 0
    for layers in _layers(tables, group, queue_length, added):
        if form == "layered":
            seconds, cost, choices, tried = layered_search(
                layers.seconds, layers.cost, layers.offsets, budget, k, _guard
            )
        else:
            seconds, cost, choices, tried = best_first_search(layers.seconds, layers.cost, layers.offsets, budget, k)
        expanded += int(tried)
        first_numbers = layers.numbers[: layers.offsets[1]]
        order = np.lexsort((first_numbers, seconds, cost))[:k]
        for first in order[np.isfinite(cost[order])].tolist():
            plan = dict(zip(group, layers.numbers[choices[first]].tolist(), strict=True))
            found.append(Candidate(named_plan(tables, plan), float(seconds[first]), float(cost[first])))
    found.sort(key=lambda candidate: (candidate.cost_dollars, candidate.seconds))
    return Answer(tuple(found[:k]), bool(found), expanded)


def _layers(tables: Tables, group: tuple[int, ...], queue_length: int, added: float) -> list[_Layers]:
    """The layers of a group; with batches that may not grow, once for each batch size of the first stage."""
    first = tables.first_layer(group[0], (), queue_length)
    if not tables.same_batch:
        return _arranged(tables, group, first.numbers, added, None)
    batch = tables.application.profiles[group[0]].batch[first.numbers]
    return [
        layers
        for size in np.unique(batch).tolist()
        for layers in _arranged(tables, group, first.numbers[batch == size], added, size)
    ]


def _arranged(
    tables: Tables, group: tuple[int, ...], numbers: IntArray, added: float, most_batch: int | None
) -> list[_Layers]:
    """The layers with these first configurations; none if one of them would be empty."""
    own = tables.application.profiles[group[0]].seconds[numbers] + added
    own_cost = tables.costs[group[0]][numbers]
    order = np.lexsort((own_cost, own))
    later = [tables.stage_front(stage, most_batch) for stage in group[1:]]
    sizes = [len(numbers), *map(len, later)]
    if not all(sizes):
        return []
    return [
        _Layers(
            np.concatenate([own[order], *(front.seconds for front in later)]),
            np.concatenate([own_cost[order], *(front.cost for front in later)]),
            np.concatenate([numbers[order], *(front.points[0] for front in later)]),
            np.cumsum([0, *sizes]),
        )
    ]
