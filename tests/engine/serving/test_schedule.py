"""Schedulers by name: placers, configurators, any configurator with any placer; what makes no sense is refused."""

from __future__ import annotations

import pytest

from fairway import (
    BATCH_PLACERS,
    CONFIGURATORS,
    PLACERS,
    InputError,
    Placer,
    configurator_of,
    placer_of,
    schedule_of,
)
from fairway.configure.configurators.esg import Esg
from fairway.configure.configurators.front import FrontConfigurator
from fairway.place.placers.compass import Compass
from fairway.place.registry import batch_placer_of


@pytest.mark.parametrize("name", list(PLACERS))
def test_a_placer_alone_places_requests_ahead(name: str) -> None:
    schedule = schedule_of(name)
    assert schedule.placer == schedule.ahead == placer_of(name)
    assert isinstance(schedule.placer, Placer)
    assert schedule.configurator is None
    assert not schedule.centralised
    assert schedule.rules == placer_of(name).rules


@pytest.mark.parametrize("name", list(CONFIGURATORS))
def test_a_configurator_alone_brings_the_placer_of_its_paper(name: str) -> None:
    schedule = schedule_of(name)
    assert schedule.configurator == configurator_of(name)
    assert schedule.placer == batch_placer_of(configurator_of(name).placer)
    assert schedule.centralised


@pytest.mark.parametrize("configurator", list(CONFIGURATORS))
@pytest.mark.parametrize("placer", list(BATCH_PLACERS))
def test_any_configurator_goes_with_any_placer(configurator: str, placer: str) -> None:
    for text in (f"{configurator}+{placer}", f" {configurator} + {placer} "):
        schedule = schedule_of(text)
        assert schedule.configurator == configurator_of(configurator)
        assert schedule.placer == batch_placer_of(placer)
        assert schedule.centralised, "the engine with the queues plans for all workers"
        assert schedule.rules == batch_placer_of(placer).rules


def test_options_may_be_on_both_sides() -> None:
    schedule = schedule_of("esg:k=2,no-batching+compass:theta=2.5,no-prefetch")
    assert schedule.configurator == Esg(k=2, no_batching=True)
    assert schedule.placer == Compass(theta=2.5, no_prefetch=True)
    assert schedule_of("front:deviations=1e+1+hash").configurator == FrontConfigurator(deviations=10.0)
    assert schedule_of("compass:theta=1e+1").placer == Compass(theta=10.0)
    assert schedule_of("esg:no-locality").placer.name == "best-fit"
    assert schedule_of("esg:no-locality+hash").placer.name == "hash"


def test_compass_may_plan_in_one_place() -> None:
    assert schedule_of("compass:centralised").centralised


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("near-data", "'near-data' places batches, which a configurator has to make; add one, as in esg+near-data"),
        ("tightest", "'tightest' places batches, which a configurator has to make"),
        ("best-fit+esg", "'best-fit' places batches, which a configurator has to make"),
        ("compass+front", "scheduler 'compass+front' has the placer first; expected front+compass"),
        ("jit:prefetch+esg:k=1", "has the placer first; expected esg:k=1+jit:prefetch"),
        ("compass+hash", "scheduler 'compass+hash': 'compass' is no configurator; one of esg, front, infless"),
        ("esg+compass+hash", "scheduler 'esg+compass+hash' names 2 placers, expected one, as in esg+compass"),
        (
            "compas",
            "scheduler 'compas' is not known, did you mean 'compass'?; known: compass, jit, heft, hash, fairway, esg",
        ),
        ("fornt+compass", "scheduler 'fornt' is not known, did you mean 'front'?; known: compass"),
        (
            "front+compas",
            "placer 'compas' is not known, did you mean 'compass'?; known: compass, jit, heft, hash, fairway, near",
        ),
        ("esg+front", "placer 'front' is not known"),
        ("front+", "scheduler 'front+' is not known, did you mean 'front'?"),
        ("", "scheduler '' is not known"),
        ("esg:k=0+compass", "esg: k: 0 given, expected a whole number >= 1"),
        ("esg:kk=1+compass", "configurator 'esg' has no option 'kk', did you mean 'k'?"),
        ("esg+compass:thet=1", "placer 'compass' has no option 'thet', did you mean 'theta'?"),
        ("esg:theta=1+compass", "configurator 'esg' has no option 'theta'"),
        ("esg+compass:k=1", "placer 'compass' has no option 'k'"),
        ("esg+near-data:no-locality", "placer 'near-data' has no option 'no-locality'"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        schedule_of(text)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
