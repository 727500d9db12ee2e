"""How long a stage takes in each configuration: measured, or by a formula.

A measured profile is a table. A synthetic one follows, with T the time of one job on one CPU and one slice,

    t(b, c, g) = T · ( a · b / min(c, m·b)^0.9  +  (1 - a) · (φ + (1 - φ) · b^β / g^γ) )

a: part of the time on CPUs, of which at most m per job are of use; φ: part of the rest that neither grows with the
batch nor shrinks with the slice; β < 1: batches run faster than their jobs one by one; γ < 1: slices help less and
less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from fairway.configure.arrays import BoolArray, FloatArray, IntArray
from fairway.configure.configuration import Configuration, ConfigurationSpace
from fairway.errors import InputError

_CPU_EXPONENT = 0.9


@dataclass(frozen=True, eq=False)
class Profile:
    """The seconds of each configuration, as arrays side by side in the order given.

    `formula` gives the time of sizes that are not in the table, where one is known.
    """

    batch: IntArray
    cpu: IntArray
    gpu: IntArray
    seconds: FloatArray
    formula: Callable[[int, int, int], float] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not len(self.batch):
            raise InputError("configs: none given, expected at least one")
        for number, row in enumerate(zip(*self._columns(), strict=True)):
            batch, cpu, gpu, seconds = row
            if batch < 1:
                raise InputError(f"configs[{number}].batch: {batch} given, expected a whole number >= 1")
            if min(cpu, gpu) < 0 or cpu + gpu == 0:
                raise InputError(f"configs[{number}]: {cpu} CPUs and {gpu} GPU slices given, expected some of either")
            if not 0 <= seconds < float("inf"):
                raise InputError(f"configs[{number}].seconds: {seconds} given, expected a number >= 0")
        if len(self._numbers) < len(self.batch):
            seen: dict[Configuration, int] = {}
            for number, configuration in enumerate(self.configurations()):
                if configuration in seen:
                    raise InputError(
                        f"configs[{number}]: the same batch, cpu and gpu as configs[{seen[configuration]}]; keep one"
                    )
                seen[configuration] = number

    @classmethod
    def of(cls, seconds: Mapping[Configuration, float] | Iterable[tuple[Configuration, float]]) -> Profile:
        """A measured profile."""
        rows = list(seconds.items() if isinstance(seconds, Mapping) else seconds)
        sizes = np.asarray([configuration for configuration, _ in rows], np.int64).reshape(len(rows), 3)
        batch, cpu, gpu = (sizes[:, axis].copy() for axis in range(3))
        return cls(batch, cpu, gpu, np.asarray([time for _, time in rows], np.float64))

    def _columns(self) -> list[list[float]]:
        return [self.batch.tolist(), self.cpu.tolist(), self.gpu.tolist(), self.seconds.tolist()]

    @property
    def _numbers(self) -> dict[Configuration, int]:
        return {configuration: number for number, configuration in enumerate(self.configurations())}

    def __len__(self) -> int:
        return len(self.batch)

    @cached_property
    def _listed(self) -> tuple[Configuration, ...]:
        return tuple(map(Configuration, self.batch.tolist(), self.cpu.tolist(), self.gpu.tolist()))

    def configurations(self) -> list[Configuration]:
        """All configurations, in order."""
        return list(self._listed)

    def configuration(self, number: int) -> Configuration:
        """The configuration at this position."""
        return self._listed[number]

    def seconds_of(self, batch: int, cpu: int, gpu: int) -> float:
        """The time of these sizes: by the formula, or that of the next larger batch on the same CPUs and slices.

        Infinite if the table has none.
        """
        if self.formula is not None:
            return self.formula(batch, cpu, gpu)
        rows = np.flatnonzero((self.cpu == cpu) & (self.gpu == gpu) & (self.batch >= batch))
        return float(self.seconds[rows[np.argmin(self.batch[rows])]]) if len(rows) else float("inf")

    def fastest_by_batch(self) -> dict[int, float]:
        """By batch size, the seconds of its fastest configuration."""
        return {batch: float(self.seconds[self.batch == batch].min()) for batch in np.unique(self.batch).tolist()}

    def only(self, kept: BoolArray) -> Profile:
        """The configurations of the mask alone."""
        return Profile(self.batch[kept], self.cpu[kept], self.gpu[kept], self.seconds[kept], self.formula)


@dataclass(frozen=True, slots=True)
class SyntheticFunction:
    """The parameters of the formula: T, a, φ, β, γ and m."""

    seconds: float
    cpu_part: float = 0.25
    fixed_part: float = 0.30
    batch_exponent: float = 0.85
    gpu_exponent: float = 0.80
    most_cpus: float = 4.0

    def __call__(self, batch: int, cpu: int, gpu: int) -> float:
        """The time of one size."""
        return float(self.times(np.int64(batch), np.int64(cpu), np.int64(gpu)))

    def times(
        self, batch: IntArray | np.int64, cpu: IntArray | np.int64, gpu: IntArray | np.int64
    ) -> FloatArray | np.float64:
        """The times of many sizes."""
        on_cpus = self.cpu_part * batch / np.minimum(cpu, self.most_cpus * batch) ** _CPU_EXPONENT
        grows = (1 - self.fixed_part) * np.power(batch, self.batch_exponent) / np.power(gpu, self.gpu_exponent)
        times: FloatArray | np.float64 = self.seconds * (on_cpus + (1 - self.cpu_part) * (self.fixed_part + grows))
        return times

    def profile(self, space: ConfigurationSpace) -> Profile:
        """The times of every configuration of the space, which must give each some CPUs and slices."""
        batch, cpu, gpu = space.arrays()
        if not (cpu.all() and gpu.all()):
            raise InputError("the formula has no time without CPUs or GPU slices; take size 0 out of the space")
        return Profile(batch, cpu, gpu, np.asarray(self.times(batch, cpu, gpu), np.float64), self)
