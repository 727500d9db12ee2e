"""Policies as the original implementation of Gavel decides them, chosen by our names: for runs that reproduce its own.

`compat_policy("max-min-fairness:agnostic")` has the objective of the policy of that name, and gives the original's
answer to it, with what that answer depends on: the path of its solver, the end of its search, its defects and its
memory. `mechanism_of` says what the original's rounds make of the policy's name.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairway.allocate.policies.allox import AlloX
from fairway.allocate.policies.fifo import Fifo
from fairway.allocate.policies.finish_time_fairness import FinishTimeFairness
from fairway.allocate.policies.gandiva import Gandiva
from fairway.allocate.policies.isolated import Isolated
from fairway.allocate.policies.makespan import Makespan
from fairway.allocate.policies.max_min_fairness import MaxMinFairness
from fairway.allocate.policies.max_throughput import MaxThroughput
from fairway.allocate.policies.water_filling import WaterFilling
from fairway.allocate.policy import Policy
from fairway.allocate.registry import policy_of
from fairway.compat.gavel.interior import (
    InteriorFinishTimeFairness,
    InteriorMakespan,
    InteriorMaxMinFairness,
    InteriorMaxThroughput,
    InteriorWaterFilling,
)
from fairway.compat.gavel.queues import OriginalFifo, OriginalGandiva
from fairway.errors import InputError
from fairway.options import text_of

REFERENCE = "v100"
"""The type whose rate stands for all others in the original's agnostic policies, where no other is named."""


@dataclass(frozen=True, slots=True)
class Mechanism:
    """How the original's rounds treat a policy: `pairs` says whether two jobs may share at all, `shuffled` whether
    types are served in a new order in each round, `needs_priority` whether a job without a priority stays idle.
    """

    pairs: bool
    shuffled: bool
    needs_priority: bool


def mechanism_of(given: str | Policy) -> Mechanism:
    """The treatment of the policy of this name."""
    match policy_of(given):
        case Gandiva():
            return Mechanism(pairs=True, shuffled=False, needs_priority=False)
        case Isolated():
            return Mechanism(pairs=False, shuffled=True, needs_priority=False)
        case policy:
            pairs, agnostic = policy.space_sharing, policy.agnostic
            return Mechanism(pairs=pairs, shuffled=agnostic and not pairs, needs_priority=isinstance(policy, Fifo))


def compat_policy(given: str | Policy) -> Policy:
    """A fresh policy that decides one run as the original does; refuses what the original does not have."""
    match policy_of(given):
        case MaxMinFairness(agnostic=agnostic, space_sharing=space_sharing) if not (agnostic and space_sharing):
            return InteriorMaxMinFairness(agnostic=agnostic, space_sharing=space_sharing)
        case WaterFilling(agnostic=agnostic, space_sharing=False):
            return InteriorWaterFilling(agnostic=agnostic)
        case FinishTimeFairness(agnostic=agnostic, space_sharing=False, weighted=False, reference=reference):
            return InteriorFinishTimeFairness(agnostic=agnostic, reference=reference or REFERENCE)
        case Makespan(agnostic=agnostic, space_sharing=False, reference=reference):
            return InteriorMakespan(agnostic=agnostic, reference=reference or REFERENCE)
        case MaxThroughput(agnostic=False, space_sharing=False):
            return InteriorMaxThroughput()
        case Fifo(agnostic=agnostic, space_sharing=space_sharing, relaxed=False) if not (agnostic and space_sharing):
            return OriginalFifo(agnostic=agnostic, space_sharing=space_sharing)
        case Gandiva():
            return OriginalGandiva()
        case AlloX(agnostic=False) | Isolated() as same:
            return same
    name = given if isinstance(given, str) else text_of(given)
    raise InputError(
        f"policy '{name}' is not one that runs as in the original; choose another, or run without --compat"
    )
