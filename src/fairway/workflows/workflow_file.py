"""Reads workflows from YAML or JSON text: one on its own, or several by name that share their models.

    models:
      opt: {bytes: 6141853204}
    stages:
      - {name: draft, model: opt, seconds: 0.561, input_bytes: 1024, output_bytes: 2048}
      - {name: merge, seconds: 0.001}
    edges: [[draft, merge]]

Several are given as `workflows: {name: {stages: ..., edges: ...}}` beside their `models`.
"""

from __future__ import annotations

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from fairway.documents import A_DURATION, A_NAME, A_SIZE, Bytes, Duration, Form, Name
from fairway.errors import InputError
from fairway.workflows.graph import Workflow
from fairway.workflows.model import A_TIME, Model, SecondsTable, Stage

_CLOSED = ConfigDict(extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True, slots=True, config=_CLOSED)
class ModelFields:
    """A model as it stands in a file, under its name."""

    bytes: Bytes
    load_seconds: Duration | None = None

    def model(self, name: str) -> Model:
        """The model that is meant."""
        return Model(name, self.bytes, self.load_seconds)


@dataclass(frozen=True, slots=True, config=_CLOSED)
class StageFields:
    """A stage as it stands in a file: `model` for one, `models` for several."""

    name: Name
    seconds: SecondsTable
    model: Name | None = None
    models: tuple[Name, ...] | None = None
    input_bytes: Bytes | None = None
    output_bytes: Bytes | None = None

    def stage(self) -> Stage:
        """The stage that is meant."""
        several = (() if self.model is None else (self.model,)) + (self.models or ())
        return Stage(self.name, self.seconds, several, self.input_bytes, self.output_bytes or 0)


@dataclass(frozen=True, slots=True, config=_CLOSED)
class GraphFields:
    """The stages and edges of a workflow as they stand in a file."""

    stages: list[StageFields]
    edges: list[tuple[Name, Name]] | None = None

    def workflow(self, models: dict[str, ModelFields] | None, name: str) -> Workflow:
        """The workflow that is meant; refuses what does not fit together."""
        return Workflow(
            stages=tuple(stage.stage() for stage in self.stages),
            edges=tuple(self.edges or ()),
            models={known: fields.model(known) for known, fields in (models or {}).items()},
            name=name,
        )


@dataclass(frozen=True, slots=True, config=_CLOSED)
class WorkflowFile:
    """The fields of a file with one workflow."""

    stages: list[StageFields]
    edges: list[tuple[Name, Name]] | None = None
    models: dict[Name, ModelFields] | None = None
    name: Name | None = None


@dataclass(frozen=True, slots=True, config=_CLOSED)
class WorkflowsFile:
    """The fields of a file with several workflows."""

    workflows: dict[Name, GraphFields]
    models: dict[Name, ModelFields] | None = None


MODELS = {
    "models": 'an object of models by name, as in {"opt": {"bytes": 6141853204}}',
    "models.*": 'an object, as in {"bytes": 6141853204}',
    "models.*.bytes": A_SIZE,
    "models.*.load_seconds": A_DURATION,
}
GRAPH = {
    "stages": "a list of stages",
    "stages.*": 'an object, as in {"name": "draft", "model": "opt", "seconds": 0.561}',
    "stages.*.name": A_NAME,
    "stages.*.seconds": A_TIME,
    "stages.*.model": "the name of a model, or null for none",
    "stages.*.models": 'a list of names of models, as in ["detector", "reader"]',
    "stages.*.models.*": "the name of a model",
    "stages.*.input_bytes": A_SIZE,
    "stages.*.output_bytes": A_SIZE,
    "edges": 'a list of pairs of stage names, as in [["draft", "merge"]]',
    "edges.*": 'two names of stages, as in ["draft", "merge"]',
    "edges.*.*": "the name of a stage",
}
"""What the fields of models and graphs have to be, for any form that contains them."""

_SINGLE: Form[WorkflowFile] = Form(
    WorkflowFile,
    {
        "": 'an object, as in {"models": {}, "stages": [{"name": "a", "seconds": 0.1}]}',
        "name": A_NAME,
        **MODELS,
        **GRAPH,
    },
    {"": WorkflowFile, "models.*": ModelFields, "stages.*": StageFields},
)
_SEVERAL: Form[WorkflowsFile] = Form(
    WorkflowsFile,
    {
        "": 'an object, as in {"models": {}, "workflows": {"answer": {"stages": [{"name": "a", "seconds": 0.1}]}}}',
        "workflows": "an object of workflows by name",
        "workflows.*": 'an object, as in {"stages": [{"name": "a", "seconds": 0.1}], "edges": []}',
        **MODELS,
        **{f"workflows.*.{path}": text for path, text in GRAPH.items()},
    },
    {"": WorkflowsFile, "models.*": ModelFields, "workflows.*": GraphFields, "workflows.*.stages.*": StageFields},
)


def parse_workflow(text: str | bytes, source: str) -> Workflow:
    """Read one workflow from YAML or JSON; `source` is the name of the text in errors."""
    file = _SINGLE.read(text, source)
    try:
        return GraphFields(file.stages, file.edges).workflow(file.models, file.name or "workflow")
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


def parse_workflows(text: str | bytes, source: str) -> dict[str, Workflow]:
    """Read several workflows, which share their models, from YAML or JSON; `source` is the text's name in errors."""
    file = _SEVERAL.read(text, source)
    workflows = {}
    for name, fields in file.workflows.items():
        try:
            workflows[name] = fields.workflow(file.models, name)
        except InputError as error:
            raise InputError(f"{source}: workflows.{name}.{error}") from None
    return workflows
