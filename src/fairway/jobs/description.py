"""The description of a training job: every field of it, declared once, with SkyPilot's names where it has one.

    name: resnet
    run: python train.py --epochs 30
    workdir: ~/vision
    envs: {DATA: /data/imagenet}
    resources: {accelerators: [A100, V100]:2}
    team: vision
    steps: 50000
    deadline: 8h
    checkpoint: {interval: 10m}
    throughputs: {a100: 12.5, v100: 4.1}

A type says what a value has to be and how it is read, a field what it means. Files, the REST API, the Python client and
`fairway submit` read jobs by this model, and errors, the OpenAPI document, the help of the command and the table in the
documentation come from it. A description is stored and sent as its `document`, whichever way it was written.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    model_validator,
)

from fairway.documents import A_NAME, Expected, Form, about, names_of
from fairway.errors import InputError
from fairway.jobs.accelerators import AcceleratorRequest
from fairway.jobs.values import (
    Accelerators,
    Command,
    Cpus,
    Deadline,
    Directories,
    Directory,
    Image,
    Indexes,
    JobReferences,
    JobType,
    Labels,
    Matrix,
    Memory,
    Span,
    Text,
    Throughputs,
    Variables,
    Webhook,
    Weight,
    is_url,
    job_name,
)
from fairway.magnitudes import MOST_STEPS

_BRACKETS = re.compile(
    r"^([ \t]*(?:resources:[ \t]*\{[ \t]*)?accelerators:[ \t]*)(\[[^\[\]\n]*\][ \t]*:[ \t]*[\d.]+)", re.MULTILINE
)

MOST_DOCUMENTS = 100
"""Descriptions in one submission; each may be an array."""

MOST_NODES = 1000


class _Part(BaseModel):
    """An object of a description. A field that is null counts as not given."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: Any) -> Any:
        if not isinstance(given, dict) or None not in given.values():
            return given
        known = names_of(cls)
        return {name: value for name, value in given.items() if value is not None or name not in known}


class Resources(_Part):
    """What the job needs."""

    accelerators: Accelerators = Field(
        default_factory=AcceleratorRequest,
        description="The accelerator types that will do, and how many of one type it needs, which part of one as in "
        "`A100:0.5`, or how much of the memory of one as in `A100:20GB`; one of any type otherwise.",
        examples=["V100", "V100:2", "V100:0.5", "V100:8GB", "[A100, V100]:2", {"A100": 2}],
    )
    cpus: Cpus | None = Field(
        default=None,
        description="CPUs of its machine that it may use, all of its processes together; not counted otherwise.",
        examples=[4, 0.5],
    )
    memory: Memory | None = Field(
        default=None,
        description="Memory of its machine that it may use, all of its processes together; not counted otherwise.",
        examples=["16GB"],
    )


class Checkpoint(_Part):
    """Where and how often the job saves."""

    interval: Span | None = Field(
        default=None, description="How often to save, for jobs that use `fairway.leased`.", examples=["10m"]
    )
    directory: Directory | None = Field(
        default=None,
        description="Where its checkpoints go: a directory, or a URL that fsspec knows; in Fairway's own directory "
        "otherwise.",
        examples=["/data/checkpoints", "s3://bucket/resnet"],
    )
    seconds: Span = Field(
        default=60.0, description="How long saving may take when it is preempted, in seconds or as a span."
    )

    @property
    def at_url(self) -> bool:
        """Whether its directory is a URL."""
        return self.directory is not None and is_url(self.directory)


AN_ENVIRONMENT = "one of both, as in {uv: requirements.txt} or {image: 'docker.io/library/python:3.12'}"


