"""Floor 1: which job gets which accelerators for what share of time (Gavel, OSDI 2020).

The package can be called: `fairway.allocate(policy, problem)` decides a problem.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairway.allocate.allocation import Allocation
    from fairway.allocate.policy import Policy
    from fairway.allocate.problem import Problem


class _CallableFloor(ModuleType):
    """The verb of the floor has the floor's name; as a plain function, it would hide the package from `import`."""

    def __call__(self, policy: str | Policy, problem: Problem) -> Allocation:
        from fairway.allocate.registry import allocate  # noqa: PLC0415

        return allocate(policy, problem)


sys.modules[__name__].__class__ = _CallableFloor
