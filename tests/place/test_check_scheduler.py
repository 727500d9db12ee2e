"""The conformance kit: every scheduler passes it, and every kind of broken scheduler fails the check meant for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from itertools import combinations
from typing import ClassVar

import numpy as np
import pytest

from fairway import SCHEDULERS, NoPlaceError, Plan, Request, Scheduler, SchedulerError, check_scheduler, scheduler_of
from fairway.place.check import CHECKS
from fairway.place.check_situations import KINDS, NOW, situation_of
from fairway.place.plan import Draws
from fairway.place.scheduler import WorkerRules
from fairway.place.state import View


def _every_scheduler() -> Iterator[tuple[str, Scheduler]]:
    """Each scheduler with none, each one and each two of its flags."""
    for name, scheduler in SCHEDULERS.items():
        flags = [option.name for option in fields(scheduler) if option.default is False]  # type: ignore[arg-type]
        for count in range(3):
            for chosen in combinations(flags, count):
                yield f"{name}:{','.join(chosen)}".rstrip(":"), scheduler(**dict.fromkeys(chosen, True))


@pytest.mark.parametrize(("name", "scheduler"), [pytest.param(*each, id=each[0]) for each in _every_scheduler()])
def test_every_scheduler_passes(name: str, scheduler: Scheduler) -> None:
    check_scheduler(scheduler, seeds=range(1))


@pytest.mark.parametrize("name", list(SCHEDULERS))
def test_the_schedulers_pass_with_many_seeds(name: str) -> None:
    check_scheduler(scheduler_of(name), seeds=range(4))


@dataclass
class Broken:
    """A good scheduler with a fault, which changes what it decides."""

    name: ClassVar[str] = "broken"
    in_plan: Callable[[Plan, Request, View], Plan] = lambda plan, *_: plan
    in_hop: Callable[[int, Request, int, View], int] = lambda worker, *_: worker
    calls: list[int] = field(default_factory=list)

    @property
    def rules(self) -> WorkerRules:
        return WorkerRules()

    def plan(self, request: Request, view: View, now: float, draws: Draws) -> Plan:
        self.calls.append(0)
        return self.in_plan(scheduler_of("compass").plan(request, view, now, draws), request, view)

    def next_worker(
        self,
        request: Request,
        stage: int,
        planned: int,
        view: View,
        now: float,
        draws: Draws,
        *,
        gathered: bool = False,
    ) -> int:
        kept = scheduler_of("compass").next_worker(request, stage, planned, view, now, draws, gathered=gathered)
        return self.in_hop(kept, request, stage, view)


def _moved(plan: Plan, worker: int) -> Plan:
    return plan._replace(workers=np.full_like(plan.workers, worker))


def _absent(view: View) -> int:
    """A worker that has left, or one to use if none has."""
    gone = np.flatnonzero(np.isinf(view.queued))
    return int(gone[0]) if len(gone) else view.me


def _unable(plan: Plan) -> Plan:
    """Each task on a worker that cannot run it, where there is one."""
    unable = [
        can.argmin() if not can.all() else worker for can, worker in zip(plan.graph.runnable, plan.workers, strict=True)
    ]
    return plan._replace(workers=np.array(unable))


def _at_once(plan: Plan) -> Plan:
    """Times that respect the graph, as if every worker ran any number of tasks at once."""
    graph, level = plan.graph, np.zeros(len(plan.workers))
    for stage in graph.workflow.topological_order:
        level[stage] = max((level[before] + 1 for before in graph.workflow.predecessors[stage]), default=0)
    return plan._replace(finish=NOW + 100 * level + graph.seconds[np.arange(len(level)), plan.workers])


def _scribble(plan: Plan, view: View) -> Plan:
    view.queued[0] += 1.0
    return plan


def _forget_kept(plan: Plan, request: Request, view: View) -> Plan:
    if request.kept is None:
        return plan
    return scheduler_of("hash").plan(request._replace(kept=None, key=5), view, NOW, np.random.default_rng(0))


def _raise(plan: Plan, *_: object) -> Plan:
    raise ValueError("no idea")


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (Broken(in_plan=_raise), "answers"),
        (Broken(in_plan=lambda plan, *_: plan._replace(workers=plan.workers[:-1])), "every_task_has_a_worker"),
        (Broken(in_plan=lambda plan, *_: _moved(plan, -1)), "every_task_has_a_worker"),
        (Broken(in_plan=lambda plan, _, view: _moved(plan, _absent(view))), "every_task_has_a_worker"),
        (Broken(in_plan=lambda plan, *_: _unable(plan)), "every_task_has_a_worker"),
        (Broken(in_plan=lambda plan, *_: plan._replace(finish=plan.finish * np.nan)), "predecessors_come_first"),
        (Broken(in_plan=lambda plan, *_: plan._replace(finish=plan.finish - NOW)), "predecessors_come_first"),
        (Broken(in_plan=lambda plan, *_: _at_once(plan)), "one_task_at_a_time"),
        (Broken(in_plan=lambda plan, _, view: _scribble(plan, view)), "leaves_the_state_alone"),
        (Broken(in_plan=_forget_kept), "kept_tasks_stay"),
        (Broken(in_hop=lambda _, __, ___, view: view.me), "a_request_runs_through"),
    ],
)
def test_a_fault_is_found_by_the_check_meant_for_it(broken: Broken, check: str) -> None:
    with pytest.raises(SchedulerError, match=rf"scheduler 'broken' fails check '{check}' in fairway\.place\."):
        check_scheduler(broken, seeds=range(3))


def test_a_task_that_is_sent_to_a_worker_that_has_left_is_found() -> None:
    class Faithful(Broken):
        def next_worker(self, *arguments: object, **_: object) -> int:
            return int(arguments[2])  # type: ignore[call-overload]

    with pytest.raises(SchedulerError, match="lost_workers_get_nothing"):
        check_scheduler(Faithful())


def test_chance_from_anywhere_else_is_found() -> None:
    hidden = np.random.default_rng(0)

    def by_chance(plan: Plan, request: Request, view: View) -> Plan:
        return scheduler_of("compass").plan(request, view, NOW, hidden)

    with pytest.raises(SchedulerError, match="repeats_itself"):
        check_scheduler(Broken(in_plan=by_chance))


def test_a_scheduler_that_plans_for_nobody_is_found() -> None:
    class Careless(Broken):
        def plan(self, request: Request, view: View, now: float, draws: Draws) -> Plan:
            try:
                return super().plan(request, view, now, draws)
            except NoPlaceError:
                count = len(request.graph)
                return Plan(request.graph, np.zeros(count, dtype=np.int64), np.full(count, 101.0))

    with pytest.raises(SchedulerError, match="refuses_what_has_no_place"):
        check_scheduler(Careless())


def test_every_check_and_every_kind_is_run() -> None:
    broken = Broken()
    check_scheduler(broken, seeds=range(1))
    assert len(broken.calls) >= len(CHECKS) * len(KINDS)


def test_a_failure_says_how_to_see_it_again() -> None:
    with pytest.raises(SchedulerError) as caught:
        check_scheduler(Broken(in_plan=lambda plan, *_: _moved(plan, -1)))
    call = re.search(r"situation_of\('([^']*)', seed=(\d+)\)", str(caught.value))
    assert call is not None
    assert situation_of(call[1], int(call[2])).request.graph is not None


@pytest.mark.parametrize("kind", list(KINDS))
def test_situations_repeat(kind: str) -> None:
    first, second = situation_of(kind, 3), situation_of(kind, 3)
    assert first.request.key == second.request.key
    assert first.request.graph.seconds.tolist() == second.request.graph.seconds.tolist()
    assert first.view(-1).cached.tolist() == second.view(-1).cached.tolist()
    assert (first.view(-1).free >= 0).all()
