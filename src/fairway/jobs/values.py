"""What the values of a job's description have to be, and how each is read; `description` has the fields of them."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, Field, PlainSerializer, PlainValidator, WithJsonSchema

from fairway.documents import Expected, shown
from fairway.errors import InputError
from fairway.jobs.accelerators import AcceleratorRequest
from fairway.jobs.arrays import MOST_JOBS, ArrayIndexes
from fairway.jobs.webhooks import AN_ADDRESS, webhook
from fairway.magnitudes import FACTORS
from fairway.quantities import A_MEMORY, A_NUMBER_OF_CPUS, A_SPAN, cpus_of, memory_of, seconds_of

_REFERENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
LONGEST_NAME = 63
"""Characters of the name of a job."""

_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_NAME - 1}}}")
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    rf"(?:(?:localhost|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+|[A-Za-z0-9.-]+(?=:))(?::[0-9]+)?/)?{_PART}(?:/{_PART})*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)
_LONGEST_IMAGE = 512
MOST_DIRECTORIES = 100
SOME_DIRECTORIES = f"a list of up to {MOST_DIRECTORIES} directories, as in [/data]"
AN_IMAGE = "the name of a container image, in lower case, as in 'docker.io/library/python:3.12'"
_OURS = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "CUDA_VISIBLE_DEVICES"}

MOST_LABELS = 32
"""Labels of one job."""

# How values are read. An error that is raised here does not yet say in which field; the form adds that.


def _command(run: object) -> str | tuple[str, ...]:
    words = [run] if isinstance(run, str) else list(run) if isinstance(run, list | tuple) else run
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise InputError(f"{shown(run)} given, expected a command, as in 'python train.py', or a list of its words")
    if not words or not words[0].strip():
        raise InputError("nothing to run given, expected a command, as in 'python train.py'")
    if "\0" in "".join(words):
        raise InputError("a character of code 0 given, which no command can have")
    return run if isinstance(run, str) else tuple(words)


def job_name(name: str) -> str:
    """The name itself, if it can be one of a job; names become directories, so a path is refused."""
    if _NAME.fullmatch(name):
        return name
    why = "it must not be a path" if "/" in name or "\\" in name or set(name) == {"."} else "it is not one"
    raise InputError(
        f"'{name}' given, but {why}; expected up to 63 letters, digits, '.', '_' and '-', a letter or digit first"
    )


def variable_name(name: str) -> str:
    """The name itself, if jobs may set a variable of this name."""
    if not _VARIABLE.fullmatch(name):
        raise InputError("not the name of a variable; use letters, digits and '_', no digit first")
    if name.startswith("FAIRWAY_") or name in _OURS:
        raise InputError("set by Fairway itself; take it out")
    return name


def _variable_value(value: object) -> str:
    if value is None:
        raise InputError("no value given, expected text; write '' for an empty one")
    if not isinstance(value, str | int | float) or (isinstance(value, float) and not math.isfinite(value)):
        raise InputError(f"{shown(value)} given, expected text or a finite number")
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if "\0" in text:
        raise InputError("a character of code 0 given, which no variable can have")
    return text


def is_url(text: str) -> bool:
    """Whether a text is a URL, and no path."""
    return _URL.match(text) is not None


def _labels(given: object) -> dict[str, str]:
    if not isinstance(given, dict):
        raise InputError(f"{shown(given)} given, expected labels by name, as in {{sweep: lr}}")
    if len(given) > MOST_LABELS:
        raise InputError(f"{len(given)} labels given, expected at most {MOST_LABELS}")
    return {label_part(name): label_part(value) for name, value in given.items()}


def label_part(given: object) -> str:
    """The name or the value of a label, if it can be one."""
    text = str(given).lower() if isinstance(given, bool) else str(given) if isinstance(given, int | float) else given
    if not isinstance(text, str) or not _LABEL.fullmatch(text):
        raise InputError(
            f"{shown(given)} given, expected names and values of 1 to 63 letters, digits, '.', '_', '-' and '/', "
            "a letter or digit first and last"
        )
    return text


def _matrix(given: object) -> dict[str, tuple[str, ...]]:
    if not isinstance(given, dict) or not given:
        raise InputError(f"{shown(given)} given, expected lists of values by variable, as in {{LR: [0.1, 0.01]}}")
    matrix: dict[str, tuple[str, ...]] = {}
    for name, values in given.items():
        if not isinstance(values, list | tuple) or not values:
            raise InputError(f"{shown(name)}: {shown(values)} given, expected a list of values, as in [0.1, 0.01]")
        try:
            matrix[variable_name(name)] = tuple(map(_variable_value, values))
        except InputError as error:
            raise InputError(f"{shown(name)}: {error}") from None
    count = math.prod(map(len, matrix.values()))
    if count > MOST_JOBS:
        raise InputError(f"a matrix of {shown(count)} jobs given; at most {MOST_JOBS} are made at once")
    return matrix


def _job_references(given: object) -> tuple[str, ...]:
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list | tuple) or len(names) > MOST_JOBS:
        raise InputError(
            f"{shown(given)} given, expected up to {MOST_JOBS} ids or names of jobs, as in [job-3, prepare]"
        )
    for name in names:
        if not isinstance(name, str) or not _REFERENCE.fullmatch(name):
            raise InputError(f"{shown(name)} given, expected the id or name of a job, as in [job-3, prepare]")
    return tuple(dict.fromkeys(names))


def _image(given: object) -> str:
    if not isinstance(given, str) or len(given) > _LONGEST_IMAGE or not _IMAGE.fullmatch(given):
        raise InputError(f"{shown(given)} given, expected {AN_IMAGE}")
    return given


def _directories(given: object) -> tuple[str, ...]:
    if not isinstance(given, list | tuple) or len(given) > MOST_DIRECTORIES:
        raise InputError(f"{shown(given)} given, expected {SOME_DIRECTORIES}")
    for path in given:
        if not isinstance(path, str) or not path.strip("/") or not path.startswith("/") or "\0" in path:
            raise InputError(f"{shown(path)} given, expected the whole path of a directory, as in '/data'")
    return tuple(dict.fromkeys(given))


def _deadline(given: object) -> float | datetime:
    time = given
    if isinstance(given, str) and re.match(r"\d{4}-", given):
        try:
            time = datetime.fromisoformat(given)
        except ValueError:
            raise InputError(f"'{given}' given, expected a time such as '2027-01-31T18:00+01:00'") from None
    if not isinstance(time, datetime):
        try:
            return seconds_of(given)
        except InputError as error:
            raise InputError(f"{error}; or a time with its zone, such as '2027-01-31T18:00+01:00'") from None
    if time.tzinfo is None:
        raise InputError(f"'{given}' given without a time zone; add one, as in '{given}+00:00' or '{given}Z'")
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise InputError(f"'{given}' given, expected a time of the years 1 to 9999 in every time zone") from None


# What values have to be.

_SPAN_OR_TEXT: dict[str, Any] = {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string"}]}

Text = Annotated[str, Field(min_length=1)]
Command = Annotated[
    str | tuple[str, ...],
    PlainValidator(_command),
    PlainSerializer(lambda run: run if isinstance(run, str) else list(run)),
    Expected("the command to run, as in 'python train.py', or a list of its words"),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "minLength": 1},
                {"type": "array", "items": {"type": "string"}, "minItems": 1},
            ]
        }
    ),
]
Directory = Annotated[Text, Expected("a directory")]
Directories = Annotated[
    tuple[str, ...],
    PlainValidator(_directories),
    PlainSerializer(list),
    Expected(SOME_DIRECTORIES),
    WithJsonSchema({"type": "array", "items": {"type": "string"}, "maxItems": MOST_DIRECTORIES}),
]
Image = Annotated[
    str,
    PlainValidator(_image),
    Expected(AN_IMAGE),
    WithJsonSchema({"type": "string", "minLength": 1}),
]
Accelerators = Annotated[
    AcceleratorRequest,
    PlainValidator(AcceleratorRequest.read),
    PlainSerializer(str),
    Expected("types and a count, a part or a size, as in 'A100:2', '[A100, V100]:2', {A100: 0.5} or 'A100:20GB'"),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array"}, {"type": "object"}]}),
]
Cpus = Annotated[
    float,
    PlainValidator(cpus_of),
    Expected(A_NUMBER_OF_CPUS),
    WithJsonSchema({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string"}]}),
]
Memory = Annotated[
    int,
    PlainValidator(memory_of),
    Expected(A_MEMORY),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 2**20}, {"type": "string"}]}),
]
Variables = Annotated[
    dict[
        Annotated[str, AfterValidator(variable_name)],
        Annotated[
            str,
            PlainValidator(_variable_value),
            Expected("text or a number"),
            WithJsonSchema({"anyOf": [{"type": kind} for kind in ("string", "number", "boolean")]}),
        ],
    ],
    Expected("variables by name, as in {DATA: /data}"),
]
Weight = Annotated[
    float,
    Field(ge=FACTORS.least, le=FACTORS.most),
    Expected(f"a number above 0, from {FACTORS}; a job of weight 2 gets twice the share of one of weight 1"),
]
Span = Annotated[float, PlainValidator(seconds_of), Expected(A_SPAN), WithJsonSchema(_SPAN_OR_TEXT)]
Deadline = Annotated[
    float | datetime,
    PlainValidator(_deadline),
    PlainSerializer(lambda time: time.isoformat() if isinstance(time, datetime) else time),
    Expected(f"{A_SPAN} after submission, or a time with its zone such as '2027-01-31T18:00+01:00'"),
    WithJsonSchema(_SPAN_OR_TEXT),
]
JobType = Annotated[Text, Expected("the name of a job type in the table of profiles")]
Throughputs = Annotated[
    dict[
        Text,
        Annotated[
            float,
            Field(ge=0, le=FACTORS.most),
            AfterValidator(FACTORS.checked),
            Expected(f"a number of at least 0, of a size from {FACTORS} (steps per second)"),
        ],
    ],
    Expected("steps per second by accelerator type, as in {v100: 4.1, k80: 0.9}"),
]
Webhook = Annotated[
    str,
    PlainValidator(webhook),
    Expected(AN_ADDRESS),
    WithJsonSchema({"type": "string", "format": "uri"}),
]
Labels = Annotated[
    dict[str, str],
    PlainValidator(_labels),
    Expected("labels by name, as in {sweep: lr}"),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": MOST_LABELS}),
]
Indexes = Annotated[
    ArrayIndexes,
    PlainValidator(ArrayIndexes.read),
    PlainSerializer(str),
    Expected("indexes such as '0-9', '0-9:2' or '0-99%4'"),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 0}]}),
]
Matrix = Annotated[
    dict[str, tuple[str, ...]],
    PlainValidator(_matrix),
    PlainSerializer(lambda matrix: {name: list(values) for name, values in matrix.items()}),
    Expected("lists of values by variable, as in {LR: [0.1, 0.01]}"),
    WithJsonSchema(
        {
            "type": "object",
            "additionalProperties": {
                "type": "array",
                "items": {"anyOf": [{"type": kind} for kind in ("string", "number", "boolean")]},
                "minItems": 1,
            },
        }
    ),
]
JobReferences = Annotated[
    tuple[str, ...],
    PlainValidator(_job_references),
    PlainSerializer(list),
    Expected("ids or names of jobs, as in [job-3, prepare]"),
    WithJsonSchema(
        {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "maxItems": MOST_JOBS}]}
    ),
]
