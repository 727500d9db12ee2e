"""ESG: the cheapest path that fits the time really left, searched again before every stage (arXiv 2404.16812).

The time left to the oldest job, less a margin, is shared out by `shares`; the group of the stage is searched, by
default by looking up its front, which answers as ESG_1Q does; the k best first configurations are tried in turn where
floor 3 finds room. If nothing is in time, the fastest are tried. Flags change or take away parts of it, for
comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from fairway.configure.application import Application
from fairway.configure.arrays import BoolArray
from fairway.configure.budgets.margins import margin_of_noise, spread_of
from fairway.configure.budgets.shares import Shares
from fairway.configure.capacity import Capacity
from fairway.configure.configuration import MIG_SLICES, SMALLEST, Configuration
from fairway.configure.configurator import TurnOrder
from fairway.configure.fetches import Fetches
from fairway.configure.platform import Platform
from fairway.configure.profile import Profile
from fairway.configure.queues import Candidates, Choice, Decision, Queue
from fairway.configure.search.esg_search import Form, search_group
from fairway.configure.search.fallback import cheapest_configurations, fastest_configurations, is_lost
from fairway.configure.search.front import first_configurations
from fairway.configure.search.rollout import planned_ahead
from fairway.configure.tables import Tables
from fairway.errors import InputError
from fairway.made import made

SEARCHES = ("front", "layered", "a-star")


@dataclass(frozen=True, slots=True)
class Esg:
    """Search the cheapest path through the rest of the group before every stage, within the time really left.

    `margin` is the part of that time to keep back, `noise_margin` keeps back what the noise of the platform asks for.
    `search` is `front`, `layered` or `a-star`: the same answers. After `forced_after` failures in a row, the smallest
    configuration is tried (0: never). `shed` gives requests that are lost the cheapest configuration, not the fastest.
    `same` plans no larger batches for later stages than for this one. `fixed_quota` keeps to the quotas of the SLO
    rather than sharing out what is left. `mig_legal` uses slices that exist on hardware. Without re-planning
    (`no_replan`), the plan made at arrival holds.
    """

    name: ClassVar[str] = "esg"
    margin: float = 0.0
    k: int = 5
    group_size: int = 3
    forced_after: int = 3
    search: str = "front"
    noise_margin: bool = False
    shed: bool = False
    same: bool = False
    fixed_quota: bool = False
    no_batching: bool = False
    no_gpu_sharing: bool = False
    no_replan: bool = False
    no_locality: bool = False
    mig_legal: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.margin < 1:
            raise InputError(f"esg: margin: {self.margin:g} given, expected a number from 0 to less than 1")
        if self.k < 1 or self.group_size < 1:
            name, value = ("k", self.k) if self.k < 1 else ("group-size", self.group_size)
            raise InputError(f"esg: {name}: {value} given, expected a whole number >= 1")
        if self.search not in SEARCHES:
            raise InputError(f"esg: search: '{self.search}' given, expected one of {', '.join(SEARCHES)}")

    @property
    def placer(self) -> str:
        """ESG_Dispatch: near the data; without locality, where it fits best."""
        return "best-fit" if self.no_locality else "near-data"

    @property
    def turns(self) -> TurnOrder:
        """Queues for which nothing fitted are asked again first."""
        return "recheck"

    def allowed(self, profile: Profile, platform: Platform) -> BoolArray:
        """The configurations that the flags leave."""
        kept = np.ones(len(profile), np.bool_)
        if self.no_batching:
            kept &= profile.batch == 1
        if self.no_gpu_sharing:
            kept &= profile.gpu == platform.gpu
        if self.mig_legal:
            kept &= np.isin(profile.gpu, (0, *MIG_SLICES))
        return kept

    def prepare(self, application: Application, platform: Platform, draws: np.random.Generator) -> EsgQueues:  # noqa: ARG002
        """The tables and shares of an application."""
        application = application.within(platform.cpu, platform.gpu)
        tables = Tables(application, platform, lambda profile: self.allowed(profile, platform), self.same)
        for stage, mask in zip(application.workflow.stages, tables.masks, strict=True):
            if not mask.any():
                raise InputError(
                    f"esg: stage '{stage.name}' of '{application.name}' has no configuration that may be used"
                )
        shares = Shares.of(application, self.group_size)
        return EsgQueues(self, application, tables, shares, Fetches.of(application, platform))


@dataclass(frozen=True, eq=False)
class EsgQueues:
    """Decides for the queues of one application."""

    rule: Esg
    application: Application
    tables: Tables
    shares: Shares
    fetches: Fetches

    @cached_property
    def _spreads(self) -> tuple[float, ...]:
        return tuple(spread_of(self.shares, stage) for stage in range(len(self.application)))

    def margin(self, stage: int, noise: float | None = None) -> float:
        """The part of the time left at a stage to keep back."""
        if not self.rule.noise_margin:
            return self.rule.margin
        measured = self.tables.platform.noise if noise is None else noise
        return max(self.rule.margin, margin_of_noise(self._spreads[stage], measured))

    @cached_property
    def _plan(self) -> dict[int, Configuration]:
        slo = self.application.slo_seconds * (1 - self.margin(self.application.entries[0]))
        return planned_ahead(self.tables, self.shares, slo, 1)[0]

    @cached_property
    def _smallest(self) -> tuple[Configuration, ...]:
        return tuple(
            SMALLEST
            if SMALLEST in profile.configurations()
            else min(profile.only(mask).configurations(), key=lambda each: (each.batch, each.gpu, each.cpu))
            for profile, mask in zip(self.application.profiles, self.tables.masks, strict=True)
        )

    def budget(self, queue: Queue) -> float:
        """The time that the rest of the group may take."""
        stage, margin = queue.stage, self.margin(queue.stage, queue.noise)
        if self.rule.fixed_quota:
            return self.shares.group_quota(stage, self.application.slo_seconds) * (1 - margin) - queue.in_group
        return queue.seconds_left * (1 - margin) * self.shares.share(stage)

    def choices(self, queue: Queue, capacity: Capacity) -> tuple[Choice, ...]:
        """The configurations to try in turn, and why these."""
        stage, rule, tables = queue.stage, self.rule, self.tables
        if rule.no_replan:
            return (Choice(self._plan[stage]),)
        added = self.fetches.expected(queue, capacity, local=not rule.no_locality)
        if numbers := self._search(queue, added):
            return tables.choices(stage, numbers, "planned")
        if rule.shed and is_lost(tables, stage, queue.length, queue.seconds_left, added):
            return tables.choices(stage, cheapest_configurations(tables, stage, queue.length, 1), "shed")
        return tables.choices(stage, fastest_configurations(tables, stage, queue.length, rule.k), "best-effort")

    def _search(self, queue: Queue, added: float) -> tuple[int, ...]:
        group, budget = self.shares.group_rests[queue.stage], self.budget(queue)
        if self.rule.search == "front":
            return first_configurations(self.tables, queue.stage, group[1:], queue.length, budget, self.rule.k, added)
        form: Form = "layered" if self.rule.search == "layered" else "a-star"
        answer = search_group(self.tables, group, queue.length, budget, self.rule.k, added, form=form)
        profile = self.application.profiles[queue.stage].configurations()
        return tuple([profile.index(candidate.plan[queue.stage]) for candidate in answer.candidates])

    def decide(self, queue: Queue, capacity: Capacity) -> Decision:
        """Start the first candidate that fits somewhere; the smallest size where nothing has fitted for too long."""
        choices = self.choices(queue, capacity)
        if self._forces(queue):
            choices = (*choices, Choice(self._smallest[queue.stage], "forced"))
        return made(Candidates, (choices, None, None, 0))

    def _forces(self, queue: Queue) -> bool:
        rule = self.rule
        return 0 < rule.forced_after <= queue.failures + 1 and not rule.no_gpu_sharing
