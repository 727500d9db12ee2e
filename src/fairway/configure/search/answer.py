"""What a search answers: a few plans, each with another configuration of the first stage, the best first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from fairway.configure.configuration import Configuration


class Candidate(NamedTuple):
    """A plan: the configuration of each stage by its number, when its last stage ends, and what a job costs."""

    plan: dict[int, Configuration]
    seconds: float
    cost_dollars: float


@dataclass(frozen=True, slots=True)
class Answer:
    """The candidates in the order in which to try them.

    `feasible` is False if no plan ends in time; the candidates are then the fastest. `expanded` counts the partial
    plans that the search looked at.
    """

    candidates: tuple[Candidate, ...]
    feasible: bool
    expanded: int
