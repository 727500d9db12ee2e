"""A scheduler by name: a placer, or a configurator and the placer of its batches: `compass`, `esg`, `front+compass`.

A placer alone places the tasks of a request when it arrives, and adjusts that as it goes; tasks wait at their workers,
which batch what they have. With a configurator, tasks wait in the queues of one engine that plans, which asks the
configurator for the size of a batch and the placer for its worker. A configurator that is named alone brings the placer
of its own paper.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fairway.configure.configurator import Configurator
from fairway.configure.configurators import CONFIGURATORS
from fairway.configure.registry import configurator_of
from fairway.errors import InputError
from fairway.options import nearest
from fairway.place.placer import BatchPlacer, Placer, WorkerRules
from fairway.place.placers import BATCH_PLACERS, PLACERS
from fairway.place.registry import batch_placer_of, placer_of

_JOIN = re.compile(r"\s*\+\s*(?=[a-z])")


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


def schedule_of(text: str) -> Schedule:
    """The schedule that a name stands for; refuses what is not known, and what makes no sense together."""
    first, *rest = _JOIN.split(text.strip())
    name = _name(first)
    if name in CONFIGURATORS:
        configurator = configurator_of(first)
        if len(rest) > 1:
            raise InputError(f"scheduler '{text}' names {len(rest)} placers, expected one, as in {name}+compass")
        return Schedule(batch_placer_of(rest[0] if rest else configurator.placer), configurator)
    known = (*PLACERS, *CONFIGURATORS)
    if name in BATCH_PLACERS and name not in PLACERS:
        raise InputError(
            f"scheduler '{text}': '{name}' places batches, which a configurator has to make; add one, as in esg+{name}"
        )
    if name not in known:
        raise InputError(f"scheduler '{name}' is not known{nearest(name, known)}; known: {', '.join(known)}")
    if rest:
        if _name(rest[0]) in CONFIGURATORS:
            raise InputError(f"scheduler '{text}' has the placer first; expected {'+'.join((*rest, first))}")
        raise InputError(
            f"scheduler '{text}': '{name}' is no configurator; one of {', '.join(CONFIGURATORS)} goes first"
        )
    return Schedule(placer_of(first))


def _name(text: str) -> str:
    return text.partition(":")[0].strip()
