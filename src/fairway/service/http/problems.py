"""What went wrong, as an answer: RFC 9457 problem details, with a `code` for programs and one line for people."""

from __future__ import annotations

import logging
import math
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairway.documents import shown
from fairway.errors import FairwayError, InputError
from fairway.live.training.decision.process import BusyError
from fairway.live.training.inbox import OverError
from fairway.store.errors import ConflictError, HeldError, IllegalChangeError, StoreError, UnknownError

_LOG = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"

_KINDS: tuple[tuple[type[FairwayError], int, str], ...] = (
    (InputError, 422, "bad-input"),
    (UnknownError, 404, "unknown"),
    (ConflictError, 409, "conflict"),
    (IllegalChangeError, 409, "illegal-change"),
    (HeldError, 409, "held"),
    (StoreError, 503, "store-failing"),
    (OverError, 503, "not-scheduling"),
    (BusyError, 503, "busy"),
)
_LONGEST_LINE = 1000
_CODES = {404: "no-such-route", 405: "no-such-method"}


class ProblemError(FairwayError):
    """A request that is refused for a reason of the service's own."""

    def __init__(self, status: int, code: str, detail: str, *, retry_seconds: float | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.retry_seconds = retry_seconds

    @property
    def headers(self) -> dict[str, str]:
        """When to try again, in whole seconds, if that is known."""
        if self.retry_seconds is None or not math.isfinite(self.retry_seconds):
            return {}
        return {"Retry-After": str(max(1, math.ceil(self.retry_seconds)))}


class Problem(BaseModel):
    """What went wrong."""

    model_config = ConfigDict(title="Problem")

    type: str = "about:blank"
    title: str = Field(description="The meaning of the status.")
    status: int = Field(ge=400, le=599)
    detail: str = Field(description="What was given, what was expected and what to do, in one line.")
    code: str = Field(description="For programs; stays the same over versions.")


def answer(status: int, code: str, detail: str, headers: dict[str, str] | None = None) -> Response:
    """A problem as a response."""
    line = detail if len(detail) <= _LONGEST_LINE else f"{detail[:_LONGEST_LINE]}…"  # it may quote what was given
    problem = Problem(title=HTTPStatus(status).phrase, status=status, detail=line, code=code)
    extra = dict(headers or {})
    if status == HTTPStatus.UNAUTHORIZED:
        extra["WWW-Authenticate"] = 'Bearer realm="fairway"'
    if status in {HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS}:
        extra.setdefault("Retry-After", "1")
    return Response(problem.model_dump_json(), status, extra, MEDIA_TYPE)


def answer_to(error: FairwayError) -> Response:
    """The response to an error that was raised on purpose."""
    if isinstance(error, ProblemError):
        return answer(error.status, error.code, str(error), error.headers)
    for kind, status, code in _KINDS:
        if isinstance(error, kind):
            if status >= 500:
                _LOG.error("%s", error)
            return answer(status, code, " ".join(str(error).split()))
    return unexpected(error)


def unexpected(error: Exception) -> Response:
    """The response to a defect; what it is stands in the service's log, not in the answer."""
    _LOG.error("a request failed", exc_info=error)
    return answer(500, "defect", "an unexpected error of the service; its log says more")


def handle_problems(app: FastAPI) -> None:
    """Let every error be answered as a problem, also those of middleware that was added before."""

    async def on_purpose(_: Request, error: Exception) -> Response:
        assert isinstance(error, FairwayError)
        return answer_to(error)

    async def of_framework(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        detail = {404: "no such route; GET /openapi.json lists them", 405: "this route has no such method"}.get(
            error.status_code, str(error.detail)
        )
        headers = dict(error.headers or {})
        return answer(error.status_code, _CODES.get(error.status_code, "refused"), detail, headers)

    async def of_parameters(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return answer(422, "bad-input", _line(error))

    app.add_exception_handler(FairwayError, on_purpose)
    app.add_exception_handler(HTTPException, of_framework)
    app.add_exception_handler(RequestValidationError, of_parameters)
    app.add_middleware(_Defects)


class _Defects:
    """Answers a request that met a defect, if nothing was answered yet; an ASGI middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def note(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, note)
        except Exception as error:
            if begun or scope["type"] != "http":
                raise
            await unexpected(error)(scope, receive, send)


def _line(error: RequestValidationError) -> str:
    """The first of the problems with parameters, as where, what was given and what was expected."""
    problems = error.errors()
    first: dict[str, Any] = problems[0]
    where = ".".join(str(step) for step in first["loc"][1:]) or "the request"
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    if first["type"] == "extra_forbidden":
        line = f"{where}: no such parameter; take it out"
    elif first["type"] == "missing":
        line = f"{where}: missing; add it"
    else:
        message = str(first["msg"])
        line = f"{where}: {shown(first.get('input'))} given; {message[:1].lower()}{message[1:]}"
    return str(InputError(line + more))
