"""The settings of a simulated history, with an application that is recorded once and shared by all processes."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from fairway.live.serving.application.definition import Application
from fairway.live.serving.supervise.settings import ServingSettings
from fairway.place.fleet import Fleet
from fairway.place.graph import TaskGraph

_TARGET = "fairway.simtest.serving.application:WORKFLOWS"
_NOWHERE = Path("/nonexistent")
_LOAD_SECONDS = 0.05


class SharedSettings(ServingSettings):
    """Settings whose application, fleet and graphs are made once: nothing in them changes while they are served."""

    __slots__ = ()

    def application(self) -> Application:
        """The application."""
        return _application(self.slo_seconds)

    def fleet(self, application: Application) -> Fleet:  # noqa: ARG002
        """The workers and the models that they may hold."""
        return _shared(self.slo_seconds, self.workers, self.memory_bytes)[0]

    def graphs(self, application: Application, fleet: Fleet) -> list[TaskGraph]:  # noqa: ARG002
        """The workflows on these workers."""
        return _shared(self.slo_seconds, self.workers, self.memory_bytes)[1]


@cache
def _application(slo_seconds: float | None) -> Application:
    application = ServingSettings(_TARGET, _NOWHERE, _NOWHERE, slo_seconds=slo_seconds).application()
    models = {
        name: replace(served, model=replace(served.model, load_seconds=_LOAD_SECONDS))
        for name, served in application.models.items()
    }
    return replace(application, models=models)


@cache
def _shared(slo_seconds: float | None, workers: int, memory_bytes: float | None) -> tuple[Fleet, list[TaskGraph]]:
    application = _application(slo_seconds)
    plain = ServingSettings(_TARGET, _NOWHERE, _NOWHERE, workers=workers, memory_bytes=memory_bytes)
    fleet = plain.fleet(application)
    return fleet, plain.graphs(application, fleet)


@cache
def _settings(options: tuple[tuple[str, Any], ...]) -> SharedSettings:
    return SharedSettings(_TARGET, _NOWHERE, _NOWHERE, **dict(options))


def settings_of(**options: Any) -> SharedSettings:
    """The settings with these options."""
    return _settings(tuple(sorted(options.items())))
