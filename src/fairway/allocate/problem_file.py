"""Reads the problem of `fairway allocate`: the text of a JSON file in, a `Problem` out.

Nothing here opens a file: `parse_problem` gets the text and the name to use for it in errors. Types and ranges are
checked by pydantic, strictly (a number in quotes is refused, 2.0 is a whole number); what concerns several fields at
once is checked where the fields come together, in `Cluster` and `Problem.of`. Whatever is wrong becomes one line: where
it is, what was given, what was expected.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Annotated, Any

import numpy as np
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from fairway.allocate.arrays import FloatArray
from fairway.allocate.problem import Problem
from fairway.cluster import Cluster
from fairway.errors import InputError
from fairway.jobs import Entity, Job, Name, Pair

_MOST_WORKERS = 10**9
_AMOUNTS = 1e-30, 1e15
"""How small, if not 0, and how large steps and seconds may be."""
_FACTORS = 1e-9, 1e12
"""The same for rates, weights and prices."""
_LONGEST_VALUE = 40
_LONGEST_LINE = 400

Count = Annotated[int, Field(ge=0, le=_MOST_WORKERS)]
NodeSize = Annotated[int, Field(ge=1, le=_MOST_WORKERS)]
Dollars = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class ProblemFile:
    """The fields of a problem file, as they stand there; null is the same as left out."""

    workers: dict[Name, Count]
    jobs: list[Job]
    prices: dict[Name, Dollars] | None = None
    pairs: list[Pair] | None = None
    entities: dict[Name, Entity] | None = None
    workers_per_node: dict[Name, NodeSize] | None = None
    seed: Seed | None = None

    def problem(self) -> Problem:
        """The problem that the file describes; refuses what does not fit together."""
        cluster = Cluster(self.workers, self.prices or {}, self.workers_per_node or {})
        self._check_gangs()
        problem = Problem.of(cluster, self.jobs, self.pairs or (), self.entities, seed=self.seed or 0)
        _check_magnitudes(problem)
        return problem

    def _check_gangs(self) -> None:
        """Refuse a gang that is too large for every type.

        Without any worker that would be all of them. An empty cluster is no slip, so there every job just cannot run.
        """
        largest = max(self.workers.values(), default=0)
        for position, job in enumerate(self.jobs):
            if job.scale_factor > (largest or _MOST_WORKERS):
                raise InputError(
                    f"jobs[{position}].scale_factor: {_shown(job.scale_factor)} given, but no accelerator type has "
                    f"more than {largest} workers; lower it, add workers or take the job out"
                )


_PARSER = TypeAdapter(ProblemFile)

_RATES = 'an object of steps per second by accelerator type, as in {"v100": 4.0}'
_RATE = "a number >= 0 (steps per second)"
_NAME = "text of at least one character"

_EXPECTED = {
    "": 'an object, as in {"workers": {"v100": 2}, "jobs": [{"id": "a", "throughputs": {"v100": 4.0}}]}',
    "workers": 'an object of counts by accelerator type, as in {"v100": 2}',
    "workers.*": f"a whole number from 0 to {_MOST_WORKERS}",
    "jobs": "a list of jobs",
    "jobs.*": 'an object, as in {"id": "a", "throughputs": {"v100": 4.0}}',
    "jobs.*.id": _NAME,
    "jobs.*.throughputs": _RATES,
    "jobs.*.throughputs.*": _RATE,
    "jobs.*.scale_factor": "a whole number >= 1 (workers of its gang)",
    "jobs.*.weight": "a number > 0",
    "jobs.*.steps_left": "a number >= 0, or null",
    "jobs.*.elapsed": "a number >= 0 (seconds)",
    "jobs.*.isolated_elapsed": "a number >= 0 (seconds)",
    "jobs.*.slo_seconds": "a number (seconds), or null",
    "jobs.*.entity": f"{_NAME}, or null",
    "jobs.*.spread_throughputs": f"{_RATES}, or null",
    "jobs.*.spread_throughputs.*": _RATE,
    "jobs.*.job_type": f"{_NAME}, or null",
    "prices": 'an object of dollars per hour by accelerator type, as in {"v100": 0.74}',
    "prices.*": "a number > 0 (dollars per hour)",
    "pairs": "a list of pairs",
    "pairs.*": 'an object, as in {"jobs": ["a", "b"], "throughputs": {"v100": [3.0, 1.5]}}',
    "pairs.*.jobs": 'two job ids, as in ["a", "b"]',
    "pairs.*.jobs.*": "the id of a job",
    "pairs.*.throughputs": 'an object of two rates by accelerator type, as in {"v100": [3.0, 1.5]}',
    "pairs.*.throughputs.*": "two numbers >= 0 (steps per second), as in [3.0, 1.5]",
    "pairs.*.throughputs.*.*": _RATE,
    "entities": 'an object of entities by name, as in {"team-a": {"weight": 1.0}}',
    "entities.*": 'an object, as in {"weight": 1.0, "policy": "fairness"}',
    "entities.*.weight": "a number > 0",
    "entities.*.policy": '"fairness" or "fifo"',
    "entities.*.parent": "the name of an entity, or null",
    "workers_per_node": 'an object of node sizes by accelerator type, as in {"v100": 4}',
    "workers_per_node.*": f"a whole number from 1 to {_MOST_WORKERS}",
    "seed": "a whole number from 0 to 9223372036854775807",
}
"""What each field has to be; `*` stands for a position in a list or a name that the file chooses."""

_PARTS: Mapping[str, type[Any]] = {"": ProblemFile, "jobs.*": Job, "pairs.*": Pair, "entities.*": Entity}

_Path = tuple[int | str, ...]


def parse_problem(text: str | bytes, source: str) -> Problem:
    """Read the text of a problem file; `source` is its name in errors."""
    try:
        return _parse(_encoded(text)).problem()
    except InputError as error:
        raise InputError(f"{source}: {_shortened(str(error), _LONGEST_LINE)}") from None


def _encoded(text: str | bytes) -> bytes:
    """The text in UTF-8, without a byte order mark; refuses what is not text."""
    try:
        content = text.encode() if isinstance(text, str) else text.decode("utf-8-sig").encode()
    except UnicodeError:
        raise InputError("not text in UTF-8; save it as JSON in UTF-8") from None
    content = content.removeprefix(b"\xef\xbb\xbf")
    if not content.strip():
        raise InputError(f"empty, expected {_EXPECTED['']}")
    return content


def _parse(content: bytes) -> ProblemFile:
    try:
        file = _PARSER.validate_json(content, strict=True)
    except ValidationError as failure:
        problems = [
            problem
            for problem in failure.errors(include_url=False, include_context=True)
            if not (problem["type"] == "int_type" and _is_whole(problem["input"]))
        ]
        if problems:
            more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
            raise InputError(_line(problems[0]) + more) from None
        file = _parse_whole_floats(content)
    _check_repeated_names(content)
    return file


def _is_whole(value: object) -> bool:
    return isinstance(value, float) and value.is_integer()


def _parse_whole_floats(content: bytes) -> ProblemFile:
    """Read a file in which nothing is wrong but that some whole numbers are written as 2.0."""
    try:
        return _PARSER.validate_json(content)
    except ValidationError as failure:  # such as -2.0, which is whole but out of range
        raise InputError(_line(failure.errors(include_url=False)[0])) from None


def _line(problem: Mapping[str, Any]) -> str:
    """One problem that pydantic found, as where it is, what was given and what was expected."""
    kind: str = problem["type"]
    path: _Path = problem["loc"]
    value: object = problem["input"]
    if kind == "json_invalid":
        return f"not valid JSON: {problem['ctx']['error']}; correct it there"
    if path and path[-1] == "[key]":
        return f"{_written(path[:-2])}: a name with no characters given, expected {_NAME}"
    if kind == "missing" and isinstance(path[-1], int):  # too few values where there must be two
        path = path[:-1]
    elif kind == "missing":
        return f"{_written(path)}: missing, expected {_expected(path)}; add it"
    elif kind in {"unexpected_keyword_argument", "extra_forbidden"}:
        return f"{_written(path)}: no such field{_known_fields(path)}"
    return f"{_written(path)}: {_shown(value)} given, expected {_expected(path)}"


def _pattern(path: _Path) -> str:
    """The path with `*` for positions and names: only the first and the third step are names of fields."""
    return ".".join(str(step) if depth in {0, 2} else "*" for depth, step in enumerate(path))


def _expected(path: _Path) -> str:
    return _EXPECTED[_pattern(path)]


def _known_fields(path: _Path) -> str:
    known = [field.name for field in fields(_PARTS[_pattern(path[:-1])])]
    close = difflib.get_close_matches(str(path[-1]), known, n=1)
    return f", did you mean '{close[0]}'?" if close else f"; take it out or use one of {', '.join(known)}"


def _written(path: _Path) -> str:
    """The path as one would write it: jobs[3].throughputs.v100."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif re.fullmatch(r"[\w-]{1,40}", step):
            text += f".{step}" if text else step
        else:
            text += f"[{_shown(step)}]"
    return text or "the file"


