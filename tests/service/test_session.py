"""Logging in from a browser: two halves of a token, neither of which says anything alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from starlette.datastructures import Headers

from fairway.service.session import joined, secret_in, split
from fairway.store.tokens import Role
from tests.service.running import Served

NAMES = ("fairway_abc", "fairway_" + "x" * 43, "ä€")


@contextmanager
def logged_in(served: Served, secret: str) -> Iterator[tuple[httpx.Client, httpx.Response]]:
    with served.client_with(None) as client:
        answer = client.post("/session", json={"token": secret})
        if answer.status_code == 200:
            client.headers["Fairway-Key"] = answer.json()["key"]
        yield client, answer


@pytest.mark.parametrize("secret", NAMES)
def test_both_halves_together_are_the_token(secret: str) -> None:
    cookie, key = split(secret)
    assert joined(cookie, key) == secret


def test_halves_differ_each_time_and_do_not_mix() -> None:
    (first, _), (second, other) = split(NAMES[1]), split(NAMES[1])
    assert first != second
    assert joined(first, other) != NAMES[1]


@pytest.mark.parametrize(("cookie", "key"), [("", ""), ("AAAA", "AA"), ("!!", "!!"), ("A", "A"), ("ü", "ü")])
def test_what_are_no_halves_are_no_token(cookie: str, key: str) -> None:
    assert joined(cookie, key) is None


def test_the_cookie_of_another_port_is_not_read() -> None:
    cookie, key = split(NAMES[0])
    given = {"cookie": f"fairway_session_8642={cookie}", "fairway-key": key}
    assert secret_in(Headers({**given, "host": "127.0.0.1:8642"})) == NAMES[0]
    assert secret_in(Headers({**given, "host": "127.0.0.1:8643"})) is None


def test_who_logs_in_may_ask_and_change_what_the_token_may(shared: Served) -> None:
    with logged_in(shared, shared.secret) as (client, answer):
        said = answer.headers["set-cookie"]
        assert "HttpOnly" in said
        assert "SameSite=strict" in said
        assert shared.secret not in said
        assert shared.secret not in answer.text
        assert client.get("/session").json()["role"] == "admin"
        assert client.get("/status").status_code == 200
        assert client.post("/jobs", params={"dry_run": "true"}, json={"run": ["true"]}).status_code == 200


def test_half_a_session_is_none(shared: Served) -> None:
    with logged_in(shared, shared.secret) as (client, _):
        key = client.headers.pop("Fairway-Key")
        assert client.get("/status").status_code == 401
        client.headers["Fairway-Key"] = key
        client.cookies.clear()
        assert client.get("/status").status_code == 401


def test_a_wrong_token_logs_nobody_in(shared: Served) -> None:
    with logged_in(shared, "fairway_wrong") as (_, answer):
        assert answer.status_code == 401
        assert answer.json()["code"] == "wrong-token"
        assert "set-cookie" not in answer.headers


def test_a_reader_changes_nothing_from_a_browser_either(shared: Served) -> None:
    with logged_in(shared, shared.new_token(Role.READER)) as (client, _):
        assert client.post("/jobs/job-1/cancel").status_code == 403


def test_pages_of_other_sites_can_neither_log_in_nor_write(shared: Served) -> None:
    with logged_in(shared, shared.secret) as (client, _):
        for path in ("/session", "/jobs/job-1/cancel"):
            answer = client.post(path, headers={"Origin": "https://evil.example"}, json={"token": shared.secret})
            assert answer.status_code == 403
            assert answer.json()["code"] == "other-origin"


def test_logging_out_takes_the_cookie_back(shared: Served) -> None:
    with logged_in(shared, shared.secret) as (client, _):
        assert client.delete("/session").status_code == 204
        assert not client.cookies
        assert client.get("/status").status_code == 401


@pytest.mark.parametrize("path", ["/", "/docs", "/dashboard/app.js", "/dashboard/app.css"])
def test_the_files_of_the_page_need_no_token(shared: Served, path: str) -> None:
    with shared.client_with(None) as client:
        answer = client.get(path)
        assert answer.status_code == 200
        assert "unsafe" not in answer.headers["content-security-policy"]


def test_the_history_is_a_saved_run_and_what_is_new_is_a_part_of_it(shared: Served) -> None:
    from fairway.dashboard.run_file import check  # noqa: PLC0415 - only here

    with shared.client() as admin:
        job = admin.post("/jobs", json={"run": ["true"], "team": "red"}).json()["id"]
        whole = admin.get("/history").raise_for_status().json()
        check(whole)
        (run,) = whole["runs"]
        assert job in run["jobs"]["id"]
        as_of = run["begins_at"] + run["end"]
        later = admin.get("/history", params={"since": as_of + 1000}).raise_for_status().json()
        check(later)
        assert later["runs"][0]["jobs"]["id"] == []
        assert admin.get("/history", params={"since": "x"}).status_code == 422
    with shared.client(Role.MEMBER, "blue") as member:
        assert job not in member.get("/history").raise_for_status().json()["runs"][0]["jobs"]["id"]
    with shared.client(Role.MEMBER, "red") as member:
        assert job in member.get("/history").raise_for_status().json()["runs"][0]["jobs"]["id"]
