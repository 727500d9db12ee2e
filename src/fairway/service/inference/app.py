"""The routes of an application that is served: ask for a workflow, look at it, read its metrics.

    POST /workflows/read-document        the inputs as JSON, or the one input that is bytes as the body
    GET  /workflows                      what can be asked for
    GET  /status, /metrics
    GET  /history                        its newest requests, as a saved run
    GET  /                               the dashboard, which logs in at POST /session

The request is held here until its answer: should the worker that took it die, another one is asked. A client that goes
away cancels its request. What the headers of a request say is in `request`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol

from fastapi import FastAPI, Request
from starlette.responses import Response, StreamingResponse

from fairway.configure.budgets.stages import stage_budgets
from fairway.live.serving.clients.async_client import AsyncServingClient
from fairway.live.serving.clients.client_protocol import NoWorkerAnswersError, RequestFailedError
from fairway.live.serving.supervise.settings import ServingSettings
from fairway.live.serving.supervise.supervisor import recent, tallies
from fairway.service.http.problems import ProblemError, handle_problems
from fairway.service.inference.dashboard import dashboard_routes
from fairway.service.inference.history import served_history
from fairway.service.inference.metrics import exposition
from fairway.service.inference.payload import json_of, response_of
from fairway.service.inference.request import header_parameters, request_of
from fairway.service.inference.token import TokenRequired

_STATUS = {
    "failed": 500, "late": 504, "impossible": 422, "hopeless": 503, "shed": 503, "busy": 429, "unplaceable": 503,
}  # fmt: skip
_LINES = "application/x-ndjson"
_FACTS = ("open", "waiting", "resident", "hits", "misses", "loads", "evictions", "replied", "in_time", "late")
_PLANNER_FACTS = ("open", "waiting", "replied")

_Heard = AsyncGenerator[tuple[str, Any], None]


class Served(Protocol):
    """An application that is served: how, and how many workers were started again, None if that is not known here."""

    @property
    def settings(self) -> ServingSettings:
        """How it is served."""
        ...

    @property
    def restarts(self) -> int | None:
        """How many workers have died and were started again."""
        ...


def create_inference_app(supervisor: Served, *, token: str | None = None) -> FastAPI:
    """The HTTP side of an application whose workers run; with a token, every request has to show it."""
    settings = supervisor.settings
    application = settings.application()
    clients: list[AsyncServingClient] = []

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        clients.append(AsyncServingClient(settings.directory))
        yield
        await clients.pop().close()

    app = FastAPI(title=f"Fairway: {application.name}", lifespan=lifespan, docs_url=None, redoc_url=None)
    app.include_router(dashboard_routes(token))
    if token is not None:
        app.add_middleware(TokenRequired, token=token)
    handle_problems(app)

    @app.post("/workflows/{name}", response_model=None, openapi_extra={"parameters": header_parameters()})
    async def ask(name: str, request: Request) -> Response:
        """Run a workflow."""
        workflow = application.workflows.get(name)
        if workflow is None:
            known = ", ".join(application.workflows)
            raise ProblemError(404, "unknown", f"no workflow '{name}'; there is {known}")
        asked = await request_of(request, workflow, settings.most_bytes)
        heard = clients[0].conversation(asked.workflow, dict(asked.inputs), asked.deadline_seconds, asked.trace)
        try:
            first = await _unless_left(request, anext(heard))
            if first is None:
                await heard.aclose()
                return Response(status_code=499)  # the client is gone, and will not see it
            kind, value = first
            if workflow.streaming:
                return StreamingResponse(_lines(heard, kind, value), media_type=_LINES)
            await heard.aclose()
            return await response_of(value)
        except (RequestFailedError, NoWorkerAnswersError) as error:
            raise _problem(error) from None

    @app.get("/workflows")
    async def workflows() -> dict[str, Any]:
        """What can be asked for."""
        return {
            "workflows": [
                {
                    "name": one.name,
                    "inputs": list(one.inputs),
                    "slo_seconds": one.slo_seconds,
                    "budgets": None if one.slo_seconds is None else stage_budgets(one.workflow, one.slo_seconds),
                    "streaming": one.streaming,
                    "stages": [stage.name for stage in one.workflow.stages],
                    "edges": [
                        [before, stage] for stage, sources in enumerate(one.workflow.predecessors) for before in sources
                    ],
                    "mermaid": one.workflow.mermaid(),
                }
                for one in application.workflows.values()
            ]
        }

    @app.get("/status")
    async def status() -> dict[str, Any]:
        """How the workers stand."""
        counted = await asyncio.to_thread(tallies, settings)
        return {
            "application": application.name,
            "scheduler": settings.scheduler,
            "emulated": settings.emulated,
            "memory_bytes": settings.memory_bytes,
            "pinned": list(settings.pinned),
            "slices": {name: {"part": own.part, "memory_bytes": own.memory_bytes} for name, own in settings.slices},
            "not_enforced": list(dict.fromkeys(said for each in counted.values() for said in each["not_enforced"])),
            "restarts": _restarts(supervisor, counted),
            "workers": [
                {"number": number, **_facts(counted.get(number), _FACTS)} for number in range(settings.workers)
            ],
            "planner": None if settings.planner is None else _facts(counted.get(settings.planner), _PLANNER_FACTS),
        }

    @app.get("/history")
    async def history() -> dict[str, Any]:
        """The newest requests with the stages that ran for them, and models that came and went, as a saved run."""

        def gathered() -> dict[str, Any]:
            return served_history(application, settings, recent(settings), tallies(settings))

        return await asyncio.to_thread(gathered)

    @app.get("/metrics", response_model=None)
    async def metrics() -> Response:
        """All counts in Prometheus' form."""
        counted = await asyncio.to_thread(tallies, settings)
        parts = {name: own.part for name, own in settings.slices}
        text = exposition(application, counted, _labels(settings), _restarts(supervisor, counted), parts)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    return app


