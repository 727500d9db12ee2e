"""What every job is owed, as a document for the store and back: shares, debts and the work done so far, by job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairway.engine.training import TrainingEngine


@dataclass(frozen=True, slots=True)
class Standing:
    """How one job stands with the rounds of the engine."""

    isolated_seconds: float
    shares: Mapping[str, float]
    owed: Mapping[str, float]


NEW = Standing(0.0, {}, {})
"""A job that no engine has known for a round."""


def standing_document(engine: TrainingEngine) -> dict[str, Any]:
    """How all jobs stand."""
    jobs = engine.jobs
    rows = zip(jobs.isolated.tolist(), jobs.shares.tolist(), jobs.owed.tolist(), strict=True)
    return {"types": list(engine.types), "jobs": dict(zip(jobs.ids, rows, strict=True))}


def standings_of(document: Mapping[str, Any]) -> dict[str, Standing]:
    """How the jobs stood when the document was written."""
    types = document.get("types", ())
    return {
        job: Standing(isolated, dict(zip(types, shares, strict=True)), dict(zip(types, owed, strict=True)))
        for job, (isolated, shares, owed) in document.get("jobs", {}).items()
    }
