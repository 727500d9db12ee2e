"""Who may ask a served application what, with a token and without one, from a program and from a browser."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
from fastapi import FastAPI

from fairway.errors import FairwayError
from fairway.service.http.problems import answer_to
from fairway.service.inference.dashboard import dashboard_routes
from fairway.service.inference.token import TokenRequired

TOKEN = "secret-token"


class Site:
    """A browser that asks an application, without a network between them, and keeps its cookies."""

    def __init__(self, app: Any) -> None:
        self._app, self._cookies = app, httpx.Cookies()

    def ask(self, method: str, path: str, **given: Any) -> httpx.Response:
        async def asked() -> httpx.Response:
            transport = httpx.ASGITransport(app=self._app)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://localhost:8000", cookies=self._cookies
            ) as client:
                answer = await client.request(method, path, **given)
                self._cookies = client.cookies
                return answer

        return asyncio.run(asked())

    def get(self, path: str, **given: Any) -> httpx.Response:
        return self.ask("GET", path, **given)

    def post(self, path: str, **given: Any) -> httpx.Response:
        return self.ask("POST", path, **given)

    def delete(self, path: str, **given: Any) -> httpx.Response:
        return self.ask("DELETE", path, **given)


def client(token: str | None) -> Site:
    app = FastAPI()
    app.include_router(dashboard_routes(token))
    app.add_exception_handler(FairwayError, lambda _, error: answer_to(error))  # type: ignore[arg-type]

    @app.get("/anything")
    async def anything() -> str:
        return "answered"

    return Site(app if token is None else TokenRequired(app, token))


def test_without_a_token_whoever_comes_is_let_in_and_nobody_can_log_in() -> None:
    site = client(None)
    assert site.get("/anything").json() == "answered"
    assert site.get("/session").json() == {
        "name": "no token needed", "role": "client", "team": None, "expires_at": None,
    }  # fmt: skip
    assert site.post("/session", json={"token": "x"}).status_code == 401


def test_a_program_shows_the_token_itself() -> None:
    site = client(TOKEN)
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}):
        answer = site.get("/anything", headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (401, "no-token")
    assert site.get("/anything", headers={"Authorization": f"Bearer {TOKEN}"}).json() == "answered"
    assert site.get("/session", headers={"Authorization": f"Bearer {TOKEN}"}).json()["name"] == (
        "the token of this server"
    )


def test_the_page_and_logging_in_need_no_token() -> None:
    site = client(TOKEN)
    assert site.get("/").status_code == 200
    assert site.get("/").headers["content-type"].startswith("text/html")
    assert site.post("/session", json={"token": "wrong"}).status_code == 401
    assert site.post("/session", json={"token": ""}).status_code in {401, 422}


def test_a_browser_that_has_logged_in_comes_with_both_halves() -> None:
    site = client(TOKEN)
    answer = site.post("/session", json={"token": f" {TOKEN} "})
    assert answer.status_code == 200
    key = answer.json()["key"]
    assert answer.json()["name"] == "the token of this server"
    assert TOKEN not in answer.text
    assert site.get("/anything").status_code == 401, "the cookie alone is nothing"
    assert site.get("/anything", headers={"Fairway-Key": key}).json() == "answered"
    assert site.get("/anything", headers={"Fairway-Key": key[:-2]}).status_code == 401
    assert site.delete("/session", headers={"Fairway-Key": key}).status_code == 204
    assert site.get("/anything", headers={"Fairway-Key": key}).status_code == 401
