"""Which worker runs a batch: near its data, where it fits best or most tightly, where it ends first, or by hash."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway import (
    BATCH_PLACERS,
    NOWHERE,
    PLACERS,
    Batch,
    BatchPlacer,
    InputError,
    Placer,
    Room,
    Stage,
    Worker,
    Workflow,
)
from fairway.place.fits import best_fit, first_fit, home_of, least_left, step_of
from fairway.place.fleet import OUTSIDE
from fairway.place.memory import MemoryPolicy
from fairway.place.placers.near_data import holders
from fairway.place.registry import batch_placer_of
from tests.place.clusters import Cluster, NoDraws, draws
from tests.place.test_placers import by_hand
from tests.workflows.edge import MODELS

CHAIN = Workflow((Stage.of("a", 0.1), Stage.of("b", 0.1)), (("a", "b"),))
CPUS, SLICES = 16, 7

Free = list[tuple[int, int]]
SIZES = st.lists(st.tuples(st.integers(0, CPUS), st.integers(0, SLICES)), min_size=1, max_size=8)


class Workers:
    """Workers of 16 CPUs and seven slices, some of which are taken, and a placer that sees nothing else."""

    def __init__(self, count: int) -> None:
        self.cluster = Cluster(CHAIN, count)
        self.room = Room(np.full(count, CPUS, np.int64), np.full(count, SLICES, np.int64), 0.034, 0.67)

    def take(self, worker: int, cpu: int, gpu: int) -> None:
        self.room.cpu[worker] -= cpu
        self.room.gpu[worker] -= gpu

    def place(
        self,
        placer: str,
        cpu: int,
        gpu: int,
        sources: Sequence[tuple[int, ...]] = (),
        *,
        key: int = 1,
        home: int = 0,
        warm: Sequence[bool] | None = None,
    ) -> int:
        marks = None if warm is None else np.array(warm)
        stage = 1 if sources else 0
        batch = Batch(self.cluster.graph, stage, key, 0.1, cpu, gpu, sources, home, marks)
        view = self.cluster.table.view(OUTSIDE, 0.0)
        return batch_placer_of(placer).place_batch(batch, self.room, view, 0.0, NoDraws())


def test_all_placers_place_batches_and_some_place_requests_ahead() -> None:
    assert list(BATCH_PLACERS) == [*PLACERS, "near-data", "best-fit", "tightest"]
    for name in BATCH_PLACERS:
        placer = batch_placer_of(name)
        assert placer.name == name
        assert isinstance(placer, BatchPlacer)
        assert isinstance(placer, Placer) == (name in PLACERS)


def test_a_placer_that_is_not_known_is_refused() -> None:
    with pytest.raises(InputError, match="placer 'tighest' is not known, did you mean 'tightest'"):
        batch_placer_of("tighest")


@pytest.mark.parametrize("name", ["near-data", "best-fit", "tightest"])
def test_under_the_placers_of_serverless_platforms_the_longest_unused_model_goes_first(name: str) -> None:
    assert batch_placer_of(name).rules.memory == MemoryPolicy("least-recent", 0, 0)


def test_a_batch_goes_to_its_data_then_to_the_best_fit() -> None:
    workers = Workers(4)
    sources = [(2,), (1,), (1,)]
    assert holders(sources) == [1, 2]
    assert holders([(3, 0), (0, 3)]) == [0, 3]
    assert workers.place("near-data", 2, 1, sources[:1]) == 2
    assert workers.place("near-data", 2, 1, sources) == 1
    workers.take(1, 16, 0)
    assert workers.place("near-data", 2, 1, sources) == 2, "the next of those that hold inputs"
    workers.take(2, 0, 7)
    workers.take(3, 4, 2)
    assert workers.place("near-data", 2, 1, sources) == 3
    assert workers.place("near-data", 2, 6, sources) == 0
    assert workers.place("near-data", 17, 1, sources) == NOWHERE


def test_an_entry_goes_home_or_steps_on() -> None:
    workers, home = Workers(16), home_of(2, 16)
    assert home == 7
    assert workers.place("near-data", 1, 1, home=home) == 7
    workers.take(7, 16, 7)
    assert workers.place("near-data", 1, 1, home=home) == 12
    assert step_of(10) == 7
    assert sorted({(home + step_of(10) * turn) % 10 for turn in range(10)}) == list(range(10))


def test_idle_copies_go_before_near_data() -> None:
    workers, warm = Workers(3), [False, True, False]
    assert workers.place("near-data", 1, 1, [(2,)], warm=warm) == 1
    assert workers.place("best-fit", 1, 1, [(2,)], warm=warm) == 1
    workers.take(1, 16, 7)
    assert workers.place("near-data", 1, 1, [(2,)], warm=warm) == 2
    assert workers.place("best-fit", 1, 1, [(2,)], warm=warm) == 0


def test_the_tightest_looks_at_what_is_left_wherever_copies_are() -> None:
    workers = Workers(3)
    workers.take(2, 1, 0)
    assert workers.place("tightest", 1, 1, [(0,)], warm=[True, False, False]) == 2
    workers.take(1, 0, 1)
    assert workers.place("tightest", 1, 1, [(0,)]) == 1, "a slice is worth more than a CPU"


@given(SIZES, st.integers(0, SLICES))
def test_the_best_fit_leaves_least(free: Free, gpu: int) -> None:
    cpus, gpus = (np.array(values, np.int64) for values in zip(*free, strict=True))
    found = best_fit(cpus, gpus, 4, gpu, np.ones(len(free), np.bool_))
    able = [(slices, cpu, number) for number, (cpu, slices) in enumerate(free) if cpu >= 4 and slices >= gpu]
    assert found == (min(able)[2] if able else NOWHERE)


@given(SIZES, st.integers(1, CPUS), st.integers(0, SLICES), st.floats(0.0, 2.0), st.floats(0.0, 2.0))
def test_the_tightest_leaves_what_is_worth_least(
    free: Free, cpu: int, gpu: int, cpu_price: float, gpu_price: float
) -> None:
    cpus, gpus = (np.array(values, np.int64) for values in zip(*free, strict=True))
    found = least_left(cpus, gpus, cpu, gpu, np.ones(len(free), np.bool_), cpu_price, gpu_price)
    left = [
        ((free_cpu - cpu) * cpu_price + (free_gpu - gpu) * gpu_price, number)
        for number, (free_cpu, free_gpu) in enumerate(free)
        if free_cpu >= cpu and free_gpu >= gpu
    ]
    assert found == (min(left)[1] if left else NOWHERE)


@given(SIZES, st.integers(0, 7), st.integers(1, 4))
def test_the_first_fit_is_the_first_in_steps_around_all_workers(free: Free, home: int, cpu: int) -> None:
    cpus, gpus = (np.array(values, np.int64) for values in zip(*free, strict=True))
    step, count = step_of(len(free)), len(free)
    around = [(home + turn * step) % count for turn in range(count)]
    able = [worker for worker in around if cpus[worker] >= cpu and gpus[worker] >= 1]
    found = first_fit(cpus, gpus, cpu, 1, np.ones(count, np.bool_), home % count, step)
    assert found == (able[0] if able else NOWHERE)


@pytest.mark.parametrize("name", ["near-data", "best-fit", "tightest", "compass", "jit", "heft", "hash"])
def test_no_batch_goes_where_its_stage_cannot_run(name: str) -> None:
    workers = [Worker("w0", 1, "tpu"), Worker("w1", 1), Worker("w2", 1, "tpu")]
    cluster = Cluster(Workflow((Stage.of("a", {"gpu": 0.1}),)), workers)
    room = Room(np.array([2, 5, 2]), np.array([2, 5, 2]))
    batch = Batch(cluster.graph, 0, 1, 0.1, 1, 1, warm=np.array([True, False, True]))
    view = cluster.table.view(OUTSIDE, 0.0)
    for key in range(10):
        assert batch_placer_of(name).place_batch(batch._replace(key=key), room, view, 0.0, draws()) == 1


@pytest.mark.parametrize("key", range(20))
def test_hash_stays_on_its_worker_and_waits_for_room_there(key: int) -> None:
    workers = Workers(7)
    worker = by_hand(key, 0, 7)
    assert workers.place("hash", 4, 2, key=key) == worker
    for other in range(7):
        if other != worker:
            workers.take(other, 15, 6)
    assert workers.place("hash", 4, 2, key=key, home=(worker + 1) % 7) == worker
    workers.take(worker, 13, 0)
    assert workers.place("hash", 4, 2, key=key) == NOWHERE, "it goes to no other worker, however much room there is"
    assert workers.place("hash", 3, 2, key=key) == worker


def test_hash_leaves_a_worker_that_is_gone() -> None:
    workers = Workers(7)
    for key in range(20):
        worker = by_hand(key, 0, 7)
        workers.cluster.table.leave(worker)
        again = workers.place("hash", 4, 2, key=key)
        assert again not in {worker, NOWHERE}
        workers.cluster.table.join(worker)


def model_chain() -> Workflow:
    return Workflow((Stage.of("a", 0.1), Stage.of("b", 0.4, "nli", input_bytes=10)), (("a", "b"),), MODELS)


def place(cluster: Cluster, placer: str) -> int:
    room = Room(np.ones(len(cluster.fleet), np.int64), np.ones(len(cluster.fleet), np.int64))
    batch = Batch(cluster.graph, 1, 1, 0.4, 1, 1, [(0,)])
    return batch_placer_of(placer).place_batch(
        batch, room, cluster.table.view(OUTSIDE, cluster.now), cluster.now, draws()
    )


def test_compass_weighs_models_and_loads_and_flags_take_either_away() -> None:
    warm_but_busy = Cluster(model_chain(), 2, cached={1: ["nli"]}, load={1: 0.1})
    assert place(warm_but_busy, "compass") == 1
    assert place(warm_but_busy, "jit") == 1
    assert place(warm_but_busy, "compass:ignore-cache") == 0
    assert place(warm_but_busy, "jit:ignore-cache") == 0
    assert place(warm_but_busy, "heft:load-aware") == 0
    warm_and_very_busy = Cluster(model_chain(), 2, cached={1: ["nli"]}, load={1: 9.0})
    assert place(warm_and_very_busy, "compass") == 0
    assert place(warm_and_very_busy, "compass:ignore-load") == 1


def test_heft_sees_neither_loads_nor_models() -> None:
    cluster = Cluster(model_chain(), 2, cached={1: ["nli"]}, load={0: 9.0})
    assert place(cluster, "heft") == 0, "its input is there"
    assert place(cluster, "heft:load-aware") == 1


def test_compass_drives_a_model_from_its_home_only_for_a_higher_price() -> None:
    held = {1: ["opt", "depth", "tts"]}  # no room beside them
    load = {0: 1.0}
    at_home = Cluster(model_chain(), 2, cached=held, load=load, homes={1: ["opt", "depth", "tts"]})
    guests = Cluster(model_chain(), 2, cached=held, load=load)
    assert place(guests, "compass") == 1
    assert place(at_home, "compass") == 0
    assert place(at_home, "compass:home-penalty=1") == 1