def _shown(value: object) -> str:
    """A value from a file, short enough for a line."""
    match value:
        case list():
            return f"a list of {len(value)}"
        case dict():
            return "an object"
        case str() | bool() | None:
            return _shortened(json.dumps(value, ensure_ascii=False), _LONGEST_VALUE)
    return _shortened(str(value), _LONGEST_VALUE)


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _check_magnitudes(problem: Problem) -> None:
    """Refuse numbers that no cluster yields: their sums and ratios would overflow, or ask too much of a solver."""
    amounts = {
        "steps_left": problem.steps_left,
        "elapsed": problem.elapsed,
        "isolated_elapsed": problem.isolated_elapsed,
        "slo_seconds": problem.slo_seconds,
    }
    for name, column in amounts.items():
        _check_sizes(column, _AMOUNTS, lambda job, name=name: ("jobs", job, name))
    types = problem.types
    _check_sizes(problem.weights, _FACTORS, lambda job: ("jobs", job, "weight"))
    _check_sizes(problem.throughputs, _FACTORS, lambda job, column: ("jobs", job, "throughputs", types[column]))
    if problem.pairs is not None:
        _check_sizes(
            problem.pairs.rates, _FACTORS, lambda pair, column, _: ("pairs", pair, "throughputs", types[column])
        )
    if problem.dollars_per_hour is not None:
        _check_sizes(problem.dollars_per_hour, _FACTORS, lambda column: ("prices", types[column]))
    teams = list(problem.entities)
    team_weights = np.array([entity.weight for entity in problem.entities.values()], dtype=float)
    _check_sizes(team_weights, _FACTORS, lambda team: ("entities", teams[team], "weight"))


