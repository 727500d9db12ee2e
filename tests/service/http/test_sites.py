"""A server answers by its own names only, and to the pages of no other site, unless its operator has named them."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import httpx
import pytest

from fairway.errors import InputError
from fairway.service.http.sites import HEADERS, Sites
from tests.service.running import PATIENCE, Served, running_server

Given = list[tuple[str, str]]


async def _answers(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "websocket":
        return await send({"type": "websocket.accept"})
    await send({"type": "http.response.start", "status": 200, "headers": []})
    return await send({"type": "http.response.body", "body": b"secret"})


def ask(sites: Sites, given: Given, *, kind: str = "http", scheme: str = "http", **more: Any) -> dict[str, Any]:
    """What the server says first; of a refusal also why."""
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    headers = [(name.encode(), value.encode("latin-1")) for name, value in given]
    scope = {"type": kind, "method": "POST", "path": "/", "scheme": scheme, "headers": headers, "query_string": b"",
             "server": ("10.1.2.3", 8642), **more}  # fmt: skip
    asyncio.run(sites.around(_answers, ["bound.example"])(scope, receive, send))
    if kind == "http" and sent[0]["status"] != 200:
        return {**sent[0], **json.loads(sent[1]["body"])}
    return sent[0]


OWN = [
    "127.0.0.1", "127.0.0.1:8642", "127.8.8.8:1", "[::1]:8642", "[0:0:0:0:0:0:0:1]", "localhost", "LOCALHOST:8642",
    "localhost.", "fairway.localhost:80", "10.1.2.3:8642", "bound.example", "Proxy.Example:443", "one.wild.example",
]  # fmt: skip
STRANGE = [
    "evil.example", "evil.example:8642", "127.0.0.1.evil.example", "localhost.evil.example", "10.1.2.4", "[::2]:8642",
    "wild.example", "a.b.wild.example", "xlocalhost", "0.0.0.0", "2130706433", "0x7f.1", "bound.example.evil",
]  # fmt: skip
NONE = [
    "",
    " ",
    ":80",
    "a b",
    "127.0.0.1/x",
    "u@127.0.0.1",
    "127.0.0.1:x",
    "127.0.0.1:99999",
    "[::1",
    "\xff",
    "a?b",
    "a#b",
]
SITES = Sites(("proxy.example", "*.wild.example"), ("https://dashboard.example", "http://other.example:3000"))


@pytest.mark.parametrize("host", OWN)
def test_it_answers_by_its_own_names(host: str) -> None:
    assert ask(SITES, [("host", host)])["status"] == 200


@pytest.mark.parametrize("host", STRANGE)
def test_a_name_that_is_not_its_own_is_refused_as_a_name_made_to_lead_here_would_be(host: str) -> None:
    refused = ask(SITES, [("host", host)])
    assert (refused["status"], refused["code"]) == (421, "unknown-host")
    assert refused["detail"].count("\n") == 0
    assert "--allow-host" in refused["detail"]
    assert ask(SITES, [("host", host)], kind="websocket")["type"] == "websocket.close"


@pytest.mark.parametrize("host", NONE)
def test_what_is_no_name_is_refused(host: str) -> None:
    assert ask(SITES, [("host", host)])["code"] == "no-host"


def test_exactly_one_name_is_expected() -> None:
    assert ask(SITES, [])["code"] == "no-host"
    assert ask(SITES, [("host", "localhost"), ("host", "localhost")])["code"] == "no-host"


@pytest.mark.parametrize(
    ("host", "origin", "scheme"),
    [
        ("127.0.0.1:8642", "http://127.0.0.1:8642", "http"), ("localhost", "http://localhost", "http"),
        ("localhost", "http://localhost:80", "http"), ("proxy.example", "https://proxy.example", "http"),
        ("localhost:8642", "https://localhost:8642", "https"), ("localhost", "https://dashboard.example", "http"),
        ("localhost", "http://other.example:3000", "http"),
    ],
)  # fmt: skip
def test_its_own_pages_and_those_that_were_allowed_may_ask(host: str, origin: str, scheme: str) -> None:
    for kind in ("http", "websocket"):
        said = ask(SITES, [("host", host), ("origin", origin)], scheme=scheme, kind=kind)
        assert said.get("status", 200) == 200
        assert said["type"] in {"http.response.start", "websocket.accept"}


@pytest.mark.parametrize(
    ("host", "origin", "scheme"),
    [
        ("localhost:8642", "http://localhost:3000", "http"), ("localhost:8642", "http://evil.example", "http"),
        ("localhost:8642", "null", "http"), ("localhost:8642", "", "http"), ("localhost", "file://", "http"),
        ("localhost:8642", "http://127.0.0.1:8642", "http"), ("localhost:8642", "http://localhost:8642", "https"),
        ("localhost", "http://dashboard.example", "http"), ("localhost", "https://dashboard.example.evil", "http"),
        ("localhost", "http://localhost:99999", "http"), ("localhost", "http://localhost@evil.example", "http"),
    ],
)  # fmt: skip
def test_pages_of_other_sites_may_not(host: str, origin: str, scheme: str) -> None:
    refused = ask(SITES, [("host", host), ("origin", origin)], scheme=scheme)
    assert (refused["status"], refused["code"]) == (403, "other-origin")
    closed = ask(SITES, [("host", host), ("origin", origin)], scheme=scheme, kind="websocket")
    assert closed == {"type": "websocket.close", "code": 1008, "reason": "other-origin"}


def test_two_origins_are_none_of_ours() -> None:
    same = ("origin", "http://localhost")
    assert ask(SITES, [("host", "localhost"), same, same])["code"] == "other-origin"


def test_a_picture_on_a_page_of_another_site_is_refused_but_a_link_may_be_followed() -> None:
    for site, mode, status in (
        ("cross-site", "no-cors", 403), ("same-site", "cors", 403), ("cross-site", "navigate", 200),
        ("same-origin", "cors", 200), ("none", "navigate", 200),
    ):  # fmt: skip
        given = [("host", "localhost"), ("sec-fetch-site", site), ("sec-fetch-mode", mode)]
        assert ask(SITES, given)["status"] == status


@pytest.mark.parametrize("given", ["http://a.example", "a.example:80", "", "a b", "*", "*.", "\n", "é.example"])
def test_names_to_allow_are_checked(given: str) -> None:
    with pytest.raises(InputError, match=r"--allow-host: .* given, expected a name or an address"):
        Sites(hosts=(given,))


@pytest.mark.parametrize("given", ["*", "null", "a.example", "ftp://a.example", "https://", "https://a.example/x", ""])
def test_origins_to_allow_are_checked(given: str) -> None:
    with pytest.raises(InputError, match=r"--allow-origin: .* given, expected scheme, host and port"):
        Sites(origins=(given,))


def test_an_origin_to_allow_is_taken_as_browsers_write_it() -> None:
    assert Sites(origins=("https://A.example:443",)).origins == ("https://a.example",)


def test_the_service_is_behind_these_checks_and_its_answers_have_their_headers(shared: Served) -> None:
    with shared.client() as client:
        answer = client.get("/status")
        assert answer.status_code == 200
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
        for name in ("server", "access-control-allow-origin"):
            assert name not in answer.headers
        for path in ("/status", "/events", "/jobs/none/logs?follow=true", "/nothing"):
            for header, value, status in (("Host", "evil.example", 421), ("Origin", "http://evil.example", 403)):
                answer = client.get(path, headers={header: value})
                assert answer.status_code == status
                assert "access-control-allow-origin" not in answer.headers
    with shared.client_with(None) as stranger:
        answer = stranger.get("/status", headers={"Host": "evil.example"})
        assert answer.status_code == 421, "before a token is looked at"
        assert answer.headers["x-content-type-options"] == "nosniff"
        asked = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
        assert stranger.options("/jobs", headers=asked).status_code == 403


def test_a_page_that_was_allowed_can_ask_from_a_browser(shared: Served) -> None:
    page = {"Origin": "https://dashboard.example"}
    wish = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    with running_server(shared.scheduler, sites=SITES) as server:
        allowed = httpx.options(f"{server.address}/jobs", headers={**page, **wish}, trust_env=False, timeout=PATIENCE)
        assert allowed.status_code == 200
        assert allowed.headers["access-control-allow-origin"] == page["Origin"]
        token = {"Authorization": f"Bearer {shared.secret}"}
        answer = httpx.get(f"{server.address}/status", headers={**page, **token}, trust_env=False, timeout=PATIENCE)
        assert answer.headers["access-control-allow-origin"] == page["Origin"]


def test_a_request_to_become_a_websocket_is_answered_as_any_other(shared: Served) -> None:
    host, port = shared.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), PATIENCE) as client:
        head = (
            "GET /events HTTP/1.1\r\nHost: {}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nOrigin: http://evil\r\n"
        )
        client.sendall((head.format(host) + "Connection: close\r\n\r\n").encode())
        assert client.recv(4096).startswith(b"HTTP/1.1 403")
