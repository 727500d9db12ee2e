"""Runs many histories, one seed after the other, until enough of them, enough faults or enough time has passed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from itertools import count
from random import Random

from fairway.errors import InputError
from fairway.simtest.component import Component, History
from fairway.simtest.plan import Plan
from fairway.simtest.shrinking import shrunk

COMPONENTS = {
    "training": "fairway.simtest.training.component:TRAINING",
    "serving": "fairway.simtest.serving.component:SERVING",
}


@dataclass(slots=True)
class Tally:
    """What came of many histories; `broken` are the plans that broke a promise, with what they came to."""

    histories: int = 0
    events: int = 0
    seconds: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    broken: list[tuple[Plan, History]] = field(default_factory=list)

    def add(self, plan: Plan, history: History) -> None:
        """One more."""
        self.histories += 1
        self.events += history.events
        self.faults.update(history.faults)
        if history.violations:
            self.broken.append((plan, history))

    def merge(self, other: Tally) -> None:
        """Those of another process."""
        self.histories += other.histories
        self.events += other.events
        self.seconds = max(self.seconds, other.seconds)
        self.faults.update(other.faults)
        self.broken += other.broken


def component_named(name: str) -> Component:
    """A component, imported when it is asked for."""
    if name not in COMPONENTS:
        raise InputError(f"component: '{name}' given, expected {' or '.join(COMPONENTS)}")
    module, _, attribute = COMPONENTS[name].partition(":")
    try:
        found: Component = getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        raise InputError(f"component: '{name}' cannot be simulated here: {error}") from None
    return found


def plan_of(component: Component, generator: str, seed: int) -> Plan:
    """The plan that a generator draws for a seed."""
    if generator not in component.generators:
        raise InputError(f"generator: '{generator}' given, expected {' or '.join(component.generators)}")
    return component.generators[generator](seed, Random(f"{component.name} {generator} {seed}"))


def run_many(
    component: Component,
    generators: tuple[str, ...],
    seeds: Iterator[int] | None = None,
    *,
    histories: int | None = None,
    faults: int | None = None,
    seconds: float | None = None,
    seen: Callable[[Tally], None] = lambda _: None,
) -> Tally:
    """Run histories, the generators in turn, up to the first that breaks a promise, or until there are enough."""
    tally, began = Tally(), time.monotonic()
    for seed in seeds or count():
        for generator in generators:
            plan = plan_of(component, generator, seed)
            tally.add(plan, component.run(plan))
            tally.seconds = time.monotonic() - began
            seen(tally)
            if (
                tally.broken
                or (histories is not None and tally.histories >= histories)
                or (faults is not None and tally.faults.total() >= faults)
                or (seconds is not None and tally.seconds >= seconds)
            ):
                return tally
    return tally


def smallest(component: Component, plan: Plan) -> Plan:
    """A smaller plan that still breaks a promise."""
    return shrunk(plan, lambda smaller: bool(component.run(smaller).violations))
