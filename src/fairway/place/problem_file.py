"""Reads the problem of `fairway place`: the text of a JSON or YAML file in, a `PlacementProblem` out.

Nothing here opens a file: `parse_placement` gets the text and the name to use for it in errors. Whatever is wrong
becomes one line that names the file, the stage or worker, what was given and what was expected.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from fairway.documents import A_DURATION, A_NAME, A_SIZE, Bytes, Duration, Form, Name
from fairway.errors import InputError
from fairway.links import Links
from fairway.place.fleet import Worker
from fairway.place.problem import PlacementProblem
from fairway.workflows.workflow_file import GRAPH, MODELS, GraphFields, ModelFields, StageFields

_CLOSED = ConfigDict(extra="forbid", allow_inf_nan=False)

Seed = Annotated[int, Field(ge=0, lt=2**63)]


@dataclass(frozen=True, slots=True, config=_CLOSED)
class WorkerFields:
    """A worker as it stands in a file: one accelerator, what waits for it and which models it holds."""

    name: Name
    memory_bytes: Bytes
    queued_seconds: Duration | None = None
    cached: list[Name] | None = None
    accelerator: Name | None = None
    host: Name | None = None

    def worker(self) -> Worker:
        """The worker that is meant."""
        if self.accelerator is None:
            return Worker(self.name, self.memory_bytes, host=self.host)
        return Worker(self.name, self.memory_bytes, self.accelerator, self.host)


Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True, config=_CLOSED)
class LinkFields:
    """The links as they stand in a file; what is left out is as in `Links`."""

    network_latency: NotNegative | None = None
    network_bandwidth: Positive | None = None
    to_device_bandwidth: Positive | None = None
    to_host_bandwidth: Positive | None = None
    copy_latency: NotNegative | None = None

    def links(self) -> Links:
        """The links that are meant."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return Links(**{name: value for name, value in given.items() if value is not None})


@dataclass(frozen=True, slots=True, config=_CLOSED)
class PlacementFile:
    """The fields of a problem file, as they stand there; null is the same as left out."""

    workflow: GraphFields
    workers: list[WorkerFields]
    models: dict[Name, ModelFields] | None = None
    ingress: Name | None = None
    links: LinkFields | None = None
    seed: Seed | None = None

    def problem(self) -> PlacementProblem:
        """The problem that the file describes; refuses what does not fit together."""
        try:
            workflow = self.workflow.workflow(self.models, "workflow")
        except InputError as error:
            raise InputError(f"workflow.{error}") from None
        return PlacementProblem.of(
            workflow,
            [worker.worker() for worker in self.workers],
            self.ingress,
            queued_seconds={worker.name: worker.queued_seconds or 0.0 for worker in self.workers},
            cached={worker.name: worker.cached or () for worker in self.workers},
            links=None if self.links is None else self.links.links(),
            seed=self.seed or 0,
        )


_BANDWIDTH = "a number > 0 (bytes per second)"
_LATENCY = "a number >= 0 (seconds)"

_FORM: Form[PlacementFile] = Form(
    PlacementFile,
    {
        "": 'an object with "models", "workflow", "workers" and "ingress"',
        "workflow": 'an object, as in {"stages": [{"name": "a", "seconds": 0.1}], "edges": []}',
        **MODELS,
        **{f"workflow.{path}": text for path, text in GRAPH.items()},
        "workers": "a list of workers",
        "workers.*": 'an object, as in {"name": "w0", "memory_bytes": 14336000000}',
        "workers.*.name": A_NAME,
        "workers.*.memory_bytes": A_SIZE,
        "workers.*.queued_seconds": A_DURATION,
        "workers.*.cached": 'a list of names of models, as in ["opt"]',
        "workers.*.cached.*": "the name of a model",
        "workers.*.accelerator": "the name of an accelerator type, as in 't4'",
        "workers.*.host": "the name of a host",
        "ingress": "the name of a worker, or null",
        "links": 'an object, as in {"network_bandwidth": 1.25e9}',
        "links.network_latency": _LATENCY,
        "links.network_bandwidth": _BANDWIDTH,
        "links.to_device_bandwidth": _BANDWIDTH,
        "links.to_host_bandwidth": _BANDWIDTH,
        "links.copy_latency": _LATENCY,
        "seed": "a whole number from 0 to 9223372036854775807",
    },
    {
        "": PlacementFile,
        "models.*": ModelFields,
        "workflow": GraphFields,
        "workflow.stages.*": StageFields,
        "workers.*": WorkerFields,
        "links": LinkFields,
    },
)


def parse_placement(text: str | bytes, source: str) -> PlacementProblem:
    """Read the text of a problem file; `source` is its name in errors."""
    file = _FORM.read(text, source)
    try:
        return file.problem()
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
