"""Making, listing and revoking tokens over HTTP."""

from __future__ import annotations

import stat

import httpx
import pytest

from fairway.service.first_token import ensure_first_token
from fairway.store.tokens import Role, all_tokens, create_token
from tests.service.running import Served, until


def test_a_token_is_shown_once(shared: Served, admin: httpx.Client) -> None:
    answer = admin.post("/tokens", json={"role": "member", "team": "vision", "name": "ann"})
    assert (answer.status_code, answer.headers["cache-control"]) == (201, "no-store")
    made = answer.json()
    secret = made.pop("token")
    assert (made["role"], made["team"], made["name"], made["revoked_at"]) == ("member", "vision", "ann", None)
    assert made in admin.get("/tokens").json()["tokens"]
    assert secret not in admin.get("/tokens").text
    with shared.client_with(secret) as client:
        assert client.get("/jobs").status_code == 200


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({}, "body: role: missing, expected 'admin', 'member' or 'reader'; add it"),
        ({"role": "boss"}, "body: role: \"boss\" given, expected 'admin', 'member' or 'reader'"),
        ({"role": "member"}, "team: None given for the role member; a member needs a team"),
        ({"role": "admin", "team": "a"}, "team: 'a' given for the role admin"),
        ({"role": "member", "team": ""}, "body: team: \"\" given"),
        ({"role": "member", "team": "a\nb"}, "team: "),
        ({"role": "reader", "name": "x" * 257}, "name: "),
        ({"role": "reader", "nmae": "x"}, "body: nmae: no such field, did you mean 'name'?"),
        ({"role": "reader", "expires_seconds": 0}, "body: expires_seconds: 0 given, expected after how many seconds"),
        ({"role": "reader", "expires_seconds": 1e300}, "body: expires_seconds: 1e+300 given"),
        ([], "body: the document: a list of 0 given"),
    ],
)  # fmt: skip
def test_what_is_no_token_is_refused(shared: Served, admin: httpx.Client, given: object, line: str) -> None:
    before = len(shared.store.read(all_tokens))
    answer = admin.post("/tokens", json=given)
    assert answer.status_code == 422
    assert line in answer.json()["detail"]
    assert len(shared.store.read(all_tokens)) == before


def test_an_unknown_token_cannot_be_revoked_and_a_revoked_one_can_be_again(admin: httpx.Client) -> None:
    assert admin.delete("/tokens/none").status_code == 404
    made = admin.post("/tokens", json={"role": "reader"}).json()
    assert [admin.delete(f"/tokens/{made['id']}").status_code for _ in range(2)] == [204, 204]
    kept = next(token for token in admin.get("/tokens").json()["tokens"] if token["id"] == made["id"])
    assert kept["revoked_at"] is not None


def test_a_token_that_has_expired_is_refused(own: Served, client: httpx.Client) -> None:
    made = client.post("/tokens", json={"role": "reader", "expires_seconds": 1000}).json()
    assert made["expires_at"] == pytest.approx(made["created_at"] + 1000)
    secret, _ = own.store.write(create_token, Role.READER, at=1.0, expires_at=2.0)
    with own.client_with(made["token"]) as valid, own.client_with(secret) as expired:
        assert valid.get("/status").status_code == 200
        assert expired.get("/status").json()["code"] == "wrong-token"


def test_a_token_is_replaced_by_one_that_may_do_the_same(own: Served, client: httpx.Client) -> None:
    made = client.post("/tokens", json={"role": "member", "team": "vision", "name": "ann"}).json()
    answer = client.post(f"/tokens/{made['id']}/rotate", json={})
    assert (answer.status_code, answer.headers["cache-control"]) == (201, "no-store")
    new = answer.json()
    assert (new["role"], new["team"], new["name"]) == ("member", "vision", "ann")
    with own.client_with(made["token"]) as old, own.client_with(new["token"]) as now:
        assert old.get("/jobs").status_code == 401
        assert now.get("/jobs").status_code == 200
        assert now.post(f"/tokens/{new['id']}/rotate", json={}).status_code == 403
    later = client.post(f"/tokens/{new['id']}/rotate", json={"grace_seconds": 1000}).json()
    with own.client_with(new["token"]) as old, own.client_with(later["token"]) as now:
        assert [each.get("/jobs").status_code for each in (old, now)] == [200, 200]
    assert client.post(f"/tokens/{made['id']}/rotate", json={}).status_code == 422
    assert client.post("/tokens/none/rotate", json={}).status_code == 404
    assert client.post(f"/tokens/{later['id']}/rotate", json={"grace_seconds": -1}).status_code == 422


def test_the_token_in_the_directory_is_replaced_there_too(own: Served, client: httpx.Client) -> None:
    directory = own.scheduler.settings.directory
    ensure_first_token(own.store, directory)
    file = directory / "token"
    before = file.read_text()
    first = next(token for token in client.get("/tokens").json()["tokens"] if token["name"] == "first admin")
    new = client.post(f"/tokens/{first['id']}/rotate", json={}).json()
    assert file.read_text().strip() == new["token"] != before.strip()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not ensure_first_token(own.store, directory), "it is worth something"


def test_the_list_says_when_a_token_was_last_used(own: Served, client: httpx.Client) -> None:
    unused = client.post("/tokens", json={"role": "reader"}).json()["id"]

    def uses() -> dict[str, float | None]:
        return {token["id"]: token["used_at"] for token in client.get("/tokens").json()["tokens"]}

    until(lambda: [use for use in uses().values() if use], "for a use to be noted")
    assert uses()[unused] is None