def _facts(tally: Mapping[str, Any] | None, facts: Sequence[str]) -> dict[str, Any]:
    """The facts that a process says of itself; null if the process does not answer."""
    return {"present": tally is not None, **{fact: None if tally is None else tally[fact] for fact in facts}}


def _restarts(served: Served, counted: Mapping[int, Mapping[str, Any]]) -> int:
    """How many workers were started again; as they themselves say, if the supervisor is elsewhere."""
    return sum(tally["epoch"] for tally in counted.values()) if served.restarts is None else served.restarts


def _labels(settings: ServingSettings) -> dict[int, str]:
    """What each process is called in metrics: a worker goes by its number."""
    labels = {number: str(number) for number in range(settings.workers)}
    return labels if settings.planner is None else {**labels, settings.planner: "planner"}


async def _unless_left(request: Request, answer: Any) -> tuple[str, Any] | None:
    """The answer that the client waits for, or None if the client goes away before it is there."""
    wanted = asyncio.ensure_future(answer)
    leaving = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait({wanted, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if wanted.done():
            found: tuple[str, Any] = wanted.result()
            return found
        return None
    finally:
        for one in (wanted, leaving):
            one.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await one


async def _left(request: Request) -> None:
    """Return when the client has gone away."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _lines(heard: _Heard, kind: str, value: Any) -> AsyncIterator[bytes]:
    """Pieces as lines of JSON, as they come; what goes wrong after the first is a last line."""
    try:
        while kind == "chunk":
            yield json_of(value) + b"\n"
            kind, value = await anext(heard)
    except (RequestFailedError, NoWorkerAnswersError) as error:
        yield _last_line(_problem(error))
    except ProblemError as problem:
        yield _last_line(problem)
    finally:
        await heard.aclose()


def _last_line(problem: ProblemError) -> bytes:
    return json_of({"code": problem.code, "detail": str(problem)}) + b"\n"


def _problem(error: RequestFailedError | NoWorkerAnswersError) -> ProblemError:
    if isinstance(error, RequestFailedError):
        status = _STATUS.get(error.code, 500)
        return ProblemError(status, error.code, str(error), retry_seconds=error.retry_seconds)
    return ProblemError(503, "no-worker-answers", str(error))
