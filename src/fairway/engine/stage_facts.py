"""What an engine looks up of a graph all the time, as plain numbers instead of arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from fairway.place.graph import TaskGraph


@dataclass(frozen=True, slots=True)
class StageFacts:
    """By stage: its seconds on one worker, its models, and the stages whose output it takes, as bits.

    `entries` are the stages that take the request itself; `exits` those that nobody takes from, as bits.
    """

    seconds: list[float]
    models: list[tuple[int, ...]]
    inputs: list[int]
    entries: list[int]
    exits: int

    @classmethod
    def of(cls, graph: TaskGraph, worker: int) -> StageFacts:
        """The facts of a graph for a worker; any worker where only the graph matters."""
        common = _COMMON.get(graph)
        if common is None:
            common = _COMMON[graph] = cls._of(graph)
        return replace(common, seconds=graph.seconds[:, worker].tolist())

    @classmethod
    def _of(cls, graph: TaskGraph) -> StageFacts:
        before, after = graph.workflow.predecessors, graph.workflow.successors
        return cls(
            seconds=[],
            models=[tuple(needed.tolist()) for needed in graph.needed],
            inputs=[sum(1 << source for source in sources) for sources in before],
            entries=[stage for stage, sources in enumerate(before) if not sources],
            exits=sum(1 << stage for stage, targets in enumerate(after) if not targets),
        )


_COMMON: WeakKeyDictionary[TaskGraph, StageFacts] = WeakKeyDictionary()
"""What is the same for all workers, since a simulation has thousands of them in one process."""
