"""Reads the description of a training job that people submit, in YAML or JSON, with SkyPilot's names where it has one.

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

Only `run` is needed. How fast the job runs is given by `throughputs` (steps per second of the whole gang), or by
`job_type`, its name in the table of profiles, or measured as it goes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass as plain_dataclass
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from fairway.cluster import Cluster
from fairway.documents import A_NAME, Form, Name, about, json_of, shown
from fairway.errors import InputError
from fairway.jobs import Job
from fairway.live.accelerator_request import AcceleratorRequest
from fairway.profiles.tables import ThroughputTable
from fairway.quantities import A_SPAN, seconds_of

T = TypeVar("T")

_CLOSED = ConfigDict(extra="forbid", allow_inf_nan=False)
_MOST_STEPS = 10**15
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OURS = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "CUDA_VISIBLE_DEVICES"}
_BRACKETS = re.compile(r"^(\s*(?:resources:\s*\{\s*)?accelerators:\s*)(\[[^\[\]\n]*\]\s*:\s*\d+)", re.MULTILINE)
_UNKNOWN_RATE = 1.0
"""Steps per second on every type, where nobody knows better: all types are alike until the job was measured."""

Free: TypeAlias = Any
"""A value of several forms, which is read after the rest."""

Weight = Annotated[float, Field(gt=0, le=1e6)]


@dataclass(frozen=True, slots=True, config=_CLOSED)
class ResourceFields:
    """What the job needs."""

    accelerators: Free = None


@dataclass(frozen=True, slots=True, config=_CLOSED)
class CheckpointFields:
    """Where and how often it saves."""

    directory: Name | None = None
    interval: Free = None
    seconds: Free = None


@dataclass(frozen=True, slots=True, config=_CLOSED)
class JobFields:
    """A job as it stands in a file."""

    run: Free
    kind: Literal["training"] | None = None
    name: Name | None = None
    setup: Name | None = None
    workdir: Name | None = None
    envs: dict[Name, Free] | None = None
    resources: ResourceFields | None = None
    num_nodes: int | None = None
    team: Name | None = None
    weight: Weight | None = None
    priority: Weight | None = None
    deadline: Free = None
    slo: Free = None
    preemptible: bool | None = None
    retries: Annotated[int, Field(ge=0, le=1000)] | None = None
    checkpoint: CheckpointFields | None = None
    grace: Free = None
    job_type: Name | None = None
    profile: Name | None = None
    steps: Annotated[int, Field(ge=1, le=_MOST_STEPS)] | None = None
    throughputs: dict[Name, Annotated[float, Field(ge=0)]] | None = None


_FORM: Form[JobFields] = Form(
    JobFields,
    {
        "": "a job, as in 'run: python train.py'",
        "run": "the command to run, as in 'python train.py', or a list of its words",
        "kind": "'training'",
        "name": A_NAME,
        "setup": "a command to run before, as in 'pip install -r requirements.txt'",
        "workdir": "a directory to run in",
        "envs": "variables by name, as in {DATA: /data}",
        "envs.*": "text or a number",
        "resources": "an object, as in {accelerators: A100:2}",
        "resources.accelerators": "types and a count, as in 'A100:2', '[A100, V100]:2' or {A100: 2}",
        "num_nodes": "1, or nothing",
        "team": "the name of a team",
        "weight": "a number above 0; a job of weight 2 gets twice the share of one of weight 1",
        "priority": "a number above 0, the same as weight",
        "deadline": f"{A_SPAN} after submission, or a time with its zone such as '2027-01-31T18:00+01:00'",
        "slo": A_SPAN,
        "preemptible": "true or false",
        "retries": "a whole number from 0 to 1000",
        "checkpoint": "an object, as in {interval: 10m, directory: /data/checkpoints}",
        "checkpoint.directory": "a directory",
        "checkpoint.interval": A_SPAN,
        "checkpoint.seconds": A_SPAN,
        "grace": A_SPAN,
        "job_type": "the name of a job type in the table of profiles",
        "profile": "the name of a job type in the table of profiles, the same as job_type",
        "steps": f"a whole number from 1 to {_MOST_STEPS} (steps of the whole gang)",
        "throughputs": "steps per second by accelerator type, as in {v100: 4.1, k80: 0.9}",
        "throughputs.*": "a number of at least 0 (steps per second)",
    },
    {"": JobFields, "resources": ResourceFields, "checkpoint": CheckpointFields},
)


@plain_dataclass(frozen=True, slots=True)
class JobSpec:
    """A training job as it was submitted.

    `run` is text for a shell, or a command and its arguments. `checkpoint_seconds` is how long the job may take to save
    when it is preempted, `grace_seconds` how long after SIGTERM it is killed. `slo_seconds` counts from submission;
    `deadline` is a time. A job that is not `preemptible` keeps its workers until it ends.
    """

    run: str | tuple[str, ...]
    name: str | None = None
    setup: str | None = None
    workdir: str | None = None
    envs: Mapping[str, str] = field(default_factory=dict)
    accelerators: AcceleratorRequest = field(default_factory=AcceleratorRequest)
    team: str | None = None
    weight: float = 1.0
    slo_seconds: float | None = None
    deadline: datetime | None = None
    preemptible: bool = True
    retries: int = 3
    checkpoint_directory: str | None = None
    checkpoint_every_seconds: float | None = None
    checkpoint_seconds: float = 60.0
    grace_seconds: float = 10.0
    job_type: str | None = None
    steps: int | None = None
    throughputs: Mapping[str, float] | None = None

    def document(self) -> dict[str, Any]:
        """The description that reads as this, in the fields of YAML."""
        request = self.accelerators
        checkpoint = {
            "directory": self.checkpoint_directory,
            "interval": self.checkpoint_every_seconds,
            "seconds": self.checkpoint_seconds,
        }
        fields = {
            "run": self.run if isinstance(self.run, str) else list(self.run),
            "name": self.name,
            "setup": self.setup,
            "workdir": self.workdir,
            "envs": dict(self.envs) or None,
            "resources": {"accelerators": dict.fromkeys(request.types, request.count)} if request.types else None,
            "team": self.team,
            "weight": self.weight,
            "deadline": self.slo_seconds if self.deadline is None else self.deadline.isoformat(),
            "preemptible": self.preemptible,
            "retries": self.retries,
            "checkpoint": {name: value for name, value in checkpoint.items() if value is not None},
            "grace": self.grace_seconds,
            "job_type": self.job_type,
            "steps": self.steps,
            "throughputs": None if self.throughputs is None else dict(self.throughputs),
        }
        return {name: value for name, value in fields.items() if value is not None}

    def seconds_left(self, submitted: datetime) -> float | None:
        """From submission to the deadline; 0 or less if it has passed, None if there is none."""
        return self.slo_seconds if self.deadline is None else (self.deadline - submitted).total_seconds()

    def rates(self, cluster: Cluster, table: ThroughputTable | None = None) -> dict[str, float]:
        """Steps per second on each type of the cluster that will do; refuses what can never run there."""
        count = self.accelerators.count
        types = _in("resources.accelerators", self.accelerators.among, cluster.types)
        most = max((cluster.workers[name] for name in types), default=0)
        if count > most:
            raise InputError(
                f"resources.accelerators: {count} workers of one type asked for, but this cluster has at most {most}"
            )
        if self.throughputs is not None:
            given = {name.lower(): rate for name, rate in self.throughputs.items()}
            rates = {name: given.get(name.lower(), 0.0) for name in types}
        elif self.job_type is not None and table is not None:
            known = _in("job_type", lambda job_type: table.rates(job_type, count), self.job_type)
            rates = {name: known.get(name, 0.0) for name in types}
        else:
            rates = dict.fromkeys(types, _UNKNOWN_RATE)
        if not any(rates.values()):
            source = "throughputs" if self.throughputs is not None else "job_type"
            raise InputError(f"{source}: no rate above 0 on {' or '.join(types)}; give one for a type that will do")
        return rates

    def job(self, job_id: str, cluster: Cluster, submitted: datetime, table: ThroughputTable | None = None) -> Job:
        """The job as policies and the engine see it."""
        return Job(
            id=job_id,
            throughputs=self.rates(cluster, table),
            scale_factor=self.accelerators.count,
            weight=self.weight,
            steps_left=self.steps,
            slo_seconds=self.seconds_left(submitted),
            entity=self.team,
            job_type=self.job_type,
            preemptible=self.preemptible,
        )


def parse_job_spec(text: str | bytes, source: str) -> JobSpec:
    """Read a job from YAML or JSON; `source` is the name of the text in errors."""
    fields = _FORM.read(_with_quotes(text), source)
    try:
        return _spec(fields)
    except InputError as error:
        raise about(source, error) from None


def job_document(text: str | bytes, source: str) -> Any:
    """A job as JSON says it, whichever it was written in; written as JSON again, `parse_job_spec` reads the same."""
    try:
        content = json_of(_with_quotes(text), source, _FORM.expected[""])
        return json.loads(content, parse_constant=_refuse_constant)
    except InputError as error:
        raise about(source, error) from None
    except ValueError as error:  # such as a number of thousands of digits
        raise about(source, InputError(f"not valid JSON: {error}; correct it")) from None


def _with_quotes(text: str | bytes) -> str | bytes:
    """People write [A100, V100]:2, which YAML does not take without quotes."""
    if isinstance(text, bytes):
        with suppress(UnicodeDecodeError):  # the form says what is wrong with it
            text = text.decode("utf-8-sig")
    return _BRACKETS.sub(r'\1"\2"', text) if isinstance(text, str) else text


def _refuse_constant(name: str) -> None:
    raise InputError(f"{name} given, expected a finite number")


def _spec(fields: JobFields) -> JobSpec:
    if fields.num_nodes not in {None, 1}:
        raise InputError(
            f"num_nodes: {fields.num_nodes} given, but a job runs on one node here; ask for more accelerators instead, "
            "as in 'resources: {accelerators: A100:4}'"
        )
    checkpoint = fields.checkpoint or CheckpointFields()
    given = fields.resources.accelerators if fields.resources is not None else None
    slo, deadline = _in("deadline" if fields.slo is None else "slo", _deadline, _one_of(fields, "deadline", "slo"))
    return JobSpec(
        run=_command(fields.run),
        name=_in("name", checked_name, fields.name),
        setup=fields.setup,
        workdir=str(Path(fields.workdir).expanduser()) if fields.workdir else None,
        envs=_variables(fields.envs or {}),
        accelerators=_in("resources.accelerators", AcceleratorRequest.read, given) or AcceleratorRequest(),
        team=fields.team,
        weight=_one_of(fields, "weight", "priority") or 1.0,
        slo_seconds=slo,
        deadline=deadline,
        preemptible=fields.preemptible is not False,
        retries=3 if fields.retries is None else fields.retries,
        checkpoint_directory=str(Path(checkpoint.directory).expanduser()) if checkpoint.directory else None,
        checkpoint_every_seconds=_in("checkpoint.interval", seconds_of, checkpoint.interval),
        checkpoint_seconds=_in("checkpoint.seconds", seconds_of, checkpoint.seconds) or 60.0,
        grace_seconds=_in("grace", seconds_of, fields.grace) or 10.0,
        job_type=_one_of(fields, "job_type", "profile"),
        steps=fields.steps,
        throughputs=fields.throughputs,
    )


def checked_name(name: str) -> str:
    """The name itself, if it can be one of a job; names become directories, so a path is refused."""
    if _NAME.fullmatch(name):
        return name
    why = "it must not be a path" if "/" in name or "\\" in name or set(name) == {"."} else "it is not one"
    raise InputError(
        f"'{name}' given, but {why}; expected up to 63 letters, digits, '.', '_' and '-', a letter or digit first"
    )


def _command(run: object) -> str | tuple[str, ...]:
    words = [run] if isinstance(run, str) else run
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise InputError(
            f"run: {shown(run)} given, expected a command, as in 'python train.py', or a list of its words"
        )
    if not words or not words[0].strip():
        raise InputError("run: nothing to run given, expected a command, as in 'python train.py'")
    if "\0" in "".join(words):
        raise InputError("run: a character of code 0 given, which no command can have")
    return run if isinstance(run, str) else tuple(words)


def _variables(envs: Mapping[str, object]) -> dict[str, str]:
    variables: dict[str, str] = {}
    for name, value in envs.items():
        where = f"envs.{name}"
        if not _VARIABLE.fullmatch(name):
            raise InputError(f"{where}: not the name of a variable; use letters, digits and '_', no digit first")
        if name.startswith("FAIRWAY_") or name in _OURS:
            raise InputError(f"{where}: set by Fairway itself; take it out")
        if value is None:
            raise InputError(f"{where}: no value given, expected text; write '' for an empty one")
        if not isinstance(value, str | int | float):
            raise InputError(f"{where}: {shown(value)} given, expected text or a number")
        variables[name] = str(value).lower() if isinstance(value, bool) else str(value)
        if "\0" in variables[name]:
            raise InputError(f"{where}: a character of code 0 given, which no variable can have")
    return variables


def _deadline(given: object) -> tuple[float | None, datetime | None]:
    if isinstance(given, str) and re.match(r"\d{4}-", given):
        try:
            time = datetime.fromisoformat(given)
        except ValueError:
            raise InputError(f"'{given}' given, expected a time such as '2027-01-31T18:00+01:00'") from None
        if time.tzinfo is None:
            raise InputError(f"'{given}' given without a time zone; add one, as in '{given}+00:00' or '{given}Z'")
        return None, time.astimezone(UTC)
    return seconds_of(given), None


def _one_of(fields: JobFields, name: str, other: str) -> Any:
    """The value of two fields that mean the same."""
    one, two = getattr(fields, name), getattr(fields, other)
    if one is not None and two is not None:
        raise InputError(f"{other}: given beside {name}, which says the same; keep one of them")
    return one if one is not None else two


def _in(where: str, read: Callable[[Any], T], given: Any) -> Any:
    """Read a value that may be left out; an error gets the name of the field in front."""
    if given is None:
        return (None, None) if read is _deadline else None
    try:
        return read(given)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
