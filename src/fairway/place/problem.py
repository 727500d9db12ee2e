"""One placement decision as a value: a request for a workflow, and the workers as they are at that moment."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from fairway.errors import InputError
from fairway.links import Links
from fairway.options import nearest
from fairway.place.fleet import OUTSIDE, Fleet, Worker
from fairway.place.graph import TaskGraph
from fairway.place.plan import Request
from fairway.place.state import NEVER, StateTable, View
from fairway.workflows import Workflow


@dataclass(frozen=True, eq=False)
class PlacementProblem:
    """A request at time 0, and what is known of the workers; `seed` decides between equals."""

    request: Request
    view: View
    seed: int = 0

    @classmethod
    def of(
        cls,
        workflow: Workflow,
        workers: Sequence[Worker],
        ingress: str | None = None,
        *,
        queued_seconds: Mapping[str, float] | None = None,
        cached: Mapping[str, Collection[str]] | None = None,
        links: Links | None = None,
        seed: int = 0,
    ) -> PlacementProblem:
        """Build the problem; refuses what does not fit together.

        `queued_seconds` and `cached` are the load of each worker and the models that it holds, by its name: nothing
        where it has no entry. Without an ingress, the request's input is at no worker.
        """
        if not workers:
            raise InputError("workers: none given, expected at least one")
        fleet = Fleet.of(workers, workflow.models.values(), links)
        table = StateTable(fleet)
        for name, seconds in (queued_seconds or {}).items():
            table.write_load(_number(fleet, name, "queued_seconds"), seconds, NEVER, 0.0)
        for name, models in (cached or {}).items():
            _fill(table, _number(fleet, name, "cached"), models)
        at = OUTSIDE if ingress is None else _number(fleet, ingress, "ingress")
        return cls(Request(0, TaskGraph.of(workflow, fleet), at), table.view(at, 0.0), seed)


def _number(fleet: Fleet, name: str, field: str) -> int:
    if name not in fleet.worker_numbers:
        known = ", ".join(f"'{worker}'" for worker in list(fleet.worker_numbers)[:5])
        hint = nearest(name, fleet.worker_numbers)
        raise InputError(f"{field}: '{name}' is not one of the workers{hint}; name one of them, such as {known}")
    return fleet.worker_numbers[name]


def _fill(table: StateTable, worker: int, models: Collection[str]) -> None:
    fleet = table.fleet
    where = f"workers[{worker}] ('{fleet.workers[worker].name}').cached"
    total = 0.0
    for name in models:
        if name not in fleet.model_numbers:
            hint = nearest(name, fleet.model_numbers)
            raise InputError(f"{where}: '{name}' is not one of the models{hint}; add it to them or take it out")
        table.write_cache(worker, fleet.model_numbers[name], True, 0.0)
        total += fleet.model_bytes[fleet.model_numbers[name]]
    if len(set(models)) < len(models):
        raise InputError(f"{where}: a model is given twice; keep one of them")
    if total > fleet.memory[worker]:
        raise InputError(
            f"{where}: {total:.0f} bytes given, but the worker's memory has {fleet.memory[worker]:.0f}; take models out"
        )
