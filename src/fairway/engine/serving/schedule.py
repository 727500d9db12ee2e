"""A scheduler by name: a placer, or a configurator and the placer of its batches: `compass`, `esg`, `front+compass`.

A placer alone places the tasks of a request when it arrives, and adjusts that as it goes; tasks wait at their workers,
which batch what they have. With a configurator, tasks wait in the queues of one engine that plans, which asks the
configurator for the size of a batch and the placer for its worker. A configurator that is named alone brings the placer
of its own paper.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import cast

from fairway.configure.configurator import Configurator
from fairway.configure.configurators import CONFIGURATORS
from fairway.configure.registry import CONFIGURATOR_PARTS, configurator_of
from fairway.errors import InputError
from fairway.options import nearest, text_of
from fairway.place.placer import BatchPlacer, Placer, WorkerRules
from fairway.place.placers import BATCH_PLACERS, PLACERS
from fairway.place.registry import BATCH_PLACER_PARTS, PLACER_PARTS, batch_placer_of, placer_of

_JOIN = re.compile(r"\s*\+\s*(?=[A-Za-z_])")

_MODULE_AND_CLASS = re.compile(r"[\w.]+:")


@dataclass(frozen=True, slots=True)
class Schedule:
    """A placer, and the configurator whose batches it places, if there is one."""

    placer: BatchPlacer
    configurator: Configurator | None = None

    @property
    def name(self) -> str:
        """Its parts, without their options."""
        placer = self.placer.name
        return placer if self.configurator is None else f"{self.configurator.name}+{placer}"

    @property
    def title(self) -> str:
        """Its parts with their options, as `schedule_of` takes them where they are ours."""
        return "+".join(text_of(part) for part in (self.configurator, self.placer) if part is not None)

    @property
    def rules(self) -> WorkerRules:
        """What is asked of the workers."""
        return self.placer.rules

    @property
    def centralised(self) -> bool:
        """Whether one engine plans for all; else every worker plans what it receives."""
        return self.configurator is not None or self.rules.centralised

    @property
    def ahead(self) -> Placer:
        """The placer, where it places requests ahead."""
        assert isinstance(self.placer, Placer)
        return self.placer


AnySchedule = str | Schedule | BatchPlacer | Configurator
"""A scheduler as it may be given: by name, or as an object."""


def schedule_of(given: AnySchedule) -> Schedule:
    """The schedule that a name stands for, or a part alone; refuses what is not known or makes no sense together."""
    if not isinstance(given, str):
        return given if isinstance(given, Schedule) else _alone(given)
    text = given
    first, *rest = _JOIN.split(text.strip())
    name = _name(first)
    if _configures(first):
        configurator = configurator_of(first)
        if len(rest) > 1:
            raise InputError(f"scheduler '{text}' names {len(rest)} placers, expected one, as in {name}+compass")
        return Schedule(batch_placer_of(rest[0] if rest else configurator.placer), configurator)
    if not PLACER_PARTS.claims(first):
        if BATCH_PLACER_PARTS.claims(first):
            raise InputError(
                f"scheduler '{text}': '{name}' places batches, which a configurator has to make; add one, as in "
                f"esg+{first}"
            )
        if not _MODULE_AND_CLASS.match(first):
            known = (*PLACERS, *PLACER_PARTS.installed(), *CONFIGURATORS, *CONFIGURATOR_PARTS.installed())
            raise InputError(
                f"scheduler '{name}' is not known{nearest(name, known)}; known: {', '.join(known)}; "
                "or a class of yours, as module:Class"
            )
        raise InputError(
            f"scheduler '{first}' is neither a placer nor a configurator: it has neither the verbs of fairway.Placer "
            "(plan, next_worker, place_batch) nor that of fairway.Configurator (prepare)"
        )
    if rest:
        if _configures(rest[0]):
            raise InputError(f"scheduler '{text}' has the placer first; expected {'+'.join((*rest, first))}")
        raise InputError(
            f"scheduler '{text}': '{name}' is no configurator; one of {', '.join(CONFIGURATORS)} goes first"
        )
    return Schedule(placer_of(first))


def _configures(text: str) -> bool:
    return _name(text) not in BATCH_PLACERS and CONFIGURATOR_PARTS.claims(text)


def _alone(part: BatchPlacer | Configurator) -> Schedule:
    """The schedule of a part that was given as an object."""
    if isinstance(part, Configurator):
        return Schedule(batch_placer_of(part.placer), configurator_of(part))
    return Schedule(placer_of(cast("Placer", part)))


def _name(text: str) -> str:
    return text.partition(":")[0].strip()
