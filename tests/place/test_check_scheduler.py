"""The conformance kit: every placer passes it, and every kind of broken placer fails the check meant for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import pytest

from fairway import (
    BATCH_PLACERS,
    NOWHERE,
    PLACERS,
    Batch,
    NoPlaceError,
    Placer,
    Plan,
    Request,
    Room,
    SchedulerError,
    WorkerRules,
    check_scheduler,
    placer_of,
)
from fairway.place.check import BATCH_CHECKS, CHECKS
from fairway.place.check_situations import CPUS, KINDS, NOW, situation_of
from fairway.place.placers.compass import Compass
from fairway.place.plan import Draws
from fairway.place.registry import batch_placer_of
from fairway.place.state import View


def _every_scheduler() -> Iterator[tuple[str, Placer]]:
    """Each scheduler with none and each one of its flags, and with four at a time until each two have been together."""
    for name, scheduler in PLACERS.items():
        flags = [option.name for option in fields(scheduler) if option.default is False]  # type: ignore[arg-type]
        for chosen in [(), *((flag,) for flag in flags), *_fours(flags)]:
            yield f"{name}:{','.join(chosen)}".rstrip(":"), scheduler(**dict.fromkeys(chosen, True))


def _fours(flags: list[str]) -> Iterator[tuple[str, ...]]:
    """Sets of four in which each two of the flags come together."""
    apart = list(map(set, combinations(flags, 2)))
    while apart:
        four = apart[0]
        while len(four) < min(4, len(flags)):
            four = max(
                ({*four, flag} for flag in flags if flag not in four), key=lambda each: sum(map(each.issuperset, apart))
            )
        apart = [pair for pair in apart if not pair <= four]
        yield tuple(flag for flag in flags if flag in four)


@pytest.mark.parametrize(("name", "scheduler"), [pytest.param(*each, id=each[0]) for each in _every_scheduler()])
def test_every_scheduler_passes(name: str, scheduler: Placer) -> None:
    check_scheduler(scheduler, seeds=range(1))


@pytest.mark.parametrize("name", list(BATCH_PLACERS))
def test_the_placers_pass_with_many_seeds(name: str) -> None:
    check_scheduler(batch_placer_of(name), seeds=range(4))


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
        return self.in_plan(placer_of("compass").plan(request, view, now, draws), request, view)

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
        kept = placer_of("compass").next_worker(request, stage, planned, view, now, draws, gathered=gathered)
        return self.in_hop(kept, request, stage, view)

    def place_batch(self, batch: Batch, room: Room, view: View, now: float, draws: Draws) -> int:
        return placer_of("compass").place_batch(batch, room, view, now, draws)


@dataclass
class BrokenBatches:
    """A good placer of batches with a fault, which changes where it sends them."""

    name: ClassVar[str] = "broken"
    fault: Callable[[int, Batch, Room, View], Any] = lambda worker, *_: worker
    good: str = "best-fit"
    calls: list[int] = field(default_factory=list)

    @property
    def rules(self) -> WorkerRules:
        return WorkerRules()

    def place_batch(self, batch: Batch, room: Room, view: View, now: float, draws: Draws) -> Any:
        self.calls.append(0)
        return self.fault(batch_placer_of(self.good).place_batch(batch, room, view, now, draws), batch, room, view)


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
    return placer_of("hash").plan(request._replace(kept=None, key=5), view, NOW, np.random.default_rng(0))


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
        return placer_of("compass").plan(request, view, NOW, hidden)

    with pytest.raises(SchedulerError, match="repeats_itself"):
        check_scheduler(Broken(in_plan=by_chance))


def test_a_scheduler_that_plans_where_no_worker_is_left_is_found() -> None:
    class Careless(Broken):
        def plan(self, request: Request, view: View, now: float, draws: Draws) -> Plan:
            try:
                return super().plan(request, view, now, draws)
            except NoPlaceError:
                count = len(request.graph)
                return Plan(request.graph, np.zeros(count, dtype=np.int64), np.full(count, 101.0))

    with pytest.raises(SchedulerError, match="refuses_what_has_no_place"):
        check_scheduler(Careless())


def _scribbled(worker: int, _: Batch, room: Room, __: View) -> int:
    room.cpu[0] += 1
    return worker


def _in_the_view(worker: int, _: Batch, __: Room, view: View) -> int:
    view.queued[0] += 1.0
    return worker


def _of_all(able: Callable[[Batch, Room], np.ndarray[Any, Any]]) -> Callable[[int, Batch, Room, View], int]:
    """Some worker of these, whether there is room or not."""
    return lambda _, batch, room, __: int(able(batch, room).argmax()) if able(batch, room).any() else NOWHERE


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        (_raise, "answers"),
        (lambda *_: None, "answers"),
        (lambda *_: 1.5, "answers"),
        (lambda *_: 99, "answers"),
        (lambda *_: -2, "answers"),
        (_of_all(lambda batch, room: room.cpu >= batch.cpu), "batches_go_where_they_fit"),
        (_of_all(lambda batch, room: room.gpu >= batch.gpu), "batches_go_where_they_fit"),
        (
            _of_all(lambda batch, room: (room.cpu >= batch.cpu) & (room.gpu >= batch.gpu)),
            "batches_go_where_they_fit",
        ),
        (_of_all(lambda batch, _: batch.graph.runnable[batch.stage]), "batches_go_where_they_fit"),
        (lambda *_: NOWHERE, "empty_workers_get_batches"),
        (lambda worker, _, room, __: worker if room.cpu.max() > 0 else 0, "what_fits_nowhere_goes_nowhere"),
        (lambda worker, batch, *_: 0 if batch.cpu > 16 else worker, "what_fits_nowhere_goes_nowhere"),
        (_scribbled, "batches_leave_the_state_alone"),
        (_in_the_view, "batches_leave_the_state_alone"),
    ],
)
def test_a_fault_in_the_placement_of_batches_is_found(
    fault: Callable[[int, Batch, Room, View], Any], check: str
) -> None:
    with pytest.raises(SchedulerError, match=rf"scheduler 'broken' fails check '{check}' in fairway\.place\."):
        check_scheduler(BrokenBatches(fault), seeds=range(3))


def test_a_batch_that_goes_where_it_went_before_even_if_that_worker_has_left_is_found() -> None:
    before: dict[int, int] = {}

    def remembered(worker: int, batch: Batch, room: Room, _: View) -> int:
        nothing_runs = set(room.cpu.tolist()) <= {0, CPUS}
        return before.setdefault(batch.key, worker) if nothing_runs and worker != NOWHERE else worker

    with pytest.raises(SchedulerError, match="lost_workers_get_no_batches"):
        check_scheduler(BrokenBatches(remembered), seeds=range(1))


def test_batches_that_are_placed_by_other_chance_are_found() -> None:
    hidden = np.random.default_rng(0)

    def by_chance(worker: int, batch: Batch, room: Room, view: View) -> int:
        return placer_of("compass:ignore-load,ignore-cache").place_batch(batch, room, view, NOW, hidden)

    with pytest.raises(SchedulerError, match="batches_repeat"):
        check_scheduler(BrokenBatches(by_chance))


def test_a_scheduler_that_places_requests_ahead_is_checked_for_batches_too() -> None:
    class Nowhere(Broken):
        def place_batch(self, *_: object) -> int:
            return NOWHERE

    with pytest.raises(SchedulerError, match="empty_workers_get_batches"):
        check_scheduler(Nowhere(), seeds=range(1))


@pytest.mark.parametrize(
    ("verbs", "missing"),
    [
        ([], "place_batch"),
        (["plan", "next_worker"], "place_batch"),
        (["place_batch", "plan"], "next_worker"),
        (["place_batch", "next_worker"], "plan"),
    ],
)
def test_a_verb_that_is_missing_is_named(verbs: list[str], missing: str) -> None:
    partial: Any = type("Partial", (), {"name": "partial"} | {verb: lambda *_: None for verb in verbs})()
    with pytest.raises(
        SchedulerError, match=f"scheduler 'partial' fails check 'answers': it has no method '{missing}'"
    ):
        check_scheduler(partial)


def test_every_check_and_every_kind_is_run() -> None:
    broken, batches = Broken(), BrokenBatches()
    check_scheduler(broken, seeds=range(1))
    assert len(broken.calls) >= len(CHECKS) * len(KINDS)
    check_scheduler(batches, seeds=range(1))
    assert len(batches.calls) >= len(BATCH_CHECKS) * sum(len(situation_of(kind, 0).batches) for kind in KINDS)


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
    assert first.room.cpu.tolist() == second.room.cpu.tolist()
    assert [str(batch[1:]) for batch in first.batches] == [str(batch[1:]) for batch in second.batches]


def test_there_are_batches_of_every_sort() -> None:
    """Some fit on some workers only, some nowhere; some have inputs, and some workers an idle copy."""
    fits, sources, warm = set(), set(), set()
    for kind in KINDS:
        situation = situation_of(kind, 0)
        for batch in situation.batches:
            able = int(situation.room.fits(batch).sum())
            fits.add("nowhere" if able == 0 else "everywhere" if able == len(situation.present) else "somewhere")
            sources.add(min(len(batch.sources), 2))
            warm.add(batch.warm is None)
    assert fits == {"nowhere", "everywhere", "somewhere"}
    assert sources == {0, 1, 2}
    assert warm == {True, False}


def test_a_scheduler_whose_tasks_move_has_to_say_where_to() -> None:
    class Still(Compass):
        @property
        def rules(self) -> WorkerRules:
            return replace(super().rules, moves=True)

    with pytest.raises(SchedulerError, match="rules say that tasks move, but it has no method 'place_again'"):
        check_scheduler(Still())
