"""One configuration decision as a value: an application, the queue of its first stage, and the time that is left."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from fairway.configure.application import Application
from fairway.configure.budgets.shares import Shares
from fairway.configure.platform import BARE, Platform
from fairway.configure.tables import Tables
from fairway.errors import InputError


@dataclass(frozen=True, eq=False)
class ConfigurationProblem:
    """So many jobs wait at the entry of an application, the oldest of which has the whole SLO left.

    `k` is the number of answers wanted, each with another configuration of the first stage.
    """

    application: Application
    queue_length: int = 1
    k: int = 5
    group_size: int = 3
    platform: Platform = BARE

    def __post_init__(self) -> None:
        for name, value in (("queue_length", self.queue_length), ("k", self.k), ("group_size", self.group_size)):
            if value < 1:
                raise InputError(f"{name}: {value} given, expected a whole number >= 1")
        if not 0 <= self.application.slo_seconds < float("inf"):
            raise InputError(f"slo_seconds: {self.application.slo_seconds} given, expected a number >= 0")
        for stage, profile in enumerate(self.application.profiles):
            where = f"stages[{stage}] ('{self.application.workflow.stages[stage].name}').configs"
            for number, slices in enumerate(profile.gpu.tolist()):
                if slices > self.platform.gpu:
                    raise InputError(
                        f"{where}[{number}].gpu: {slices} given, but a GPU has {self.platform.gpu} slices; "
                        "use fewer, or set gpu_slices"
                    )
            if stage in self.application.entries and profile.batch.min() > self.queue_length:
                raise InputError(
                    f"{where}: the smallest batch is {profile.batch.min()}, but queue_length is {self.queue_length}; "
                    "add a smaller one"
                )

    @cached_property
    def tables(self) -> Tables:
        """What does not depend on the queue."""
        return Tables(self.application, self.platform)

    @cached_property
    def shares(self) -> Shares:
        """How the SLO is spread over the stages."""
        return Shares.of(self.application, self.group_size)

    @property
    def budgets(self) -> dict[str, float]:
        """What each stage may take of the SLO, in seconds, by its name."""
        stages = self.application.workflow.stages
        slo = self.application.slo_seconds
        return {stage.name: self.shares.quota(number, slo) for number, stage in enumerate(stages)}

    @property
    def fastest_seconds(self) -> float:
        """The least time that a request can take: no SLO below it can be met."""
        entries = self.application.entries
        return max(
            self.tables.fastest_rests[entry]
            + float(self.tables.first_layer(entry, (), self.queue_length).run_seconds.min())
            for entry in entries
        )
