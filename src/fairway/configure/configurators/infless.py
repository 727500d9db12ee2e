"""INFless (ASPLOS'22): each stage for itself; large batches if jobs come fast enough to fill them in half its time.

A stage may take its quota of the SLO, S. From the largest batch down, a configuration will do if

    t + fetch <= S (a batch of one) or S / 2 (more)        and        jobs per second >= batch / (S - t)

with the fetch of a local input, at least two and at most `batch` CPUs and at most half a GPU. Of those with the largest
batch for which there is one, the pair of configuration and worker with the largest

    (batch / t) / (value of what the worker has left / value of the whole worker + 0.001)

runs, values at prices. A batch waits until it is full or the oldest job has waited S - t.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from fairway.configure.application import Application
from fairway.configure.arrays import FloatArray, IntArray
from fairway.configure.budgets.shares import Shares
from fairway.configure.capacity import Capacity
from fairway.configure.configuration import Configuration
from fairway.configure.configurator import TurnOrder
from fairway.configure.fetches import Fetches
from fairway.configure.platform import Platform
from fairway.configure.queues import Candidates, Choice, Decision, Kind, Queue, Wait
from fairway.configure.search.kernels import TOLERANCE
from fairway.configure.tables import Tables

_LEAST_LEFT = 0.001


@dataclass(frozen=True, slots=True)
class Infless:
    """Per stage, the pair of configuration and worker that gets most done for what it leaves unused.

    With `efficiency`, the jobs per second are divided by the price of the configuration.
    """

    name: ClassVar[str] = "infless"
    efficiency: bool = False

    @property
    def placer(self) -> str:
        """Where a batch leaves the least unused, at prices."""
        return "tightest"

    @property
    def turns(self) -> TurnOrder:
        """Around all queues."""
        return "ring"

    def prepare(
        self,
        application: Application,
        platform: Platform,
        draws: np.random.Generator,  # noqa: ARG002
    ) -> InflessQueues:
        """The tables and quotas of an application."""
        application = application.within(platform.cpu, platform.gpu)
        return InflessQueues(
            self,
            application,
            Tables(application, platform),
            Shares.of(application, 1),
            Fetches.of(application, platform),
        )


@dataclass(frozen=True, eq=False)
class InflessQueues:
    """Decides for the queues of one application."""

    rule: Infless
    application: Application
    tables: Tables
    shares: Shares
    fetches: Fetches

    @cached_property
    def _usable(self) -> tuple[tuple[IntArray, ...], ...]:
        """By stage, the configurations to consider of each batch size, the largest first."""
        half = self.tables.platform.gpu // 2
        return tuple(
            tuple(
                np.flatnonzero(
                    (profile.batch == size) & (profile.gpu <= half) & (profile.cpu >= 2) & (profile.cpu <= max(2, size))
                )
                for size in batches[::-1]
            )
            for profile, batches in zip(self.application.profiles, self.tables.batches, strict=True)
        )

    def _admissible(self, queue: Queue, added: float, limit: float) -> IntArray:
        """The configurations of the largest batch that will do."""
        profile = self.application.profiles[queue.stage]
        for numbers in self._usable[queue.stage]:
            if not len(numbers):
                continue
            size = int(profile.batch[numbers[0]])
            seconds = profile.seconds[numbers]
            fits = seconds + added <= (limit if size == 1 else limit / 2) + TOLERANCE
            if size > 1:
                fits &= queue.rate * np.maximum(limit - seconds, 0.0) >= size
            if fits.any():
                kept: IntArray = numbers[fits]
                return kept
        return np.empty(0, np.int64)

    def decide(self, queue: Queue, capacity: Capacity) -> Decision:
        """Start the best pair of configuration and worker, or wait until its batch is full."""
        stage = queue.stage
        profile = self.application.profiles[stage]
        limit = self.shares.quota(stage, self.application.slo_seconds)
        numbers = self._admissible(queue, self.fetches.planned(stage), limit)
        if not len(numbers):
            return self._any(queue, capacity)
        size = int(profile.batch[numbers[0]])
        slowest = float(profile.seconds[numbers].max())
        if queue.length < size and queue.waited < limit - slowest:
            return Wait(limit - slowest - queue.waited)
        return self._best(profile.batch[numbers] / profile.seconds[numbers], numbers, stage, capacity)

    def _best(
        self, speed: FloatArray, numbers: IntArray, stage: int, capacity: Capacity, kind: Kind = "planned"
    ) -> Candidates:
        """The configurations, each worth its speed for what it leaves unused on the worker that it gets."""
        profile, prices = self.application.profiles[stage], self.tables.platform.prices
        if self.rule.efficiency:
            rate = profile.cpu[numbers] * prices.cpu + profile.gpu[numbers] * prices.gpu
            speed = speed / np.where(rate > 0, rate, 1.0)
        # Where nothing has a price, what is left is worth nothing anywhere.
        whole, speeds = prices.rate(capacity.cpu, capacity.gpu) or 1.0, speed.tolist()

        def value(position: int, cpu_left: int, gpu_left: int) -> float:
            left = cpu_left * prices.cpu + gpu_left * prices.gpu
            return float(speeds[position] / (left / whole + _LEAST_LEFT))

        return Candidates(tuple(Choice(profile.configuration(each), kind) for each in numbers.tolist()), value)

    def _any(self, queue: Queue, capacity: Capacity) -> Decision:
        """No configuration will do: one job on two CPUs and half a GPU, where it leaves least."""
        profile = self.application.profiles[queue.stage]
        wanted = Configuration(1, 2, self.tables.platform.gpu // 2)
        rows = np.flatnonzero((profile.batch == 1) & (profile.cpu == wanted.cpu) & (profile.gpu == wanted.gpu))
        if not len(rows):
            rows = np.array([np.lexsort((profile.seconds, profile.batch))[0]])
        return self._best(1 / profile.seconds[rows], rows, queue.stage, capacity, "best-effort")
