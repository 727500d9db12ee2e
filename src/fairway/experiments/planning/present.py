"""The present state of a live cluster, from which a plan simulates forward: a document that travels over HTTP.

It is an engine's start at this moment, with what only the live system knows: how fast its clock is, and how fast jobs
would run on accelerator types that the cluster does not have yet.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError

from fairway.engine.training.engine import TrainingEngine
from fairway.errors import InputError
from fairway.store.engine_start import EngineStart

_ELSEWHERE: TypeAdapter[dict[str, dict[str, float]]] = TypeAdapter(dict[str, dict[str, float]])
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Present:
    """The start of an engine that goes on from now; `time_scale` of its seconds pass in one of the wall clock.

    `elsewhere` has steps per second by job and by type, for types that are not in the cluster; `outside` is how many
    jobs the engine has not been given yet, since they wait for others or for their team's quota.
    """

    start: EngineStart
    time_scale: float = 1.0
    elsewhere: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    outside: int = 0

    @classmethod
    def of(
        cls,
        engine: TrainingEngine,
        policy: str,
        profiles: str | None,
        *,
        time_scale: float = 1.0,
        elsewhere: Mapping[str, Mapping[str, float]] | None = None,
        outside: int = 0,
    ) -> Present:
        """The state of an engine, whose policy has this name."""
        now = max(engine.now, 0.0)
        events = tuple((now, event) for event in engine.resumption())
        return cls(
            EngineStart(engine.cluster, policy, engine.options, profiles, events), time_scale, elsewhere or {}, outside
        )

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Present:
        """Read one."""
        if document.get("version") != _VERSION:
            raise InputError(
                f"the state of the cluster is of version {document.get('version')!r}, expected {_VERSION}; "
                "use the same version of Fairway on both sides"
            )
        try:
            scale = float(document["time_scale"])
            elsewhere = _ELSEWHERE.validate_python(document["elsewhere"])
            return cls(EngineStart.of_document(document["start"]), scale, elsewhere, int(document["outside"]))
        except InputError:
            raise
        except (KeyError, TypeError, ValueError, ValidationError) as error:
            raise InputError(f"not the state of a cluster ({error!r})") from None

    def document(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "version": _VERSION,
            "start": self.start.document(),
            "time_scale": self.time_scale,
            "elsewhere": {job: dict(rates) for job, rates in self.elsewhere.items()},
            "outside": self.outside,
        }

    def rates_on(self, job: str, types: Collection[str]) -> dict[str, float]:
        """How fast a job would run on types that the cluster does not have, where that is known."""
        known = self.elsewhere.get(job, {})
        return {name: known[name] for name in types if known.get(name, 0.0) > 0}
