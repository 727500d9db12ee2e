"""Reads the teams and their weights: in a few words, or from a file that can also say who belongs to whom.

The words are `vision=2,speech=1:fifo`. The file, in YAML, has the same and more:

    teams:
      research: {weight: 2}
      vision: {weight: 3, parent: research, quota: {v100: 4}}
      speech: {weight: 1, parent: research, policy: fifo}
    priority_classes:
      urgent: {value: 100, teams: [vision]}
      later: {value: -10}
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import ConfigDict, Field, PlainValidator
from pydantic.dataclasses import dataclass

from fairway.cli.given import read_given
from fairway.documents import Form, Name, shown
from fairway.errors import InputError
from fairway.jobs import Entity
from fairway.live.training.admission.priorities import PriorityClass
from fairway.live.training.admission.quotas import TOTAL
from fairway.magnitudes import FACTORS

_CLOSED = ConfigDict(extra="forbid", allow_inf_nan=False)
_MOST_ACCELERATORS = 1_000_000
_HIGHEST_CLASS = 1000
_A_QUOTA = (
    f"accelerators at a time, as in 4, or by type, as in {{v100: 4}}, whole numbers from 0 to {_MOST_ACCELERATORS}"
)
_TEAM = re.compile(r"\s*([^=,:]*[^=,:\s])\s*=\s*([^=,:\s]+)\s*(?::\s*(fifo|fairness)\s*)?")


def _quota(given: object) -> dict[str, int]:
    by_type: dict[str, Any] = given if isinstance(given, dict) else {TOTAL: given}
    for most in by_type.values():
        whole = isinstance(most, int) and not isinstance(most, bool)
        if not whole or not 0 <= most <= _MOST_ACCELERATORS:
            raise InputError(f"{shown(most)} given, expected {_A_QUOTA}")
    return {str(name).lower(): most for name, most in by_type.items()}


@dataclass(frozen=True, slots=True, config=_CLOSED)
class TeamFields:
    """One team of a file."""

    weight: Annotated[float, Field(ge=FACTORS.least, le=FACTORS.most)] = 1.0
    policy: Literal["fairness", "fifo"] = "fairness"
    parent: Name | None = None
    quota: Annotated[dict[str, int], PlainValidator(_quota)] | None = None


@dataclass(frozen=True, slots=True, config=_CLOSED)
class ClassFields:
    """One priority class of a file."""

    value: Annotated[int, Field(ge=-_HIGHEST_CLASS, le=_HIGHEST_CLASS, strict=True)]
    preempts: Annotated[bool, Field(strict=True)] = True
    teams: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True, config=_CLOSED)
class TeamsFile:
    """The fields of a file of teams."""

    teams: dict[Name, TeamFields] = field(default_factory=dict)
    priority_classes: dict[Name, ClassFields] = field(default_factory=dict)


class Teams(NamedTuple):
    """The teams with their weights, what each may have at a time, by type in small letters, and the classes of jobs.

    `TOTAL` is the name for all types.
    """

    entities: dict[str, Entity]
    quotas: Mapping[str, Mapping[str, int]] = MappingProxyType({})
    priority_classes: Mapping[str, PriorityClass] = MappingProxyType({})


_FORM: Form[TeamsFile] = Form(
    TeamsFile,
    {
        "": "teams with their weights, as in 'teams: {vision: {weight: 2}}'",
        "teams": "teams by name, as in {vision: {weight: 2}}",
        "teams.*": "an object, as in {weight: 2}",
        "teams.*.weight": f"a number above 0, from {FACTORS}",
        "teams.*.policy": "'fairness' or 'fifo'",
        "teams.*.parent": "the name of another team",
        "teams.*.quota": _A_QUOTA,
        "priority_classes": "priority classes by name, as in {urgent: {value: 100}}",
        "priority_classes.*": "an object with a value, as in {value: 100}",
        "priority_classes.*.value": f"a whole number from -{_HIGHEST_CLASS} to {_HIGHEST_CLASS} (0: no class)",
        "priority_classes.*.preempts": "true or false",
        "priority_classes.*.teams": "names of teams, as in [vision]",
        "priority_classes.*.teams.*": "the name of a team",
    },
    {"": TeamsFile, "teams.*": TeamFields, "priority_classes.*": ClassFields},
)


def read_teams(given: str) -> dict[str, Entity]:
    """The teams that words or a file name."""
    return read_teams_file(given).entities


def read_teams_file(given: str) -> Teams:
    """The same with all else that a file can say."""
    if "=" in given and not Path(given).is_file():
        return Teams(teams_of(given))
    file = _FORM.read(*read_given(given, "a file of teams"))
    teams = file.teams
    if not teams and not file.priority_classes:
        raise InputError(
            f"{given}: neither teams nor priority classes given; add some, as in 'teams: {{vision: {{weight: 2}}}}'"
        )
    for name, team in teams.items():
        seen = {name}
        while team.parent is not None:
            if team.parent not in teams:
                raise InputError(f"{given}: teams.{name}.parent: no team '{team.parent}'; add it, or take this out")
            if team.parent in seen:
                raise InputError(f"{given}: teams.{name}.parent: goes round in a circle; let one of them have none")
            seen.add(team.parent)
            team = teams[team.parent]  # noqa: PLW2901 - the way up
    entities = {name: Entity(team.weight, team.policy, team.parent) for name, team in teams.items()}
    for name, one in file.priority_classes.items():
        unknown = next((team for team in one.teams if teams and team not in teams), None)
        if unknown is not None:
            raise InputError(f"{given}: priority_classes.{name}.teams: no team '{unknown}'; add it, or take this out")
    classes = {name: PriorityClass(one.value, one.preempts, one.teams) for name, one in file.priority_classes.items()}
    quotas = {name: team.quota for name, team in teams.items() if team.quota is not None}
    return Teams(entities, quotas, classes)


def refuse_unknown_types(quotas: Mapping[str, Mapping[str, int]], types: Sequence[str]) -> None:
    """Refuse a quota for accelerators that there are not, which would limit nothing."""
    known = {TOTAL, *(name.lower() for name in types)}
    for team, quota in quotas.items():
        for name in quota:
            if name not in known:
                raise InputError(f"--teams: teams.{team}.quota: no accelerator '{name}'; known: {', '.join(types)}")


def teams_of(text: str) -> dict[str, Entity]:
    """Read `red=2,blue=1:fifo`."""
    teams: dict[str, Entity] = {}
    for part in text.split(","):
        match = _TEAM.fullmatch(part)
        weight = _weight(match[2]) if match else None
        if match is None or weight is None:
            raise InputError(
                f"--teams: '{part}' given, expected NAME=WEIGHT or NAME=WEIGHT:fifo, weights from {FACTORS}"
            )
        if match[1] in teams:
            raise InputError(f"--teams: '{match[1]}' given twice; keep one")
        teams[match[1]] = Entity(weight=weight, policy="fifo" if match[3] == "fifo" else "fairness")
    return teams


def _weight(text: str) -> float | None:
    try:
        weight = float(text)
    except ValueError:
        return None
    return weight if weight > 0 and weight in FACTORS else None
