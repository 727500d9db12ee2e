"""Who may do what: every route needs a token, and roles and teams are kept apart."""

from __future__ import annotations

import time

import httpx
import pytest

from fairway.service.authentication import REMEMBERED_SECONDS
from fairway.store.tokens import Role, all_tokens, revoke_token
from fairway.store.workers import all_workers
from tests.service.running import JOB, Served

ROUTES = [
    ("POST", "/jobs"),
    ("GET", "/jobs"),
    ("GET", "/jobs/job-1"),
    ("POST", "/jobs/job-1/cancel"),
    ("POST", "/jobs/cancel"),
    ("GET", "/usage"),
    ("GET", "/jobs/job-1/explain"),
    ("GET", "/jobs/job-1/logs"),
    ("GET", "/jobs/job-1/events"),
    ("GET", "/events"),
    ("GET", "/workers"),
    ("POST", "/workers/drain"),
    ("GET", "/status"),
    ("GET", "/metrics"),
    ("GET", "/tokens"),
    ("POST", "/tokens"),
    ("DELETE", "/tokens/x"),
    ("POST", "/tokens/x/rotate"),
    ("GET", "/reservations"),
    ("POST", "/reservations"),
    ("DELETE", "/reservations/reservation-1"),
    ("GET", "/journal"),
    ("GET", "/plan/state"),
    ("POST", "/plan"),
    ("GET", "/openapi.json"),
    ("GET", "/history"),
    ("GET", "/session"),
]
PUBLIC = [("POST", "/session"), ("DELETE", "/session")]


def test_these_are_all_routes(admin: httpx.Client) -> None:
    described = {
        (method.upper(), path.format(job="job-1", id="x", reservation="reservation-1"))
        for path, methods in admin.get("/openapi.json").json()["paths"].items()
        for method in methods
    }
    assert described == {*ROUTES, *PUBLIC} - {("GET", "/openapi.json")}


@pytest.mark.parametrize(
    ("method", "path"), [*ROUTES, ("POST", "/"), ("GET", "/dashboard/nothing"), ("GET", "/nothing")]
)
def test_nobody_gets_anywhere_without_a_token(shared: Served, method: str, path: str) -> None:
    with shared.client_with(None) as client:
        for headers in (
            {},
            {"Authorization": "Bearer"},
            {"Authorization": "Basic YTpi"},
            {"Authorization": "Bearer fairway_wrong"},
            {"Authorization": f"Bearer {shared.secret}x"},
            {"Authorization": f"Bearer {shared.secret[:-1]}"},
            {"Authorization": b"Bearer \xff\xfe"},
            {"Cookie": f"token={shared.secret}"},
        ):
            answer = client.request(method, path, headers=headers)  # type: ignore[arg-type]
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert answer.json()["code"] in {"no-token", "wrong-token"}
        assert client.request(method, path, params={"token": shared.secret}).status_code == 401


def test_the_name_of_the_scheme_may_be_written_in_any_way(shared: Served) -> None:
    with shared.client_with(None) as client:
        assert client.get("/status", headers={"Authorization": f"bearer {shared.secret}"}).status_code == 200


