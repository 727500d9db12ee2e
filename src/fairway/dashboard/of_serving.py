"""The saved run of a simulated run of requests, made of its `ServingRecord`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fairway.report.plain_json import plain
from fairway.report.serving.metrics import seed_of, summarize_serving
from fairway.report.serving.record import RequestOutcome, ServingRecord

_FOUND = ("miss", "hit", "partial", "none")
"""What a task found of its model in memory, by the numbers of a record; -1 is the last."""

_DIGITS = 6
"""Times of requests are kept to the microsecond."""


def saved_serving(record: ServingRecord) -> dict[str, Any]:
    """A run with its requests and workers, and, where the record kept them, the stages and loads behind them."""
    requests, workers, runs, copies = record.requests, record.workers, record.runs, record.copies
    seed = seed_of(record)
    return {
        "kind": "serving",
        "label": record.scheduler if seed is None else f"{record.scheduler}, seed {seed}",
        "policy": record.scheduler,
        "settings": plain(record.settings),
        "summary": plain(summarize_serving(record)),
        "begins_at": None,
        "end": round(float(record.end_seconds), _DIGITS),
        "time_scale": 1.0,
        "emulated": False,
        "models": list(record.models),
        "workflows": [
            {
                "name": each.name,
                "lower_bound_seconds": each.lower_bound_seconds,
                "slo_seconds": each.slo_seconds if np.isfinite(each.slo_seconds) else None,
                "stages": list(each.stages),
                "edges": [list(edge) for edge in each.edges],
                "budgets": _rounded(np.array(each.budgets)),
            }
            for each in record.workflows
        ],
        "workers": {
            "name": list(workers.names),
            "type": list(workers.accelerators),
            "cpus": workers.cpus.tolist(),
            "slices": workers.slices.tolist(),
            "busy_seconds": _rounded(workers.busy_seconds),
            "copy_seconds": _rounded(workers.copy_seconds),
            "tasks": workers.tasks.tolist(),
            "hits": workers.hits.tolist(),
            "partial": workers.partial.tolist(),
            "misses": workers.misses.tolist(),
            "loads": workers.fetches.tolist(),
            "evictions": workers.evictions.tolist(),
            "awaited": workers.awaited.tolist(),
        },
        "requests": {
            "arrival": _rounded(requests.arrival),
            "finish": _rounded(np.where(requests.outcome == RequestOutcome.COMPLETED, requests.finish, np.nan)),
            "workflow": requests.workflow.tolist(),
            "outcome": [RequestOutcome(each).name.lower() for each in requests.outcome.tolist()],
            "counted": requests.counted.tolist(),
            "cost": [None] * len(requests) if requests.cost is None else plain(requests.cost),
        },
        "stages": {
            "request": runs.request.tolist(),
            "stage": runs.stage.tolist(),
            "worker": runs.worker.tolist(),
            "queued": _rounded(runs.queued),
            "turn": _rounded(runs.turn),
            "start": _rounded(runs.start),
            "end": _rounded(runs.end),
            "fetch": _rounded(runs.fetch),
            "found": [_FOUND[each] for each in runs.found.tolist()],
            "batch": runs.batch.tolist(),
            "member": runs.member.tolist(),
            "cpu": runs.cpu.tolist(),
            "gpu": runs.gpu.tolist(),
        },
        "loads": {
            "worker": copies.worker.tolist(),
            "model": copies.model.tolist(),
            "evicted": copies.evicted.tolist(),
            "ahead": copies.ahead.tolist(),
            "start": _rounded(copies.start),
            "end": _rounded(copies.end),
        },
        "staleness": {
            "time": _rounded(record.staleness.time),
            "load_seconds": _rounded(record.staleness.load_seconds),
            "models_wrong": _rounded(record.staleness.models_wrong),
        },
    }


def _rounded(values: npt.NDArray[np.float64]) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in np.round(values, _DIGITS).tolist()]
