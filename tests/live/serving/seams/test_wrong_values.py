"""Every check of the kit for values finds the mistake that it is there for."""

from __future__ import annotations

import itertools
import pickle
from typing import Any, ClassVar

import numpy as np
import pytest

from fairway.live.serving.seams import check_values
from fairway.live.serving.seams.conformance import SeamError
from fairway.live.serving.seams.values import Opened, Parcel
from fairway.live.serving.simulated.machine import SimulatedMachine, SimulatedSeams
from fairway.live.serving.simulated.memory import SimulatedValues


class Seams(SimulatedSeams):
    """A simulated machine with other values."""

    def __init__(self, values: type[SimulatedValues] = SimulatedValues) -> None:
        super().__init__(SimulatedMachine())
        self._stores = values

    def values(self, owner: str) -> SimulatedValues:
        return self._stores(self._machine.kept, owner)


class Present(SimulatedValues):
    def is_there(self, parcel: Parcel) -> bool:  # noqa: ARG002
        return True


class Absent(SimulatedValues):
    def is_there(self, parcel: Parcel) -> bool:  # noqa: ARG002
        return False


class Careless(SimulatedValues):
    """Lets all go with one."""

    def discard(self, parcel: Parcel) -> None:  # noqa: ARG002
        self._kept.clear()


class Lasting(SimulatedValues):
    """What is let go can still be opened."""

    lost: ClassVar[dict[str, bytes]] = {}

    def _let_go(self, name: str) -> None:
        self.lost[name] = self._kept.pop(name, b"")

    def _found(self, buffer: bytes | str) -> bytes:
        return self.lost[str(buffer)] if buffer in self.lost else super()._found(buffer)


class Nameless(SimulatedValues):
    """Names that two owners give alike."""

    def _keep(self, raw: memoryview) -> str:
        name = f"worker-{next(self._numbers)}"
        self._kept[name] = bytes(raw)
        return name


class InMessages(SimulatedValues):
    def pack(self, value: object) -> Parcel:
        return Parcel(pickle.dumps(value, protocol=5))


class Lenient(SimulatedValues):
    def pack(self, value: object) -> Parcel:
        try:
            return super().pack(value)
        except (pickle.PicklingError, TypeError, AttributeError):
            return super().pack(None)


class Offended(SimulatedValues):
    """After two values that it could not pack, another comes out for every one."""

    offended = 0

    def pack(self, value: object) -> Parcel:
        try:
            return super().pack(2 if self.offended > 1 else value)
        except (pickle.PicklingError, TypeError, AttributeError):
            self.offended += 1
            raise


class Rounding(SimulatedValues):
    """Floats come out as whole numbers, and nothing else changes."""

    def pack(self, value: object) -> Parcel:
        return super().pack(2 if value == 2.5 else value) if isinstance(value, float) else super().pack(value)


class Dropping(SimulatedValues):
    """Of a dictionary, one entry is lost."""

    def pack(self, value: object) -> Parcel:
        return super().pack(dict(itertools.islice(value.items(), 2)) if isinstance(value, dict) else value)


class ClearsNothing(SimulatedValues):
    def clear(self, owner: str) -> None: ...


class ClearsAll(SimulatedValues):
    def clear(self, owner: str) -> None:  # noqa: ARG002
        self._kept.clear()


class ClearsEveryLife(SimulatedValues):
    """Lets go what a worker has made in any of its lives."""

    def clear(self, owner: str) -> None:
        super().clear(owner[: owner.index("-") + 1])


class ClearsByBeginnings(SimulatedValues):
    """Takes worker 11 for worker 1, in the same life."""

    def clear(self, owner: str) -> None:
        number, _, life = owner.partition("-")
        for name in [name for name in self._kept if name.startswith(number) and f"-{life}" in name]:
            self._let_go(name)


class ClearsAnyKind(SimulatedValues):
    """Takes a client for the worker of the same number."""

    def clear(self, owner: str) -> None:
        super().clear(owner)
        super().clear("c" + owner[1 : owner.index("-") + 1])


class Shared(SimulatedValues):
    """What is open changes with what is kept."""

    def open(self, parcel: Parcel) -> Opened:
        super().open(parcel)
        store = self

        class Late(Opened):
            def value(self) -> Any:
                found = [
                    store._kept.get(str(each), bytes(8)) if isinstance(each, str) else each for each in parcel.buffers
                ]
                return np.full(1, -1.0) if any(len(each) == 8 for each in found) else Opened(parcel, found).value()

        return Late(parcel, [])


@pytest.mark.parametrize(
    ("check", "wrong", "found"),
    [
        ("values_come_out_as_they_were", Rounding, "2.5 became 2"),
        ("values_come_out_as_they_were", Dropping, "became"),
        ("large_arrays_are_read_only", InMessages, "can be written to"),
        ("large_buffers_are_not_in_the_message", InMessages, "a parcel has"),
        ("discarding_lets_go", Absent, "is not there at first"),
        ("discarding_lets_go", Present, "is still there"),
        ("discarding_lets_go", Lasting, "can still be opened"),
        ("discarding_lets_go", Careless, "raises|gone|not kept"),
        ("what_is_open_stays", Shared, "parcel 0 has changed"),
        ("clearing_up_is_for_one_owner", ClearsNothing, "can still be opened"),
        ("clearing_up_is_for_one_owner", ClearsAll, "is gone"),
        ("clearing_up_is_for_one_owner", ClearsEveryLife, "what w1-1- made is gone"),
        ("clearing_up_is_for_one_owner", ClearsByBeginnings, "what w11-0- made is gone"),
        ("clearing_up_is_for_one_owner", ClearsAnyKind, "what c1-a- made is gone"),
        ("owners_do_not_get_in_each_others_way", Nameless, "another value came out|is not kept"),
        ("what_cannot_be_packed_raises", Lenient, "was packed"),
        ("what_cannot_be_packed_raises", Offended, "it cannot pack any more"),
    ],
)
def test_a_check_finds_the_values_that_it_is_there_for(check: str, wrong: type[SimulatedValues], found: str) -> None:
    run = getattr(check_values, check)
    with pytest.raises((SeamError, OSError), match=found):
        run(Seams(values=wrong))
    run(Seams())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2), (1, 1.0), (1, True), ("a", "b"), ([1], [1, 2]), ([1, 2], [1]), ([1, 3], [1, 2]), ((1,), [1]),
        ({"a": 1}, {"a": 2}), ({"a": 1}, {"b": 1}), ({"a": 1}, {"a": 1, "b": 2}), ({"a": 1, "b": 2}, {"a": 1}),
        (np.zeros(2), np.ones(2)), (np.zeros(2), np.zeros(3)), (np.zeros(2), np.zeros(2, np.float32)),
        ([np.zeros(2)], [np.ones(2)]), (b"x", bytearray(b"x")), (None, 0),
    ],
)  # fmt: skip
def test_what_differs_is_not_equal_to_the_kit(one: object, other: object) -> None:
    assert not check_values._equal(one, other)
    assert not check_values._equal(other, one)
    assert check_values._equal(one, one)
    assert check_values._equal(other, other)


def test_the_kit_of_values_runs_every_check_on_a_store_of_its_own() -> None:
    made: list[Seams] = []

    def make() -> Seams:
        made.append(Seams())
        return made[-1]

    check_values.check_values(make)
    assert len(made) == len(check_values.CHECKS)
    assert sum(bool(each._machine.kept) for each in made) > len(made) / 2
    with pytest.raises(SeamError, match="discarding_lets_go"):
        check_values.check_values(lambda: Seams(values=Absent))
