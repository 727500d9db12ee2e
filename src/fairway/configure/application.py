"""An application: a workflow whose stages have a profile each, and the time that a request may take from end to end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from fairway.configure.profile import Profile
from fairway.errors import InputError
from fairway.workflows import ANY, Stage, Workflow


@dataclass(frozen=True, eq=False)
class Application:
    """A workflow, the profile and the cold start of each of its stages, and its SLO in seconds.

    `key` tells applications apart where each has its own home among the workers.
    """

    workflow: Workflow
    profiles: tuple[Profile, ...]
    slo_seconds: float
    cold_seconds: tuple[float, ...] = ()
    key: int = 0

    def __post_init__(self) -> None:
        if len(self.profiles) != len(self.workflow):
            raise InputError(f"profiles: {len(self.profiles)} given for {len(self.workflow)} stages, expected one each")
        if self.cold_seconds and len(self.cold_seconds) != len(self.workflow):
            raise InputError(f"cold_seconds: {len(self.cold_seconds)} given for {len(self.workflow)} stages")

    @classmethod
    def of(
        cls,
        profiles: Mapping[str, Profile],
        edges: Iterable[tuple[str, str]],
        slo_seconds: float,
        *,
        input_bytes: Mapping[str, int] | None = None,
        cold_seconds: Mapping[str, float] | None = None,
        name: str = "application",
        key: int = 0,
    ) -> Application:
        """An application from the profiles of its stages by name; refuses what does not fit together."""
        stages = tuple(
            Stage.of(stage, {ANY: profile.fastest_by_batch()}, input_bytes=(input_bytes or {}).get(stage))
            for stage, profile in profiles.items()
        )
        cold = tuple((cold_seconds or {}).get(stage, 0.0) for stage in profiles) if cold_seconds else ()
        return cls(Workflow(stages, tuple(edges), name=name), tuple(profiles.values()), slo_seconds, cold, key)

    def __len__(self) -> int:
        return len(self.workflow)

    def within(self, cpu: int, gpu: int) -> Application:
        """The same with those configurations only that fit on a worker of so many CPUs and slices."""
        masks = [(profile.cpu <= cpu) & (profile.gpu <= gpu) for profile in self.profiles]
        if all(mask.all() for mask in masks):
            return self
        for stage, mask in zip(self.workflow.stages, masks, strict=True):
            if not mask.any():
                raise InputError(
                    f"application '{self.name}', stage '{stage.name}': no configuration fits on a worker of "
                    f"{cpu} CPUs and {gpu} GPU slices; add a smaller one"
                )
        return replace(
            self, profiles=tuple(profile.only(mask) for profile, mask in zip(self.profiles, masks, strict=True))
        )

    @property
    def name(self) -> str:
        """The name of the workflow."""
        return self.workflow.name

    @cached_property
    def entries(self) -> tuple[int, ...]:
        """The stages that take the request itself."""
        return tuple(stage for stage, before in enumerate(self.workflow.predecessors) if not before)

    @cached_property
    def after(self) -> tuple[tuple[int, ...], ...]:
        """By stage, all that run after it because of it, in topological order."""
        found: list[set[int]] = [set() for _ in range(len(self))]
        for stage in reversed(self.workflow.topological_order):
            for successor in self.workflow.successors[stage]:
                found[stage] |= {successor, *found[successor]}
        return tuple(tuple(stage for stage in self.workflow.topological_order if stage in later) for later in found)
