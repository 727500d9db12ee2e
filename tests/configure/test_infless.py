"""INFless by its rule, written again as one loop over all configurations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairway import Application, Candidates, Capacity, Configuration, Profile, Queue, Wait, configurator_of
from fairway.configure.platform import BARE
from fairway.configure.queues import Decision

# Whole numbers of half seconds, so that limits are met exactly; half a GPU is three of seven slices.
SECONDS = {
    Configuration(b, c, g): float(b + 4 - g) / 2 for b in (1, 2, 4, 8) for c in (1, 2, 3, 4, 9) for g in (1, 2, 3, 4)
}


def decided(queue: Queue, slo: float, seconds: dict[Configuration, float] = SECONDS) -> Decision:
    application = Application.of({"a": Profile.of(seconds)}, [], slo)
    return (
        configurator_of("infless").prepare(application, BARE, np.random.default_rng(0)).decide(queue, Capacity.idle(1))
    )


def admissible(rate: float, slo: float) -> list[Configuration]:
    """Of the largest batch for which there is one, all configurations that will do."""
    for size in (8, 4, 2, 1):
        found = [
            each
            for each, seconds in SECONDS.items()
            if each.batch == size
            and each.gpu <= 3
            and 2 <= each.cpu <= max(2, size)
            and seconds <= (slo if size == 1 else slo / 2)
            and (size == 1 or rate >= size / (slo - seconds))
        ]
        if found:
            return found
    return []


@pytest.mark.parametrize("slo", [0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 7.0, 8.0, 20.0])
@pytest.mark.parametrize("rate", [0.0, 0.5, 1.0, 2.0, 3.0, 50.0])
def test_the_largest_batch_that_fills_in_time_is_chosen_and_waited_for(rate: float, slo: float) -> None:
    found = admissible(rate, slo)
    for length in (1, 2, 3, 8):
        for waited in (0.0, 1.0, slo - 2.5, slo - 2.0, slo):
            decision = decided(Queue(0, length, slo - waited, rate=rate, waited=waited), slo)
            if not found:
                assert isinstance(decision, Candidates)
                assert decision.choices == ((Configuration(1, 2, 3), "best-effort"),)
                continue
            slowest = max(SECONDS[each] for each in found)
            if length < found[0].batch and waited < slo - slowest:
                assert isinstance(decision, Wait)
                assert decision.seconds == pytest.approx(slo - slowest - waited)
            else:
                assert isinstance(decision, Candidates)
                assert {choice.configuration for choice in decision.choices} == set(found)
                assert {choice.kind for choice in decision.choices} == {"planned"}


def test_where_there_is_no_half_gpu_the_fastest_of_the_smallest_batch_runs_when_nothing_will_do() -> None:
    odd = {
        Configuration(2, 2, 1): 3.0,
        Configuration(1, 4, 1): 6.0,
        Configuration(1, 2, 1): 5.0,
        Configuration(4, 2, 1): 1.0,
    }
    decision = decided(Queue(0, 1, 0.5), 0.5, odd)
    assert isinstance(decision, Candidates)
    assert decision.choices == ((Configuration(1, 2, 1), "best-effort"),)


def test_it_goes_around_all_queues_and_places_tightly() -> None:
    assert (configurator_of("infless").placer, configurator_of("infless").turns) == ("tightest", "ring")


def test_what_no_worker_can_hold_is_not_considered() -> None:
    application = Application.of({"a": Profile.of(SECONDS)}, [], 2.0)
    platform = replace(BARE, cpu=2, gpu=4)
    prepared = configurator_of("infless").prepare(application, platform, np.random.default_rng(0))
    decision = prepared.decide(Queue(0, 1, 2.0), Capacity.idle(1, 2, 4))
    assert isinstance(decision, Candidates)
    assert {choice.configuration for choice in decision.choices} == {Configuration(1, 2, 1), Configuration(1, 2, 2)}
