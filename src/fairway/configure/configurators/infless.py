"""INFless (ASPLOS'22): each stage for itself; large batches if jobs come fast enough to fill them in half its time.

A stage may take its quota of the SLO, S. From the largest batch down, a configuration will do if

    t + fetch <= S (a batch of one) or S / 2 (more)        and        jobs per second >= batch / (S - t)

with the fetch of a local input, at least two and at most `batch` CPUs and at most half a GPU. Of those with the largest
batch for which there is one, the pair of configuration and invoker with the largest

    (batch / t) / (value of what the invoker has left / value of the whole invoker + 0.001)

runs, values at prices. A batch waits until it is full or the oldest job has waited S - t.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from fairway.configure.application import Application
from fairway.configure.arrays import FloatArray, IntArray
from fairway.configure.configuration import Configuration
from fairway.configure.configurator import TurnOrder
from fairway.configure.fetches import Fetches
from fairway.configure.invokers import NOWHERE, Invokers
from fairway.configure.kernels import TOLERANCE
from fairway.configure.platform import Platform
from fairway.configure.queues import Decision, Dispatch, NoFit, Queue, Wait
from fairway.configure.shares import Shares
from fairway.configure.tables import Tables

_LEAST_LEFT = 0.001


@dataclass(frozen=True, slots=True)
class Infless:
    """Per stage, the pair of configuration and invoker that gets most done for what it leaves unused.

    With `efficiency`, the jobs per second are divided by the price of the configuration.
    """

    name: ClassVar[str] = "infless"
    efficiency: bool = False

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
                for size in batches[::-1].tolist()
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

    def decide(self, queue: Queue, invokers: Invokers) -> Decision:
        """Start the best pair of configuration and invoker, or wait until its batch is full."""
        stage = queue.stage
        profile = self.application.profiles[stage]
        limit = self.shares.quota(stage, self.application.slo_seconds)
        numbers = self._admissible(queue, self.fetches.planned(stage), limit)
        if not len(numbers):
            return self._any(queue, invokers)
        size = int(profile.batch[numbers[0]])
        slowest = float(profile.seconds[numbers].max())
        if queue.length < size and queue.waited < limit - slowest:
            return Wait(limit - slowest - queue.waited)
        number, invoker = self._best(profile.batch[numbers] / profile.seconds[numbers], numbers, stage, invokers)
        if invoker == NOWHERE:
            return NoFit(tuple(profile.configuration(each) for each in numbers.tolist()))
        return Dispatch(profile.configuration(number), min(size, queue.length), invoker)

    def _best(self, speed: FloatArray, numbers: IntArray, stage: int, invokers: Invokers) -> tuple[int, int]:
        profile, prices = self.application.profiles[stage], self.tables.platform.prices
        cpu, gpu = profile.cpu[numbers, None], profile.gpu[numbers, None]
        if self.rule.efficiency:
            speed = speed / (cpu[:, 0] * prices.cpu + gpu[:, 0] * prices.gpu)
        fits = (invokers.free_cpu >= cpu) & (invokers.free_gpu >= gpu)
        if not fits.any():
            return -1, NOWHERE
        left = (invokers.free_cpu - cpu) * prices.cpu + (invokers.free_gpu - gpu) * prices.gpu
        whole = prices.rate(invokers.cpu, invokers.gpu)
        score = np.where(fits, speed[:, None] / (left / whole + _LEAST_LEFT), -np.inf)
        best, invoker = divmod(int(score.argmax()), len(invokers))
        return int(numbers[best]), invoker

    def _any(self, queue: Queue, invokers: Invokers) -> Decision:
        """No configuration will do: one job on two CPUs and half a GPU, where it leaves least."""
        profile = self.application.profiles[queue.stage]
        wanted = Configuration(1, 2, self.tables.platform.gpu // 2)
        rows = np.flatnonzero((profile.batch == 1) & (profile.cpu == wanted.cpu) & (profile.gpu == wanted.gpu))
        if not len(rows):
            rows = np.array([np.lexsort((profile.seconds, profile.batch))[0]])
        number, invoker = self._best(1 / profile.seconds[rows], rows, queue.stage, invokers)
        if invoker == NOWHERE:
            return NoFit((profile.configuration(int(rows[0])),))
        return Dispatch(profile.configuration(number), 1, invoker, "best-effort")
