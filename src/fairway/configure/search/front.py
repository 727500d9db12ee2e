"""The front planner: looks up, for each first configuration, the cheapest rest that is still in time (exact, our
default).

The best completion within a time does not depend on the deadline, so it is stored once, for every time, as the front of
all that comes after the stage. A decision is then one bisection for each configuration of the stage:

    cost(j) = own cost(j) + cost of the last point of the front with  seconds <= budget - own seconds(j)

and the k cheapest are the answer. Equal to ESG_1Q on chains; it needs no groups, and takes whole graphs.
"""

from __future__ import annotations

import numpy as np

from fairway.configure.configuration import Configuration
from fairway.configure.search.answer import Answer, Candidate
from fairway.configure.search.kernels import best_completions, same_answer_between
from fairway.configure.tables import FirstLayer, Steps, Tables


def search_front(
    tables: Tables, stage: int, after: tuple[int, ...], queue_length: int, budget: float, k: int, added: float = 0.0
) -> Answer:
    """The k cheapest plans of a stage and those after it that end within the budget; none if none does.

    `added` is what the stage takes on top of its run time.
    """
    layer = tables.first_layer(stage, after, queue_length)
    candidates = []
    columns = best_completions(*layer.columns, added, budget, k)
    for number, seconds, cost, point in zip(*(column.tolist() for column in columns), strict=True):
        plan = {stage: int(layer.numbers[number]), **_rest_plan(layer, number, point)}
        candidates.append(Candidate(named_plan(tables, plan), seconds, cost))
    return Answer(tuple(candidates), bool(candidates), len(layer.numbers))


def first_configurations(
    tables: Tables, stage: int, after: tuple[int, ...], queue_length: int, budget: float, k: int, added: float = 0.0
) -> tuple[int, ...]:
    """The numbers of the first configurations of the k cheapest plans; as `search_front`, without the rest.

    As a function of the budget, the answer is a step function; the steps that have been met are kept.
    """
    layer = tables.first_layer(stage, after, queue_length)
    steps = layer.steps.get((added, k))
    if steps is None:
        steps = layer.steps[added, k] = Steps()
    known = steps.at(budget)
    if known is not None:
        return known
    numbers, _, costs, points = best_completions(*layer.columns, added, budget, k)
    most_cost = costs[-1] if len(costs) == k else np.inf
    answer = tuple(layer.numbers[numbers].tolist())
    since, until = same_answer_between(*layer.columns, added, budget, numbers, points, most_cost)
    if since <= budget < until:
        steps.add(answer, since, until)
    return answer


def _rest_plan(layer: FirstLayer, number: int, point: int) -> dict[int, int]:
    """The configurations after the first, from the front that this one has."""
    begins = np.cumsum([0, *map(len, layer.rests)])
    which = int(np.searchsorted(begins, layer.begins[number], side="right")) - 1
    return layer.rests[which].plan(point - int(begins[which]))


def named_plan(tables: Tables, plan: dict[int, int]) -> dict[int, Configuration]:
    """The configurations themselves, in the order of the stages."""
    profiles = tables.application.profiles
    return {stage: profiles[stage].configuration(plan[stage]) for stage in sorted(plan)}