def test_a_large_body_without_a_token_is_not_read(shared: Served) -> None:
    with shared.client_with("fairway_wrong") as client:
        assert client.post("/jobs", content=b"x" * 5_000_000).status_code == 401


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/tokens"), ("POST", "/tokens"), ("DELETE", "/tokens/x"), ("POST", "/tokens/x/rotate"),
        ("GET", "/journal"), ("POST", "/workers/drain"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("role", [Role.MEMBER, Role.READER])
def test_what_is_for_admins_is_for_admins_only(shared: Served, method: str, path: str, role: Role) -> None:
    body = {"role": "admin", "workers": ["v100"]}
    with shared.client(role, "vision" if role is Role.MEMBER else None) as client:
        answer = client.request(method, path, json=body if method == "POST" else None)
        assert (answer.status_code, answer.json()["code"]) == (403, "admins-only")
    assert all(worker.drained_at is None for worker in shared.store.read(all_workers))


def test_a_reader_reads_everything_and_changes_nothing(shared: Served, admin: httpx.Client) -> None:
    job = admin.post("/jobs", json=JOB | {"team": "vision"}).json()["id"]
    before = shared.stored()
    with shared.client(Role.READER) as reader:
        for path in ("/jobs", f"/jobs/{job}", f"/jobs/{job}/logs", "/workers", "/status", "/metrics", "/openapi.json"):
            assert reader.get(path).status_code == 200
        assert job in [one["id"] for one in reader.get("/jobs", params={"team": "vision"}).json()["jobs"]]
        for path in ("/jobs", f"/jobs/{job}/cancel", "/jobs?dry_run=true"):
            answer = reader.post(path, json=JOB)
            assert (answer.status_code, answer.json()["code"]) == (403, "readers-only-look")
    assert shared.stored() == before
    assert admin.get(f"/jobs/{job}").json()["state"] == "queued"


def test_a_member_has_to_do_with_the_own_team_only(shared: Served, admin: httpx.Client) -> None:
    theirs = admin.post("/jobs", json=JOB | {"team": "speech"}).json()["id"]
    nobodys = admin.post("/jobs", json=JOB).json()["id"]
    with shared.client(Role.MEMBER, "robots") as member:
        mine = member.post("/jobs", json=JOB).json()
        assert mine["team"] == "robots", "the team of who submits, if none is given"
        assert member.post("/jobs", json=JOB | {"team": "robots"}).json()["team"] == "robots"
        before = shared.stored()
        for path in ("/jobs", "/jobs?dry_run=true"):
            answer = member.post(path, json=JOB | {"team": "speech"})
            assert (answer.status_code, answer.json()["code"]) == (403, "other-team")
        assert shared.stored() == before
        assert {job["team"] for job in member.get("/jobs").json()["jobs"]} == {"robots"}
        assert member.get("/jobs", params={"team": "speech"}).status_code == 403
        unknown = member.get("/jobs/job-99999").json()
        for job in (theirs, nobodys):
            for method, route in (
                ("GET", ""), ("POST", "/cancel"), ("GET", "/explain"), ("GET", "/logs"), ("GET", "/events"),
            ):  # fmt: skip
                answer = member.request(method, f"/jobs/{job}{route}")
                assert answer.status_code == 404
                assert answer.json() == unknown | {"detail": f"no job '{job}'"}, "as if there were no such job"
            assert member.get("/events", params={"job": job}).status_code == 404
        assert member.get(f"/jobs/{mine['id']}").status_code == 200
        assert member.post(f"/jobs/{mine['id']}/cancel").status_code == 202
    assert admin.get(f"/jobs/{theirs}").json()["state"] == "queued"


def test_keys_of_different_tokens_do_not_meet(shared: Served, admin: httpx.Client) -> None:
    with shared.client(Role.MEMBER, "a") as one, shared.client(Role.MEMBER, "a") as other:
        key = {"Idempotency-Key": "the same"}
        ids = {client.post("/jobs", json=JOB, headers=key).json()["id"] for client in (one, other, admin)}
    assert len(ids) == 3


def test_a_revoked_token_is_worth_nothing_at_once_here_and_within_a_second_elsewhere(
    shared: Served, admin: httpx.Client
) -> None:
    made = admin.post("/tokens", json={"role": "member", "team": "a"}).json()
    with shared.client_with(made["token"]) as client:
        assert client.get("/jobs").status_code == 200
        assert admin.delete(f"/tokens/{made['id']}").status_code == 204
        assert client.get("/jobs").status_code == 401
    secret = shared.new_token(Role.READER, name="elsewhere")
    with shared.client_with(secret) as client:
        assert client.get("/jobs").status_code == 200
        token = next(one for one in shared.store.read(all_tokens) if one.name == "elsewhere")
        shared.store.write(revoke_token, token.id, at=time.time())
        time.sleep(REMEMBERED_SECONDS)
        assert client.get("/jobs").status_code == 401
        assert REMEMBERED_SECONDS < 1


def test_a_request_with_two_tokens_is_refused_whichever_would_do(shared: Served, admin: httpx.Client) -> None:
    both = [("Authorization", f"Bearer {shared.secret}")] * 2
    answer = httpx.get(f"{shared.address}/status", headers=both)
    assert (answer.status_code, answer.json()["code"]) == (401, "no-token")
    assert admin.get("/status").status_code == 200, "one is enough"
