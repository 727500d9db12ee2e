"""Plans and searches as JSON objects: what `fairway plan --json` prints and the REST API answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fairway.experiments.analysis import Estimate
from fairway.experiments.planning.change import Change
from fairway.experiments.planning.plan import Difference, Plan
from fairway.experiments.planning.search import Found

_MOST_JOBS = 20
"""How many of the jobs that gain, and of those that lose, are named."""


def plan_document(found: Plan) -> dict[str, Any]:
    """A plan; an interval is `half` to both sides of `mean`, null with a single seed."""
    return {
        "jobs": found.jobs,
        "seeds": found.seeds,
        "base": _estimates(found.base),
        "changes": [_difference(one) for one in found.differences],
    }


def found_document(found: Found) -> dict[str, Any]:
    """What a search has found; `change` is null where nothing reaches the goal."""
    return {
        "goal": found.goal.text,
        "change": None if found.change is None else change_document(found.change),
        "dollars_per_hour": found.dollars_per_hour,
        "complete": found.complete,
        "most": found.most,
        "tried": {name: _estimate(value) for name, value in found.values.items()},
    }


def change_document(change: Change) -> dict[str, Any]:
    """A change, and how it reads."""
    return {
        "text": str(change),
        "add": dict(change.add),
        "remove": dict(change.remove),
        "weights": dict(change.weights),
        "policy": change.policy,
        "slo_scale": change.slo_scale,
    }


def _difference(one: Difference) -> dict[str, Any]:
    return {
        "change": change_document(one.change),
        "numbers": _estimates(one.numbers),
        "against": _estimates(one.against),
        "changes_nothing": one.changes_nothing,
        "gains": _some(one.gains),
        "losses": _some(one.losses),
        "jobs_that_gain": len(one.gains),
        "jobs_that_lose": len(one.losses),
        "teams": dict(one.teams),
    }


def _some(jobs: Mapping[str, float]) -> dict[str, float]:
    return dict(list(jobs.items())[:_MOST_JOBS])


def _estimates(numbers: Mapping[str, Estimate]) -> dict[str, Any]:
    return {name.replace(" ", "_"): _estimate(value) for name, value in numbers.items()}


def _estimate(value: Estimate) -> dict[str, float | None]:
    return {"mean": _finite(value.mean), "half": _finite(value.half)}


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
