"""What an engine looks up of a graph all the time, as plain numbers instead of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fairway.engine.serving.batch_rule import GraphBatches, StageBatches
from fairway.place.graph import TaskGraph


@dataclass(frozen=True, slots=True)
class StageFacts:
    """By stage: its seconds on one worker, its upward rank, its models, and whose output it takes, as bits.

    `entries` are the stages that take the request itself; `exits` those whose output the reply needs, as bits: all that
    no stage takes from, and others that are returned too; `after` those that take the output of a stage. `batches` are
    those of its stages (`batch_rule`), None if all run alone. `shares` are the CPUs and slices that stages hold on a
    divided worker; None if each has the whole worker.

    Where floor 2 has planned the stages (`place.stage_plan`), `sizes` are the planned batches, `largest` those that
    have a time, `times` what one, two and so on take together here, `kept` and `kept_after` what is kept back from the
    start and from the end of a stage, and `groups` which stages are alike.
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
    sizes: Sequence[int] = ()
    largest: Sequence[int] = ()
    times: Sequence[Sequence[float]] = ()
    kept: Sequence[float] = ()
    kept_after: Sequence[float] = ()
    groups: Sequence[int] = ()

    @classmethod
    def of_all(
        cls,
        graph: TaskGraph,
        batches: GraphBatches | None = None,
        shares: tuple[tuple[int, int], ...] | None = None,
        returned: frozenset[int] = frozenset(),
    ) -> list[StageFacts]:
        """The facts of a graph, by worker; workers that are alike share theirs, since there may be thousands.

        The outputs of the stages in `returned` belong to the reply though other stages take them too.
        """
        before, after = graph.workflow.predecessors, graph.workflow.successors
        models = [tuple(needed.tolist()) for needed in graph.needed]
        inputs = [sum(1 << source for source in sources) for sources in before]
        entries = [stage for stage, sources in enumerate(before) if not sources]
        exits = sum(1 << stage for stage, targets in enumerate(after) if not targets or stage in returned)
        shared = (graph.ranks.tolist(), models, inputs, entries, exits, after)
        kinds: dict[tuple[float | int, ...], StageFacts] = {}
        plan = graph.plan
        of_all = []
        for worker, seconds in enumerate(graph.seconds.T.tolist()):
            own = None if batches is None else batches[worker]
            kind = (id(own), *seconds)  # workers of one accelerator type have the very same batches
            facts = kinds.get(kind)
            if facts is None:
                planned: tuple[Any, ...] = ()
                if plan is not None:
                    times = plan.times[:, plan.kinds[worker]].tolist()
                    kept, after = plan.kept.tolist(), plan.after.tolist()
                    planned = (plan.sizes.tolist(), plan.largest.tolist(), times, kept, after, plan.groups)
                facts = kinds[kind] = cls(seconds, *shared, own, shares, *planned)
            of_all.append(facts)
        return of_all