class Environment(_Part):
    """What the job runs in."""

    uv: Annotated[Text, Expected("a file of requirements, as in 'requirements.txt'")] | None = Field(
        default=None,
        description="A file of requirements: a virtual environment with them is built once, and found again.",
        examples=["requirements.txt"],
    )
    image: Image | None = Field(
        default=None,
        description="A container image, which podman runs, and fetches where it is not there.",
        examples=["docker.io/library/python:3.12"],
    )
    mounts: Directories = Field(
        default=(),
        description="Directories of the machine that the container has under the same paths, besides those of the job.",
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Environment:
        given = [name for name in ("uv", "image") if getattr(self, name) is not None]
        if len(given) != 1:
            what = "both uv and image" if given else "neither uv nor image"
            raise InputError(f"{what} given, expected {AN_ENVIRONMENT}")
        if self.mounts and self.image is None:
            raise InputError("mounts: given without an image, but only containers have mounts; take it out")
        return self


def _with_other_names(schema: dict[str, Any], model: type[BaseModel]) -> None:
    """Let a JSON schema know the second names of fields."""
    for name, field in names_of(model).items():
        if name != field:
            schema["properties"][name] = {
                **schema["properties"][field],
                "title": name,
                "description": f"The same as `{field}`.",
            }


class JobDescription(_Part):
    """A job to run; only `run` is needed."""

    model_config = ConfigDict(title="JobDescription", json_schema_extra=_with_other_names)

    run: Command = Field(
        description="The command: text for a shell, or a list of its words.",
        examples=["python train.py --epochs 30", ["python", "train.py"]],
    )
    kind: Annotated[Literal["training"], Expected("'training'")] = Field(
        default="training", description="What sort of work it is; `training` is the only one."
    )
    name: Annotated[Text, AfterValidator(job_name), Expected(A_NAME)] | None = Field(
        default=None,
        description="Its name for people: up to 63 letters, digits, `.`, `_` and `-`.",
        examples=["resnet"],
    )
    labels: Labels = Field(
        default={},
        description="By what it is found besides its name, by `ls`, `cancel`, `logs` and `explain`.",
        examples=[{"sweep": "lr"}],
    )
    setup: Annotated[Text, Expected("a command to run before, as in 'pip install -r requirements.txt'")] | None = Field(
        default=None, description="A command to run before.", examples=["pip install -r requirements.txt"]
    )
    environment: Annotated[Environment, Expected(AN_ENVIRONMENT)] | None = Field(
        default=None,
        description="What it runs in, the environment of the server otherwise: a virtual environment with the packages "
        "of a file of requirements, which is built once and found again, or a container image, which podman runs.",
        examples=[{"uv": "requirements.txt"}, {"image": "docker.io/library/python:3.12"}],
    )
    workdir: Annotated[Text, Expected("a directory to run in")] | None = Field(
        default=None,
        description="The directory to run in; where `fairway submit` ran otherwise.",
        examples=["~/vision"],
    )
    envs: Variables = Field(default={}, description="Variables for its environment.", examples=[{"DATA": "/data"}])
    array: Indexes | None = Field(
        default=None,
        description="One job for each index, which it finds in `FAIRWAY_ARRAY_INDEX`; `%4` lets at most four be "
        "scheduled at a time.",
        examples=["0-9", "0-9:2", "0-99%4"],
    )
    matrix: Matrix | None = Field(
        default=None,
        description="One job for each combination of these values, which it finds in variables of these names.",
        examples=[{"LR": [0.1, 0.01], "SEED": [0, 1, 2]}],
    )
    after: JobReferences = Field(
        default=(),
        description="Jobs that have to end before it is scheduled, by id or name, whichever way they end.",
        examples=[["job-3"]],
    )
    afterok: JobReferences = Field(
        default=(),
        description="Jobs that have to succeed before it is scheduled; if one does not, this one is cancelled.",
        examples=[["prepare"]],
    )
    resources: Annotated[Resources, Expected("an object, as in {accelerators: A100:2}")] = Field(
        default=Resources(), description="What it needs."
    )
    num_nodes: Annotated[
        int, Field(ge=1, le=MOST_NODES), Expected(f"a whole number from 1 to {MOST_NODES}, as in 2")
    ] = Field(
        default=1,
        description="How many machines it may span, each with so many accelerators: `V100:2` on 2 is a gang of 4. Its "
        "ranks are on fewer machines where those have room.",
        examples=[2],
    )
    team: Annotated[Text, Expected("the name of a team")] | None = Field(
        default=None, description="The team that it belongs to; that of the token otherwise.", examples=["vision"]
    )
    weight: Weight = Field(
        default=1.0,
        validation_alias=AliasChoices("weight", "priority"),
        description="Its weight; 2 is worth twice the share of 1.",
    )
    priority_class: Annotated[Text, Expected("the name of a priority class")] | None = Field(
        default=None,
        description="A class of priority that the server has: jobs of a higher class come first.",
        examples=["urgent"],
    )
    steps: (
        Annotated[
            int,
            Field(ge=1, le=MOST_STEPS),
            Expected(f"a whole number from 1 to {MOST_STEPS} (steps of the whole gang)"),
        ]
        | None
    ) = Field(default=None, description="How long it is, in steps of the whole gang.", examples=[50000])
    deadline: Deadline | None = Field(
        default=None,
        validation_alias=AliasChoices("deadline", "slo"),
        description="By when it should have ended: a span after its submission, or a time with its zone.",
        examples=["8h", "2027-01-31T18:00+01:00"],
    )
    preemptible: Annotated[bool, Expected("true or false")] = Field(
        default=True, description="Whether it may be stopped; if not, it keeps its workers from its start to its end."
    )
    retries: Annotated[int, Field(ge=0, le=1000), Expected("a whole number from 0 to 1000")] = Field(
        default=3, description="How often it may fail and be started again, after a growing pause."
    )
    checkpoint: Annotated[Checkpoint, Expected("an object, as in {interval: 10m, directory: /data/checkpoints}")] = (
        Field(default=Checkpoint(), description="Where and how often it saves.")
    )
    notify: Webhook | None = Field(
        default=None,
        description="An address that is told when it has ended, by a POST of JSON; at a host that the server allows.",
        examples=["https://hooks.example/fairway"],
    )
    grace: Span = Field(default=10.0, description="How long after SIGTERM it is killed, in seconds or as a span.")
    throughputs: Throughputs | None = Field(
        default=None, description="Steps per second of the whole gang, by type.", examples=[{"a100": 12.5, "v100": 4.1}]
    )
    job_type: JobType | None = Field(
        default=None,
        validation_alias=AliasChoices("job_type", "profile"),
        description="Its name in the table of profiles, instead of `throughputs`.",
        examples=["ResNet-50 (batch size 64)"],
    )

    @model_validator(mode="after")
    def _checkpoints_of_one_node(self) -> JobDescription:
        if self.checkpoint.at_url and self.num_nodes > 1:
            raise InputError(
                f"checkpoint.directory: '{self.checkpoint.directory}' given for a gang that may span {self.num_nodes} "
                "nodes, whose ranks have to see each other's checkpoints; give a directory that the nodes share"
            )
        return self

    @model_validator(mode="after")
    def _no_setup_of_images(self) -> JobDescription:
        if self.setup is not None and self.environment is not None and self.environment.image is not None:
            raise InputError("setup: given beside environment.image; put it into the image, or first into run")
        return self

    @model_validator(mode="after")
    def _one_kind_of_many(self) -> JobDescription:
        if self.matrix is None:
            return self
        if self.array is not None:
            raise InputError("array: given beside matrix, whose jobs are an array already; keep one of them")
        twice = next((name for name in self.matrix if name in self.envs), None)
        if twice is not None:
            raise InputError(f"matrix: '{twice}' given, which envs has as well; keep one of them")
        return self

    @property
    def many(self) -> bool:
        """Whether it stands for several jobs."""
        return self.matrix is not None or (self.array is not None and len(self.array) > 1)

    def document(self) -> dict[str, Any]:
        """The one form in which a description is stored and sent: the fields that were given, by their first names."""
        return self.model_dump(mode="json", exclude_unset=True)

    @property
    def accelerators(self) -> AcceleratorRequest:
        """How many workers it asks for on each of its machines, and of which types."""
        return self.resources.accelerators

    @property
    def workers(self) -> int:
        """How many workers it asks for in all."""
        return self.resources.accelerators.count * self.num_nodes

    @property
    def working_directory(self) -> str | None:
        """Where it runs on this machine."""
        return _at_home(self.workdir)

    @property
    def checkpoint_directory(self) -> str | None:
        """Where it saves on this machine, or at a URL, if it says so; there each job of an array has its own place."""
        named = self.checkpoint.directory
        if named is None or not self.checkpoint.at_url:
            return _at_home(named)
        alone = self.array is None or self.many
        return named if alone else f"{named.rstrip('/')}/{next(iter(self.array or ()))}"

    def seconds_left(self, submitted: datetime) -> float | None:
        """From submission to the deadline; 0 or less if it has passed, None if there is none."""
        return (self.deadline - submitted).total_seconds() if isinstance(self.deadline, datetime) else self.deadline


def _at_home(directory: str | None) -> str | None:
    return None if directory is None else str(Path(directory).expanduser())


_FORM = Form.of(JobDescription, "a job, as in 'run: python train.py'")


def parse_jobs(text: str | bytes, source: str) -> list[JobDescription]:
    """Read all jobs of a text: the documents of YAML, separated by `---`, or a list in JSON."""
    return _FORM.read_all(_with_quotes(text), source, most=MOST_DOCUMENTS)


def parse_job(text: str | bytes, source: str) -> JobDescription:
    """Read a job from YAML or JSON; `source` is the name of the text in errors."""
    return _FORM.read(_with_quotes(text), source)


def job_of(document: Mapping[str, Any], source: str) -> JobDescription:
    """Read a job from the fields of its document, such as a stored one."""
    try:
        text = json.dumps(dict(document), allow_nan=False)
    except (TypeError, ValueError) as error:
        found = _not_finite(document)
        why = f"cannot be written as JSON: {error}; use text, numbers, lists and mappings"
        raise about(source, InputError(why if found is None else f"{found} given, expected a finite number")) from None
    return _FORM.read(text, source)


def _not_finite(fields: Mapping[str, Any]) -> str | None:
    """The first number of a document that is none, with its field; None if there is none."""
    for name, value in fields.items():
        if isinstance(value, float) and not math.isfinite(value):
            return f"{name}: {value}"
        inner = _not_finite(value) if isinstance(value, Mapping) else None
        if inner is not None:
            return f"{name}.{inner}"
    return None


def _with_quotes(text: str | bytes) -> str | bytes:
    """People write [A100, V100]:2, which YAML does not take without quotes."""
    if isinstance(text, bytes):
        with suppress(UnicodeDecodeError):  # the form says what is wrong with it
            text = text.decode("utf-8-sig")
    return _BRACKETS.sub(r'\1"\2"', text) if isinstance(text, str) else text
