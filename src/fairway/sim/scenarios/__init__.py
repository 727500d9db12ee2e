"""The built-in serving scenarios, by name: one small file each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from fairway.sim.scenario import Scenario
from fairway.sim.scenarios.compass_edge import compass_edge

SCENARIOS: Mapping[str, Callable[[], Scenario]] = MappingProxyType({"compass-edge": compass_edge})
"""All of them."""

__all__ = ["SCENARIOS"]
