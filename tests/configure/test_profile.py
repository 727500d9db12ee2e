"""Configurations, prices and profiles: the formula, tables, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from fairway import Application, Configuration, ConfigurationSpace, InputError, Prices, Profile, SyntheticFunction


def test_a_job_costs_its_part_of_the_task() -> None:
    assert Prices().rate(2, 1) == pytest.approx(0.738)
    one = np.array([4]), np.array([2]), np.array([1]), np.array([3.6])
    assert Prices(0.5, 1.0).cost_per_job(*one).tolist() == pytest.approx([2.0 * 3.6 / 4 / 3600])


def test_slices_vary_fastest_and_the_batch_slowest() -> None:
    batch, cpu, gpu = ConfigurationSpace((1, 2), (1, 4), (1, 7)).arrays()
    assert batch.tolist() == [1, 1, 1, 1, 2, 2, 2, 2]
    assert cpu.tolist() == [1, 1, 4, 4, 1, 1, 4, 4]
    assert gpu.tolist() == [1, 7, 1, 7, 1, 7, 1, 7]
    assert len(ConfigurationSpace().arrays()[0]) == 210


def test_only_some_numbers_of_slices_are_legal() -> None:
    assert ConfigurationSpace().mig_legal().gpus == (1, 2, 3, 4, 7)


def test_the_formula_is_one_at_the_smallest_size() -> None:
    function = SyntheticFunction(0.293, 0.18, 0.60, 0.88, 0.65, 4)
    assert function(1, 1, 1) == pytest.approx(0.293)
    by_hand = 0.293 * (0.18 * 2 / min(4, 8) ** 0.9 + 0.82 * (0.6 + 0.4 * 2**0.88 / 3**0.65))
    assert function(2, 4, 3) == pytest.approx(by_hand)
    profile = function.profile(ConfigurationSpace())
    assert profile.seconds_of(3, 2, 1) == function(3, 2, 1)


def test_a_table_takes_the_next_larger_batch() -> None:
    profile = Profile.of({Configuration(1, 2, 1): 0.1, Configuration(4, 2, 1): 0.3, Configuration(4, 4, 1): 0.2})
    assert profile.seconds_of(3, 2, 1) == 0.3
    assert profile.seconds_of(1, 2, 1) == 0.1
    assert profile.seconds_of(5, 2, 1) == float("inf")
    assert profile.configuration(1) == Configuration(4, 2, 1)


def test_a_batch_size_is_as_fast_as_its_fastest_configuration() -> None:
    profile = Profile.of({Configuration(4, 2, 1): 0.3, Configuration(1, 2, 1): 0.1, Configuration(4, 4, 1): 0.2})
    assert profile.fastest_by_batch() == {1: 0.1, 4: 0.2}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Profile.of({}), "configs: none given"),
        (lambda: Profile.of({Configuration(0, 1, 1): 1.0}), "configs[0].batch: 0 given"),
        (lambda: Profile.of({Configuration(1, 0, 0): 1.0}), "configs[0]: 0 CPUs and 0 GPU slices given"),
        (lambda: Profile.of({Configuration(1, 1, 1): -1.0}), "configs[0].seconds: -1.0 given"),
        (lambda: Profile.of([(Configuration(1, 1, 1), 1.0)] * 2), "configs[1]: the same batch, cpu and gpu as config"),
        (lambda: Prices(-1.0), "prices.cpu: -1.0 given"),
        (lambda: ConfigurationSpace((2, 1)), "batches: [2, 1] given"),
        (lambda: ConfigurationSpace((0, 1)), "batches: [0, 1] given"),
        (lambda: SyntheticFunction(1.0).profile(ConfigurationSpace(gpus=(0, 1))), "the formula has no time without"),
        (
            lambda: Application.of({"a": Profile.of({Configuration(1, 1, 9): 1.0})}, [], 1.0).within(16, 7),
            "application 'application', stage 'a': no configuration fits on a worker of 16 CPUs and 7 GPU slices",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(make: object, message: str) -> None:
    with pytest.raises(InputError) as caught:
        make()  # type: ignore[operator]
    assert str(caught.value).startswith(message)
