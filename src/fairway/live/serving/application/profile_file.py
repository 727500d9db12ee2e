"""Reads what `fairway profile` has measured: a serving scenario with the models and stages of an application.

Only what a live worker needs is looked at here: bytes and load times of models, times and sizes of stages. The rest
(workers, links) is for a simulation of the same file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass as plain_dataclass
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from fairway.documents import Form, Name
from fairway.errors import InputError
from fairway.options import nearest
from fairway.workflows import Model, Stage, Workflow
from fairway.workflows.workflow_file import GRAPH, MODELS, GraphFields, ModelFields, StageFields

_CLOSED = ConfigDict(extra="forbid", allow_inf_nan=False)

Free: TypeAlias = Any
"""Something for simulations, which is not looked at here."""


@dataclass(frozen=True, slots=True, config=_CLOSED)
class ProfiledWorkflow:
    """A workflow as it stands in a profile, under its name."""

    stages: list[StageFields]
    edges: list[tuple[Name, Name]] | None = None
    share: Free = None
    slo_seconds: Annotated[float, Field(gt=0)] | None = None


@dataclass(frozen=True, slots=True, config=_CLOSED)
class ProfileFile:
    """The fields of a profile."""

    workflows: dict[Name, ProfiledWorkflow]
    models: dict[Name, ModelFields] | None = None
    workers: Free = None
    links: Free = None
    power: Free = None
    eviction_copies: Free = None
    slices: Free = None
    interference: Free = None


_FORM: Form[ProfileFile] = Form(
    ProfileFile,
    {
        "": 'a profile, which "fairway profile" writes: an object with "models" and "workflows"',
        "workflows": "an object of workflows by name",
        "workflows.*": 'an object, as in {"stages": [{"name": "a", "seconds": 0.1}], "edges": []}',
        "workflows.*.slo_seconds": "a number > 0 (seconds)",
        **MODELS,
        **{f"workflows.*.{path}": text for path, text in GRAPH.items()},
    },
    {"": ProfileFile, "models.*": ModelFields, "workflows.*": ProfiledWorkflow, "workflows.*.stages.*": StageFields},
)


@plain_dataclass(frozen=True)
class MeasuredProfile:
    """Models and workflows as they were measured; `source` is the name of the file."""

    source: str
    models: Mapping[str, Model]
    workflows: Mapping[str, Workflow]
    slo_seconds: Mapping[str, float]

    def applied(self, workflow: Workflow, models: Mapping[str, Model]) -> Workflow:
        """The workflow with the measured times and sizes of its stages; refuses a profile of another workflow."""
        measured = self.workflows.get(workflow.name)
        if measured is None:
            raise InputError(
                f"{self.source}: has no workflow '{workflow.name}'{nearest(workflow.name, self.workflows)}; measure it "
                "with 'fairway profile'"
            )
        if {stage.name for stage in measured.stages} != {stage.name for stage in workflow.stages} or (
            set(measured.edges) != set(workflow.edges)
        ):
            raise InputError(
                f"{self.source}: workflow '{workflow.name}' had other stages or edges when it was measured; measure it "
                "again with 'fairway profile'"
            )
        stages = tuple(_measured(stage, measured) for stage in workflow.stages)
        return Workflow(stages, workflow.edges, models, workflow.name)


def read_profile(path: Path) -> MeasuredProfile:
    """Read the file that `fairway profile` wrote."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}; name a profile") from None
    return parse_profile(content, str(path))


def parse_profile(text: str | bytes, source: str) -> MeasuredProfile:
    """Read the text of a profile; `source` is its name in errors."""
    file = _FORM.read(text, source)
    workflows = {}
    for name, fields in file.workflows.items():
        try:
            workflows[name] = GraphFields(fields.stages, fields.edges).workflow(file.models, name)
        except InputError as error:
            raise InputError(f"{source}: workflows.{name}.{error}") from None
    slo = {name: fields.slo_seconds for name, fields in file.workflows.items() if fields.slo_seconds is not None}
    return MeasuredProfile(
        source, {name: fields.model(name) for name, fields in (file.models or {}).items()}, workflows, slo
    )


def _measured(stage: Stage, measured: Workflow) -> Stage:
    found = measured.stages[measured.number(stage.name)]
    return replace(stage, seconds=found.seconds, input_bytes=found.input_bytes, output_bytes=found.output_bytes)