def _check_sizes(values: FloatArray, bounds: tuple[float, float], path: Callable[..., _Path]) -> None:
    least, most = bounds
    size = np.abs(values)
    extreme = np.argwhere((size > most) | ((size < least) & (size > 0)))
    if len(extreme):
        where = tuple(extreme[0].tolist())
        raise InputError(
            f"{_written(path(*where))}: {values[where]:g} given, expected a size from {least:g} to {most:g}; "
            "choose other units"
        )


def _check_repeated_names(content: bytes) -> None:
    """Refuse an object that names a field twice, which would silently hide one of the two values."""
    repeated: list[tuple[object, str]] = []

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            names = [name for name, _ in pairs]
            repeated.append((members, next(name for name in names if names.count(name) > 1)))
        return members

    document = json.loads(content, object_pairs_hook=collect, parse_int=float)
    if repeated:
        # An object is collected after those inside it, so the last one cannot be hidden by a repetition around it.
        where, name = repeated[-1]
        path = next(path for path, value in _values(document) if value is where)
        raise InputError(f"{_written((*path, name))}: given twice; keep one of them")


def _values(value: object, path: _Path = ()) -> Iterator[tuple[_Path, object]]:
    """Everything in a JSON document with its path, the outermost first."""
    yield path, value
    members: Iterator[tuple[int | str, object]] = iter(())
    if isinstance(value, dict):
        members = iter(value.items())
    elif isinstance(value, list):
        members = iter(enumerate(value))
    for step, member in members:
        yield from _values(member, (*path, step))
