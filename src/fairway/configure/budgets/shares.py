"""Which part of a request's time each stage may take: by its share of the work, along the dominators (ESG).

The average normalised length of a stage is its share of the work, over the configurations X that all stages have:

    ANL(f) = mean over x in X of  t(f, x) / Σ_h t(h, x)

Branches of a region run side by side, so a region counts as its longest branch, and the stages of the others are scaled
until their branch is as long. In a tangle, a stage is scaled by the longest way through it, so that no way is too long.
With these weights w, and rest(v) the weight of the longest way from v to the end,

    quota(v) = SLO · w(v) / rest(entry)                    share(v) = w(v and the rest of its group) / rest(v)

A group is up to `group_size` stages in a row that are configured together; a region ends it. The budget of a decision
is the time really left times the share, so what earlier stages saved or lost is spread over all that follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairway.configure.application import Application
from fairway.configure.budgets.regions import Chain, Member, Region, Tangle, chain_of
from fairway.configure.configuration import Configuration
from fairway.configure.profile import Profile
from fairway.workflows import Workflow


@dataclass(frozen=True)
class Shares:
    """The weights and groups of a workflow's stages; `lengths` are their average normalised lengths."""

    workflow: Workflow
    lengths: tuple[float, ...]
    group_size: int = 3

    @classmethod
    def of(cls, application: Application, group_size: int = 3) -> Shares:
        """The shares of an application, from its profiles."""
        return cls(application.workflow, normalised_lengths(application.profiles), group_size)

    @cached_property
    def chain(self) -> Chain:
        """The shape of the graph."""
        return chain_of(self.workflow)

    @cached_property
    def weights(self) -> tuple[float, ...]:
        """By stage, its scaled length."""
        weights = [0.0] * len(self.workflow)
        self._scale(self.chain, 1.0, weights)
        return tuple(weights)

    @cached_property
    def rests(self) -> tuple[float, ...]:
        """By stage, the weight of the longest way from its start to the end."""
        return self.workflow.upward_ranks(self.weights, [0.0] * len(self.workflow))

    @cached_property
    def total(self) -> float:
        """The weight of the longest way through the graph."""
        return max(self.rests)

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Stages that are configured together, each stage in one group."""
        return tuple(self._grouped(self.chain))

    @cached_property
    def group_rests(self) -> tuple[tuple[int, ...], ...]:
        """By stage, what is left of its group: itself and the stages after it."""
        rests: list[tuple[int, ...]] = [()] * len(self.workflow)
        for group in self.groups:
            for position, stage in enumerate(group):
                rests[stage] = group[position:]
        return tuple(rests)

    @cached_property
    def _shares(self) -> tuple[float, ...]:
        return tuple(
            min(1.0, sum(self.weights[member] for member in rest) / self.rests[stage]) if self.rests[stage] > 0 else 1.0
            for stage, rest in enumerate(self.group_rests)
        )

    def share(self, stage: int) -> float:
        """Which part of the time that is left at a stage the rest of its group may take."""
        return self._shares[stage]

    def quota(self, stage: int, slo_seconds: float) -> float:
        """What a stage may take of the whole time, if all goes as planned."""
        return slo_seconds * (self.weights[stage] / self.total if self.total > 0 else 1.0)

    def group_quota(self, stage: int, slo_seconds: float) -> float:
        """What the whole group of a stage may take of the whole time."""
        group = next(group for group in self.groups if stage in group)
        return sum(self.quota(member, slo_seconds) for member in group)

    def _length(self, member: Member) -> float:
        match member:
            case Region():
                return max(self._chain_length(branch) for branch in member.branches)
            case Tangle():
                return max(self._through(member).values())
        return self.lengths[member]

    def _chain_length(self, chain: Chain) -> float:
        return sum(map(self._length, chain))

    def _scale(self, chain: Chain, factor: float, weights: list[float]) -> None:
        for member in chain:
            longest = self._length(member)
            match member:
                case Region():
                    for branch in member.branches:
                        own = self._chain_length(branch)
                        self._scale(branch, factor * (longest / own if own > 0 else 1.0), weights)
                case Tangle():
                    for stage, through in self._through(member).items():
                        weights[stage] = self.lengths[stage] * factor * (longest / through if through > 0 else 1.0)
                case _:
                    weights[member] = self.lengths[member] * factor

    def _through(self, tangle: Tangle) -> dict[int, float]:
        """By stage of a tangle, the longest way through it that stays inside."""
        before: dict[int, float] = {}
        after: dict[int, float] = {}
        for stage in tangle.stages:
            inside = (before[other] for other in self.workflow.predecessors[stage] if other in before)
            before[stage] = self.lengths[stage] + max(inside, default=0.0)
        for stage in reversed(tangle.stages):
            inside = (after[other] for other in self.workflow.successors[stage] if other in after)
            after[stage] = self.lengths[stage] + max(inside, default=0.0)
        return {stage: before[stage] + after[stage] - self.lengths[stage] for stage in tangle.stages}

    def _grouped(self, chain: Chain) -> list[tuple[int, ...]]:
        groups: list[tuple[int, ...]] = []
        current: list[int] = []
        for member in chain:
            if isinstance(member, int) and len(current) < self.group_size:
                current.append(member)
                continue
            groups.extend([tuple(current)] if current else [])
            current = [member] if isinstance(member, int) else []
            if isinstance(member, Region):
                groups.extend(group for branch in member.branches for group in self._grouped(branch))
            elif isinstance(member, Tangle):
                groups.extend((stage,) for stage in member.stages)
        return [*groups, tuple(current)] if current else groups


def normalised_lengths(profiles: Sequence[Profile]) -> tuple[float, ...]:
    """The average normalised length of each stage.

    Where the stages have no configuration in common, the mean time of each takes the place of its times.
    """
    common = set(profiles[0].configurations()).intersection(*(profile.configurations() for profile in profiles[1:]))
    times = np.asarray([_times(profile, common) for profile in profiles])
    sums = times.sum(axis=0)
    parts = np.divide(times, sums, out=np.full(times.shape, 1.0 / len(profiles)), where=sums > 0)
    return tuple(parts.mean(axis=1).tolist())


def _times(profile: Profile, common: set[Configuration]) -> list[float]:
    if not common:
        return [float(profile.seconds.mean())]
    # In one order for all stages: that of the sizes themselves.
    rows = sorted(zip(profile.configurations(), profile.seconds.tolist(), strict=True))
    return [seconds for configuration, seconds in rows if configuration in common]
