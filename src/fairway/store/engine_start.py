"""All that a training engine is made from, and the events that bring it to where another one was, as plain JSON.

The journal has one at each start of an engine, so that the engine can be made again; a plan begins from one, so that it
can be made with something changed, on another machine, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from pydantic import TypeAdapter, ValidationError

from fairway.allocate.policy import Policy
from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import Command, Event
from fairway.engine.training.options import EngineOptions
from fairway.engine.training.pair_rates import Partners
from fairway.errors import InputError
from fairway.jobs import Entity
from fairway.store.messages import event_document, event_of

_CLUSTER = TypeAdapter(Cluster)
_ENTITIES: TypeAdapter[dict[str, Entity]] = TypeAdapter(dict[str, Entity])
_OPTIONS = ("round_seconds", "restart_seconds", "entities", "seed", "last_lease", "packing")


@dataclass(frozen=True, slots=True)
class EngineStart:
    """The cluster, the policy by name, the options, the source of the profiles by which jobs share, and the events."""

    cluster: Cluster
    policy: str
    options: EngineOptions
    profiles: str | None
    events: tuple[tuple[float, Event], ...] = ()

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> EngineStart:
        """Read one; what a later version has added is left out."""
        try:
            given = dict(document["options"])
            given["entities"] = _ENTITIES.validate_python(given.get("entities") or {})
            profiles = document.get("profiles")
            return cls(
                _CLUSTER.validate_python(document["cluster"]),
                str(document["policy"]),
                EngineOptions(**{name: given[name] for name in _OPTIONS if given.get(name) is not None}),
                None if profiles is None else str(profiles),
                tuple(event_of(event) for event in document.get("resumption") or ()),
            )
        except InputError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError, ValidationError) as error:
            raise InputError(f"not a start of the training engine ({error!r})") from None

    def document(self) -> dict[str, Any]:
        """As a JSON object."""
        options = self.options
        return {
            "cluster": _CLUSTER.dump_python(self.cluster, mode="json"),
            "policy": self.policy,
            "options": {
                "round_seconds": options.round_seconds,
                "restart_seconds": options.restart_seconds,
                "seed": options.seed,
                "last_lease": options.last_lease,
                "packing": options.packing,
                "entities": {name: {"weight": one.weight, "policy": one.policy, "parent": one.parent}
                             for name, one in options.entities.items()},
            },
            "profiles": self.profiles,
            "resumption": [event_document(now, event) for now, event in self.events],
        }  # fmt: skip

    def asked(self) -> Policy:
        """The policy."""
        return policy_of(self.policy)

    def engine(self, partners: Partners | None = None) -> tuple[TrainingEngine, list[Command]]:
        """The engine as it was, and what it said while it was brought there; `partners` say which jobs may share."""
        engine = TrainingEngine(self.cluster, self.asked(), self.options, partners=partners)
        said: list[Command] = []
        for now, moment in groupby(self.events, key=itemgetter(0)):
            said += engine.handle(now, [event for _, event in moment])
        return engine, said
