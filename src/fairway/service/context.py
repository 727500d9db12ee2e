"""What every route works with, and threads for what would hold up the event loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import Depends, Request
from pydantic import BaseModel
from starlette.responses import Response

from fairway.errors import InputError
from fairway.options import nearest
from fairway.service.authentication import KnownTokens
from fairway.service.intake import Intake
from fairway.service.planning import Planning
from fairway.service.representation import Terms
from fairway.service.routes.metrics import Metrics
from fairway.service.same_answers import SameAnswers
from fairway.service.scheduler_view import SchedulerView
from fairway.service.watch import Watch
from fairway.store import Store

T = TypeVar("T")

_AT_ONCE = 64
"""Questions and submissions at the same time. Submissions that wait together become durable together."""

_SLOW_AT_ONCE = 2


@dataclass(frozen=True)
class Service:
    """The parts of the service."""

    scheduler: SchedulerView
    tokens: KnownTokens
    intake: Intake
    watch: Watch
    metrics: Metrics
    answers: SameAnswers = field(default_factory=SameAnswers)
    familiar: set[object] = field(default_factory=set)
    """Kinds of jobs that the scheduler was asked about before."""
    planning: Planning = field(default_factory=Planning)
    _quick: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(_AT_ONCE))
    _slow: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(_SLOW_AT_ONCE))

    @property
    def store(self) -> Store:
        """Where everything is kept."""
        return self.scheduler.store

    @property
    def terms(self) -> Terms:
        """What has to be known to tell of jobs."""
        return terms_of(self.scheduler)

    async def run(self, work: Callable[[], T]) -> T:
        """Do something on a thread that asks the store or the file system."""
        return await to_thread.run_sync(work, limiter=self._quick)

    async def run_slowly(self, work: Callable[[], T]) -> T:
        """Do something on a thread that may take seconds, so that quick questions need not wait behind it."""
        return await to_thread.run_sync(work, limiter=self._slow)


def terms_of(scheduler: SchedulerView) -> Terms:
    """What has to be known to tell of a scheduler's jobs."""
    return Terms(scheduler.emulated, scheduler.settings.time_scale)


async def service_of(request: Request) -> Service:
    """The service that a request is for."""
    service: Service = request.app.state.service
    return service


ServiceOf = Annotated[Service, Depends(service_of)]


def json_answer(form: BaseModel, status: int = 200) -> Response:
    """A form as a response. Encoded here rather than by FastAPI, which would check it once more."""
    return Response(form.model_dump_json(), status, media_type="application/json")


def refuse_other_parameters(request: Request, *known: str) -> None:
    """Refuse a misspelt parameter, which would otherwise be taken for none."""
    if request.scope["query_string"]:
        for name in request.query_params:
            if name not in known:
                raise InputError(
                    f"{name}: no such parameter{nearest(name, known)}; known: {', '.join(known) or 'none'}"
                )
