"""What an engine looks up of a graph all the time, as plain numbers instead of arrays."""

from __future__ import annotations

from dataclasses import dataclass

from fairway.engine.serving.batch_rule import StageBatches
from fairway.place.graph import TaskGraph


@dataclass(frozen=True, slots=True)
class StageFacts:
    """By stage: its seconds on one worker, its upward rank, its models, and whose output it takes, as bits.

    `entries` are the stages that take the request itself; `exits` those whose output the reply needs, as bits: all that
    no stage takes from, and others that are returned too; `after` those that take the output of a stage. `batches` are
    those of its stages (`batch_rule`), None if all run alone. `shares` are the CPUs and slices that stages hold on a
    divided worker; None if each has the whole worker.
    """

    seconds: list[float]
    ranks: list[float]
    models: list[tuple[int, ...]]
    inputs: list[int]
    entries: list[int]
    exits: int
    after: tuple[tuple[int, ...], ...]
    batches: StageBatches | None = None
    shares: tuple[tuple[int, int], ...] | None = None

    @classmethod
    def of_all(cls, graph: TaskGraph) -> list[StageFacts]:
        """The facts of a graph, by worker; workers that are alike share theirs, since there may be thousands."""
        before, after = graph.workflow.predecessors, graph.workflow.successors
        models = [tuple(needed.tolist()) for needed in graph.needed]
        inputs = [sum(1 << source for source in sources) for sources in before]
        entries = [stage for stage, sources in enumerate(before) if not sources]
        exits = sum(1 << stage for stage, targets in enumerate(after) if not targets)
        columns = list(map(tuple, graph.seconds.T.tolist()))
        shared = (graph.ranks.tolist(), models, inputs, entries, exits, after)
        kinds = {each: cls(list(each), *shared) for each in dict.fromkeys(columns)}
        return [kinds[each] for each in columns]
