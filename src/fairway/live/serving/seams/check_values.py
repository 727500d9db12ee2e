"""The conformance kit of values: what is packed comes out as it was, stays as long as it must, and goes when it may.

`check_values` runs every check of `CHECKS`, each on a store of its own, with several processes' values in this one
process. A failure names the check and what happened.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from fairway.live.serving.seams.conformance import SeamError, fail, require
from fairway.live.serving.seams.values import LARGE, Parcel, Values, ValueStore, client_owner, worker_owner

_MANY = LARGE  # numbers of eight bytes each


def check_values(make: Callable[[], ValueStore]) -> None:
    """Raise `SeamError` unless stores that `make` makes pass every check."""
    for check in CHECKS:
        store = make()
        try:
            check(store)
        except SeamError:
            raise
        except Exception as error:
            raise SeamError(f"check '{check.__name__}' fails: raises {type(error).__name__}: {error}") from error


def values_come_out_as_they_were(store: ValueStore) -> None:
    """Whatever can be pickled comes out equal, in another process, through a parcel that went as plain parts."""
    maker, reader = _two(store)
    for value in _samples():
        parcel = _sent(maker.pack(value))
        if not _equal(reader.open(parcel).value(), value):
            fail(values_come_out_as_they_were, f"{str(value)[:100]} became {str(reader.open(parcel).value())[:100]}")


def what_is_packed_does_not_change(store: ValueStore) -> None:
    """What a maker does to a value after packing it changes nothing."""
    maker, reader = _two(store)
    for size in (4, _MANY):
        array = np.zeros(size)
        parcel = maker.pack(array)
        array += 1.0
        require(what_is_packed_does_not_change, not reader.open(parcel).value().any(), f"{size} numbers have changed")


def large_arrays_are_read_only(store: ValueStore) -> None:
    """A stage cannot change bytes that other stages look at."""
    maker, reader = _two(store)
    array = reader.open(maker.pack(np.zeros(_MANY))).value()
    require(large_arrays_are_read_only, not array.flags.writeable, "an array that came out can be written to")


def large_buffers_are_not_in_the_message(store: ValueStore) -> None:
    """A parcel of large arrays and bytes is small."""
    maker, _ = _two(store)
    for value in (np.zeros(_MANY), b"x" * LARGE, {"image": b"x" * LARGE}, [np.zeros(_MANY), b"y" * LARGE]):
        size = len(pickle.dumps(tuple(maker.pack(value))))
        require(large_buffers_are_not_in_the_message, size < LARGE // 2, f"a parcel has {size} bytes")


def discarding_lets_go(store: ValueStore) -> None:
    """What is discarded, by any process, is not there any more; discarding it again does no harm."""
    maker, reader = _two(store)
    parcel, other = maker.pack(np.zeros(_MANY)), maker.pack(np.ones(_MANY))
    require(discarding_lets_go, maker.is_there(parcel) and reader.is_there(parcel), "a parcel is not there at first")
    reader.discard(_sent(parcel))
    require(discarding_lets_go, not maker.is_there(parcel), "a parcel is still there")
    _require_gone(discarding_lets_go, reader, parcel)
    maker.discard(parcel)
    require(discarding_lets_go, bool(reader.open(other).value().all()), "another parcel is gone")


def what_is_open_stays(store: ValueStore) -> None:
    """What a process has opened it can read when it was discarded, and when its maker is dead and cleared up after."""
    maker, reader = _two(store)
    parcels = [maker.pack(np.full(_MANY, float(number))) for number in range(2)]
    opened = [reader.open(parcel) for parcel in parcels]
    reader.discard(parcels[0])
    reader.clear(_MAKER)
    for number, each in enumerate(opened):
        require(what_is_open_stays, bool((each.value() == number).all()), f"parcel {number} has changed")


def clearing_up_is_for_one_owner(store: ValueStore) -> None:
    """All that a dead process has made is let go, and nothing of any other one."""
    owners = [worker_owner(1, 0), worker_owner(1, 1), worker_owner(11, 0), client_owner(1, "a"), client_owner(11, "a")]
    parcels = {owner: store.values(owner).pack(np.zeros(_MANY)) for owner in owners}
    others = store.values(worker_owner(7, 0))
    others.clear(owners[0])
    _require_gone(clearing_up_is_for_one_owner, others, parcels.pop(owners[0]))
    for owner, parcel in parcels.items():
        require(clearing_up_is_for_one_owner, others.is_there(parcel), f"what {owner} made is gone")


def owners_do_not_get_in_each_others_way(store: ValueStore) -> None:
    """Many values of several processes are all different, and all there."""
    makers = [store.values(worker_owner(number, 0)) for number in range(3)]
    reader = store.values(worker_owner(9, 0))
    parcels = [(number, makers[number % 3].pack(np.full(_MANY, float(number)))) for number in range(60)]
    for number, parcel in parcels:
        right = bool((reader.open(parcel).value() == number).all())
        require(owners_do_not_get_in_each_others_way, right, f"another value came out for {number}")


def what_cannot_be_packed_raises(store: ValueStore) -> None:
    """A value that cannot be pickled is refused, and the process goes on."""
    maker, reader = _two(store)
    for value in (lambda: 0, [np.zeros(_MANY), lambda: 0]):
        try:
            maker.pack(value)
        except (pickle.PicklingError, TypeError, AttributeError):
            continue
        fail(what_cannot_be_packed_raises, f"{value} was packed")
    require(what_cannot_be_packed_raises, reader.open(maker.pack(1)).value() == 1, "it cannot pack any more")


CHECKS: tuple[Callable[[ValueStore], None], ...] = (
    values_come_out_as_they_were,
    what_is_packed_does_not_change,
    large_arrays_are_read_only,
    large_buffers_are_not_in_the_message,
    discarding_lets_go,
    what_is_open_stays,
    clearing_up_is_for_one_owner,
    owners_do_not_get_in_each_others_way,
    what_cannot_be_packed_raises,
)
"""Every check, in the order in which they run."""

_MAKER = worker_owner(0, 3)


def _two(store: ValueStore) -> tuple[Values, Values]:
    """The values of a process that makes them, and of another one."""
    return store.values(_MAKER), store.values(worker_owner(1, 0))


def _sent(parcel: Parcel) -> Parcel:
    """A parcel as it comes out of a message."""
    return Parcel(*pickle.loads(pickle.dumps(tuple(parcel))))


def _samples() -> list[Any]:
    numbers = np.arange(4 * _MANY, dtype=np.float32)
    return [
        None, 7, 2.5, "word", b"", b"\0" * 10, b"\1" * LARGE, bytearray(b"\2" * LARGE), (), {"a": [1, {"b": (2, 3)}]},
        np.arange(3), numbers, numbers.reshape(4, -1), np.asfortranarray(numbers.reshape(4, -1)), numbers[::2],
        numbers.reshape(4, -1)[:, 1:-1], np.zeros(0), np.float64(1.5), np.zeros((2, 0, 3)),
        {"image": b"\3" * LARGE, "boxes": [numbers, numbers[:5]], "text": "x" * LARGE}, [b"\4" * LARGE, numbers, None],
        (numbers, (numbers, b"\5" * LARGE)), np.array(["a", "bc"]), np.array([{"a": 1}, None], dtype=object),
    ]  # fmt: skip


def _equal(found: Any, expected: Any) -> bool:
    if type(found) is not type(expected):
        return False
    if isinstance(expected, np.ndarray):
        return found.dtype == expected.dtype and bool(np.array_equal(found, expected))
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(_equal(found[key], expected[key]) for key in expected)
    if isinstance(expected, list | tuple):
        return len(found) == len(expected) and all(map(_equal, found, expected))
    return bool(found == expected)


def _require_gone(check: Callable[..., None], values: Values, parcel: Parcel) -> None:
    try:
        values.open(parcel)
    except OSError:
        return
    fail(check, "a parcel can still be opened")
