"""The conformance kit: every configurator of ours passes, and each mistake is found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest

from fairway import (
    CONFIGURATORS,
    Configuration,
    ConfiguratorError,
    Dispatch,
    Invokers,
    NoFit,
    Queue,
    Wait,
    check_configurator,
    configurator_of,
)


@pytest.mark.parametrize(
    "name",
    [
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
    ],
)
def test_ours_pass(name: str) -> None:
    check_configurator(configurator_of(name))


def test_aquatope_passes() -> None:
    pytest.importorskip("sklearn", reason="the rival Aquatope needs the extra `aquatope`")
    check_configurator(configurator_of("aquatope:bootstrap=6,rounds=1"), seeds=range(1))


@dataclass
class Broken:
    name: ClassVar[str] = "broken"
    turns: ClassVar[str] = "ring"
    answer: Any = None
    good: Any = field(default_factory=lambda: configurator_of("fast-gshare"))

    def prepare(self, application: Any, platform: Any, draws: np.random.Generator) -> Any:
        prepared = self.good.prepare(application, platform, draws)
        chance = iter(np.random.default_rng().random(100_000))

        class Prepared:
            def decide(_, queue: Queue, invokers: Invokers) -> Any:  # noqa: N805
                return self.answer(queue, invokers, prepared.decide(queue, invokers), next(chance))

        return Prepared()


def too_many(queue: Queue, invokers: Invokers, good: Any, chance: float) -> Any:
    return good._replace(jobs=queue.length + 1) if isinstance(good, Dispatch) else good


def takes(queue: Queue, invokers: Invokers, good: Any, chance: float) -> Any:
    invokers.free_cpu[0] = 0
    return good


def raises(queue: Queue, invokers: Invokers, good: Any, chance: float) -> Any:
    raise ValueError("no")


@pytest.mark.parametrize(
    ("answer", "check"),
    [
        (too_many, "what_starts_fits"),
        (lambda *_: Dispatch(Configuration(1, 1, 5), 1, 0), "what_starts_fits"),
        (lambda *_: Dispatch(Configuration(1, 1, 1), 1, 99), "what_starts_fits"),
        (lambda *_: Dispatch(Configuration(1, 1, 1), 1, 0), "what_starts_fits"),
        (lambda *_: NoFit(), "idle_invokers_get_work"),
        (lambda queue, _, good, __: Wait(-1.0) if queue.waited < 1 else good, "waits_have_an_end"),
        (lambda *_: Wait(0.5), "idle_invokers_get_work"),
        (lambda _, on, good, chance: good if chance < 0.5 or on.used()[1] < 0.1 else NoFit(), "repeats_itself"),
        (takes, "leaves_the_invokers_alone"),
        (raises, "answers"),
        (lambda *_: None, "answers"),
    ],
)
def test_mistakes_are_found(answer: Any, check: str) -> None:
    with pytest.raises(ConfiguratorError, match=f"configurator 'broken' fails check '{check}' in fairway"):
        check_configurator(Broken(answer))
