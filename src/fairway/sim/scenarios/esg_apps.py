"""Scenario `esg-apps`: six image pipelines of six functions on 16 workers, after the setting that ESG was tried in.

It is synthetic: profiles follow a formula (`configure.profile`) whose slopes are those of public tables. An application
should answer within 0.8, 1.0 or 1.2 times L, the time of its longest way on one CPU and one slice without transfers.
Applications 0 to 3 are chains; 4 forks and joins, 5 has a region inside a region. Loads are ranges of the gap between
two requests, all applications together; `surge` is more than single jobs can be served at.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from fairway.configure.configuration import ConfigurationSpace, Prices
from fairway.configure.profile import Profile, SyntheticFunction
from fairway.links import Transfers
from fairway.place.fleet import Worker
from fairway.sim.arrivals import Arrivals, uniform_gaps
from fairway.sim.scenario import ColdStarts, DeviceSharing, Scenario
from fairway.workflows import ANY, Model, Stage, Workflow

WORKERS = 16
CPUS, SLICES = 16, 7
"""Of each worker."""

KEEP_ALIVE_SECONDS = 600.0
"""For so long, a container that no task uses is kept."""

UNLIMITED = 10**9
"""Memory for more containers than ever there are."""

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
    slo: str = "moderate",
    apps: str = "chains",
    *,
    overhead_seconds: float = 0.001,
    cold: ColdStarts | None = None,
    most_containers: int | None = None,
    sharing: DeviceSharing | None = None,
) -> Scenario:
    """The scenario with one of its SLOs and sets of applications.

    Without `cold`, all functions are warm everywhere. `most_containers` is for how many a worker has memory. Under MIG,
    a task has one of the sizes that its instances come in.
    """
    sharing = DeviceSharing() if sharing is None else sharing
    space = ConfigurationSpace() if sharing.mig is None else ConfigurationSpace().mig_legal()
    workflows = [_workflow(key, needs_models=cold is not None) for key in APPS[apps]]
    names = [workflow.name for workflow in workflows]
    longest = [_longest_way(key, workflow) for key, workflow in zip(APPS[apps], workflows, strict=True)]
    return Scenario(
        "esg-apps",
        tuple(workflows),
        tuple(
            Worker(f"w{number}", UNLIMITED if most_containers is None else most_containers, "gpu", None, CPUS, SLICES)
            for number in range(WORKERS)
        ),
        Transfers(),
        slo_seconds={name: SLOS[slo] * seconds for name, seconds in zip(names, longest, strict=True)},
        prices=Prices(),
        profiles={name: _profiles(key, space) for name, key in zip(names, APPS[apps], strict=True)},
        overhead_seconds=overhead_seconds,
        keys=dict(zip(names, APPS[apps], strict=True)),
        cold=ColdStarts() if cold is None else cold,
        sharing=sharing,
    )


def esg_arrivals(load: str, apps: str, end: float, seed: int) -> Arrivals:
    """The requests of a seed up to a time, in seconds."""
    return uniform_gaps(*LOADS[load], end, len(APPS[apps]), seed)


def _profiles(key: int, space: ConfigurationSpace | None = None) -> tuple[Profile, ...]:
    space = ConfigurationSpace() if space is None else space
    return tuple(_FUNCTIONS[function].times.profile(space) for function in _APPLICATIONS[key][1])


def _workflow(key: int, *, needs_models: bool) -> Workflow:
    name, functions, given = _APPLICATIONS[key]
    edges = tuple((stage, stage + 1) for stage in range(len(functions) - 1)) if given is None else given
    names = [f"{number} {function}" for number, function in enumerate(functions)]
    takes = [max((_FUNCTIONS[functions[target]].input_bytes for source, target in edges if source == stage), default=0)
             for stage in range(len(functions))]  # fmt: skip
    stages = tuple(
        Stage.of(
            names[number],
            {ANY: profile.fastest_by_batch()},
            *((function,) if needs_models else ()),
            input_bytes=_FUNCTIONS[function].input_bytes,
            output_bytes=takes[number],
        )
        for number, (function, profile) in enumerate(zip(functions, _profiles(key), strict=True))
    )
    models = {each: Model(each, 1, _FUNCTIONS[each].cold_seconds) for each in functions} if needs_models else {}
    return Workflow(stages, tuple((names[source], names[target]) for source, target in edges), models, name=name)


def _longest_way(key: int, workflow: Workflow) -> float:
    return workflow.critical_path([_FUNCTIONS[function].times.seconds for function in _APPLICATIONS[key][1]]).seconds
