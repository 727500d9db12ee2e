"""Reservations in the store: never more than there are at any time."""

from __future__ import annotations

import pytest

from fairway.errors import InputError
from fairway.store import Store
from fairway.store.errors import UnknownError
from fairway.store.reservations import Reservation, cancel_reservation, open_reservations, reserve
from fairway.store.workers import Device, register_agent


@pytest.fixture
def filled(store: Store) -> Store:
    devices = [Device("V100", f"d{number}") for number in range(2)] + [Device("k80", "k0")]
    store.write(register_agent, "local", devices, at=1.0)
    return store


def make(store: Store, begins: float, ends: float, at: float = 10.0, **workers: int) -> Reservation:
    return store.write(
        reserve, "vision", workers or {"v100": 1}, begins_at=begins, ends_at=ends, at=at, by="ann"
    )  # fmt: skip


def test_what_is_reserved_is_listed_until_it_is_over_or_cancelled(filled: Store) -> None:
    first, second = make(filled, 100.0, 200.0), make(filled, 100.0, 300.0, k80=1)
    assert (first.id, first.workers) == ("reservation-1", {"V100": 1}), "by the name that the cluster has for it"
    assert filled.read(open_reservations, at=50.0) == [first, second]
    assert filled.read(open_reservations, at=200.0) == [second]
    filled.write(cancel_reservation, second.id, at=210.0)
    assert filled.read(open_reservations, at=220.0) == []
    with pytest.raises(UnknownError, match="no 'reservation-2' that is not over"):
        filled.write(cancel_reservation, second.id, at=220.0)
    assert make(filled, 400.0, 500.0).id == "reservation-3"


def test_no_more_can_be_reserved_than_there_are_at_any_time(filled: Store) -> None:
    make(filled, 100.0, 200.0)
    make(filled, 300.0, 400.0)
    make(filled, 150.0, 350.0)  # beside each of them, of which never both are
    with pytest.raises(InputError, match="1 V100 asked for, but there are 2, and 2 of them are reserved by others in"):
        make(filled, 0.0, 160.0)
    make(filled, 200.0, 300.0)
    with pytest.raises(InputError, match="3 V100 asked for, but there are 2; ask for fewer"):
        make(filled, 1000.0, 1100.0, v100=3)


def test_what_is_over_or_not_there_is_refused(filled: Store) -> None:
    with pytest.raises(InputError, match="would be over already"):
        make(filled, 1.0, 5.0)
    with pytest.raises(InputError, match="no accelerator 'h100' in this cluster; known: V100, k80"):
        make(filled, 100.0, 200.0, h100=1)
    assert filled.read(open_reservations, at=0.0) == []
