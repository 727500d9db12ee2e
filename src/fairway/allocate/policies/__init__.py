"""Every policy, by its name: one small file each, with its objective beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from fairway.allocate.policies.allox import AlloX
from fairway.allocate.policies.fifo import Fifo
from fairway.allocate.policies.finish_time_fairness import FinishTimeFairness
from fairway.allocate.policies.gandiva import Gandiva
from fairway.allocate.policies.hierarchical import Hierarchical
from fairway.allocate.policies.isolated import Isolated
from fairway.allocate.policies.makespan import Makespan
from fairway.allocate.policies.max_min_fairness import MaxMinFairness
from fairway.allocate.policies.max_throughput import MaxThroughput
from fairway.allocate.policies.min_cost import MinCost
from fairway.allocate.policies.min_cost_slo import MinCostSlo
from fairway.allocate.policies.min_jct import MinJct
from fairway.allocate.policies.nash_welfare import NashWelfare
from fairway.allocate.policies.proportional import Proportional
from fairway.allocate.policies.shortest_job_first import ShortestJobFirst
from fairway.allocate.policies.water_filling import WaterFilling
from fairway.allocate.policy import Policy

POLICIES: Mapping[str, Callable[..., Policy]] = MappingProxyType(
    {
        policy.name: policy
        for policy in (
            MaxMinFairness,
            WaterFilling,
            Hierarchical,
            FinishTimeFairness,
            Makespan,
            MaxThroughput,
            MinCost,
            MinCostSlo,
            Fifo,
            ShortestJobFirst,
            AlloX,
            Gandiva,
            Isolated,
            Proportional,
            NashWelfare,
            MinJct,
        )
    }
)
"""All policies, by name."""

__all__ = ["POLICIES"]
