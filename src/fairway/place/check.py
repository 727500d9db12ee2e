"""The conformance kit of placers: what must hold for any of them, ours or a third party's.

`check_scheduler` puts a placer into many small situations (`check_situations`) and runs every check of `BATCH_CHECKS`
in each and, if the placer can place requests ahead, every check of `CHECKS`. A failure names the check, the situation
and the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NoReturn

import numpy as np

from fairway.errors import FairwayError
from fairway.place.batch import NOWHERE, Batch, Room
from fairway.place.check_situations import CPUS, KINDS, NOW, Situation, situation_of
from fairway.place.fleet import OUTSIDE
from fairway.place.placer import BatchPlacer, Placer
from fairway.place.plan import NoPlaceError, Plan, Request
from fairway.place.state import View

TOLERANCE = 1e-9
"""Seconds by which expected times may contradict each other."""

_SEED = 7


class SchedulerError(FairwayError):
    """A scheduler breaks a rule that every scheduler must keep."""


def check_scheduler(scheduler: BatchPlacer, *, seeds: Iterable[int] = range(5)) -> None:
    """Raise `SchedulerError` unless the scheduler passes every check in every kind of situation.

    One that has neither `plan` nor `next_worker` is checked for what it does with batches alone.
    """
    checks = _checks_of(scheduler)
    for seed in seeds:
        for kind in KINDS:
            for check in checks:
                check(Trial(scheduler, kind, seed))


def _checks_of(scheduler: BatchPlacer) -> tuple[Callable[[Trial], None], ...]:
    """The checks of the verbs that a scheduler has; fails where one is missing."""
    has = {verb: callable(getattr(scheduler, verb, None)) for verb in ("place_batch", "plan", "next_worker")}
    places_ahead = has["plan"] or has["next_worker"]
    for verb, there in has.items():
        if not there and (places_ahead or verb == "place_batch"):
            name = getattr(scheduler, "name", type(scheduler).__name__)
            raise SchedulerError(f"scheduler '{name}' fails check 'answers': it has no method '{verb}'")
    if scheduler.rules.moves and not callable(getattr(scheduler, "place_again", None)):
        raise SchedulerError(
            f"scheduler '{scheduler.name}' fails check 'answers': its rules say that tasks move, but it has no method "
            "'place_again'"
        )
    return (*CHECKS, *BATCH_CHECKS) if places_ahead else BATCH_CHECKS


@dataclass(frozen=True)
class Trial:
    """A scheduler in one situation."""

    scheduler: BatchPlacer
    kind: str
    seed: int

    @property
    def ahead(self) -> Placer:
        """The scheduler as one that places requests ahead."""
        assert isinstance(self.scheduler, Placer)
        return self.scheduler

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
            return self.ahead.plan(request, view, NOW, np.random.default_rng(_SEED))
        except Exception as error:
            message = f"{self._place('answers')}: plan raises {type(error).__name__}: {error}"
            raise SchedulerError(message) from error

    def next_worker(self, stage: int, planned: int, sender: int, *, gathered: bool = False) -> int:
        """Where the scheduler sends a task from this worker."""
        draws = np.random.default_rng(_SEED)
        request, view = self.situation.request, self.situation.view(sender)
        try:
            return self.ahead.next_worker(request, stage, planned, view, NOW, draws, gathered=gathered)
        except Exception as error:
            message = f"{self._place('answers')}: next_worker raises {type(error).__name__}: {error}"
            raise SchedulerError(message) from error

    def place_batch(self, batch: Batch, room: Room) -> int:
        """Where the scheduler sends a batch."""
        view, draws = self.situation.view(OUTSIDE), np.random.default_rng(_SEED)
        try:
            worker = self.scheduler.place_batch(batch, room, view, NOW, draws)
        except Exception as error:
            message = f"{self._place('answers')}: place_batch raises {type(error).__name__}: {error}"
            raise SchedulerError(message) from error
        if worker not in range(NOWHERE, len(self.situation.table.fleet)):
            self.fail("answers", f"place_batch says {worker!r}, expected a worker's number or NOWHERE")
        return int(worker)

    def require_room(self, check: str, batch: Batch, room: Room, worker: int) -> None:
        """Fail unless the worker is there, has room for the batch and can run its stage."""
        self.require_able(check, batch.stage, worker)
        if not room.fits(batch)[worker]:
            free = f"{room.cpu[worker]} CPUs and {room.gpu[worker]} slices"
            self.fail(check, f"a batch of {batch.cpu} and {batch.gpu} goes to worker {worker}, which has {free} free")

    def require_able(self, check: str, stage: int, worker: int) -> None:
        """Fail unless the worker is there and can run the stage, memory included."""
        name = self.situation.request.graph.workflow.stages[stage].name
        if worker not in self.situation.present:
            self.fail(check, f"'{name}' goes to worker {worker}, but only {self.situation.present} are there")
        if not self.situation.request.graph.runnable[stage, worker]:
            self.fail(check, f"'{name}' goes to worker {worker}, which has no time for it or too little memory")

    def require_same(self, check: str, before: View | Room, after: View | Room) -> None:
        """Fail unless nothing has changed."""
        for name in before._fields:
            expected, found = np.asarray(getattr(before, name)), np.asarray(getattr(after, name))
            if not np.array_equal(expected, found):
                self.fail(check, f"{name} was {expected.tolist()}, is {found.tolist()}")

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
    trial.require_same("leaves_the_state_alone", before, after)


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
        plan = trial.ahead.plan(situation.request, view, NOW, np.random.default_rng(_SEED))
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
"""What every scheduler has to keep that places requests ahead."""


def batches_go_where_they_fit(trial: Trial) -> None:
    """A batch goes to one worker that is there, has room for it and can run its stage, or nowhere."""
    room = trial.situation.room
    for batch in trial.situation.batches:
        worker = trial.place_batch(batch, room)
        if worker != NOWHERE:
            trial.require_room("batches_go_where_they_fit", batch, room, worker)


def empty_workers_get_batches(trial: Trial) -> None:
    """While nothing runs anywhere, every batch has a worker."""
    room = trial.situation.empty_room()
    for batch in trial.situation.batches:
        worker = trial.place_batch(batch, room)
        if worker == NOWHERE:
            trial.fail("empty_workers_get_batches", f"a batch of {batch.cpu} and {batch.gpu} goes nowhere")
        trial.require_room("empty_workers_get_batches", batch, room, worker)


def what_fits_nowhere_goes_nowhere(trial: Trial) -> None:
    """A batch that needs more than any worker has free has no worker."""
    room = trial.situation.room
    full = room._replace(cpu=np.zeros_like(room.cpu), gpu=np.zeros_like(room.gpu))
    for batch in trial.situation.batches:
        for asked, free in ((batch._replace(cpu=CPUS + 1), room), (batch, full)):
            worker = trial.place_batch(asked, free)
            if worker != NOWHERE:
                size = f"{asked.cpu} and {asked.gpu}"
                trial.fail("what_fits_nowhere_goes_nowhere", f"a batch of {size} goes to worker {worker}")


def batches_repeat(trial: Trial) -> None:
    """The same draws give a batch the same worker, whatever was decided in between."""
    situation = trial.situation
    first = [trial.place_batch(batch, situation.room) for batch in situation.batches]
    for batch, once in reversed(list(zip(situation.batches, first, strict=True))):
        again = trial.place_batch(batch, situation.room)
        if again != once:
            trial.fail("batches_repeat", f"a batch of stage {batch.stage} goes to {once} and then to {again}")


def batches_leave_the_state_alone(trial: Trial) -> None:
    """Placing a batch changes nothing in what is known of the workers, and takes nothing from them."""
    for batch in trial.situation.batches:
        trial.place_batch(batch, trial.situation.room)
    before, after = situation_of(trial.kind, trial.seed), trial.situation
    trial.require_same("batches_leave_the_state_alone", before.view(OUTSIDE), after.view(OUTSIDE))
    trial.require_same("batches_leave_the_state_alone", before.room, after.room)


def lost_workers_get_no_batches(trial: Trial) -> None:
    """After a worker has left, no batch goes there, wherever it has gone before."""
    situation, room = trial.situation, trial.situation.empty_room()
    before = [trial.place_batch(batch, room) for batch in situation.batches]
    lost = before[0]
    situation.table.leave(lost)
    room.cpu[lost] = room.gpu[lost] = 0
    for batch in situation.batches:
        worker = trial.place_batch(batch, room)
        if worker == lost:
            trial.fail("lost_workers_get_no_batches", f"a batch goes to worker {lost}, which has left")
        if worker != NOWHERE:
            trial.require_room("lost_workers_get_no_batches", batch, room, worker)


BATCH_CHECKS: tuple[Callable[[Trial], None], ...] = (
    batches_go_where_they_fit,
    empty_workers_get_batches,
    what_fits_nowhere_goes_nowhere,
    batches_repeat,
    batches_leave_the_state_alone,
    lost_workers_get_no_batches,
)
"""What every placer has to keep."""
