"""What a training engine is told once, before its first event."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from fairway.allocate.packing.packer import Rule
from fairway.errors import InputError
from fairway.jobs import Entity


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How the engine turns shares into rounds.

    `restart_seconds` is what it costs to stop a job and start it again elsewhere; decisions take it into account.
    `entities` are the teams that policies know. `seed` is for policies that draw. `last_lease` is the highest number
    that a lease ever had, for an engine that goes on where another stopped. `packing` is the rule for parts of workers.
    """

    round_seconds: float = 360.0
    restart_seconds: float = 0.0
    entities: Mapping[str, Entity] = field(default_factory=dict)
    seed: int = 0
    last_lease: int = 0
    packing: Rule = "fgd"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.round_seconds) and self.round_seconds > 0):
            raise InputError(f"round_seconds: {self.round_seconds} given, expected seconds above 0")
        if not (math.isfinite(self.restart_seconds) and self.restart_seconds >= 0):
            raise InputError(f"restart_seconds: {self.restart_seconds} given, expected seconds of at least 0")
