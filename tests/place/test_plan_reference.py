"""Plans by the formulas, task after task in plain Python, on every situation of the conformance kit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fairway.place.batch import NOWHERE, Batch, Room
from fairway.place.check_situations import KINDS, NOW, Situation, situation_of
from fairway.place.placers.near_data import NearData, holders
from fairway.place.plan import Plan, Request
from fairway.place.planner import plan_request
from fairway.place.spread import spread_plan, spread_worker
from fairway.place.state import View
from tests.place.clusters import draws


def planned(
    request: Request, view: View, plan: Plan, *, eviction: float, home: float, loads: bool = True, caches: bool = True
) -> None:
    """Check that each task has a worker on which it ends first, and ends then; `plan` is followed task by task."""
    graph, fleet = request.graph, request.graph.fleet
    workers = range(len(fleet))
    sizes, before = fleet.model_bytes, graph.workflow.predecessors
    available = [NOW + (view.load(w, NOW) if loads or math.isinf(view.load(w, NOW)) else 0.0) for w in workers]
    room = [view.free_bytes(w) for w in workers]
    holds = [{m for m in range(len(sizes)) if view.holds(w, m)} for w in workers]
    for task in graph.order.tolist():
        ends = []
        for worker in workers:
            at_hand = worker == request.ingress or fleet.hosts[worker] == fleet.hosts[request.ingress]
            ready = NOW + (0.0 if at_hand else graph.input_seconds[task])
            if before[task]:
                ready = -math.inf
                for source in before[task]:
                    at = int(plan.workers[source])
                    taken = graph.far_seconds[source]
                    if fleet.hosts[worker] == fleet.hosts[at]:
                        taken = 0.0 if worker == at else graph.near_seconds[source]
                    ready = max(ready, plan.finish[source] + taken)
            fetch, left = 0.0, room[worker]
            for model in graph.needed[task].tolist() if caches else ():
                if model in holds[worker]:
                    continue
                penalty = 0.0
                if left < sizes[model]:
                    guests = [m for m in range(len(sizes)) if view.holds(worker, m) and not view.homes[m, worker]]
                    spare = view.free_bytes(worker) + sum(sizes[m] for m in guests)
                    penalty = home if spare < sizes[model] else eviction
                fetch += fleet.fetch_seconds[model] * (1 + penalty)
                left = max(0.0, left - sizes[model])
            ends.append(max(available[worker], ready) + fetch + graph.seconds[task, worker])
        chosen = int(plan.workers[task])
        assert ends[chosen] == pytest.approx(min(ends), rel=1e-12), graph.workflow.stages[task].name
        assert plan.finish[task] == pytest.approx(ends[chosen], rel=1e-12)
        available[chosen] = ends[chosen]
        for model in graph.needed[task].tolist():
            if model not in holds[chosen]:
                holds[chosen].add(model)
                room[chosen] = max(0.0, room[chosen] - sizes[model])


def with_homes(situation: Situation, seed: int) -> View:
    homes = np.random.default_rng(seed).random(situation.table.homes.shape) < 0.4
    return situation.view(situation.request.ingress)._replace(homes=homes)


@pytest.mark.parametrize("kind", KINDS)
def test_every_task_goes_where_it_ends_first(kind: str) -> None:
    for seed in range(6):
        situation = situation_of(kind, seed)
        request, view = situation.request, with_homes(situation, seed)
        plan = plan_request(request, view, NOW, 0.3, eviction_penalty=0.7, home_penalty=4.0)
        planned(request, view, plan, eviction=0.7, home=4.0)
        plan = plan_request(request, view, NOW, 0.3, counts_load=False, counts_cache=False)
        planned(request, view, plan, eviction=1.0, home=1.0, loads=False, caches=False)


@pytest.mark.parametrize("kind", ["a chain", "parts that join", "any graph", "workers that left"])
def test_what_is_done_stays_and_what_has_a_worker_keeps_it(kind: str) -> None:
    for seed in range(6):
        situation = situation_of(kind, seed)
        request, view = situation.request, situation.view(situation.request.ingress)
        plan = plan_request(request, view, NOW, 0.3)
        workers, finish = plan.workers.copy(), np.full(len(plan.finish), np.nan)
        order = request.graph.order.tolist()
        finish[order[0]] = NOW - 5.0
        for task in order[2:]:
            workers[task] = -1
        again = plan_request(request._replace(kept=Plan(request.graph, workers, finish)), view, NOW, 0.3)
        assert again.workers[order[0]] == plan.workers[order[0]]
        assert again.finish[order[0]] == NOW - 5.0
        if len(order) > 1:
            assert again.workers[order[1]] == plan.workers[order[1]]
            assert again.finish[order[1]] >= NOW
        assert (again.workers >= 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_tasks_are_spread_evenly_over_workers_that_are_there_and_can_run_them(kind: str) -> None:
    counts: dict[int, int] = {}
    situation = situation_of(kind, 1)
    request, view = situation.request, situation.view(situation.request.ingress)
    able = request.graph.runnable & np.isin(np.arange(len(view.queued)), situation.present)
    for key in range(200):
        asked = request._replace(key=key)
        plan = spread_plan(asked, view, NOW)
        for task, worker in enumerate(plan.workers.tolist()):
            assert able[task, worker]
            assert worker == spread_worker(asked, task, view)
        counts[int(plan.workers[0])] = counts.get(int(plan.workers[0]), 0) + 1
    several = int(able[0].sum())
    assert len(counts) == min(several, len(counts) if several > 40 else several)
    if several <= 8:
        assert max(counts.values()) < 2.0 * 200 / several
    by_chance = spread_plan(request, view, NOW, draws(3))
    assert able[np.arange(len(able)), by_chance.workers].all()


def test_parts_of_the_row_are_drawn_for_tasks_without_a_worker_only() -> None:
    situation = situation_of("a chain", 2)
    request, view = situation.request, situation.view(situation.request.ingress)
    plan = spread_plan(request, view, NOW, draws(0))
    numbers = draws(0)
    parts = [numbers.random() for _ in range(len(request.graph))]

    def at(part: float, task: int) -> int:
        able = np.flatnonzero(request.graph.runnable[task] & np.isfinite(view.queued))
        aimed = int(part * len(view.queued))
        return aimed if aimed in able else int(able[int(part * len(able))])

    assert plan.workers.tolist() == [at(part, task) for task, part in enumerate(parts)]
    kept = plan.workers.copy()
    kept[1:] = -1
    again = spread_plan(
        request._replace(kept=Plan(request.graph, kept, np.full(len(kept), np.nan))), view, NOW, draws(0)
    )
    assert again.workers[0] == plan.workers[0]
    assert again.workers[1:].tolist() == [at(part, 1 + number) for number, part in enumerate(parts[:-1])]


@pytest.mark.parametrize("kind", ["parts that join", "several entries", "workers that left", "many workers"])
def test_near_its_inputs_a_batch_goes_to_the_holder_of_most_that_has_just_enough_room(kind: str) -> None:
    placer = NearData()
    for seed in range(12):
        situation = situation_of(kind, seed)
        for batch in situation.batches:
            runnable = batch.graph.runnable[batch.stage]
            chosen = placer.place_batch(batch, situation.room, situation.view(-1), NOW, draws())
            fits = (situation.room.cpu >= batch.cpu) & (situation.room.gpu >= batch.gpu)
            layers = [runnable & fits] if batch.warm is None else [batch.warm & runnable & fits, runnable & fits]
            among = next((layer for layer in layers if layer.any()), None)
            if among is None:
                assert chosen == NOWHERE
                continue
            assert among[chosen]
            near = [worker for worker in holders(batch.sources) if among[worker]]
            if near:
                assert chosen == near[0]


def test_the_holder_of_most_inputs_comes_first_and_of_equals_the_lowest_number() -> None:
    assert holders([(4,)]) == [4]
    assert holders([(3, 1), (3, 2), (1, 0)]) == [1, 3, 0, 2]
    assert holders([]) == []


def test_room_that_is_just_enough_is_enough_near_the_data() -> None:
    situation = situation_of("a chain", 0)
    batch = next(each for each in situation.batches if each.sources)
    count = len(situation.table.fleet)
    for cpu, gpu, fits in ((2, 1, True), (1, 1, False), (2, 0, False)):
        room = Room(np.full(count, 9), np.full(count, 7), 0.0, 0.0)
        holder = 2
        room.cpu[holder], room.gpu[holder] = cpu, gpu
        asked: Batch = batch._replace(cpu=2, gpu=1, sources=[(holder,)], warm=None)
        chosen = NearData().place_batch(asked, room, situation.view(-1), NOW, draws())
        assert (chosen == holder) is fits
