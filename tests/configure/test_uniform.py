"""One size for all stages: the cheapest that is in time, the fastest if none is; refused where there is none."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from fairway import Application, Configuration, InputError, Platform, Prices, Profile
from fairway.configure.platform import BARE
from fairway.configure.uniform import uniform_configuration

SMALL, MIDDLE, LARGE = Configuration(1, 1, 1), Configuration(1, 2, 2), Configuration(1, 4, 4)
PLATFORM = replace(BARE, prices=Prices(0.0, 1.0))


def application(slo: float, *stages: dict[Configuration, float], platform: Platform = PLATFORM) -> Application:
    profiles = {f"s{number}": Profile.of(times) for number, times in enumerate(stages)}
    return Application.of(profiles, list(pairwise(profiles)), slo, input_bytes=dict.fromkeys(profiles, 10**6))


STAGE = {SMALL: 1.0, MIDDLE: 0.6, LARGE: 0.4}


@pytest.mark.parametrize(("slo", "size"), [(2.0, SMALL), (1.9, MIDDLE), (1.2, MIDDLE), (1.1, LARGE), (0.5, LARGE)])
def test_it_is_the_cheapest_that_is_in_time_and_the_fastest_if_none_is(slo: float, size: Configuration) -> None:
    assert uniform_configuration([application(slo, STAGE, STAGE)], PLATFORM) == size


def test_the_application_with_the_least_time_decides() -> None:
    plenty, hasty = application(9.0, STAGE), application(0.5, STAGE)
    assert uniform_configuration([plenty], PLATFORM) == SMALL
    assert uniform_configuration([plenty, hasty], PLATFORM) == LARGE


def test_a_larger_size_may_cost_less() -> None:
    saving = {SMALL: 1.0, MIDDLE: 0.3}
    assert uniform_configuration([application(9.0, saving)], PLATFORM) == MIDDLE


def test_larger_batches_and_what_no_worker_has_room_for_do_not_count() -> None:
    times = {SMALL: 1.0, Configuration(2, 1, 1): 0.1, LARGE: 0.1}
    assert uniform_configuration([application(0.5, times)], replace(PLATFORM, gpu=3)) == SMALL


def test_transfers_and_overhead_count_as_time() -> None:
    asked = application(1.0, STAGE)
    assert uniform_configuration([asked], PLATFORM) == SMALL
    assert uniform_configuration([asked], replace(Platform(), prices=Prices(0.0, 1.0))) == MIDDLE


def test_every_stage_has_to_know_the_size() -> None:
    both = application(2.0, STAGE, {MIDDLE: 0.5, LARGE: 0.3})
    assert uniform_configuration([both], PLATFORM) == MIDDLE
    with pytest.raises(InputError, match="the stages have no configuration of one job in common that fits on a worker"):
        uniform_configuration([application(2.0, {SMALL: 1.0}, {LARGE: 0.1})], PLATFORM)
    with pytest.raises(InputError, match="of 3 CPUs and 7 slices; add one, or use a scheduler that chooses"):
        uniform_configuration([application(2.0, {LARGE: 0.1})], replace(PLATFORM, cpu=3))
