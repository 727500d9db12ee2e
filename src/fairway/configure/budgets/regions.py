"""The shape of a graph: a chain of stages and regions, where the branches of a region are chains again (ESG,
dominators).

A stage that every way through a graph goes through is a member of its chain: it dominates the end and post-dominates
the beginning. What lies between two such stages is a region; its connected parts are branches that run side by side. A
part without a stage that every way goes through is a tangle: it is not series-parallel, and has no chain inside.

Edges that follow from others are left out first: if a comes before b and b before c, then a -> c says nothing new.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import rustworkx as rx

from fairway.workflows import Workflow


@dataclass(frozen=True, slots=True)
class Region:
    """Branches that run side by side, each a chain."""

    branches: tuple[Chain, ...]


@dataclass(frozen=True, slots=True)
class Tangle:
    """Stages that are neither one after the other nor side by side, in topological order."""

    stages: tuple[int, ...]


Member = int | Region | Tangle
Chain = tuple[Member, ...]
Graph = rx.PyDiGraph[int, None]


def reduced(workflow: Workflow) -> Graph:
    """The graph of a workflow without edges that follow from others; a node's number is that of its stage."""
    graph: Graph = rx.PyDiGraph()
    graph.add_nodes_from(range(len(workflow)))
    graph.add_edges_from_no_data(
        [(stage, after) for stage, successors in enumerate(workflow.successors) for after in successors]
    )
    return rx.transitive_reduction(graph)[0]


def chain_of(workflow: Workflow) -> Chain:
    """The stages of a workflow as a chain, with everything that is not on every way through it in regions."""
    position = {stage: number for number, stage in enumerate(workflow.topological_order)}
    return _chain(reduced(workflow), frozenset(range(len(workflow))), position)


def _chain(graph: Graph, stages: frozenset[int], position: dict[int, int]) -> Chain:
    """The chain of some of the stages, from a beginning before all of them to an end after all of them."""
    backwards: Graph = rx.PyDiGraph()
    node = {stage: backwards.add_node(stage) for stage in sorted(stages, key=position.__getitem__)}
    begin, end = backwards.add_node(-1), backwards.add_node(-1)
    for stage in stages:
        before = [other for other in graph.predecessor_indices(stage) if other in stages]
        after = [other for other in graph.successor_indices(stage) if other in stages]
        backwards.add_edges_from_no_data([(node[stage], node[other]) for other in before])
        if not before:
            backwards.add_edge(node[stage], begin, None)
        if not after:
            backwards.add_edge(end, node[stage], None)
    closes = rx.immediate_dominators(backwards, end)
    members: list[Member] = []
    previous, current = begin, closes[begin]
    rest = set(stages)
    while previous != end:
        # What lies between is whatever comes before the current stage and has not been placed.
        between = rest & {backwards[other] for other in rx.descendants(backwards, current)}
        if between:
            members.append(_between(graph, frozenset(between), position))
            rest -= between
        if current != end:
            members.append(backwards[current])
            rest.discard(backwards[current])
        previous, current = current, closes[current]
    return tuple(members)


def _between(graph: Graph, stages: frozenset[int], position: dict[int, int]) -> Member:
    """The region or tangle of stages between two that every way goes through."""
    parts = sorted(_connected(graph, stages), key=lambda part: min(position[stage] for stage in part))
    if len(parts) == 1:  # a stage that every way through it goes through would have been on the chain
        return Tangle(tuple(sorted(stages, key=position.__getitem__)))
    return Region(tuple(_chain(graph, part, position) for part in parts))


def _connected(graph: Graph, stages: Iterable[int]) -> list[frozenset[int]]:
    """The parts of some stages that no edge connects."""
    left, parts = set(stages), []
    while left:
        part, waiting = set(), [next(iter(left))]
        while waiting:
            stage = waiting.pop()
            if stage in left:
                left.remove(stage)
                part.add(stage)
                waiting.extend([*graph.predecessor_indices(stage), *graph.successor_indices(stage)])
        parts.append(frozenset(part))
    return parts
