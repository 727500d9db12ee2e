"""How much of a workflow's SLO each of its stages may take if all goes as planned: by its share of the work."""

from __future__ import annotations

from collections.abc import Sequence

from fairway.configure.application import Application
from fairway.configure.budgets.shares import Shares
from fairway.configure.configuration import Configuration
from fairway.configure.profile import Profile
from fairway.workflows import Stage, Workflow


def stage_budgets(
    workflow: Workflow,
    slo_seconds: float,
    accelerators: Sequence[str] | None = None,
    profiles: Sequence[Profile] | None = None,
) -> tuple[float, ...]:
    """Seconds by stage, from the `profiles` of its stages; without them, from its times on types of accelerators.

    Where no types are given, they are those that any of its stages has times for.
    """
    if profiles is None:
        types = accelerators or sorted({each for stage in workflow.stages for each in stage.seconds})
        profiles = [_profile(stage, types) for stage in workflow.stages]
    shares = Shares.of(Application(workflow, tuple(profiles), slo_seconds))
    return tuple(shares.quota(stage, slo_seconds) for stage in range(len(workflow)))


def _profile(stage: Stage, accelerators: Sequence[str]) -> Profile:
    """The times of a stage as floor 2 takes them; the number of the accelerator type stands for a size of its own."""
    return Profile.of(
        {
            Configuration(batch, number, 0): seconds
            for number, accelerator in enumerate(accelerators, 1)
            for batch, seconds in stage.times_on(accelerator).items()
        }
    )
