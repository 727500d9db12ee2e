"""Workflow graphs: which stage takes the output of which, and what follows from that alone.

A graph is checked once, when it is made: it has stages with names of their own, edges between them, no cycle, and every
model that a stage names is known. Stages are numbered in the order in which they were given. Several stages may have no
predecessor; each of them takes the request itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import rustworkx as rx

from fairway.errors import InputError
from fairway.options import nearest
from fairway.workflows.mermaid import mermaid
from fairway.workflows.model import Model, Stage

_ROUNDING = 1e-9


class CriticalPath(NamedTuple):
    """The chain of stages that takes longest, and how long: no request can be done sooner."""

    stages: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class Workflow:
    """Stages, the edges between them (by name, from the one that puts out to the one that takes in), and the models."""

    stages: tuple[Stage, ...]
    edges: tuple[tuple[str, str], ...] = ()
    models: Mapping[str, Model] = field(default_factory=dict)
    name: str = "workflow"

    def __post_init__(self) -> None:
        if not self.stages:
            raise InputError("stages: none given, expected at least one")
        self._check_names()
        self._check_edges()
        cycle = rx.digraph_find_cycle(self._graph)
        if cycle:
            around = " -> ".join(f"'{self.stages[number].name}'" for number in (*(a for a, _ in cycle), cycle[0][0]))
            raise InputError(f"edges: {around} is a cycle; take one of these edges out")

    def _check_names(self) -> None:
        seen: dict[str, int] = {}
        for position, stage in enumerate(self.stages):
            if stage.name in seen:
                first = seen[stage.name]
                raise InputError(
                    f"stages[{position}].name: '{stage.name}' is also the name of stages[{first}]; give each its own"
                )
            seen[stage.name] = position
            for model in stage.models:
                if model not in self.models:
                    known = ", ".join(f"'{name}'" for name in self.models) or "none"
                    hint = nearest(model, self.models)
                    raise InputError(
                        f"stages[{position}] ('{stage.name}').model: '{model}' is not one of the models{hint or ''}; "
                        f"add it to them; known: {known}"
                    )
                if stage.models.count(model) > 1:
                    raise InputError(
                        f"stages[{position}] ('{stage.name}').models: '{model}' given twice; keep one of them"
                    )

    def _check_edges(self) -> None:
        seen = set()
        for position, edge in enumerate(self.edges):
            for end in edge:
                if end not in self._numbers:
                    raise InputError(
                        f"edges[{position}]: '{edge[0]}' -> '{edge[1]}' given, but there is no stage "
                        f"'{end}'{nearest(end, self._numbers)}; add the stage or take the edge out"
                    )
            if edge in seen:
                raise InputError(f"edges[{position}]: '{edge[0]}' -> '{edge[1]}' given twice; keep one of them")
            seen.add(edge)

    def __len__(self) -> int:
        return len(self.stages)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {stage.name: number for number, stage in enumerate(self.stages)}

    @cached_property
    def _graph(self) -> rx.PyDiGraph[int, None]:
        graph: rx.PyDiGraph[int, None] = rx.PyDiGraph(multigraph=False)
        graph.add_nodes_from(range(len(self.stages)))
        graph.add_edges_from_no_data([(self._numbers[source], self._numbers[target]) for source, target in self.edges])
        return graph

    def number(self, name: str) -> int:
        """The position of a stage."""
        if name not in self._numbers:
            raise InputError(f"workflow '{self.name}' has no stage '{name}'{nearest(name, self._numbers)}")
        return self._numbers[name]

    @cached_property
    def predecessors(self) -> tuple[tuple[int, ...], ...]:
        """By stage, the stages whose output it takes, in order."""
        return tuple(tuple(sorted(self._graph.predecessor_indices(number))) for number in range(len(self)))

    @cached_property
    def successors(self) -> tuple[tuple[int, ...], ...]:
        """By stage, the stages that take its output, in order."""
        return tuple(tuple(sorted(self._graph.successor_indices(number))) for number in range(len(self)))

    @cached_property
    def input_bytes(self) -> tuple[int, ...]:
        """By stage, what it takes in: as given, or else all that the stages before put out."""
        return tuple(
            sum(self.stages[before].output_bytes for before in self.predecessors[number])
            if stage.input_bytes is None
            else stage.input_bytes
            for number, stage in enumerate(self.stages)
        )

    @cached_property
    def topological_order(self) -> tuple[int, ...]:
        """Every stage after those whose output it takes; otherwise in the order given."""
        return tuple(rx.lexicographical_topological_sort(self._graph, key=lambda number: f"{number:09}"))

    def upward_ranks(self, seconds: Sequence[float], transfer_seconds: Sequence[float]) -> tuple[float, ...]:
        """By stage, the longest way from its start to the end of the workflow (HEFT; Compass, job planning).

            rank(t) = seconds(t) + max over successors s of (transfer_seconds(t) + rank(s)),  0 without successors

        `seconds` are the run times of the stages, `transfer_seconds` the time that the output of each takes to move.
        """
        ranks = [0.0] * len(self)
        for number in reversed(self.topological_order):
            after = (transfer_seconds[number] + ranks[successor] for successor in self.successors[number])
            ranks[number] = seconds[number] + max(after, default=0.0)
        return tuple(ranks)

    def rank_order(self, ranks: Sequence[float]) -> tuple[int, ...]:
        """The stages by decreasing rank; equal ranks in topological order, so that the whole is topological."""
        return tuple(sorted(self.topological_order, key=lambda number: -ranks[number]))

    def least_seconds(self, accelerators: Iterable[str] | None = None) -> float:
        """How long a request takes at least, on these types or any: its longest way, with nothing to wait for."""
        types = None if accelerators is None else tuple(accelerators)
        fastest = [
            min(
                (
                    seconds
                    for times in (stage.seconds.values() if types is None else map(stage.times_on, types))
                    for seconds in times.values()
                ),
                default=math.inf,
            )
            for stage in self.stages
        ]
        return self.critical_path(fastest).seconds

    def check_slo(self, seconds: float, least: float) -> None:
        """Refuse an SLO that no configuration can meet, if a request takes so long at least."""
        if seconds < least * (1 - _ROUNDING):
            raise InputError(
                f"workflow '{self.name}': an SLO of {seconds:.4g} s given, which no configuration can meet; a request "
                f"takes {_up(least)} s at least"
            )

    def critical_path(self, seconds: Sequence[float] | None = None) -> CriticalPath:
        """The chain that bounds every request from below: no waiting, no transfers, nothing to load.

        `seconds` are the run times of the stages; without them, each runs where it is fastest.
        """
        times = [stage.fastest_seconds for stage in self.stages] if seconds is None else seconds
        left = self.upward_ranks(times, [0.0] * len(self))
        number = max(self.topological_order, key=lambda entry: left[entry])
        path = [number]
        while self.successors[number]:
            number = max(self.successors[number], key=lambda successor: left[successor])
            path.append(number)
        return CriticalPath(tuple(self.stages[step].name for step in path), left[path[0]])

    @cached_property
    def dominators(self) -> Mapping[str, str | None]:
        """By stage, the last stage that every way from the request to it goes through; None if there is none."""
        graph = self._graph.copy()
        request = graph.add_node(-1)
        graph.add_edges_from_no_data(
            [(request, number) for number, before in enumerate(self.predecessors) if not before]
        )
        nearest_of = rx.immediate_dominators(graph, request)
        return {
            stage.name: None if nearest_of[number] == request else self.stages[nearest_of[number]].name
            for number, stage in enumerate(self.stages)
        }

    def mermaid(self) -> str:
        """The graph as a Mermaid flowchart."""
        return mermaid(self.stages, self.edges)


def models_of(workflows: Iterable[Workflow]) -> dict[str, Model]:
    """All models of several workflows, which share those of the same name."""
    models: dict[str, Model] = {}
    for workflow in workflows:
        for name, model in workflow.models.items():
            if models.setdefault(name, model) != model:
                raise InputError(
                    f"models.{name}: {model.bytes} bytes in workflow '{workflow.name}', {models[name].bytes} in another"
                    "; give different models different names"
                )
    return models


def _up(seconds: float) -> str:
    """Four digits that are not less."""
    if not 0 < seconds < math.inf:
        return f"{seconds:g}"
    unit = 10.0 ** (math.floor(math.log10(seconds)) - 3)
    return f"{math.ceil(seconds / unit * (1 - _ROUNDING)) * unit:.6g}"
