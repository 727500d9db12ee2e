"""The front planner: looks up, for each first configuration, the cheapest rest that is still in time (exact, our
default).

The best completion within a time does not depend on the deadline, so it is stored once, for every time, as the front of
all that comes after the stage. A decision is then one bisection for each configuration of the stage:

    cost(j) = own cost(j) + cost of the last point of the front with  seconds <= budget - own seconds(j)

and the k cheapest are the answer. Equal to ESG_1Q on chains; it needs no groups, and takes whole graphs.
"""

from __future__ import annotations

import numpy as np

from fairway.configure.answer import Answer, Candidate
from fairway.configure.configuration import Configuration
from fairway.configure.kernels import best_completions
from fairway.configure.tables import FirstLayer, Tables


def search_front(
    tables: Tables, stage: int, after: tuple[int, ...], queue_length: int, budget: float, k: int, added: float = 0.0
) -> Answer:
    """The k cheapest plans of a stage and those after it that end within the budget; none if none does.

    `added` is what the stage takes on top of its run time.
    """
    layer = tables.first_layer(stage, after, queue_length)
    numbers, times, costs, points = _best(layer, added, budget, k)
    candidates = []
    for number, seconds, cost, point in zip(numbers, times, costs, points, strict=True):
        plan = {stage: int(layer.numbers[number]), **_rest_plan(layer, number, point)}
        candidates.append(Candidate(named_plan(tables, plan), seconds, cost))
    return Answer(tuple(candidates), bool(candidates), len(layer.numbers))


def first_configurations(
    tables: Tables, stage: int, after: tuple[int, ...], queue_length: int, budget: float, k: int, added: float = 0.0
) -> list[int]:
    """The numbers of the first configurations of the k cheapest plans; as `search_front`, without the rest."""
    layer = tables.first_layer(stage, after, queue_length)
    numbers = best_completions(
        layer.run_seconds,
        layer.cost,
        layer.begins,
        layer.ends,
        layer.rest_seconds,
        layer.rest_cost,
        added,
        budget,
        k,
    )[0]
    chosen: list[int] = layer.numbers[numbers].tolist()
    return chosen


def _best(
    layer: FirstLayer, added: float, budget: float, k: int
) -> tuple[list[int], list[float], list[float], list[int]]:
    numbers, times, costs, points = best_completions(
        layer.run_seconds,
        layer.cost,
        layer.begins,
        layer.ends,
        layer.rest_seconds,
        layer.rest_cost,
        added,
        budget,
        k,
    )
    return numbers.tolist(), times.tolist(), costs.tolist(), points.tolist()


def _rest_plan(layer: FirstLayer, number: int, point: int) -> dict[int, int]:
    """The configurations after the first, from the front that this one has."""
    begins = np.cumsum([0, *map(len, layer.rests)])
    which = int(np.searchsorted(begins, layer.begins[number], side="right")) - 1
    return layer.rests[which].plan(point - int(begins[which]))


def named_plan(tables: Tables, plan: dict[int, int]) -> dict[int, Configuration]:
    """The configurations themselves, in the order of the stages."""
    profiles = tables.application.profiles
    return {stage: profiles[stage].configuration(plan[stage]) for stage in sorted(plan)}
