"""Loads for a GPU that is cut, by chance, and the cheapest layout for one by trying everything."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairway.configure.slices.choice import ModelLoad
from fairway.configure.slices.layouts import largest_layouts
from fairway.configure.slices.mig import MigDevice


def random_load(device: MigDevice, generator: np.random.Generator) -> list[ModelLoad]:
    """One to four models; larger slices are faster, by less than they are larger, and some are too small to run on."""
    load = []
    for number in range(int(generator.integers(1, 5))):
        alone, gain = generator.uniform(0.02, 0.2), generator.uniform(0.3, 1.0)
        smallest = int(generator.integers(0, 3))
        seconds = {
            profile.name: float(alone / profile.compute**gain * generator.uniform(0.9, 1.1))
            for profile in device.profiles[min(smallest, len(device.profiles) - 1) :]
        }
        rate = float(generator.uniform(0.2, 1.8) / alone)
        limit = float(generator.choice([np.inf, alone * generator.uniform(0.3, 1.2)]))
        load.append(ModelLoad(f"m{number}", rate, seconds, limit))
    return load


def cheapest_by_brute_force(device: MigDevice, load: Sequence[ModelLoad]) -> float:
    """The fewest compute slices with which every model gets its rate: each way to deal out each full layout.

    A model's instances are tried one after the other: every instance goes to one of the models or to none. Layouts with
    the same instances elsewhere are tried once. Infinite where nothing holds the load.
    """
    best = float("inf")
    for names in {tuple(sorted(one.profile for one in layout)) for layout in largest_layouts(device)}:
        best = min(best, _dealt(device, load, names, [model.rate for model in load], 0.0, best))
    return best


def _dealt(
    device: MigDevice, load: Sequence[ModelLoad], names: Sequence[str], missing: list[float], spent: float, best: float
) -> float:
    if spent >= best:
        return best
    if all(rate <= 1e-9 * model.rate for rate, model in zip(missing, load, strict=True)):
        return spent
    if not names:
        return best
    first, rest = names[0], names[1:]
    best = _dealt(device, load, rest, missing, spent, best)
    for number, model in enumerate(load):
        seconds = model.seconds.get(first, float("inf"))
        if seconds <= model.limit_seconds and seconds < float("inf") and missing[number] > 1e-9 * model.rate:
            left = [*missing[:number], missing[number] - 1 / seconds, *missing[number + 1 :]]
            best = _dealt(device, load, rest, left, spent + device.profile(first).compute, best)
    return best
