"""What Nexus may be told: how often it plans, and how many batches the time of a stage has to hold."""

from __future__ import annotations

import pytest

from fairway import configurator_of
from fairway.errors import InputError


def test_one_batch_and_any_time_between_plans_are_taken() -> None:
    assert configurator_of("nexus:rounds=1").fleet.epoch_seconds == 10.0
    assert configurator_of("nexus:epoch=0.001").fleet.epoch_seconds == 0.001


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nexus:rounds=0", "nexus: rounds: 0 given, expected a whole number >= 1"),
        ("nexus:epoch=0", "nexus: epoch: 0 given, expected a number of seconds > 0"),
    ],
)
def test_others_are_refused_with_what_was_expected(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        configurator_of(text)
