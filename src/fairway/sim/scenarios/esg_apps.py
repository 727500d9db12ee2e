"""Scenario `esg-apps`: six image pipelines of six functions on 16 invokers, after the setting that ESG was tried in.

It is synthetic: profiles follow a formula (`configure.profile`) whose slopes are those of public tables. An application
should answer within 0.8, 1.0 or 1.2 times L, the time of its longest way on one CPU and one slice without transfers.
Applications 0 to 3 are chains; 4 forks and joins, 5 has a region inside a region. Loads are ranges of the gap between
two requests, all applications together; `surge` is more than single jobs can be served at.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from fairway.configure.application import Application
from fairway.configure.configuration import ConfigurationSpace
from fairway.configure.platform import Platform
from fairway.configure.profile import SyntheticFunction
from fairway.engine.serverless import Function, ServedApplication
from fairway.sim.serverless_scenario import ServerlessArrivals, ServerlessScenario, uniform_gaps

INVOKERS = 16
SLOS: Mapping[str, float] = MappingProxyType({"strict": 0.8, "moderate": 1.0, "relaxed": 1.2})
"""Times L."""

LOADS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {"light": (0.040, 0.0672), "normal": (0.020, 0.0336), "heavy": (0.010, 0.0168), "surge": (0.007, 0.01176)}
)
"""The gap between two requests, in seconds."""

APPS: Mapping[str, tuple[int, ...]] = MappingProxyType({"chains": (0, 1, 2, 3), "dag": (0, 1, 2, 3, 4, 5)})
"""Which applications are asked for."""


class _Function(NamedTuple):
    times: SyntheticFunction
    cold_seconds: float
    input_bytes: int


_FUNCTIONS: Mapping[str, _Function] = {
    "super_resolution": _Function(SyntheticFunction(0.086, 0.12, 0.55, 0.90, 0.70, 2), 3.503, 2_700_000),
    "segmentation": _Function(SyntheticFunction(0.293, 0.18, 0.60, 0.88, 0.65, 4), 16.510, 2_500_000),
    "deblur": _Function(SyntheticFunction(0.319, 0.10, 0.52, 0.88, 0.70, 2), 22.343, 1_100_000),
    "classification": _Function(SyntheticFunction(0.147, 0.25, 0.70, 0.92, 0.50, 4), 18.299, 147_000),
    "background_removal": _Function(SyntheticFunction(1.047, 0.12, 0.60, 0.90, 0.80, 4), 3.729, 2_500_000),
    "depth": _Function(SyntheticFunction(0.828, 0.15, 0.62, 0.86, 0.65, 4), 16.479, 648_000),
}

_Chain = tuple[str, ...]
_Edges = tuple[tuple[int, int], ...]

_APPLICATIONS: tuple[tuple[str, _Chain, _Edges | None], ...] = (
    ("image_classification", ("super_resolution", "segmentation", "classification"), None),
    ("depth_recognition", ("deblur", "super_resolution", "depth"), None),
    ("background_elimination", ("super_resolution", "deblur", "background_removal"), None),
    (
        "expanded_image_classification",
        ("deblur", "super_resolution", "background_removal", "segmentation", "classification"),
        None,
    ),
    (
        "scene_report",
        ("deblur", "segmentation", "super_resolution", "depth", "classification"),
        ((0, 1), (0, 2), (2, 3), (1, 4), (3, 4)),
    ),
    (
        "nested_report",
        (
            "super_resolution",
            "deblur",
            "segmentation",
            "classification",
            "super_resolution",
            "depth",
            "classification",
        ),
        ((0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (0, 5), (4, 6), (5, 6)),
    ),
)


def esg_apps(
    slo: str = "moderate", apps: str = "chains", *, noise: float = 0.08, overhead_seconds: float = 0.001
) -> ServerlessScenario:
    """The scenario with one of its SLOs and sets of applications."""
    numbers = {name: number for number, name in enumerate(_FUNCTIONS)}
    return ServerlessScenario(
        "esg-apps",
        tuple(_served(key, SLOS[slo], numbers) for key in APPS[apps]),
        tuple(Function(name, each.cold_seconds) for name, each in _FUNCTIONS.items()),
        Platform(overhead_seconds=overhead_seconds, noise=noise),
        INVOKERS,
    )


def esg_arrivals(load: str, apps: str, end: float, seed: int) -> ServerlessArrivals:
    """The requests of a seed up to a time, in seconds."""
    return uniform_gaps(*LOADS[load], end, len(APPS[apps]), seed)


def _served(key: int, factor: float, numbers: Mapping[str, int]) -> ServedApplication:
    name, functions, given = _APPLICATIONS[key]
    edges = tuple((stage, stage + 1) for stage in range(len(functions) - 1)) if given is None else given
    stages = [f"{number} {function}" for number, function in enumerate(functions)]
    space = ConfigurationSpace()
    application = Application.of(
        {stage: _FUNCTIONS[each].times.profile(space) for stage, each in zip(stages, functions, strict=True)},
        [(stages[source], stages[target]) for source, target in edges],
        1.0,
        input_bytes={stage: _FUNCTIONS[each].input_bytes for stage, each in zip(stages, functions, strict=True)},
        cold_seconds={stage: _FUNCTIONS[each].cold_seconds for stage, each in zip(stages, functions, strict=True)},
        name=name,
        key=key,
    )
    single = [_FUNCTIONS[function].times.seconds for function in functions]
    longest = application.workflow.critical_path(single).seconds
    slo = Application(
        application.workflow, application.profiles, factor * longest, application.cold_seconds, application.key
    )
    return ServedApplication(slo, tuple(numbers[function] for function in functions))
