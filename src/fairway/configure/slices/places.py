"""Where on a GPU the next instance of MIG goes: the place that leaves most room for others.

What is taken of a GPU is a state: which of its memory slices are, and how many compute slices. An instance of so many
compute slices is of the smallest profile that has them. Of the places where it may lie, the one is best that leaves
room for the largest instances, and then for most of each size: so a small one does not lie where it keeps a large one
from ever fitting in. Instances are made and removed as tasks begin and end; one that a task has does not move.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

from fairway.configure.slices.mig import MigDevice, MigProfile
from fairway.errors import InputError

State = int
"""The memory slices that are taken, as bits, and above them the number of compute slices."""

EMPTY: State = 0


@dataclass(frozen=True)
class Places:
    """The places of a device."""

    device: MigDevice

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The compute slices that an instance can have, the smallest first."""
        return tuple(self._profiles)

    @cached_property
    def _profiles(self) -> dict[int, MigProfile]:
        smallest: dict[int, MigProfile] = {}
        for profile in sorted(self.device.profiles, key=lambda one: (one.compute, one.memory)):
            smallest.setdefault(profile.compute, profile)
        return smallest

    def take(self, state: State, size: int) -> int | None:
        """The best place for an instance of this size; None if there is none."""
        return _best(self, state, size)

    def with_instance(self, state: State, size: int, start: int) -> State:
        """The state with an instance more."""
        return state + self._of(size, start)

    def without_instance(self, state: State, size: int, start: int) -> State:
        """The state with an instance less."""
        return state - self._of(size, start)

    def largest(self, state: State) -> int:
        """The size of the largest instance that fits in; all smaller ones fit, too. 0 if none does."""
        return next((size for size in reversed(self.sizes) if self.starts(state, size)), 0)

    def starts(self, state: State, size: int) -> tuple[int, ...]:
        """Where an instance of this size could lie."""
        profile = self._profiles.get(size)
        if profile is None:
            raise InputError(f"an instance of {size} slices given, but a {self.device.name} has {self.sizes}")
        if (state >> self.device.memory) + size > self.device.compute:
            return ()
        return tuple(start for start in profile.starts if not state & self._bits(profile, start))

    def _of(self, size: int, start: int) -> State:
        return self._bits(self._profiles[size], start) + (size << self.device.memory)

    @staticmethod
    def _bits(profile: MigProfile, start: int) -> int:
        return ((1 << profile.memory) - 1) << start

    def room(self, state: State) -> tuple[int, ...]:
        """How many instances of each size would fit in if there were no others, the largest size first."""
        left = self.device.compute - (state >> self.device.memory)
        return tuple(min(len(self.starts(state, size)), left // size) for size in reversed(self.sizes))


@cache
def _best(places: Places, state: State, size: int) -> int | None:
    starts = places.starts(state, size)
    return max(starts, key=lambda start: (places.room(places.with_instance(state, size, start)), -start), default=None)
