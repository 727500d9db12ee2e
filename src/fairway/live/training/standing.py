"""What every job is owed, as a document for the store and back: shares, debts and the work done so far, by job.

With it goes what the engine has learned of the jobs that keep coming.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import ArrivalsResumed, JobResumed
from fairway.store.messages import event_document, event_of


@dataclass(frozen=True, slots=True)
class Standing:
    """How one job stands with the rounds of the engine."""

    isolated_seconds: float
    shares: Mapping[str, float]
    owed: Mapping[str, float]
    steps_done: float = 0.0


NEW = Standing(0.0, {}, {})
"""A job that no engine has known for a round."""


def standing_document(engine: TrainingEngine, waiting: Mapping[str, JobResumed]) -> dict[str, Any]:
    """How all jobs stand: those of the engine, and those that wait outside it."""
    jobs, types = engine.jobs, engine.types
    rows: dict[str, Any] = dict(
        zip(
            jobs.ids,
            zip(jobs.isolated.tolist(), jobs.shares.tolist(), jobs.owed.tolist(), jobs.done.tolist(), strict=True),
            strict=True,
        )
    )
    for name, job in waiting.items():
        shares, owed = ([amounts.get(each, 0.0) for each in types] for amounts in (job.shares, job.owed))
        rows[name] = (job.isolated_seconds, shares, owed, job.steps_done)
    learned = event_document(0.0, engine.arrivals.resumption())
    return {"types": list(types), "jobs": rows, "arrivals": learned}


def arrivals_of(document: Mapping[str, Any]) -> ArrivalsResumed | None:
    """What was known of the jobs that keep coming when the document was written."""
    if "arrivals" not in document:
        return None
    _, event = event_of(document["arrivals"])
    assert isinstance(event, ArrivalsResumed)
    return event


def standings_of(document: Mapping[str, Any]) -> dict[str, Standing]:
    """How the jobs stood when the document was written."""
    types = document.get("types", ())
    return {
        job: Standing(isolated, dict(zip(types, shares, strict=True)), dict(zip(types, owed, strict=True)), *done)
        for job, (isolated, shares, owed, *done) in document.get("jobs", {}).items()
    }
