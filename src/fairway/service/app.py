"""The application: all routes, behind tokens, with every error as a problem.

POST /jobs                  submit a job, or try it with ?dry_run=true
GET  /jobs, /jobs/ID        list jobs, look at one
POST /jobs/ID/cancel
GET  /jobs/ID/explain       why does it wait?
GET  /jobs/ID/logs          what it has written, as it grows with ?follow=true
GET  /jobs/ID/events        what happens to it, as it happens
GET  /events                what happens to all jobs
GET  /workers, POST /workers/drain
GET  /reservations, POST /reservations, DELETE /reservations/{id}
POST /plan, GET /plan/state    what would happen if?
GET  /history               all of it as a saved run, or what changed since a moment
GET  /status, /usage, /metrics, /journal, /tokens, /openapi.json
GET  /, /docs               the dashboard, which logs in at POST /session
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version

from fastapi import APIRouter, FastAPI
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import Response

from fairway.service.authentication import Authentication, Caller, KnownTokens
from fairway.service.context import Service, ServiceOf, terms_of
from fairway.service.http.openapi import describe
from fairway.service.http.problems import handle_problems
from fairway.service.intake import Intake
from fairway.service.page_news import PageNews
from fairway.service.routes import (
    dashboard,
    events,
    explanation,
    history,
    jobs,
    journal,
    logs,
    plan,
    reservations,
    status,
    tokens,
    usage,
    workers,
)
from fairway.service.routes.metrics import Metrics, Timed
from fairway.service.scheduler_view import SchedulerView
from fairway.service.watch import Watch

_METRICS = APIRouter(tags=["status"])


@_METRICS.get(
    "/metrics",
    summary="Metrics for Prometheus",
    response_class=Response,
    responses={200: {"description": "In Prometheus' text form.", "content": {"text/plain": {}}}},
)
async def get_metrics(service: ServiceOf, _: Caller) -> Response:
    """Metrics in Prometheus' text form; their names begin with `fairway_`."""
    return Response(await service.run(service.metrics.text), media_type=CONTENT_TYPE_LATEST)


def create_app(controller: SchedulerView) -> FastAPI:
    """The REST API of a scheduler, as an ASGI application; `app.state.service` has its parts."""
    known = KnownTokens(controller.store)
    metrics = Metrics(controller)
    news = PageNews(
        lambda: status.status_of(controller).model_dump_json(), partial(history.history_run, controller), time
    )
    watch = Watch(controller.store, lambda: terms_of(controller), news=news)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        watch.close()

    # FastAPI's own pages with documentation would load scripts from elsewhere; the dashboard has one at /docs.
    app = FastAPI(
        title="Fairway",
        version=version("fairway"),
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.service = Service(controller, known, Intake(controller.store), watch, metrics)
    for router in (
        jobs.router,
        explanation.router,
        logs.router,
        events.router,
        workers.router,
        reservations.router,
        plan.router,
        status.router,
        _METRICS,
        journal.router,
        tokens.router,
        usage.router,
        history.router,
        dashboard.router,
        dashboard.pages,
    ):
        app.include_router(router)
    app.openapi = lambda: describe(app)  # type: ignore[method-assign]
    app.add_middleware(Authentication, tokens=known, public=dashboard.PUBLIC)
    handle_problems(app)
    app.add_middleware(Timed, metrics=metrics)  # the last one added is the first to see a request
    return app
