"""Where a batch would end first: its inputs, its run, its models and the loads, against the formulas written down."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway import NOWHERE, Batch, Links, Room, Stage, Transfers, Worker, Workflow
from fairway.place.adjust import first_to_end
from fairway.place.batch import ends_there
from fairway.place.check_situations import KINDS, NOW, Situation, situation_of
from fairway.place.fleet import OUTSIDE
from tests.place.clusters import Cluster, draws

JOIN = Workflow(
    (
        Stage.of("a", 0.1, input_bytes=4000, output_bytes=2_000_000),
        Stage.of("b", 0.1, input_bytes=4000, output_bytes=8_000_000),
        Stage.of("c", 0.1),
    ),
    (("a", "c"), ("b", "c")),
)


def room(*free: tuple[int, int]) -> Room:
    return Room(*(np.array(column, np.int64) for column in zip(*free, strict=True)))


def whole(workers: int) -> Room:
    return room(*[(1, 1)] * workers)


def test_a_batch_of_an_entry_has_its_input_everywhere_after_as_long() -> None:
    cluster = Cluster(JOIN, 3)
    ends = ends_there(Batch(cluster.graph, 0, 1, 0.5, 1, 1), whole(3))
    assert ends.tolist() == pytest.approx([0.5 + Links().network(4000)] * 3)


def test_a_batch_ends_after_its_slowest_input_and_its_run() -> None:
    cluster = Cluster(JOIN, 4)
    large, small = Links().between_hosts(8_000_000), Links().between_hosts(2_000_000)
    one = Batch(cluster.graph, 2, 1, 0.5, 1, 1, [(0, 1)])
    assert ends_there(one, whole(4)).tolist() == pytest.approx([0.5 + large, 0.5 + small, 0.5 + large, 0.5 + large])
    two = one._replace(sources=[(0, 1), (2, 2)])
    assert ends_there(two, whole(4)).tolist() == pytest.approx([0.5 + large] * 4)
    together = one._replace(sources=[(3, 3), (3, 3)])
    assert ends_there(together, whole(4)).tolist() == pytest.approx([0.5 + large] * 3 + [0.5])


def test_workers_of_one_host_need_no_network() -> None:
    workers = [Worker(f"w{number}", 1, host=f"h{number // 2}") for number in range(4)]
    cluster = Cluster(JOIN, workers)
    ends = ends_there(Batch(cluster.graph, 2, 1, 0.5, 1, 1, [(0, 0)]), whole(4))
    near, far = Links().within_host(8_000_000), Links().between_hosts(8_000_000)
    assert ends.tolist() == pytest.approx([0.5, 0.5 + near, 0.5 + far, 0.5 + far])


def test_what_goes_through_a_store_takes_time_on_its_own_worker_too() -> None:
    cluster = Cluster(JOIN, 2, links=Transfers())
    ends = ends_there(Batch(cluster.graph, 2, 1, 0.5, 1, 1, [(0, 0)]), whole(2))
    assert ends.tolist() == pytest.approx([0.5 + 0.004, 0.5 + 2 * (0.005 + 0.0064)])


def test_a_batch_never_ends_where_it_does_not_fit() -> None:
    workers = [Worker("w0", 1), Worker("w1", 1), Worker("w2", 1), Worker("w3", 1, "tpu")]
    workflow = Workflow((Stage.of("a", {"gpu": 0.1}),))
    batch = Batch(Cluster(workflow, workers).graph, 0, 1, 0.5, 4, 2)
    free = room((4, 2), (3, 7), (16, 1), (16, 7))
    assert free.fits(batch).tolist() == [True, False, False, False]
    assert np.isfinite(ends_there(batch, free)).tolist() == [True, False, False, False]


def by_hand(
    situation: Situation, batch: Batch, free: Room, *, loads: bool, models: bool, penalty: float, home_penalty: float
) -> list[float]:
    """How long until a batch would have ended on each worker, from now on."""
    view, fleet, graph = situation.view(OUTSIDE), situation.table.fleet, batch.graph
    ends = []
    for worker in range(len(fleet)):
        end = math.inf
        fits = free.cpu[worker] >= batch.cpu and free.gpu[worker] >= batch.gpu
        if fits and graph.runnable[batch.stage, worker] and view.is_present(worker):
            end = batch.seconds + (view.load(worker, NOW) if loads else 0.0)
            end += float(ends_there(batch, situation.empty_room())[worker]) - batch.seconds
            left = spare = view.free_bytes(worker)
            held = [model for model in range(len(fleet.models)) if view.holds(worker, model)]
            guests = sum(fleet.model_bytes[model] for model in held if not view.homes[model, worker])
            for model in graph.needed[batch.stage].tolist() if models else ():
                if model in held:
                    continue
                factor = 1.0
                if left < fleet.model_bytes[model]:
                    factor += home_penalty if spare + guests < fleet.model_bytes[model] else penalty
                end += factor * fleet.fetch_seconds[model]
                left = max(0.0, left - fleet.model_bytes[model])
        ends.append(end)
    return ends


@given(st.sampled_from(list(KINDS)), st.integers(0, 50), st.booleans(), st.booleans(), st.sampled_from([0.0, 1.0, 8.0]))
def test_the_first_to_end_is_that_of_all_workers(
    kind: str, seed: int, loads: bool, models: bool, home_penalty: float
) -> None:
    situation = situation_of(kind, seed)
    situation.table.homes[:] = np.random.default_rng(seed).random(situation.table.homes.shape) < 0.5
    for number, batch in enumerate(situation.batches):
        for free in (situation.room, situation.empty_room()):
            ends = by_hand(situation, batch, free, loads=loads, models=models, penalty=1.0, home_penalty=home_penalty)
            chosen = first_to_end(
                batch,
                free,
                situation.view(OUTSIDE),
                NOW,
                draws(number),
                home_penalty=home_penalty,
                counts_load=loads,
                counts_cache=models,
            )
            if min(ends) == math.inf:
                assert chosen == NOWHERE
            else:
                assert ends[chosen] == pytest.approx(min(ends), abs=1e-9)


def test_equals_are_drawn() -> None:
    cluster = Cluster(JOIN, 6)
    cluster.table.leave(4)
    batch, free = Batch(cluster.graph, 0, 1, 0.5, 1, 1), whole(6)
    view = cluster.table.view(OUTSIDE, 0.0)
    found = {first_to_end(batch, free, view, 0.0, draws(seed)) for seed in range(60)}
    assert found == {0, 1, 2, 3, 5}
