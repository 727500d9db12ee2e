"""What an error becomes for a client: its status, its code for programs, and one line for people."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

import httpx
import pytest
from fastapi import FastAPI, HTTPException, Query
from starlette.responses import Response, StreamingResponse

from fairway.errors import FairwayError, InputError
from fairway.live.training.decision.process import BusyError
from fairway.live.training.inbox import OverError
from fairway.service.http.problems import ProblemError, answer, answer_to, handle_problems
from fairway.store.errors import ConflictError, HeldError, IllegalChangeError, StoreError, UnknownError


def _told(response: Response) -> tuple[int, str, str]:
    problem = json.loads(bytes(response.body))
    assert problem["type"] == "about:blank"
    assert problem["status"] == response.status_code
    assert response.headers["content-type"] == "application/problem+json"
    return response.status_code, problem["code"], problem["detail"]


@pytest.mark.parametrize(
    ("error", "status", "code", "is_logged"),
    [
        (InputError("jobs: none given"), 422, "bad-input", False),
        (UnknownError("no job 'x'"), 404, "unknown", False),
        (ConflictError("used"), 409, "conflict", False),
        (IllegalChangeError("over"), 409, "illegal-change", False),
        (HeldError("held"), 409, "held", False),
        (StoreError("the disk is full"), 503, "store-failing", True),
        (OverError("ends"), 503, "not-scheduling", True),
        (BusyError("busy"), 503, "busy", True),
        (ProblemError(431, "too-large", "the head is too long"), 431, "too-large", False),
    ],
)
def test_every_kind_of_error_has_its_status_and_code(
    error: FairwayError, status: int, code: str, is_logged: bool, caplog: pytest.LogCaptureFixture
) -> None:
    assert _told(answer_to(error)) == (status, code, str(error))
    assert bool(caplog.records) == is_logged


def test_a_defect_is_answered_without_its_details_which_the_log_has(caplog: pytest.LogCaptureFixture) -> None:
    status, code, detail = _told(answer_to(FairwayError("a secret")))
    assert (status, code) == (500, "defect")
    assert "secret" not in detail
    assert "secret" in caplog.text


def test_a_line_has_a_thousand_characters_at_most() -> None:
    assert _told(answer(400, "x", "a" * 1000))[2] == "a" * 1000
    assert _told(answer(400, "x", "a" * 1001))[2] == "a" * 1000 + "…"
    assert _told(answer_to(UnknownError("two\nlines  and\tmore")))[2] == "two lines and more"


def test_answers_say_what_to_do_next_where_http_has_a_header_for_it() -> None:
    assert answer(401, "no-token", "x").headers["www-authenticate"] == 'Bearer realm="fairway"'
    assert {status: answer(status, "x", "x").headers.get("retry-after") for status in (429, 503, 500, 404)} == {
        429: "1", 503: "1", 500: None, 404: None,
    }  # fmt: skip
    kept = answer(403, "x", "x", {"X-Of-Mine": "1"})
    assert kept.headers["x-of-mine"] == "1"
    assert "www-authenticate" not in kept.headers


def _app() -> FastAPI:
    app = FastAPI()

    @app.get("/number")
    def number(value: Annotated[int, Query(ge=1)], other: int = 0) -> int:
        return value + other

    @app.get("/closed")
    def closed() -> None:
        raise HTTPException(403, "closed on Sundays", {"X-Open": "Monday"})

    @app.get("/broken")
    def broken() -> None:
        raise RuntimeError("a secret")

    @app.get("/half")
    def half() -> StreamingResponse:
        async def parts() -> Any:
            yield b"begun"
            raise RuntimeError("in the middle")

        return StreamingResponse(parts())

    handle_problems(app)
    return app


def _ask(method: str, path: str, *, raises: bool = False, **params: Any) -> httpx.Response:
    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(_app(), raise_app_exceptions=raises)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            return await client.request(method, path, params=params)

    return asyncio.run(ask())


def test_what_the_framework_refuses_is_a_problem_too() -> None:
    assert _ask("GET", "/number", value=3).json() == 3
    for path, params, method, status, code, detail in (
        ("/nowhere", {}, "GET", 404, "no-such-route", "no such route; GET /openapi.json lists them"),
        ("/number", {}, "POST", 405, "no-such-method", "this route has no such method"),
        ("/closed", {}, "GET", 403, "refused", "closed on Sundays"),
        ("/number", {}, "GET", 422, "bad-input", "value: missing; add it"),
        ("/number", {"value": 0}, "GET", 422, "bad-input",
         'value: "0" given; input should be greater than or equal to 1'),
        ("/broken", {}, "GET", 500, "defect", "an unexpected error of the service; its log says more"),
    ):  # fmt: skip
        answered = _ask(method, path, **params)
        assert answered.headers["content-type"] == "application/problem+json"
        told = answered.json()
        assert (answered.status_code, told["code"], told["detail"]) == (status, code, detail)
    assert _ask("GET", "/number", value=0, other="x").json()["detail"].endswith("(and 1 more)")
    assert _ask("GET", "/closed").headers["x-open"] == "Monday"


def test_an_answer_that_has_begun_is_broken_off_and_not_followed_by_another() -> None:
    with pytest.raises(RuntimeError, match="in the middle"):
        _ask("GET", "/half", raises=True)
