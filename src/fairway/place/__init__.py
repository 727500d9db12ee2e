"""Floor 3: which worker runs a task, and which models its memory holds (Compass, arXiv 2402.17652).

The package can be called: `fairway.place(scheduler, problem)` plans a request.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairway.place.placer import Placer
    from fairway.place.plan import Plan
    from fairway.place.problem import PlacementProblem


class _CallableFloor(ModuleType):
    """The verb of the floor has the floor's name; as a plain function, it would hide the package from `import`."""

    def __call__(self, scheduler: str | Placer, problem: PlacementProblem, *, seed: int | None = None) -> Plan:
        from fairway.place.registry import place  # noqa: PLC0415

        return place(scheduler, problem, seed=seed)


sys.modules[__name__].__class__ = _CallableFloor
