"""A change to a cluster or to how it is shared: what a plan compares with leaving things as they are.

As text, `add a100=8, remove k80=4, weight vision=2, policy fifo, slo-scale 1.5`: any of these, in any order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from fairway.errors import InputError
from fairway.magnitudes import FACTORS
from fairway.options import nearest

_WORKERS = re.compile(r"([^=,\s]+)=([0-9]{1,9})")
_WEIGHT = re.compile(r"([^=,]+)=(\S+)")
_VERBS = ("add", "remove", "weight", "policy", "slo-scale")

MOST_WORKERS = 100_000
"""That one change adds or removes of a type: each simulation holds all of them in memory."""


@dataclass(frozen=True, slots=True)
class Change:
    """Workers that come and go, by type; weights of teams or jobs; another policy; deadlines so many times as far."""

    add: Mapping[str, int] = field(default_factory=dict)
    remove: Mapping[str, int] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    policy: str | None = None
    slo_scale: float = 1.0

    def __post_init__(self) -> None:
        both = [name for name in self.add if name in self.remove]
        if both:
            raise InputError(f"{both[0]}: added and removed in one change; give the difference")
        for name, value in {**{f"weight {name}": value for name, value in self.weights.items()}, "slo-scale":
                            self.slo_scale}.items():  # fmt: skip
            try:
                FACTORS.above_zero(value)
            except InputError as error:
                raise InputError(f"{name}: {error}") from None

    @classmethod
    def parse(cls, text: str) -> Change:
        """Read a change as text."""
        add: dict[str, int] = {}
        remove: dict[str, int] = {}
        weights: dict[str, float] = {}
        policy: str | None = None
        slo_scale = 1.0
        verb = ""
        for given in _parts(text):
            first, _, rest = given.partition(" ")
            part = rest.strip() if first in _VERBS else given
            if first in _VERBS:
                verb = first
            elif not verb or " " in given:
                raise InputError(
                    f"change: '{first}' given{nearest(first, _VERBS)}; expected one of {', '.join(_VERBS)}, as in "
                    "'add a100=8, remove k80=4'"
                )
            if verb in {"add", "remove"}:
                _count(add if verb == "add" else remove, verb, part)
            elif verb == "weight":
                name, weight = _weight(part)
                weights[name] = weight
            elif verb == "policy":
                policy = part if policy is None else f"{policy},{part}"
            else:
                slo_scale = _number("slo-scale", part)
        change = cls(add, remove, weights, policy, slo_scale)
        if change == cls():
            raise InputError(f"change: '{text}' changes nothing; give what to change, as in 'add a100=8'")
        return change

    def __str__(self) -> str:
        parts = [f"add {_counts(self.add)}"] if self.add else []
        parts += [f"remove {_counts(self.remove)}"] if self.remove else []
        parts += [f"weight {name}={weight:g}" for name, weight in self.weights.items()]
        parts += [f"policy {self.policy}"] if self.policy else []
        parts += [f"slo-scale {self.slo_scale:g}"] if self.slo_scale != 1.0 else []
        return ", ".join(parts) or "as it is"


AS_IT_IS = Change()


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _count(counts: dict[str, int], verb: str, part: str) -> None:
    match = _WORKERS.fullmatch(part)
    if match is None or not 1 <= int(match[2]) <= MOST_WORKERS:
        raise InputError(
            f"{verb}: '{part}' given, expected TYPE=COUNT with a count from 1 to {MOST_WORKERS}, as in '{verb} v100=8'"
        )
    counts[match[1]] = counts.get(match[1], 0) + int(match[2])


def _weight(part: str) -> tuple[str, float]:
    match = _WEIGHT.fullmatch(part)
    if match is None:
        raise InputError(f"weight: '{part}' given, expected TEAM=NUMBER or JOB=NUMBER, as in 'weight vision=2'")
    return match[1].strip(), _number(f"weight {match[1]}", match[2])


def _number(what: str, text: str) -> float:
    try:
        return FACTORS.above_zero(float(text))
    except InputError as error:
        raise InputError(f"{what}: {error}") from None
    except ValueError:
        raise InputError(f"{what}: '{text}' given, expected a number above 0") from None


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={count}" for name, count in counts.items())
