"""Floor 2: how large a batch and which part of a GPU each stage gets, out of its share of the SLO (ESG, arXiv
2404.16812).

The package can be called: `fairway.configure(algorithm, problem)` answers a problem.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairway.configure.problem import ConfigurationProblem
    from fairway.configure.search.algorithms import Algorithm
    from fairway.configure.search.answer import Answer


class _CallableFloor(ModuleType):
    """The verb of the floor has the floor's name; as a plain function, it would hide the package from `import`."""

    def __call__(self, algorithm: str | Algorithm, problem: ConfigurationProblem) -> Answer:
        from fairway.configure.search.algorithms import configure  # noqa: PLC0415

        return configure(algorithm, problem)


sys.modules[__name__].__class__ = _CallableFloor
