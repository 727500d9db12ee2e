"""How long bytes take: over links, worked out by hand from the constants of Compass's authors, and through a store."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway import Fleet, InputError, Links, Model, Stage, TaskGraph, Transfers, Worker, Workflow
from fairway.links import EARLY_LINKS, NO_TRANSFERS, SYSTEM_LINKS, Moves

KILOBYTE = 1024
LINKS = Links()


@pytest.mark.parametrize(
    ("gigabytes", "milliseconds"),
    [(5.72, 562.4), (0.8, 78.7), (2.0, 196.6), (2.14, 210.4), (1.7, 167.1), (2.7, 265.5), (1.8, 177.0), (3.9, 383.4)],
)
def test_a_model_takes_the_expected_time_to_the_device(gigabytes: float, milliseconds: float) -> None:
    assert 1000 * LINKS.to_device(gigabytes * 1e6 * KILOBYTE) == pytest.approx(milliseconds, abs=0.05)


@pytest.mark.parametrize(("kilobytes", "milliseconds"), [(0.5, 0.002), (2, 0.00227), (3000, 0.24042)])
def test_a_message_takes_the_expected_time_over_the_network(kilobytes: float, milliseconds: float) -> None:
    assert 1000 * LINKS.network(kilobytes * KILOBYTE) == pytest.approx(milliseconds, abs=5e-6)


@pytest.mark.parametrize(("kilobytes", "milliseconds"), [(2, 0.00267), (3000, 0.83032)])
def test_data_between_devices_is_staged_through_both_hosts(kilobytes: float, milliseconds: float) -> None:
    size = kilobytes * KILOBYTE
    assert 1000 * LINKS.between_hosts(size) == pytest.approx(milliseconds, abs=5e-6)
    assert LINKS.within_host(size) == pytest.approx(LINKS.between_hosts(size) - LINKS.network(size))


@pytest.mark.parametrize("kilobytes", [0.0, 0.999, 1.0, 2.5, 3.999, 4.0, 100.0, 1e6])
def test_the_formulas_in_kilobytes_and_milliseconds_are_reproduced(kilobytes: float) -> None:
    if kilobytes < 1:
        network = 0.002
    elif kilobytes < 4:
        network = kilobytes / ((3 + 2 * kilobytes) * 1048.576) + 0.002
    else:
        network = kilobytes / (12 * 1048.58) + 0.002
    size = kilobytes * KILOBYTE
    assert 1000 * LINKS.network(size) == pytest.approx(network, rel=1e-12)
    assert 1000 * LINKS.to_device(size) == pytest.approx(kilobytes / (9.7 * 1048.58), rel=1e-12)
    assert 1000 * LINKS.to_host(size) == pytest.approx(kilobytes / (9.7 * 1048.58), rel=1e-12)
    assert 1000 * SYSTEM_LINKS.to_host(size) == pytest.approx(kilobytes / (4.7 * 1048.58) + 0.002, rel=1e-12)
    assert 1000 * SYSTEM_LINKS.to_device(size) == pytest.approx(kilobytes / (9.7 * 1048.58) + 0.002, rel=1e-12)
    assert 1000 * EARLY_LINKS.to_device(size) == pytest.approx(kilobytes / (4.7 * 1048.58), rel=1e-12)


@given(st.floats(0, 1e10), st.floats(0, 1e10))
def test_more_bytes_never_arrive_sooner(first: float, second: float) -> None:
    small, large = sorted((first, second))
    for cost in (LINKS.to_device, LINKS.to_host, LINKS.between_hosts, LINKS.within_host):
        assert cost(small) <= cost(large) + 1e-7  # the network's ramp has a step of less than this
    assert LINKS.within_host(large) <= LINKS.between_hosts(large)


@pytest.mark.parametrize(
    ("field", "value"), [("network_bandwidth", 0.0), ("network_latency", -1.0), ("to_host_bandwidth", float("nan"))]
)
def test_links_without_sense_are_refused(field: str, value: float) -> None:
    with pytest.raises(InputError, match=rf"links\.{field}: {value} given, expected a number >"):
        Links(**{field: value})


def test_what_comes_from_another_worker_goes_through_the_store() -> None:
    store = Transfers()
    assert store.entry_seconds(2.7e6) == pytest.approx(0.00716)
    assert store.local_seconds(2.7e6) == pytest.approx(0.00135)
    assert store.between_hosts(2.7e6) == pytest.approx(0.01432)
    assert store.within_host(2.7e6) == store.between_hosts(2.7e6)
    assert NO_TRANSFERS.between_hosts(1e9) == NO_TRANSFERS.entry_seconds(1e9) == NO_TRANSFERS.local_seconds(1e9) == 0.0


def test_tasks_are_pushed_their_inputs_over_links_and_fetch_them_from_a_store() -> None:
    assert (Links.pulls, Transfers.pulls) == (False, True)
    assert Links().local_seconds(1e9) == 0.0, "it is where it is needed"
    assert (Links().message_seconds, Transfers().message_seconds) == (2e-6, 0.0)


def test_a_model_takes_the_time_that_was_measured_or_that_of_its_bytes() -> None:
    measured, unmeasured = Model("a", 10**9, load_seconds=3.5), Model("b", 10**9)
    assert Links().to_load(measured) == Transfers().to_load(measured) == 3.5
    assert Links().to_load(unmeasured) == Links().to_device(10**9)
    assert Transfers().to_load(unmeasured) == 0.0


@pytest.mark.parametrize("moves", [Links(), SYSTEM_LINKS, Transfers(), NO_TRANSFERS])
def test_a_graph_counts_with_either_kind_alike(moves: Moves) -> None:
    workflow = Workflow(
        (Stage.of("a", 0.1, "m", input_bytes=5000, output_bytes=10**6), Stage.of("b", 0.1)),
        (("a", "b"),),
        {"m": Model("m", 100)},
    )
    fleet = Fleet.of([Worker("w0", 1000)], workflow.models.values(), moves)
    graph = TaskGraph.of(workflow, fleet)
    assert fleet.links is moves
    assert fleet.fetch_seconds.tolist() == [moves.to_load(workflow.models["m"])]
    assert graph.input_seconds[0] == moves.entry_seconds(5000)
    found = (graph.local_seconds[0], graph.near_seconds[0], graph.far_seconds[0])
    assert found == (moves.local_seconds(10**6), moves.within_host(10**6), moves.between_hosts(10**6))
    assert graph.ranks[0] == pytest.approx(0.2 + moves.between_hosts(10**6))


@given(st.floats(0, 1e10), st.floats(0, 1e10))
def test_the_nearer_the_sooner(first: float, second: float) -> None:
    small, large = sorted((first, second))
    for moves in (Links(), Transfers(), NO_TRANSFERS):
        assert moves.local_seconds(large) <= moves.within_host(large) <= moves.between_hosts(large)
        for cost in (moves.entry_seconds, moves.local_seconds, moves.between_hosts, moves.to_host):
            assert cost(small) <= cost(large) + 1e-7  # the network's ramp has a step of less than this
