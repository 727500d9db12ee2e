"""Squishy bin packing: how many accelerators a set of sessions needs, and which of them share one (Nexus, SOSP'19).

A session is a model that is asked for at a rate, with a time within which each request has to be done. A request may
just miss a batch and has to wait for the next, so that a session which has accelerators to itself runs in the largest
batch B with 2·t(B) <= L. What is left of its rate, ρ, has a share of one: a batch b every b/ρ seconds, its duty cycle,
with the largest b for which b/ρ + t(b) <= L. Shares are merged, the fullest first, where all their batches, shrunk to
what comes in the shorter of their duty cycles, fit into that: the bins are squishy, since a batch takes less time as it
shrinks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

_LITTLE = 1e-9


class ModelSession(NamedTuple):
    """A model (its number and bytes; -1: none) at so many requests per second, each to be done within `seconds`.

    `times` are those of batches by size, from the smallest on. `rounds` is how many batches its time has to hold.
    """

    rate: float
    seconds: float
    times: tuple[tuple[int, float], ...]
    model: int = -1
    bytes: float = 0.0
    rounds: int = 2

    def time_of(self, jobs: int) -> float:
        """How long so many jobs take at once: as long as the next larger batch that has a time."""
        return next((time for size, time in self.times if size >= jobs), math.inf)

    @property
    def largest(self) -> tuple[int, float]:
        """The largest batch, and its time, of which so many fit; the smallest where not even that does."""
        return max(
            (each for each in self.times if self.rounds * each[1] <= self.seconds + _LITTLE), default=self.times[0]
        )

    @property
    def most_rate(self) -> float:
        """Requests per second on an accelerator of its own."""
        batch, time = self.largest
        return batch / time if time else math.inf


@dataclass(frozen=True, slots=True)
class Bin:
    """An accelerator: its duty cycle in seconds, and in each of them a batch of each of these sessions, by number."""

    duty: float
    batches: dict[int, int]

    def occupancy(self, sessions: Sequence[ModelSession]) -> float:
        """The part of the time in which it is busy."""
        return sum(sessions[each].time_of(batch) for each, batch in self.batches.items()) / self.duty


def pack(sessions: Sequence[ModelSession], memory: float = math.inf) -> list[Bin]:
    """The accelerators that all sessions need together."""
    whole: list[Bin] = []
    shares: list[tuple[int, float, Bin]] = []
    for number, session in enumerate(sessions):
        batch, time = session.largest
        count = int(session.rate / session.most_rate + _LITTLE)
        whole += [Bin(time, {number: batch})] * count
        left = session.rate - count * session.most_rate
        if left > _LITTLE * max(session.rate, 1.0):
            shares.append((number, left, _share(number, session, left)))
    rates = {number: left for number, left, _ in shares}
    merged: list[Bin] = []
    for _, _, share in sorted(shares, key=lambda each: (-each[2].occupancy(sessions), each[0])):
        fits = [
            (both.occupancy(sessions), -place, both)
            for place, each in enumerate(merged)
            if (both := _merge(each, share, sessions, rates, memory)) is not None
        ]
        if fits:
            _, place, both = max(fits, key=lambda each: each[:2])
            merged[-place] = both
        else:
            merged.append(share)
    return whole + merged


def _share(number: int, session: ModelSession, rate: float) -> Bin:
    """An accelerator for what is left of a session, before others share it."""
    fits = [(size, time) for size, time in session.times if size / rate + time <= session.seconds + _LITTLE]
    if fits:
        size, time = max(fits)
        if size / rate >= time:
            return Bin(size / rate, {number: size})
        size, time = session.largest  # smaller batches are too slow for what is left: it has one to itself
        return Bin(time, {number: size})
    # Requests come so seldom that none can wait for another: one at a time, as often as its time allows.
    size, time = session.times[0]
    return Bin(max(session.seconds - time, time), {number: size})


def _merge(
    one: Bin, other: Bin, sessions: Sequence[ModelSession], rates: dict[int, float], memory: float
) -> Bin | None:
    """Both on one accelerator, None if they do not fit."""
    duty = min(one.duty, other.duty)
    batches = {}
    for number, batch in {**one.batches, **other.batches}.items():
        come = max(math.ceil(duty * rates[number] - _LITTLE), 1)
        batches[number] = min((size for size, _ in sessions[number].times if size >= come), default=batch)
    both = Bin(duty, batches)
    models = {sessions[number].model: sessions[number].bytes for number in batches if sessions[number].model >= 0}
    return both if both.occupancy(sessions) <= 1 + _LITTLE and sum(models.values()) <= memory else None
