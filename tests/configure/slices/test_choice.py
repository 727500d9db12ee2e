"""The layout for a load: exact against trying everything, and honest where there is none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from benchmarks._slices import cheapest_by_brute_force, random_load
from fairway.configure.slices.choice import LayoutChoice, ModelLoad, choose_layout
from fairway.configure.slices.layouts import MigInstance, refuse_illegal
from fairway.configure.slices.mig import A30, A100_40GB, DEVICES, MigDevice
from fairway.errors import InputError

TIMES = {"1g.5gb": 0.1, "2g.10gb": 0.06, "3g.20gb": 0.045, "4g.20gb": 0.04, "7g.40gb": 0.03}


def check(device: MigDevice, load: Sequence[ModelLoad], choice: LayoutChoice, most_busy: float = 1.0) -> None:
    """An answer is legal, gives each instance to one model, and holds every rate in time."""
    assert choice.layout is not None
    refuse_illegal(device, choice.layout)
    given = [one for model in load for one in choice.instances[model.name]]
    assert sorted(given) == list(choice.layout)
    for model in load:
        seconds = [model.seconds[one.profile] for one in choice.instances[model.name]]
        assert all(one <= model.limit_seconds for one in seconds)
        assert sum(most_busy / one for one in seconds) >= model.rate * (1 - 1e-6)


@pytest.mark.parametrize("device", DEVICES.values(), ids=lambda device: device.name)
def test_the_choice_is_that_of_brute_force(device: MigDevice) -> None:
    generator = np.random.default_rng(20)
    outcomes = set()
    for _ in range(125):
        load = random_load(device, generator)
        choice = choose_layout(device, load)
        assert choice.price == cheapest_by_brute_force(device, load), load
        outcomes.add(choice.layout is None)
        if choice.layout is not None:
            check(device, load, choice)
    assert outcomes == {True, False}, "loads that fit, and loads that do not"


def test_prices_decide_where_they_are_given() -> None:
    load = [ModelLoad("m", 18.0, TIMES)]  # 2 × 1g take 20 a second, 1 × 2g 16.7, 1 × 3g 22.2
    assert choose_layout(A100_40GB, load).layout == (MigInstance(0, "1g.5gb"), MigInstance(1, "1g.5gb"))
    dear = dict.fromkeys(TIMES, 9.0) | {"1g.10gb": 9.0, "3g.20gb": 1.0}
    choice = choose_layout(A100_40GB, load, prices=dear)
    assert (choice.layout, choice.price) == ((MigInstance(0, "3g.20gb"),), 1.0)


def test_a_limit_rules_out_slices_that_are_too_slow() -> None:
    choice = choose_layout(A100_40GB, [ModelLoad("m", 1.0, TIMES, 0.05)])
    assert choice.layout is not None
    assert [one.profile for one in choice.layout] == ["3g.20gb"]


def test_how_busy_an_instance_may_be_counts() -> None:
    load = [ModelLoad("m", 10.0, TIMES)]
    assert choose_layout(A100_40GB, load).price == 1
    busy = choose_layout(A100_40GB, load, most_busy=0.5)
    assert busy.price == 2
    check(A100_40GB, load, busy, 0.5)


def test_what_there_is_is_kept_where_it_can_be() -> None:
    present = (MigInstance(4, "3g.20gb"),)
    choice = choose_layout(A100_40GB, [ModelLoad("m", 1.0, {"3g.20gb": 0.1})], present=present)
    assert choice.layout == present
    assert choose_layout(A100_40GB, [ModelLoad("m", 1.0, {"3g.20gb": 0.1})]).layout == (MigInstance(0, "3g.20gb"),)


def test_no_load_needs_nothing() -> None:
    assert choose_layout(A30, []) == LayoutChoice((), {}, 0.0)


@pytest.mark.parametrize(
    ("load", "reason"),
    [
        ([ModelLoad("m", 1.0, {})], "m runs on no slice of a a100-40gb"),
        (
            [ModelLoad("m", 1.0, TIMES, 0.01)],
            "m takes 0.03 s on its fastest slice of a a100-40gb (7g.40gb), and has 0.01 s",
        ),
        ([ModelLoad("m", 71.0, TIMES)], "m alone needs more than one a100-40gb"),
        ([ModelLoad(f"m{n}", 9.0, TIMES) for n in range(8)], "the load needs more than one a100-40gb"),
    ],
)  # fmt: skip
def test_a_load_that_does_not_fit_has_a_reason(load: list[ModelLoad], reason: str) -> None:
    choice = choose_layout(A100_40GB, load)
    assert choice.layout is None
    assert choice.reason == reason


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda: ModelLoad("m", 0.0, TIMES), "m: rate: 0.0 given, expected requests per second > 0"),
        (lambda: ModelLoad("m", 1.0, {"1g.5gb": float("nan")}), "m: seconds.1g.5gb: nan given, expected a number > 0"),
        (lambda: ModelLoad("m", 1.0, TIMES, 0.0), "m: limit_seconds: 0.0 given, expected a number > 0"),
        (
            lambda: choose_layout(A30, [ModelLoad("m", 1.0, {"3g.20gb": 1.0})]),
            "profile: '3g.20gb' given, but a a30 has",
        ),
        (lambda: choose_layout(A30, [ModelLoad("m", 1.0, {})] * 2), "load: m is given twice"),
        (lambda: choose_layout(A30, [], most_busy=1.5), "most_busy: 1.5 given, expected a number above 0, up to 1"),
        (lambda: choose_layout(A30, [], prices={"1g.6gb": 1.0}), "prices: 2g.12gb: None given, expected a number > 0"),
    ],
)
def test_bad_input_is_refused_in_a_line(make: object, line: str) -> None:
    assert callable(make)
    with pytest.raises(InputError) as refused:
        make()
    assert str(refused.value).startswith(line)
