"""The conformance kit: every configurator of ours passes, and each mistake is found."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest

from fairway import (
    BATCH_PLACERS,
    CONFIGURATORS,
    Candidates,
    Capacity,
    Choice,
    Configuration,
    ConfiguratorError,
    Queue,
    Wait,
    check_configurator,
    configurator_of,
)
from fairway.configure.check import CHECKS
from fairway.configure.check_situations import KINDS, situation_of

OURS = [
    *(name for name in CONFIGURATORS if name != "aquatope"),
    "esg:margin=0.1",
    "esg:noise-margin",
    "esg:shed",
    "esg:same",
    "esg:no-batching",
    "esg:no-gpu-sharing",
    "esg:no-replan",
    "esg:no-locality",
    "esg:fixed-quota",
    "esg:mig-legal",
    "esg:k=1,group-size=1",
    "esg:group-size=5",
    "esg:search=layered",
    "esg:search=a-star,same",
    "infless:efficiency",
    "aquatope:exact",
]


@pytest.mark.parametrize("name", OURS)
def test_ours_pass(name: str) -> None:
    check_configurator(configurator_of(name))


def test_aquatope_passes() -> None:
    pytest.importorskip("sklearn", reason="the rival Aquatope needs the extra `aquatope`")
    check_configurator(configurator_of("aquatope:bootstrap=6,rounds=1"), seeds=range(1))


@pytest.mark.parametrize("name", [*OURS, "aquatope"])
def test_ours_name_a_placer_that_exists(name: str) -> None:
    assert configurator_of(name).placer in BATCH_PLACERS


Answer = Callable[[Queue, Capacity, Any, float], Any]


@dataclass
class Broken:
    """A good configurator with a fault, which changes what it decides."""

    name: ClassVar[str] = "broken"
    answer: Answer = lambda _, __, good, ___: good
    placer: Any = "best-fit"
    turns: Any = "ring"
    good: Any = field(default_factory=lambda: configurator_of("fast-gshare"))

    def prepare(self, application: Any, platform: Any, draws: np.random.Generator) -> Any:
        prepared = self.good.prepare(application, platform, draws)
        chance = iter(np.random.default_rng().random(100_000))

        class Prepared:
            def decide(_, queue: Queue, capacity: Capacity) -> Any:  # noqa: N805
                return self.answer(queue, capacity, prepared.decide(queue, capacity), next(chance))

        return Prepared()


def always(decision: Any) -> Answer:
    return lambda *_: decision


def one(batch: int, cpu: int, gpu: int) -> Candidates:
    return Candidates((Choice(Configuration(batch, cpu, gpu)),))


def valued(value: Any) -> Answer:
    return lambda _, __, good, ___: good._replace(value=value)


def takes(_: Queue, capacity: Capacity, good: Any, __: float) -> Any:
    capacity.free_cpu[0] = 0
    return good


def raises(*_: object) -> Any:
    raise ValueError("no")


def too_large(queue: Queue, capacity: Capacity, good: Any, _: float) -> Any:
    """A configuration of the stage that only larger workers have room for."""
    return one(1, 4, 7) if capacity.cpu < 4 else good


def by_chance(queue: Queue, capacity: Capacity, good: Any, chance: float) -> Any:
    return good if chance < 0.5 or queue.waited > 0.5 else Wait(chance)


def valued_by_chance(queue: Queue, capacity: Capacity, good: Any, chance: float) -> Any:
    return good._replace(value=lambda *_: chance)


@pytest.mark.parametrize(
    ("answer", "check"),
    [
        (always(one(1, 1, 5)), "choices_fit_on_a_worker"),
        (always(one(3, 1, 1)), "choices_fit_on_a_worker"),
        (too_large, "choices_fit_on_a_worker"),
        (always(Candidates((Choice(Configuration(1, 1, 1), "because"),))), "choices_fit_on_a_worker"),  # type: ignore[arg-type]
        (always(Candidates(())), "idle_workers_get_work"),
        (always(Wait(0.5)), "idle_workers_get_work"),
        (lambda queue, _, good, __: Wait(-1.0) if queue.waited < 1 else good, "waits_have_an_end"),
        (lambda queue, _, good, __: Wait(np.inf) if queue.waited < 1 else good, "waits_have_an_end"),
        (valued(lambda *_: np.nan), "values_are_numbers"),
        (valued(lambda _, cpu_left, __: 1.0 if cpu_left else np.inf), "values_are_numbers"),
        (valued(raises), "answers"),
        (by_chance, "repeats_itself"),
        (valued_by_chance, "repeats_itself"),
        (takes, "leaves_the_capacity_alone"),
        (raises, "answers"),
        (always(None), "answers"),
        (always(Candidates((Configuration(1, 1, 1),))), "answers"),  # type: ignore[arg-type]
    ],
)
def test_mistakes_are_found(answer: Answer, check: str) -> None:
    with pytest.raises(ConfiguratorError, match=f"configurator 'broken' fails check '{check}' in fairway"):
        check_configurator(Broken(answer))


@pytest.mark.parametrize(
    ("fault", "numbers"),
    [
        ({"placer": ""}, "placer is '', expected a name"),
        ({"placer": None}, "placer is None, expected a name"),
        ({"turns": "random"}, "turns is 'random', expected one of recheck, ring, slack"),
    ],
)
def test_a_configurator_says_how_it_runs(fault: dict[str, Any], numbers: str) -> None:
    with pytest.raises(ConfiguratorError, match=rf"fails check 'says_how_it_runs' in fairway.*: {re.escape(numbers)}"):
        check_configurator(Broken(**fault))


def test_what_is_not_broken_passes_and_every_kind_is_tried() -> None:
    asked: list[int] = []

    def counted(queue: Queue, _: Capacity, good: Any, __: float) -> Any:
        asked.append(queue.stage)
        return good

    check_configurator(Broken(counted), seeds=range(1))
    queues = sum(len(situation_of(kind, 0).queues) for kind in KINDS)
    assert len(asked) >= queues * (len(CHECKS) - 1)


def test_a_failure_says_how_to_see_it_again() -> None:
    with pytest.raises(ConfiguratorError) as caught:
        check_configurator(Broken(always(Candidates(()))))
    call = re.search(r"situation_of\('([^']*)', seed=(\d+)\)", str(caught.value))
    assert call is not None
    assert situation_of(call[1], int(call[2])).queues


@pytest.mark.parametrize("kind", list(KINDS))
def test_situations_repeat(kind: str) -> None:
    first, second = situation_of(kind, 3), situation_of(kind, 3)
    assert str(first.queues) == str(second.queues)
    assert first.capacity.free_cpu.tolist() == second.capacity.free_cpu.tolist()
    assert first.platform == second.platform
    assert [each.seconds.tolist() for each in first.application.profiles] == [
        each.seconds.tolist() for each in second.application.profiles
    ]
