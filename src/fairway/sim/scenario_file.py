"""Reads a serving scenario from YAML or JSON: workflows with their models, and the workers that run them.

    models:
      opt: {bytes: 6141853204}
    workflows:
      answer:
        stages: [{name: draft, model: opt, seconds: 0.561, output_bytes: 2048}]
        share: 2
        slo_seconds: 1.5
    workers:
      - {name: t4, count: 5, memory_bytes: 14336000000}
    links: {network_bandwidth: 1.25e9}
    slices: {opt: 0.25}        # each copy of the model has so much of a worker

Whatever is wrong becomes one line that names the file, the workflow and the stage.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Annotated, Any, TypeAlias

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from fairway.configure.slices.parts import WHOLE, Slice, check_slices, slices_of
from fairway.documents import A_NAME, A_SIZE, Bytes, Form, Name
from fairway.errors import InputError
from fairway.links import Links
from fairway.options import nearest
from fairway.place.fleet import Worker
from fairway.place.problem_file import LinkFields
from fairway.report.serving.record import Power
from fairway.sim.scenario import DeviceSharing, Scenario
from fairway.workflows.workflow_file import GRAPH, MODELS, GraphFields, ModelFields, StageFields

_CLOSED = ConfigDict(extra="forbid", allow_inf_nan=False)
_MOST_WORKERS = 100_000

Free: TypeAlias = Any
"""A value of several forms, which is read after the rest."""

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=_MOST_WORKERS)]


@dataclass(frozen=True, slots=True, config=_CLOSED)
class WorkflowFields:
    """A workflow as it stands in a file, under its name."""

    stages: list[StageFields]
    edges: list[tuple[Name, Name]] | None = None
    share: Positive | None = None
    slo_seconds: Positive | None = None


@dataclass(frozen=True, slots=True, config=_CLOSED)
class WorkerFields:
    """Equal workers as they stand in a file: `count` of them, `per_host` in one host."""

    name: Name
    memory_bytes: Bytes
    count: Count | None = None
    accelerator: Name | None = None
    per_host: Count | None = None
    dollars_per_hour: NotNegative | None = None

    def workers(self) -> list[Worker]:
        """The workers that are meant."""
        count = self.count or 1
        return [
            Worker(
                self.name if count == 1 else f"{self.name}-{number}",
                self.memory_bytes,
                "gpu" if self.accelerator is None else self.accelerator,
                None if self.per_host is None else f"{self.name}-host-{number // self.per_host}",
            )
            for number in range(count)
        ]


@dataclass(frozen=True, slots=True, config=_CLOSED)
class PowerFields:
    """Watts as they stand in a file."""

    idle_watts: NotNegative
    busy_watts: NotNegative
    copy_watts: NotNegative


@dataclass(frozen=True, slots=True, config=_CLOSED)
class ScenarioFile:
    """The fields of a scenario file."""

    workflows: dict[Name, WorkflowFields]
    workers: list[WorkerFields]
    models: dict[Name, ModelFields] | None = None
    links: LinkFields | None = None
    power: PowerFields | None = None
    eviction_copies: bool | None = None
    slices: dict[Name, Free] | None = None
    interference: dict[Name, dict[Name, Positive]] | None = None

    def scenario(self, name: str) -> Scenario:
        """The scenario that the file describes; refuses what does not fit together."""
        if not self.workflows:
            raise InputError("workflows: none given, expected at least one")
        if not self.workers:
            raise InputError("workers: none given, expected at least one")
        workflows = []
        for called, fields in self.workflows.items():
            try:
                workflows.append(GraphFields(fields.stages, fields.edges).workflow(self.models, called))
            except InputError as error:
                raise InputError(f"workflows.{called}.{error}") from None
        power = self.power
        workers = tuple(worker for group in self.workers for worker in group.workers())
        slices = self._slices(min(worker.memory_bytes for worker in workers))
        if slices:
            workers = tuple(replace(worker, slices=WHOLE) for worker in workers)
        scenario = Scenario(
            name=name,
            workflows=tuple(workflows),
            workers=workers,
            slices=slices,
            sharing=DeviceSharing(pairs=self._pairs()),
            links=Links() if self.links is None else self.links.links(),
            shares=tuple(fields.share or 1.0 for fields in self.workflows.values()),
            slo_seconds={
                called: fields.slo_seconds
                for called, fields in self.workflows.items()
                if fields.slo_seconds is not None
            },
            eviction_copies=bool(self.eviction_copies),
            power=Power() if power is None else Power(power.idle_watts, power.busy_watts, power.copy_watts),
            dollars_per_hour={
                group.accelerator or "gpu": group.dollars_per_hour
                for group in self.workers
                if group.dollars_per_hour is not None
            },
        )
        scenario.graphs(scenario.fleet())  # a stage that no worker can run is refused here
        return scenario

    def _pairs(self) -> dict[tuple[str, str], float]:
        """The factors by which models take longer beside others."""
        known = self.models or {}
        pairs = {(name, other): factor for name, beside in (self.interference or {}).items()
                 for other, factor in beside.items()}  # fmt: skip
        for name in itertools.chain.from_iterable(pairs):
            if name not in known:
                raise InputError(f"interference: no model '{name}'{nearest(name, known)}; models: {', '.join(known)}")
        return pairs

    def _slices(self, worker_memory_bytes: float) -> dict[str, Slice]:
        try:
            slices = slices_of((f"{name}={size}" for name, size in (self.slices or {}).items()), worker_memory_bytes)
        except InputError as error:
            raise InputError(f"slices: {error}") from None
        check_slices(slices, {name: fields.bytes for name, fields in (self.models or {}).items()}, worker_memory_bytes)
        return slices


_FORM: Form[ScenarioFile] = Form(
    ScenarioFile,
    {
        "": 'an object with "models", "workflows" and "workers"',
        "workflows": "an object of workflows by name",
        "workflows.*": 'an object, as in {"stages": [{"name": "a", "seconds": 0.1}], "edges": []}',
        "workflows.*.share": "a number > 0: how many requests ask for it, in proportion to the others",
        "workflows.*.slo_seconds": "a number > 0 (seconds)",
        **MODELS,
        **{f"workflows.*.{path}": text for path, text in GRAPH.items()},
        "workers": "a list of groups of equal workers",
        "workers.*": 'an object, as in {"name": "t4", "count": 5, "memory_bytes": 14336000000}',
        "workers.*.name": A_NAME,
        "workers.*.memory_bytes": A_SIZE,
        "workers.*.count": f"a whole number from 1 to {_MOST_WORKERS}",
        "workers.*.accelerator": "the name of an accelerator type, as in 't4'",
        "workers.*.per_host": "a whole number >= 1: workers in one host",
        "workers.*.dollars_per_hour": "a number >= 0 (dollars per worker and hour)",
        "links": 'an object, as in {"network_bandwidth": 1.25e9}',
        "links.network_latency": "a number >= 0 (seconds)",
        "links.network_bandwidth": "a number > 0 (bytes per second)",
        "links.to_device_bandwidth": "a number > 0 (bytes per second)",
        "links.to_host_bandwidth": "a number > 0 (bytes per second)",
        "links.copy_latency": "a number >= 0 (seconds)",
        "power": 'an object, as in {"idle_watts": 10, "busy_watts": 70, "copy_watts": 35}',
        "power.*": "a number >= 0 (watts)",
        "eviction_copies": "true or false",
        "interference": "an object of factors by model and model, as in {detector: {reader: 1.05}}",
        "interference.*": "an object of factors by model, as in {reader: 1.05}",
        "interference.*.*": "a number > 0: how many times as long the first model takes beside the second",
        "slices": "an object of parts of a worker by model, as in {detector: 0.25} or {detector: '0.25:200MB'}",
    },
    {
        "": ScenarioFile,
        "models.*": ModelFields,
        "workflows.*": WorkflowFields,
        "workflows.*.stages.*": StageFields,
        "workers.*": WorkerFields,
        "links": LinkFields,
        "power": PowerFields,
    },
)


def parse_scenario(text: str | bytes, source: str) -> Scenario:
    """Read the text of a scenario file; `source` is its name in errors."""
    file = _FORM.read(text, source)
    try:
        return file.scenario(source)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
