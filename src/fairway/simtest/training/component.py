"""The live training system as a component of the simulation."""

from __future__ import annotations

from collections.abc import Mapping

from fairway.simtest.component import Component, Generator, History
from fairway.simtest.plan import Plan
from fairway.simtest.training import history
from fairway.simtest.training.generators import GENERATORS


class Training:
    """Controller, store, agent and keepers, and the jobs under them."""

    name = "training"
    generators: Mapping[str, Generator] = GENERATORS

    def run(self, plan: Plan) -> History:
        """Run a plan and judge what happened."""
        return history.run(plan)


TRAINING: Component = Training()
