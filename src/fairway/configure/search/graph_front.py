"""The front of a whole graph: every plan that could be the cheapest within some time (the suffix front, for graphs).

Stages become arcs between events; precedence that arcs cannot express becomes arcs that take no time. Then arcs are
merged until one is left: two in a row (`in_series`) or two with the same ends (`in_parallel`). A graph in which neither
is possible is not series-parallel; then the arc into an event that nothing else enters (or out of one that nothing else
leaves) is fixed to each of its points in turn, which lets the event go (Bein, Kamburowski, Stallmann 1992). Exact
always; the work grows with the number of points to the power of the number of arcs that had to be fixed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fairway.configure.budgets.regions import Graph, reduced
from fairway.configure.search.fronts import Front, either, in_parallel, in_series, nothing
from fairway.errors import InputError
from fairway.workflows import Workflow

MOST_FIXED = 20_000
"""How many combinations of fixed points a graph may need; beyond, it is refused rather than left to run for hours."""

_BEGIN, _END = -1, -2


@dataclass(frozen=True, slots=True)
class _Arc:
    source: int
    target: int
    front: Front


def graph_front(workflow: Workflow, stages: Iterable[int], fronts: Mapping[int, Front]) -> Front:
    """The front of some stages of a workflow, which start when nothing among them has to be waited for."""
    chosen = [stage for stage in workflow.topological_order if stage in set(stages)]
    if not chosen:
        return nothing()
    return _merged(_arcs(reduced(workflow), chosen, fronts), MOST_FIXED)


def _arcs(graph: Graph, stages: list[int], fronts: Mapping[int, Front]) -> list[_Arc]:
    """An arc for each stage, and arcs without duration between them. Event 2s begins stage s, 2s + 1 ends it."""
    inside = frozenset(stages)
    before = {stage: frozenset(graph.predecessor_indices(stage)) & inside for stage in stages}
    after = {stage: frozenset(graph.successor_indices(stage)) & inside for stage in stages}
    # Stages that wait for the same others begin at the same event; those that the same others wait for end at one.
    begins: dict[frozenset[int], int] = {frozenset(): _BEGIN}
    ends: dict[frozenset[int], int] = {frozenset(): _END}
    begin = {stage: begins.setdefault(before[stage], 2 * stage) for stage in stages}
    end = {stage: ends.setdefault(after[stage], 2 * stage + 1) for stage in stages}
    arcs = [_Arc(begin[stage], end[stage], fronts[stage]) for stage in stages]
    links = {(end[stage], begin[later]) for stage in stages for later in after[stage]}
    return [*arcs, *(_Arc(source, target, nothing()) for source, target in sorted(links))]


def _merged(arcs: list[_Arc], most: int) -> Front:
    """The front of the one arc that is left in the end."""
    arcs = _merge_plainly(arcs)
    if len(arcs) == 1:
        return arcs[0].front
    fixed, forwards = _cheapest_to_fix(arcs)
    points = len(fixed.front)
    if points > most:
        raise InputError(
            f"the graph is not series-parallel and its exact plan needs more than {MOST_FIXED} combinations; "
            "use algorithm 'esg', or fewer configurations"
        )
    rest = [arc for arc in arcs if arc is not fixed]
    ways = []
    for number in range(points):
        delay = nothing(float(fixed.front.seconds[number]))
        moved = [_moved(arc, fixed, delay, forwards=forwards) for arc in rest]
        # The delay goes where the arc led to; what it costs and which point it is counts once.
        point = fixed.front.point(number)
        paid = Front(point.seconds * 0.0, point.cost, point.points, point.parts)
        ways.append(in_series(paid, _merged(moved, most // max(1, points))))
    return either(ways)


def _moved(arc: _Arc, fixed: _Arc, delay: Front, *, forwards: bool) -> _Arc:
    """An arc after the fixed one was taken out and its event with it."""
    if forwards and arc.source == fixed.target:
        return _Arc(fixed.source, arc.target, in_series(delay, arc.front))
    if not forwards and arc.target == fixed.source:
        return _Arc(arc.source, fixed.target, in_series(arc.front, delay))
    return arc


def _cheapest_to_fix(arcs: list[_Arc]) -> tuple[_Arc, bool]:
    """The arc with fewest points that is alone in entering its target (forwards) or in leaving its source."""
    entering = [arc.target for arc in arcs]
    leaving = [arc.source for arc in arcs]
    alone = [(arc, True) for arc in arcs if entering.count(arc.target) == 1 and arc.target != _END]
    alone += [(arc, False) for arc in arcs if leaving.count(arc.source) == 1 and arc.source != _BEGIN]
    return min(alone, key=lambda found: len(found[0].front))


def _merge_plainly(arcs: list[_Arc]) -> list[_Arc]:
    """Merge what is side by side or in a row until nothing is."""
    while True:
        ends: dict[tuple[int, int], _Arc] = {}
        for arc in arcs:
            twin = ends.get((arc.source, arc.target))
            merged = arc.front if twin is None else in_parallel(twin.front, arc.front)
            ends[arc.source, arc.target] = _Arc(arc.source, arc.target, merged)
        arcs = list(ends.values())
        row = _in_a_row(arcs)
        if row is None:
            return arcs
        first, second = row
        joined = _Arc(first.source, second.target, in_series(first.front, second.front))
        arcs = [joined, *(arc for arc in arcs if arc is not first and arc is not second)]


def _in_a_row(arcs: list[_Arc]) -> tuple[_Arc, _Arc] | None:
    """Two arcs with an event between them that nothing else enters or leaves."""
    entering: dict[int, list[_Arc]] = {}
    leaving: dict[int, list[_Arc]] = {}
    for arc in arcs:
        entering.setdefault(arc.target, []).append(arc)
        leaving.setdefault(arc.source, []).append(arc)
    for event, into in entering.items():
        out = leaving.get(event, [])
        if len(into) == 1 and len(out) == 1:
            return into[0], out[0]
    return None
