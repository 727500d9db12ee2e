"""Reads the teams and their weights: in a few words, or from a file that can also say who belongs to whom.

The words are `vision=2,speech=1:fifo`. The file, in YAML, has the same and more:

    teams:
      research: {weight: 2}
      vision: {weight: 3, parent: research}
      speech: {weight: 1, parent: research, policy: fifo}
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from fairway.cli.given import read_given
from fairway.documents import Form, Name
from fairway.errors import InputError
from fairway.jobs import Entity
from fairway.magnitudes import FACTORS

_CLOSED = ConfigDict(extra="forbid", allow_inf_nan=False)
_TEAM = re.compile(r"\s*([^=,:]*[^=,:\s])\s*=\s*([^=,:\s]+)\s*(?::\s*(fifo|fairness)\s*)?")


@dataclass(frozen=True, slots=True, config=_CLOSED)
class TeamFields:
    """One team of a file."""

    weight: Annotated[float, Field(ge=FACTORS.least, le=FACTORS.most)] = 1.0
    policy: Literal["fairness", "fifo"] = "fairness"
    parent: Name | None = None


@dataclass(frozen=True, slots=True, config=_CLOSED)
class TeamsFile:
    """The fields of a file of teams."""

    teams: dict[Name, TeamFields]


_FORM: Form[TeamsFile] = Form(
    TeamsFile,
    {
        "": "teams with their weights, as in 'teams: {vision: {weight: 2}}'",
        "teams": "teams by name, as in {vision: {weight: 2}}",
        "teams.*": "an object, as in {weight: 2}",
        "teams.*.weight": f"a number above 0, from {FACTORS}",
        "teams.*.policy": "'fairness' or 'fifo'",
        "teams.*.parent": "the name of another team",
    },
    {"": TeamsFile, "teams.*": TeamFields},
)


def read_teams(given: str) -> dict[str, Entity]:
    """The teams that words or a file name."""
    if "=" in given and not Path(given).is_file():
        return teams_of(given)
    teams = _FORM.read(*read_given(given)).teams
    for name, team in teams.items():
        seen = {name}
        while team.parent is not None:
            if team.parent not in teams:
                raise InputError(f"{given}: teams.{name}.parent: no team '{team.parent}'; add it, or take this out")
            if team.parent in seen:
                raise InputError(f"{given}: teams.{name}.parent: goes round in a circle; let one of them have none")
            seen.add(team.parent)
            team = teams[team.parent]  # noqa: PLW2901 - the way up
    return {name: Entity(team.weight, team.policy, team.parent) for name, team in teams.items()}


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
