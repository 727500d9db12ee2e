"""The situations of the conformance kit are what their names say, and possible."""

from __future__ import annotations

import numpy as np
import pytest

from fairway.place.check_situations import CPUS, KINDS, NOW, SLICES, Situation, situation_of
from fairway.place.fleet import OUTSIDE

SEEDS = range(6)


def drawn(kind: str) -> list[Situation]:
    return [situation_of(kind, seed) for seed in SEEDS]


def edges_of(situation: Situation) -> list[tuple[int, int]]:
    after = situation.request.graph.workflow.successors
    return [(source, target) for source, targets in enumerate(after) for target in targets]


@pytest.mark.parametrize("kind", KINDS)
def test_every_situation_is_possible(kind: str) -> None:
    for situation in drawn(kind):
        graph, table = situation.request.graph, situation.table
        fleet, view = table.fleet, situation.view(OUTSIDE)
        assert graph.runnable[:, list(situation.present)].any(axis=1).all(), "every task can run somewhere"
        assert situation.request.ingress in situation.present
        for worker in range(len(fleet)):
            held = fleet.model_bytes[view.cached[:, worker]].sum()
            assert held <= fleet.memory[worker]
            assert view.is_present(worker) is (worker in situation.present)
            there = worker in situation.present
            assert situation.empty_room().cpu[worker] == (CPUS if there else 0)
            assert situation.empty_room().gpu[worker] == (SLICES if there else 0)
            assert 0 <= situation.room.cpu[worker] <= (CPUS if there else 0)
            assert 0 <= situation.room.gpu[worker] <= (SLICES if there else 0)
            if there and not view.queued[worker]:
                assert view.load(worker, NOW) == 0.0
        assert len(situation.batches) % len(graph) == 0
        assert {batch.stage for batch in situation.batches} == set(range(len(graph)))
        assert len({batch.key for batch in situation.batches}) == len(situation.batches)
        for batch in situation.batches:
            assert 0 <= batch.home < len(fleet)
            assert batch.graph is graph
            before = graph.workflow.predecessors[batch.stage]
            assert (len(batch.sources) > 0) is bool(before)
            assert len(batch.sources) <= 3
            assert all(
                len(sources) == len(before) and set(sources) <= set(situation.present) for sources in batch.sources
            )
            assert 1 <= batch.cpu <= CPUS
            assert 0 <= batch.gpu <= SLICES
    again = drawn(kind)
    for one, two in zip(drawn(kind), again, strict=True):
        assert one.request.key == two.request.key
        np.testing.assert_array_equal(one.table.view(OUTSIDE, NOW).queued, two.table.view(OUTSIDE, NOW).queued)
    assert len({situation.request.key for situation in again}) == len(SEEDS)


def test_batches_have_one_to_three_jobs_and_know_of_idle_copies_now_and_then() -> None:
    batches = [batch for situation in drawn("parts that join") for batch in situation.batches]
    assert {len(batch.sources) for batch in batches} == {0, 1, 2, 3}
    warm = [batch.warm for batch in batches if batch.warm is not None]
    assert 0 < len(warm) < len(batches)
    assert 0.3 < np.concatenate(warm).mean() < 0.7
    assert all(0.0 <= batch.seconds <= 1.0 for batch in batches)
    assert {batch.gpu for batch in batches} == set(range(SLICES + 1))
    rooms = [situation.room for situation in drawn("many workers")]
    assert {int(cpu) for room in rooms for cpu in room.cpu} == set(range(CPUS + 1))
    assert {int(gpu) for room in rooms for gpu in room.gpu} == set(range(SLICES + 1))


def test_the_kinds_are_what_they_are_called() -> None:
    def facts(kind: str) -> list[tuple[int, int, int]]:
        return [(len(s.request.graph), len(s.table.fleet), len(s.present)) for s in drawn(kind)]

    assert set(facts("one task")) == {(1, 5, 5)}
    assert set(facts("one worker")) == {(4, 1, 1)}
    assert set(facts("many workers")) == {(6, 60, 60)}
    for situation in drawn("a chain"):
        assert edges_of(situation) == [(0, 1), (1, 2), (2, 3), (3, 4)]
    for kind, count in (("parts that join", 6), ("idle workers", 5)):
        for situation in drawn(kind):
            middle = range(1, count - 1)
            assert sorted(edges_of(situation)) == sorted([(0, m) for m in middle] + [(m, count - 1) for m in middle])
    for situation in drawn("several entries"):
        assert edges_of(situation) == [(0, 4), (1, 4), (2, 4), (3, 4)]
    assert len({size for size, _, _ in facts("any graph")}) > 2
    assert all(2 <= size <= 9 for size, _, _ in facts("any graph"))
    assert any(edges_of(situation) for situation in drawn("any graph"))
    for situation in drawn("idle workers"):
        view = situation.view(OUTSIDE)
        assert [view.load(worker, NOW) for worker in situation.present] == [0.0] * len(situation.present)
    assert any(s.view(OUTSIDE).load(w, NOW) > 0 for s in drawn("a chain") for w in s.present)
    assert any(s.view(OUTSIDE).load(w, NOW) == 0 for s in drawn("a chain") for w in s.present)
    for situation in drawn("workers that left"):
        assert len(situation.table.fleet) == 7
        assert len(situation.present) == 4
    for situation in drawn("more than 64 models"):
        assert len(situation.table.fleet.models) == 80


def test_stages_have_as_many_models_as_the_kind_says_but_for_plain_code() -> None:
    def models(kind: str) -> set[tuple[int, int]]:
        stages = [enumerate(s.request.graph.workflow.stages) for s in drawn(kind)]
        return {(number % 4, len(stage.models)) for each in stages for number, stage in each}

    assert models("a chain") == {(0, 1), (1, 1), (2, 1), (3, 0)}
    assert models("several models in a stage") == {(0, 3), (1, 3), (2, 3), (3, 0)}
    assert models("no models") == {(0, 0), (1, 0), (2, 0), (3, 0)}


def test_models_of_a_stage_fit_together_on_the_largest_worker_and_some_do_not_on_the_smallest() -> None:
    for kind in KINDS:
        for situation in drawn(kind):
            graph, fleet = situation.request.graph, situation.table.fleet
            for stage in graph.workflow.stages:
                sizes = {model.name: model.bytes for model in fleet.models}
                assert sum(sizes[name] for name in stage.models) <= fleet.memory.max()
    assert len({memory for s in drawn("many workers") for memory in s.table.fleet.memory.tolist()}) == 2


def test_hosts_and_accelerators_are_mixed_where_the_kind_says_so() -> None:
    for situation in drawn("shared hosts"):
        hosts = {worker.host for worker in situation.table.fleet.workers}
        assert 1 <= len(hosts) <= 2
        assert hosts <= {"host0", "host1"}
    for situation in drawn("mixed accelerators"):
        kinds = [worker.accelerator for worker in situation.table.fleet.workers]
        assert kinds == ["a100", "t4", "cpu", "a100", "t4", "cpu", "a100", "t4"]
    times = [len(stage.seconds) for s in drawn("mixed accelerators") for stage in s.request.graph.workflow.stages]
    assert set(times) == {2, 3}, "some tasks cannot run on one of the types"
