"""Making, listing and revoking tokens over HTTP."""

from __future__ import annotations

import httpx
import pytest

from fairway.store.tokens import all_tokens
from tests.service.running import Served


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
