"""What an ingress worker knows of the requests that it has not answered yet, and what a loss means for them.

The ingress keeps each request until its reply. When a worker is lost, it asks the others how far the requests are that
had something there. It then works out which tasks have to run (again): those that sat there, and those that ran there
whose output another task may still need. Everything else stays where it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from fairway.engine.serving.flow import Flow
from fairway.place.plan import Plan


class OpenRequest:
    """A request without a reply: where each task is, as far as the ingress knows, and which have ended.

    `named` are all workers that may hold something of it. `finish` is NaN for a task that is not known to have ended.
    `gone` are tasks that were lost with their worker, or their output was, even if that is back by now. `left` are the
    tasks that the reply needs and that have not ended, as bits. `since` is the attempt that sent a task on its way
    last; `moved` is what is known of its way since: the attempt, and how often it has moved. `asked` are the workers
    that have yet to say how far it is.
    """

    __slots__ = ("asked", "at", "finish", "finished", "flow", "gone", "left", "moved", "named", "since")

    def __init__(self, flow: Flow, exits: int, *, tracked: bool) -> None:
        self.flow = flow
        self.left = exits
        self.finished = -math.inf
        if tracked:
            self.at = list(flow.workers)
            self.finish = [math.nan] * len(flow.workers)
            self.named = set(flow.workers)
            self.gone: set[int] = set()
            self.asked: set[int] = set()
            self.since = [flow.attempt] * len(flow.workers)
            self.moved = [(flow.attempt, 0)] * len(flow.workers)

    def is_done(self, stage: int) -> bool:
        """Whether a task has ended."""
        return not math.isnan(self.finish[stage])

    def conclude(self) -> None:
        """A task has ended, whether or not its worker is there to say so, if all that take its output have."""
        after, finish = self.flow.graph.workflow.successors, self.finish
        for stage in reversed(self.flow.graph.workflow.topological_order):
            if after[stage] and not (self.left >> stage & 1 or self.is_done(stage)):
                ends = [finish[next_] for next_ in after[stage]]
                if not any(map(math.isnan, ends)):
                    finish[stage] = min(ends)

    def lose(self, worker: int) -> None:
        """A worker is lost, and with it its tasks and what they put out."""
        self.gone.update(stage for stage, at in enumerate(self.at) if at == worker)

    def to_repeat(self, is_present: Callable[[int], bool]) -> set[int]:
        """The tasks that have to run elsewhere, or once more.

        A task that has not ended, if its worker is gone; and one that has, if its worker is gone with its output and
        a task that takes this output has not ended or has to be repeated itself. That one may have its input already,
        but no worker is left to say so; inputs that come twice do no harm.
        """
        workflow = self.flow.graph.workflow
        repeated: set[int] = set()
        for stage in reversed(workflow.topological_order):
            if stage not in self.gone and is_present(self.at[stage]):
                continue
            after = workflow.successors[stage]
            if not self.is_done(stage) or any(next_ in repeated or not self.is_done(next_) for next_ in after):
                repeated.add(stage)
        return repeated

    def without(self, repeated: set[int]) -> Plan:
        """The plan to keep: all but these tasks."""
        workers, finish = np.array(self.at, dtype=np.int64), np.array(self.finish)
        for stage in repeated:
            workers[stage], finish[stage] = -1, np.nan
        return Plan(self.flow.graph, workers, finish)

    def follow(self, flow: Flow, repeated: set[int]) -> None:
        """Take a new plan for these tasks."""
        self.flow = flow
        self.at = list(flow.workers)
        self.named.update(flow.workers)
        self.gone -= repeated
        for stage in repeated:
            self.finish[stage] = math.nan
            self.since[stage] = flow.attempt
            self.moved[stage] = (flow.attempt, 0)
