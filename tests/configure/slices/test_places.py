"""Where instances go on a GPU, against all layouts that the tables allow."""

from __future__ import annotations

import numpy as np
import pytest

from fairway.configure.capacity import Capacity
from fairway.configure.slices.layouts import Layout, MigInstance, all_layouts, refuse_illegal
from fairway.configure.slices.mig import A30, A100_40GB, DEVICES, MigDevice
from fairway.configure.slices.places import EMPTY, Places
from fairway.errors import FairwayError, InputError

A100 = Places(A100_40GB)


def _profile(device: MigDevice, size: int) -> str:
    return min((one for one in device.profiles if one.compute == size), key=lambda one: one.memory).name


def _state(places: Places, layout: Layout) -> int:
    state = EMPTY
    for one in layout:
        state = places.with_instance(state, places.device.profile(one.profile).compute, one.start)
    return state


def _layouts(device: MigDevice) -> list[Layout]:
    """Those of the smallest profile of each number of compute slices."""
    own = {_profile(device, one.compute) for one in device.profiles}
    return [layout for layout in all_layouts(device) if own.issuperset(each.profile for each in layout)]


@pytest.mark.parametrize("device", DEVICES.values(), ids=DEVICES)
def test_an_instance_fits_beside_others_if_a_layout_has_them_all(device: MigDevice) -> None:
    places, legal = Places(device), {frozenset(layout) for layout in _layouts(device)}
    for layout in _layouts(device):
        state = _state(places, layout)
        fitting = {}
        for size in places.sizes:
            name = _profile(device, size)
            starts = device.profile(name).starts
            fitting[size] = tuple(at for at in starts if {*layout, MigInstance(at, name)} in legal and
                                  MigInstance(at, name) not in layout)  # fmt: skip
            assert places.starts(state, size) == fitting[size], layout
            assert (places.take(state, size) is not None) == bool(fitting[size])
        largest = places.largest(state)
        assert largest == max((size for size, at in fitting.items() if at), default=0)
        assert all(fitting[size] for size in places.sizes if size <= largest), "all smaller ones fit, too"


def test_a_small_instance_leaves_room_for_large_ones() -> None:
    """Seven slices as 1 + 2 + 4 in whichever order they are asked for, as 1 + 1 + 1 + 4, and 3 with small ones."""
    for sizes in ((1, 2, 4), (2, 1, 4), (4, 2, 1), (1, 4, 2), (1, 1, 1, 4), (3, 2, 2), (3, 1, 1, 1, 1), (3, 4)):
        state = EMPTY
        for size in sizes:
            start = A100.take(state, size)
            assert start is not None, sizes
            state = A100.with_instance(state, size, start)
    assert A100.take(_state(A100, (MigInstance(0, "3g.20gb"), MigInstance(4, "3g.20gb"))), 1) is None


def test_an_instance_more_and_one_less_is_the_state_before() -> None:
    state = A100.with_instance(EMPTY, 2, 4)
    assert A100.without_instance(A100.with_instance(state, 1, 6), 1, 6) == state != EMPTY
    with pytest.raises(InputError, match="an instance of 5 slices given, but a a100-40gb has"):
        A100.starts(EMPTY, 5)


@pytest.mark.parametrize("device", [A30, A100_40GB], ids=lambda one: one.name)
def test_what_a_capacity_gives_out_is_always_a_legal_layout(device: MigDevice) -> None:
    places = Places(device)
    for seed in range(10):
        draws = np.random.default_rng(seed)
        capacity = Capacity.idle(2, 16, device.compute, places)
        running: list[tuple[int, int, int]] = []
        for _ in range(60):
            worker, size = int(draws.integers(2)), int(draws.choice(places.sizes))
            if running and draws.random() < 0.45:
                at, own, place = running.pop(int(draws.integers(len(running))))
                capacity.give(at, 1, own, place)
            elif capacity.fits(worker, 1, size):
                running.append((worker, size, capacity.take(worker, 1, size)))
            else:
                with pytest.raises(FairwayError, match=f"worker {worker} has"):
                    capacity.take(worker, 1, size)
            for each in range(2):
                layout = [MigInstance(place, _profile(device, own)) for at, own, place in running if at == each]
                refuse_illegal(device, sorted(layout))
            used = sum(own for _, own, _ in running) / (2 * device.compute)
            if min(capacity.free_gpu) > 0:
                assert capacity.used()[1] == pytest.approx(used)


def test_a_worker_that_comes_back_has_a_whole_gpu() -> None:
    capacity = Capacity.idle(1, 4, 7, A100)
    capacity.take(0, 1, 3)
    capacity.leave(0)
    assert not capacity.fits(0, 1, 1)
    capacity.join(0)
    assert capacity.fits(0, 1, 7)
    assert capacity.take(0, 1, 0) == 0, "what needs no slice has no place"
    capacity.give(0, 1, 0)
    assert capacity.fits(0, 4, 7)
    with pytest.raises(InputError, match="workers have 6 slices, but a a100-40gb has 7"):
        Capacity.idle(1, 4, 6, A100)
