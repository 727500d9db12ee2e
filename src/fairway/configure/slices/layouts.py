"""All ways to cut a GPU: every set of instances that lie in places of their own.

A layout is a set of instances with their places. What a load needs is only how many there are of each profile, its
counts; several layouts may have the same. Leaving out an instance of a legal layout leaves a legal one, on which the
choice of a layout relies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from fairway.configure.slices.mig import MigDevice, MigProfile
from fairway.errors import InputError


@dataclass(frozen=True, slots=True, order=True)
class MigInstance:
    """An instance in its place: `start` is its first memory slice."""

    start: int
    profile: str


Layout = tuple[MigInstance, ...]
"""Instances in the order of their places."""

Counts = tuple[int, ...]
"""How many instances there are of each profile, in the order of the device's profiles."""


@cache
def all_layouts(device: MigDevice) -> tuple[Layout, ...]:
    """Every legal layout, the empty one first; smaller starts come before larger ones."""
    found: list[Layout] = []

    def extend(layout: Layout, at: int) -> None:
        found.append(layout)
        used = sum(device.profile(one.profile).compute for one in layout)
        for start in range(at, device.memory):
            for profile in device.profiles:
                if start in profile.starts and used + profile.compute <= device.compute:
                    extend((*layout, MigInstance(start, profile.name)), start + profile.memory)

    extend((), 0)
    return tuple(found)


@cache
def largest_layouts(device: MigDevice) -> tuple[Layout, ...]:
    """The layouts to which no instance can be added: those that are not another one without an instance."""
    layouts = all_layouts(device)
    smaller = {tuple(one for one in layout if one != left_out) for layout in layouts for left_out in layout}
    return tuple(layout for layout in layouts if layout not in smaller)


@cache
def layouts_by_counts(device: MigDevice) -> dict[Counts, tuple[Layout, ...]]:
    """The layouts that have so many instances of each profile."""
    found: dict[Counts, list[Layout]] = {}
    for layout in all_layouts(device):
        found.setdefault(counts_of(device, layout), []).append(layout)
    return {counts: tuple(layouts) for counts, layouts in found.items()}


def counts_of(device: MigDevice, layout: Iterable[MigInstance]) -> Counts:
    """How many instances of each profile a layout has."""
    names = [one.profile for one in layout]
    return tuple(names.count(profile.name) for profile in device.profiles)


def refuse_illegal(device: MigDevice, layout: Sequence[MigInstance]) -> None:
    """Refuse a layout that the device cannot have, by an `InputError` that says which instance is wrong."""
    taken: dict[int, MigInstance] = {}
    used = 0
    for one in layout:
        profile = device.profile(one.profile)
        if one.start not in profile.starts:
            places = ", ".join(map(str, profile.starts))
            raise InputError(
                f"layout: {one.profile} at {one.start} given, but on a {device.name} it begins at {places}"
            )
        for place in _places(profile, one.start):
            if place in taken:
                other = taken[place]
                raise InputError(
                    f"layout: {one.profile} at {one.start} and {other.profile} at {other.start} both need slice {place}"
                )
            taken[place] = one
        used += profile.compute
    if used > device.compute:
        raise InputError(f"layout: {used} compute slices needed, but a {device.name} has {device.compute}")


def _places(profile: MigProfile, start: int) -> range:
    return range(start, start + profile.memory)
