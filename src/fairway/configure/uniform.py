"""One size for all stages, where a scheduler only places tasks: floor 2 fixes the size beforehand.

Of all sizes with which the longest way of every application is within its SLO, single jobs at a time, it is the one
whose requests cost least; the fastest if there is none.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairway.configure.application import Application
from fairway.configure.configuration import Configuration
from fairway.configure.fetches import Fetches
from fairway.configure.platform import Platform
from fairway.errors import InputError


def uniform_configuration(applications: Sequence[Application], platform: Platform) -> Configuration:
    """The size of all tasks; refuses applications whose stages have none in common."""
    profiles = [profile for each in applications for profile in each.profiles]
    sizes = set.intersection(*({size for size in profile.configurations() if size.batch == 1} for profile in profiles))
    fitting = sorted(size for size in sizes if size.cpu <= platform.cpu and size.gpu <= platform.gpu)
    if not fitting:
        raise InputError(
            f"the stages have no configuration of one job in common that fits on a worker of {platform.cpu} CPUs and "
            f"{platform.gpu} slices; add one, or use a scheduler that chooses configurations, such as front"
        )
    added = [Fetches.of(each, platform).planned for each in applications]

    def judged(size: Configuration) -> tuple[bool, float]:
        late = 0.0
        for application, planned in zip(applications, added, strict=True):
            times = [profile.seconds_of(*size) + planned(stage) for stage, profile in enumerate(application.profiles)]
            late = max(late, application.workflow.critical_path(times).seconds / application.slo_seconds)
        cost = platform.prices.rate(size.cpu, size.gpu) * sum(profile.seconds_of(*size) for profile in profiles)
        return (late > 1, late if late > 1 else cost)

    return min(fitting, key=judged)
