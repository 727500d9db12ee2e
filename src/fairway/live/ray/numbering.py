"""The numbers of accelerators in a cluster: each node counts its own from 0, a controller wants one count per type.

An accelerator gets its number when its node is first seen and keeps it while this process lives, also when nodes leave
and come back: a command that is under way names the right one. Over restarts, controllers know it by its lasting name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fairway.live.backend.accelerators import Accelerator
from fairway.live.backend.status import RunStatus

Place = tuple[str, int]
"""A node, and the number of an accelerator of some type there."""


class Numbering:
    """Both ways between the numbers of the cluster and those of nodes."""

    def __init__(self) -> None:
        self._places: dict[str, list[Place]] = {}

    def number(self, kind: str, node: str, local: int) -> int:
        """The number of an accelerator in the cluster, a new one if it has none."""
        places = self._places.setdefault(kind, [])
        if (node, local) not in places:
            places.append((node, local))
        return places.index((node, local))

    def place(self, kind: str, number: int) -> Place | None:
        """Where an accelerator of the cluster is."""
        places = self._places.get(kind, [])
        return places[number] if 0 <= number < len(places) else None

    def accelerators(self, node: str, found: Iterable[Accelerator]) -> list[Accelerator]:
        """The accelerators of a node as those of the cluster."""
        return [replace(one, number=self.number(one.type, node, one.number), node=node, slot=one.number)
                for one in found]  # fmt: skip

    def run(self, node: str, run: RunStatus) -> RunStatus:
        """A run of a node with the numbers of the cluster."""
        workers = tuple(self.number(run.accelerator, node, local) for local in run.workers)
        return replace(run, workers=workers)
