"""The conformance kit of schedulers: what must hold for any of them, ours or a third party's.

`check_scheduler` puts a scheduler into many small situations (`check_situations`) and runs every check of `CHECKS` in
each. A failure names the check, the situation and the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NoReturn

import numpy as np

from fairway.errors import FairwayError
from fairway.place.check_situations import KINDS, NOW, Situation, situation_of
from fairway.place.plan import NoPlaceError, Plan, Request
from fairway.place.scheduler import Scheduler

TOLERANCE = 1e-9
"""Seconds by which expected times may contradict each other."""

_SEED = 7


class SchedulerError(FairwayError):
    """A scheduler breaks a rule that every scheduler must keep."""


def check_scheduler(scheduler: Scheduler, *, seeds: Iterable[int] = range(5)) -> None:
    """Raise `SchedulerError` unless the scheduler passes every check in every kind of situation."""
    for seed in seeds:
        for kind in KINDS:
            for check in CHECKS:
                check(Trial(scheduler, kind, seed))


@dataclass(frozen=True)
class Trial:
    """A scheduler in one situation."""

    scheduler: Scheduler
    kind: str
    seed: int

    @cached_property
    def situation(self) -> Situation:
        """The situation, made anew for each check."""
        return situation_of(self.kind, self.seed)

    @cached_property
    def decided(self) -> Plan:
        """What the scheduler plans at the ingress."""
        return self.plan(self.situation.request)

    def plan(self, request: Request) -> Plan:
        """What the scheduler plans for this variant of the request."""
        view = self.situation.view(request.ingress)
        try:
            return self.scheduler.plan(request, view, NOW, np.random.default_rng(_SEED))
        except Exception as error:
            message = f"{self._place('answers')}: plan raises {type(error).__name__}: {error}"
            raise SchedulerError(message) from error

    def next_worker(self, stage: int, planned: int, sender: int, *, gathered: bool = False) -> int:
        """Where the scheduler sends a task from this worker."""
        draws = np.random.default_rng(_SEED)
        request, view = self.situation.request, self.situation.view(sender)
        try:
            return self.scheduler.next_worker(request, stage, planned, view, NOW, draws, gathered=gathered)
        except Exception as error:
            message = f"{self._place('answers')}: next_worker raises {type(error).__name__}: {error}"
            raise SchedulerError(message) from error

    def require_able(self, check: str, stage: int, worker: int) -> None:
        """Fail unless the worker is there and can run the stage, memory included."""
        name = self.situation.request.graph.workflow.stages[stage].name
        if worker not in self.situation.present:
            self.fail(check, f"'{name}' goes to worker {worker}, but only {self.situation.present} are there")
        if not self.situation.request.graph.runnable[stage, worker]:
            self.fail(check, f"'{name}' goes to worker {worker}, which has no time for it or too little memory")

    def fail(self, check: str, numbers: str) -> NoReturn:
        """Report a failed check."""
        raise SchedulerError(f"{self._place(check)}: {numbers}")

    def _place(self, check: str) -> str:
        name = getattr(self.scheduler, "name", type(self.scheduler).__name__)
        situation = f"fairway.place.check_situations.situation_of({self.kind!r}, seed={self.seed})"
        return f"scheduler '{name}' fails check '{check}' in {situation}"


def every_task_has_a_worker(trial: Trial) -> None:
    """The plan is of this request, and each task has exactly one worker, which is there and can run it."""
    plan, graph = trial.decided, trial.situation.request.graph
    if plan.graph is not graph:
        trial.fail("every_task_has_a_worker", "the plan is of another graph")
    if plan.workers.shape != (len(graph),) or plan.finish.shape != (len(graph),):
        trial.fail("every_task_has_a_worker", f"{plan.workers.shape} workers for {len(graph)} tasks")
    for stage, worker in enumerate(plan.workers.tolist()):
        trial.require_able("every_task_has_a_worker", stage, worker)


def predecessors_come_first(trial: Trial) -> None:
    """Expected times are numbers; no task starts before now or before the tasks end whose output it takes."""
    plan, graph = trial.decided, trial.situation.request.graph
    if not np.isfinite(plan.finish).all():
        trial.fail("predecessors_come_first", f"expected to finish at {plan.finish.tolist()}")
    starts = plan.finish - graph.seconds[np.arange(len(graph)), plan.workers]
    for stage, before in enumerate(graph.workflow.predecessors):
        for earlier in (NOW, *plan.finish[list(before)].tolist()):
            if starts[stage] < earlier - TOLERANCE:
                name = graph.workflow.stages[stage].name
                trial.fail("predecessors_come_first", f"'{name}' starts at {starts[stage]}, not after {earlier}")


def one_task_at_a_time(trial: Trial) -> None:
    """No worker is expected to run two tasks of the request at once."""
    plan, graph = trial.decided, trial.situation.request.graph
    starts = plan.finish - graph.seconds[np.arange(len(graph)), plan.workers]
    for worker in set(plan.workers.tolist()):
        tasks = sorted(
            np.flatnonzero(plan.workers == worker).tolist(), key=lambda task: (plan.finish[task], starts[task])
        )
        for first, second in pairwise(tasks):
            if starts[second] < plan.finish[first] - TOLERANCE:
                trial.fail("one_task_at_a_time", f"worker {worker} runs {first} and {second} at {starts[second]}")


def repeats_itself(trial: Trial) -> None:
    """The same draws give the same decisions."""
    request = trial.situation.request
    first, second = trial.plan(request), trial.plan(request)
    if first.workers.tolist() != second.workers.tolist() or first.finish.tolist() != second.finish.tolist():
        trial.fail("repeats_itself", f"plans {first.workers.tolist()} and then {second.workers.tolist()}")
    for stage, planned in enumerate(first.workers.tolist()):
        once, again = (trial.next_worker(stage, planned, request.ingress) for _ in range(2))
        if once != again:
            trial.fail("repeats_itself", f"sends task {stage} to {once} and then to {again}")


def leaves_the_state_alone(trial: Trial) -> None:
    """Deciding changes nothing in what the workers know of each other."""
    for stage, planned in enumerate(trial.decided.workers.tolist()):
        trial.next_worker(stage, planned, trial.situation.request.ingress)
    ingress = trial.situation.request.ingress
    before, after = situation_of(trial.kind, trial.seed).view(ingress), trial.situation.view(ingress)
    for name in before._fields:
        expected, found = np.asarray(getattr(before, name)), np.asarray(getattr(after, name))
        if not np.array_equal(expected, found):
            trial.fail("leaves_the_state_alone", f"{name} was {expected.tolist()}, is {found.tolist()}")


def kept_tasks_stay(trial: Trial) -> None:
    """A request that is planned again keeps what is to be kept: places, and the ends of what is done."""
    plan, request = trial.decided, trial.situation.request
    topological = list(request.graph.workflow.topological_order)
    done, kept = topological[: len(topological) // 3], topological[: len(topological) // 3 * 2]
    workers, finish = np.full(len(plan.workers), -1), np.full(len(plan.workers), np.nan)
    workers[kept] = plan.workers[kept]
    finish[done] = plan.finish[done]
    again = trial.plan(request._replace(kept=Plan(plan.graph, workers, finish)))
    if again.workers[kept].tolist() != plan.workers[kept].tolist():
        trial.fail("kept_tasks_stay", f"tasks {kept} move to {again.workers[kept].tolist()}")
    if again.finish[done].tolist() != plan.finish[done].tolist():
        trial.fail("kept_tasks_stay", f"tasks {done} end at {again.finish[done].tolist()}")
    for stage, worker in enumerate(again.workers.tolist()):
        trial.require_able("kept_tasks_stay", stage, worker)


def a_request_runs_through(trial: Trial) -> None:
    """Hop by hop, every task gets to one worker that can run it, and all its inputs get to the same one."""
    plan, graph = trial.decided, trial.situation.request.graph
    at = dict(enumerate(plan.workers.tolist()))
    gathers = trial.scheduler.rules.gathers_joins
    for stage in graph.workflow.topological_order:
        senders = [at[before] for before in graph.workflow.predecessors[stage]]
        targets = {trial.next_worker(stage, int(plan.workers[stage]), sender) for sender in senders}
        if len(targets) > 1:
            trial.fail("a_request_runs_through", f"the inputs of task {stage} go to {sorted(targets)}")
        at[stage] = targets.pop() if targets else at[stage]
        if len(senders) > 1 and gathers:
            at[stage] = trial.next_worker(stage, at[stage], at[stage], gathered=True)
        trial.require_able("a_request_runs_through", stage, at[stage])


def lost_workers_get_nothing(trial: Trial) -> None:
    """After a worker has left, no task is sent to it, even where the plan says so."""
    plan, situation = trial.decided, trial.situation
    graph, lost = situation.request.graph, int(plan.workers[-1])
    rest = [worker for worker in situation.present if worker != lost]
    if not rest or not graph.runnable[:, rest].any(axis=1).all():
        return
    situation.table.leave(lost)
    for stage in np.flatnonzero(plan.workers == lost).tolist():
        targets = {trial.next_worker(stage, lost, sender) for sender in rest}
        if lost in targets:
            trial.fail("lost_workers_get_nothing", f"task {stage} is sent to worker {lost}, which has left")
        if graph.is_join[stage] and len(targets) > 1:
            trial.fail("lost_workers_get_nothing", f"the inputs of task {stage} go to {sorted(targets)}")
        for target in targets:
            if not graph.runnable[stage, target]:
                trial.require_able("lost_workers_get_nothing", stage, target)


def refuses_what_has_no_place(trial: Trial) -> None:
    """A request with a task that no worker can run any more is refused, with `NoPlaceError`."""
    situation = trial.situation
    for worker in situation.present:
        situation.table.leave(worker)
    view = situation.view(situation.request.ingress)
    try:
        plan = trial.scheduler.plan(situation.request, view, NOW, np.random.default_rng(_SEED))
    except NoPlaceError:
        return
    except Exception as error:
        message = f"{trial._place('refuses_what_has_no_place')}: raises {type(error).__name__}: {error}"
        raise SchedulerError(message) from error
    trial.fail("refuses_what_has_no_place", f"plans {plan.workers.tolist()} although all workers have left")


CHECKS: tuple[Callable[[Trial], None], ...] = (
    every_task_has_a_worker,
    predecessors_come_first,
    one_task_at_a_time,
    repeats_itself,
    leaves_the_state_alone,
    kept_tasks_stay,
    a_request_runs_through,
    lost_workers_get_nothing,
    refuses_what_has_no_place,
)
"""What every scheduler has to keep."""
