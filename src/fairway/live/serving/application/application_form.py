"""The form of an application file: which fields it has, and what each has to be."""

from __future__ import annotations

from typing import Any, TypeAlias

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from fairway.documents import A_NAME, A_SIZE, Bytes, Form, Name
from fairway.quantities import A_SIZE as MEMORY
from fairway.quantities import A_SPAN
from fairway.workflows.model import A_TIME as SECONDS
from fairway.workflows.model import SecondsTable
from fairway.workflows.recording import PLAIN_TYPES

_CLOSED = ConfigDict(extra="forbid", allow_inf_nan=False)
INPUT_TYPES = {kind.__name__: kind for kind in PLAIN_TYPES}
"""The types that an input can have in a file, by name."""

Free: TypeAlias = Any
"""A value of several forms, which is read after the rest."""


@dataclass(frozen=True, slots=True, config=_CLOSED)
class MemoryFields:
    """A model as it stands in a file, under its name."""

    memory: Free


@dataclass(frozen=True, slots=True, config=_CLOSED)
class StageFields:
    """A stage as it stands in a file."""

    name: Name
    class_: Name | None = Field(default=None, alias="class")
    function: Name | None = None
    with_: dict[Name, Free] | None = Field(default=None, alias="with")
    takes: Free = None
    model: Name | None = None
    seconds: SecondsTable | None = None
    input_bytes: Bytes | None = None
    output_bytes: Bytes | None = None


@dataclass(frozen=True, slots=True, config=_CLOSED)
class WorkflowFields:
    """A workflow as it stands in a file, under its name."""

    stages: list[StageFields]
    inputs: Free = None
    edges: list[tuple[Name, Name]] | None = None
    returns: Free = None
    slo: Free = None
    samples: Name | None = None


@dataclass(frozen=True, slots=True, config=_CLOSED)
class ApplicationFile:
    """The fields of an application file."""

    workflows: dict[Name, WorkflowFields]
    models: dict[Name, MemoryFields] | None = None
    name: Name | None = None


FORM: Form[ApplicationFile] = Form(
    ApplicationFile,
    {
        "": 'an application, as in {"workflows": {"read": {"stages": [{"name": "a", "class": "module:A"}]}}}',
        "name": A_NAME,
        "models": "an object of models by name, as in {detector: {memory: 40MB}}",
        "models.*": "an object, as in {memory: 40MB}",
        "models.*.memory": MEMORY,
        "workflows": "an object of workflows by name",
        "workflows.*": "an object with stages",
        "workflows.*.inputs": "a list of names, or types by name, as in {image: bytes}",
        "workflows.*.edges": 'a list of pairs of stage names, as in [["detect", "read"]]',
        "workflows.*.edges.*": 'two names of stages, as in ["detect", "read"]',
        "workflows.*.edges.*.*": "the name of a stage",
        "workflows.*.returns": "the name of a stage, or a list or an object of such",
        "workflows.*.slo": A_SPAN,
        "workflows.*.samples": "the import path of a function, as in 'documents:samples'",
        "workflows.*.stages": "a list of stages",
        "workflows.*.stages.*": 'an object, as in {"name": "detect", "class": "documents:Detect"}',
        "workflows.*.stages.*.name": A_NAME,
        "workflows.*.stages.*.class": "the import path of a class, as in 'documents:Detect'",
        "workflows.*.stages.*.function": "the import path of a function, as in 'documents:join'",
        "workflows.*.stages.*.with": "what the class's constructor takes, by name",
        "workflows.*.stages.*.takes": "a list of names of inputs and stages, or an object of such",
        "workflows.*.stages.*.model": "the name of its model",
        "workflows.*.stages.*.seconds": SECONDS,
        "workflows.*.stages.*.input_bytes": A_SIZE,
        "workflows.*.stages.*.output_bytes": A_SIZE,
    },
    {
        "": ApplicationFile,
        "models.*": MemoryFields,
        "workflows.*": WorkflowFields,
        "workflows.*.stages.*": StageFields,
    },
)
