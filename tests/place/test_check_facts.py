"""Each fact that a check of the placers' kit looks at: a placer that gets this one wrong, and no other, is found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fairway import NoPlaceError, Plan, Request, SchedulerError, WorkerRules
from fairway.place import check
from fairway.place.check import Trial
from fairway.place.check_situations import KINDS, NOW
from fairway.place.placer import Placer
from fairway.place.plan import Draws
from fairway.place.state import View
from tests.place.test_check_scheduler import Broken

SEEDS = range(3)


def _fails(placer: Placer, name: str, found: str) -> None:
    """The check fails somewhere, always for this reason, and where it does not fail the fault makes no difference."""
    run: Callable[[Trial], None] = getattr(check, name)
    failures: list[str] = []
    for seed in SEEDS:
        for kind in KINDS:
            try:
                run(Trial(placer, kind, seed))
            except SchedulerError as error:
                failures.append(str(error))
    assert failures
    assert all(f"fails check '{name}'" in failure and found in failure for failure in failures), failures


def _finish(change: Callable[[np.ndarray[Any, Any], Plan], np.ndarray[Any, Any]]) -> Broken:
    """A placer that expects other ends."""
    return Broken(in_plan=lambda plan, *_: plan._replace(finish=change(plan.finish.copy(), plan)))


def _last_at_once(finish: np.ndarray[Any, Any], plan: Plan) -> np.ndarray[Any, Any]:
    last = plan.graph.workflow.topological_order[-1]
    finish[last] = NOW + plan.graph.seconds[last, plan.workers[last]]
    return finish


def _a_little_early(finish: np.ndarray[Any, Any], plan: Plan) -> np.ndarray[Any, Any]:
    """The last task is expected a thousandth of a second before its last input."""
    last = plan.graph.workflow.topological_order[-1]
    if before := plan.graph.workflow.predecessors[last]:
        finish[last] = finish[list(before)].max() - 1e-3 + plan.graph.seconds[last, plan.workers[last]]
    return finish


def test_a_plan_of_another_graph_is_found() -> None:
    other = Trial(Broken(), next(iter(KINDS)), 9).situation.request.graph
    broken = Broken(in_plan=lambda plan, *_: plan._replace(graph=other))
    _fails(broken, "every_task_has_a_worker", "the plan is of another graph")


def test_too_many_expected_ends_are_found() -> None:
    _fails(_finish(lambda finish, _: np.append(finish, 1.0)), "every_task_has_a_worker", "workers for")


def test_too_few_workers_are_found() -> None:
    broken = Broken(in_plan=lambda plan, *_: plan._replace(workers=plan.workers[:-1]))
    _fails(broken, "every_task_has_a_worker", "workers for")


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_an_end_that_is_no_time_is_found(wrong: float) -> None:
    def last(finish: np.ndarray[Any, Any], _: Plan) -> np.ndarray[Any, Any]:
        finish[-1] = wrong
        return finish

    _fails(_finish(last), "predecessors_come_first", "expected to finish at")


def test_a_start_before_the_request_is_found() -> None:
    _fails(_finish(lambda finish, _: finish - 1000.0), "predecessors_come_first", f"not after {NOW}")


@pytest.mark.parametrize("change", [_last_at_once, _a_little_early])
def test_a_start_before_an_input_is_there_is_found(change: Any) -> None:
    _fails(_finish(change), "predecessors_come_first", "not after")


def test_a_worker_that_is_expected_to_do_two_things_at_once_is_found() -> None:
    """All tasks run on one worker, where the second begins a thousandth of a second before the first has ended."""

    def overlapping(plan: Plan, request: Request, _: View) -> Plan:
        seconds = request.graph.seconds[np.arange(len(plan.workers)), plan.workers]
        finish = plan.finish.copy()
        for worker in set(plan.workers.tolist()):
            first, *rest = sorted(np.flatnonzero(plan.workers == worker).tolist(), key=lambda task: finish[task])
            for task in rest:
                finish[task] = finish[first] + seconds[task] - 1e-3
        return plan._replace(finish=finish)

    _fails(Broken(in_plan=overlapping), "one_task_at_a_time", "runs")


def test_another_plan_the_second_time_is_found() -> None:
    class Moving(Broken):
        def plan(self, request: Request, view: View, now: float, draws: Draws) -> Plan:
            plan = super().plan(request, view, now, draws)
            return plan if len(self.calls) % 2 else plan._replace(workers=plan.workers[::-1].copy())

    class Delaying(Broken):
        def plan(self, request: Request, view: View, now: float, draws: Draws) -> Plan:
            plan = super().plan(request, view, now, draws)
            return plan._replace(finish=plan.finish + len(self.calls))

    _fails(Moving(), "repeats_itself", "plans")
    _fails(Delaying(), "repeats_itself", "plans")


def test_another_hop_the_second_time_is_found() -> None:
    hops: list[int] = []

    def alternating(worker: int, *_: object) -> int:
        hops.append(worker)
        return worker + len(hops) % 2

    _fails(Broken(in_hop=alternating), "repeats_itself", "sends task 0 to")


def test_a_hop_that_changes_a_load_is_found() -> None:
    def scribbling(worker: int, _: Request, __: int, view: View) -> int:
        view.queued[0] += 1.0
        return worker

    _fails(Broken(in_hop=scribbling), "leaves_the_state_alone", "queued was")


def test_kept_tasks_that_move_are_found() -> None:
    def moved(plan: Plan, request: Request, _: View) -> Plan:
        return plan if request.kept is None else plan._replace(workers=(plan.workers + 1) % 2)

    _fails(Broken(in_plan=moved), "kept_tasks_stay", "move to")


def test_another_end_of_what_is_done_is_found() -> None:
    def later(plan: Plan, request: Request, _: View) -> Plan:
        return plan if request.kept is None else plan._replace(finish=plan.finish + 1.0)

    _fails(Broken(in_plan=later), "kept_tasks_stay", "end at")


def test_new_places_where_nothing_runs_are_found() -> None:
    def nowhere(plan: Plan, request: Request, _: View) -> Plan:
        if request.kept is None:
            return plan
        return plan._replace(workers=np.where(request.kept.workers < 0, 99, plan.workers))

    _fails(Broken(in_plan=nowhere), "kept_tasks_stay", "goes to worker 99")


def _joins_apart(worker: int, request: Request, stage: int, view: View) -> int:
    graph = request.graph
    return view.me if graph.is_join[stage] and graph.runnable[stage, view.me] else worker


def test_inputs_that_go_apart_are_found() -> None:
    _fails(Broken(in_hop=_joins_apart), "a_request_runs_through", "the inputs of task")


def test_a_join_that_moves_away_after_its_inputs_have_come_is_found() -> None:
    class Leaving(Broken):
        def next_worker(self, *given: Any, gathered: bool = False) -> int:
            return 99 if gathered else super().next_worker(*given)

    class Gathering(Leaving):
        @property
        def rules(self) -> WorkerRules:
            return WorkerRules(gathers_joins=True)

    class Apart(Leaving):
        @property
        def rules(self) -> WorkerRules:
            return WorkerRules(gathers_joins=False)

    _fails(Gathering(), "a_request_runs_through", "goes to worker 99")
    for kind in KINDS:
        check.a_request_runs_through(Trial(Apart(), kind, 0))  # nobody asks


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_join_is_asked_about_once_more_when_its_inputs_are_gathered(kind: str) -> None:
    asked: list[int] = []

    class Asked(Broken):
        @property
        def rules(self) -> WorkerRules:
            return WorkerRules(gathers_joins=True)

        def next_worker(self, *given: Any, gathered: bool = False) -> int:
            if gathered:
                asked.append(given[1])
            return super().next_worker(*given, gathered=gathered)

    for seed in SEEDS:
        asked.clear()
        trial = Trial(Asked(), kind, seed)
        check.a_request_runs_through(trial)
        assert sorted(asked) == np.flatnonzero(trial.situation.request.graph.is_join).tolist()


def test_tasks_of_a_lost_worker_that_go_where_they_cannot_run_are_found() -> None:
    class Lost(Broken):
        def next_worker(self, request: Request, stage: int, *given: Any, **named: Any) -> int:
            able = request.graph.runnable[stage]
            return int(able.argmin()) if not able.all() else super().next_worker(request, stage, *given, **named)

    _fails(Lost(), "lost_workers_get_nothing", "goes to worker")


def test_inputs_of_a_join_that_go_apart_when_its_worker_is_lost_are_found() -> None:
    _fails(Broken(in_hop=_joins_apart), "lost_workers_get_nothing", "the inputs of task")


@pytest.mark.parametrize("name", ["a_request_runs_through", "lost_workers_get_nothing"])
def test_one_input_that_goes_elsewhere_than_all_others_is_found(name: str) -> None:
    def one_apart(worker: int, request: Request, stage: int, view: View) -> int:
        there = np.isfinite(view.queued)
        others = [each for each in np.flatnonzero(request.graph.runnable[stage] & there).tolist() if each != worker]
        is_apart = request.graph.is_join[stage] and view.me % 2 == 0 and others
        return others[0] if is_apart else worker

    _fails(Broken(in_hop=one_apart), name, "the inputs of task")


def test_a_lost_worker_that_is_sent_something_is_found() -> None:
    class Faithful(Broken):
        def next_worker(self, *given: Any, **_: Any) -> int:
            return int(given[2])

    _fails(Faithful(), "lost_workers_get_nothing", "which has left")


def test_another_error_where_nothing_is_left_is_found() -> None:
    class Confused(Broken):
        def plan(self, request: Request, view: View, now: float, draws: Draws) -> Plan:
            try:
                return super().plan(request, view, now, draws)
            except NoPlaceError:
                raise ValueError("nobody is there") from None

    _fails(Confused(), "refuses_what_has_no_place", "raises ValueError: nobody is there")


def test_what_a_placer_raises_is_said_with_its_verb() -> None:
    class Raising(Broken):
        def next_worker(self, *_: Any, **__: Any) -> int:
            raise ValueError("no idea")

    trial = Trial(Raising(), next(iter(KINDS)), 0)
    with pytest.raises(SchedulerError, match="next_worker raises ValueError: no idea"):
        trial.next_worker(0, 0, 0)


def test_a_good_placer_passes_each_check_in_each_kind() -> None:
    for one in (*check.CHECKS, *check.BATCH_CHECKS):
        for kind in KINDS:
            one(Trial(Broken(), kind, 1))
