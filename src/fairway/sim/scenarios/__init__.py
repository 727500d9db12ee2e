"""The built-in serving scenarios, by name: one small file each, in Python or in the form of any scenario file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import resources
from types import MappingProxyType

from fairway.sim.scenario import Scenario
from fairway.sim.scenario_file import parse_scenario
from fairway.sim.scenarios.compass_edge import compass_edge

FILES = (
    "loki-traffic",
    "loki-social",
    "loki-both-tight",
    "ipa-video",
    "ipa-audio-qa",
    "ipa-sum-qa",
    "ipa-nlp",
    "vortex-textvision",
    "vortex-tts",
    "vortex-tenants",
    "vortex-mix",
)
"""Those that are files; each says where its figures come from."""


@cache
def _from_file(name: str) -> Scenario:
    text = resources.files(__name__).joinpath("files", f"{name}.yaml").read_bytes()
    return parse_scenario(text, name)


SCENARIOS: Mapping[str, Callable[[], Scenario]] = MappingProxyType(
    {"compass-edge": compass_edge, **{name: partial(_from_file, name) for name in FILES}}
)
"""All of them."""

__all__ = ["FILES", "SCENARIOS"]
