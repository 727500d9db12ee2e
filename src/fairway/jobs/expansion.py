"""From one description to the jobs that it stands for: those of an array, or of a matrix of values.

A job of an array is an ordinary job with one index (`array: 3`), its own name (`train-3`) and, if it comes from a
matrix, its own values in the environment. All of them have the name of the array in common.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

from fairway.errors import InputError
from fairway.jobs.arrays import ArrayIndexes
from fairway.jobs.description import JobDescription
from fairway.jobs.values import LONGEST_NAME

UNNAMED = "array"
"""What an array is called that has no name."""


@dataclass(frozen=True, slots=True)
class Member:
    """A job as it is stored, and its place in its array, counted from 0, with the array's name; None without one."""

    job: JobDescription
    array_name: str | None = None
    position: int | None = None


def count_of(job: JobDescription) -> int:
    """How many jobs a description stands for, without making them."""
    if job.matrix is not None:
        return prod(map(len, job.matrix.values()))
    return 1 if job.array is None else len(job.array)


def expanded(job: JobDescription) -> list[Member]:
    """The jobs that a description stands for: itself, if it is neither an array nor a matrix."""
    if job.matrix is not None:
        variables = [dict(zip(job.matrix, values, strict=True)) for values in product(*job.matrix.values())]
        indexes = ArrayIndexes((range(len(variables)),))
    elif job.array is not None and len(job.array) > 1:
        variables, indexes = [{}] * len(job.array), job.array
    else:
        return [Member(job)]
    name = job.name or UNNAMED
    longest = max(map(len, map(str, indexes)))
    if len(name) + 1 + longest > LONGEST_NAME:
        raise InputError(f"name: '{name}' given, which is too long for an array; leave room for '-' and the index")
    return [
        Member(_one(job, f"{name}-{index}", indexes.only(index), values), name, position)
        for position, (index, values) in enumerate(zip(indexes, variables, strict=True))
    ]


def _one(job: JobDescription, name: str, index: ArrayIndexes, values: Mapping[str, str]) -> JobDescription:
    fields = {"name": name, "array": index, "matrix": None, **({"envs": {**job.envs, **values}} if values else {})}
    one = job.model_copy(update=fields)
    one.model_fields_set.discard("matrix")
    return one
