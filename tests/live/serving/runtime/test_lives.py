from __future__ import annotations

from pathlib import Path

import pytest

from fairway.live.serving.runtime.lives import Lives
from fairway.live.serving.seams.transport import WireError
from fairway.live.serving.supervise.settings import ServingSettings
from fairway.place.fleet import OUTSIDE

NOWHERE = Path("/nonexistent")


def _settings(*, has_planner: bool) -> ServingSettings:
    return ServingSettings("module:workflow", NOWHERE, NOWHERE, workers=3, has_planner=has_planner)


@pytest.mark.parametrize(("has_planner", "number"), [(False, 0), (False, 2), (True, 3)])
def test_requests_of_a_life_count_from_the_news_that_it_is_there_until_its_loss(has_planner: bool, number: int) -> None:
    settings = _settings(has_planner=has_planner)
    lives = Lives(settings, 1, 0)
    first, second = (Lives(settings, number, epoch).first_key + 7 for epoch in (0, 1))

    def there(epoch: int) -> None:
        if has_planner:
            lives.joined(number, epoch)  # which alone says nothing of a planner
            assert lives.is_greeted_by(OUTSIDE, epoch)
        else:
            lives.joined(number, epoch)

    def states() -> list[tuple[bool, bool]]:
        return [(lives.is_over(key), lives.is_early(key)) for key in (first, second)]

    assert states() == [(False, True), (False, True)]
    there(0)
    assert states() == [(False, False), (False, True)]
    lives.lost(number, 0)
    assert states() == [(True, False), (False, True)]
    there(1)
    assert states() == [(True, False), (False, False)]
    lives.lost(number, 1)
    assert states() == [(True, False), (True, False)]


def test_a_process_knows_its_own_life() -> None:
    lives = Lives(_settings(has_planner=False), 2, 5)
    assert not lives.is_early(lives.first_key)
    assert not lives.is_over(lives.first_key)
    assert lives.is_over(Lives(_settings(has_planner=False), 2, 4).first_key)
    assert [lives.has_ended(2, epoch) for epoch in (4, 5, 6)] == [True, False, False]


def test_a_life_of_another_process_has_ended_once_its_loss_or_a_later_life_is_known() -> None:
    lives = Lives(_settings(has_planner=False), 0, 0)
    assert not lives.has_ended(1, 0)
    lives.lost(1, 0)
    assert [lives.has_ended(1, epoch) for epoch in (0, 1)] == [True, False]
    lives.joined(1, 2)
    assert [lives.has_ended(1, epoch) for epoch in (1, 2)] == [True, False]


@pytest.mark.parametrize(("number", "epoch"), [(3, 0), ("a", 0), ({}, 0), (0, "b"), (True, 0)])
def test_what_no_supervisor_would_say_is_refused(number: object, epoch: object) -> None:
    with pytest.raises(WireError, match="expected the number of a worker"):
        Lives(_settings(has_planner=False), 0, 0).joined(number, epoch)


def test_a_planner_that_greets_late_does_not_take_the_place_of_its_successor() -> None:
    lives = Lives(_settings(has_planner=True), 0, 0)
    assert lives.is_greeted_by(OUTSIDE, 0)
    assert lives.is_greeted_by(OUTSIDE, 2)
    assert not lives.is_greeted_by(OUTSIDE, 1)
    assert lives.is_greeted_by(OUTSIDE, 2)
    lives.lost(3, 2)
    assert not lives.is_greeted_by(OUTSIDE, 2)
