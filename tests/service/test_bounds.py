"""What a client may ask with: every limit of the API, at the last value that is taken and at the first that is not."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

LARGEST = 2**63 - 1

PATHS = [
    ("GET", "/jobs/{}"), ("POST", "/jobs/{}/cancel"), ("GET", "/jobs/{}/explain"), ("GET", "/jobs/{}/logs"),
    ("GET", "/jobs/{}/events"), ("DELETE", "/tokens/{}"), ("DELETE", "/reservations/{}"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path"), PATHS)
def test_an_id_has_128_characters_at_most(admin: httpx.Client, method: str, path: str) -> None:
    assert admin.request(method, path.format("x" * 128)).status_code == 404
    refused = admin.request(method, path.format("x" * 129))
    assert (refused.status_code, refused.json()["code"]) == (422, "bad-input")


QUERIES: list[tuple[str, str, list[Any], list[Any]]] = [
    ("/jobs", "limit", [1, 1000], [0, 1001]),
    ("/jobs", "after", [0, LARGEST], [-1, LARGEST + 1]),
    ("/jobs", "name", ["x", "x" * 256], ["", "x" * 257]),
    ("/jobs", "team", ["x", "x" * 256], ["", "x" * 257]),
    ("/journal", "limit", [1, 1000], [0, 1001]),
    ("/journal", "after", [0, LARGEST], [-1, LARGEST + 1]),
    ("/usage", "since", [0], [-0.001]),
    ("/usage", "team", ["x", "x" * 256], ["", "x" * 257]),
]


@pytest.mark.parametrize(("path", "name", "taken", "refused"), QUERIES)
def test_a_parameter_is_taken_within_its_bounds_and_refused_beyond(
    admin: httpx.Client, path: str, name: str, taken: list[Any], refused: list[Any]
) -> None:
    assert [admin.get(path, params={name: value}).status_code for value in taken] == [200] * len(taken)
    for value in refused:
        answer = admin.get(path, params={name: value})
        assert answer.status_code == 422, value
        assert answer.json()["detail"].startswith(f"{name}: "), "the line names the parameter"


def test_jobs_are_listed_by_ten_labels_at_most(admin: httpx.Client) -> None:
    labels = [("label", f"name-{number}=x") for number in range(11)]
    assert admin.get("/jobs", params=labels[:10]).status_code == 200
    assert admin.get("/jobs", params=labels).status_code == 422


def test_usage_is_by_team_by_user_or_by_both(admin: httpx.Client) -> None:
    for by in (["team"], ["user"], ["team", "user"]):
        assert admin.get("/usage", params=[("by", each) for each in by]).status_code == 200
    assert admin.get("/usage", params=[("by", "team")] * 3).status_code == 422


def test_logs_are_asked_for_within_bounds(admin: httpx.Client) -> None:
    for name, taken, refused in (
        ("rank", [0, 9999], [-1, 10_000]), ("tail", [0, 1_000_000], [-1, 1_000_001]),
        ("offset", [0, LARGEST], [-1, LARGEST + 1]),
    ):  # fmt: skip
        asked = {value: admin.get("/jobs/nobody/logs", params={name: value}).status_code for value in taken + refused}
        assert asked == dict.fromkeys(taken, 404) | dict.fromkeys(refused, 422), name


def test_a_token_lasts_for_more_than_nothing_and_less_than_thirty_years(admin: httpx.Client) -> None:
    for seconds, status in ((1e9, 201), (0.001, 201), (0, 422), (-1, 422), (1e9 + 1, 422)):
        answer = admin.post("/tokens", json={"role": "reader", "expires_seconds": seconds})
        assert answer.status_code == status, seconds


def test_a_key_of_a_submission_has_256_characters_at_most(admin: httpx.Client) -> None:
    for key, is_taken in (("k" * 256, True), ("k" * 257, False)):
        answer = admin.post("/jobs", json={"run": "true"}, headers={"Idempotency-Key": key})
        assert (answer.status_code != 422) == is_taken, answer.text


def test_ten_thousand_workers_are_drained_at_once_at_most(admin: httpx.Client) -> None:
    for count, said in ((0, "a list of 1 to 10000 workers"), (10_001, "a list of 1 to 10000 workers"),
                        (10_000, "'nothing' is no worker of this cluster")):  # fmt: skip
        answer = admin.post("/workers/drain", json={"workers": ["nothing"] * count})
        assert answer.status_code == 422
        assert said in answer.json()["detail"]


def test_the_document_says_what_is_meant_where_a_parameter_is_left_out(admin: httpx.Client) -> None:
    paths = admin.get("/openapi.json").json()["paths"]
    said = {
        (path, parameter["name"]): parameter["schema"]["default"]
        for path, operations in paths.items()
        for parameter in operations.get("get", {}).get("parameters", [])
        if parameter["schema"].get("default") is not None
    }
    assert {key: value for key, value in said.items() if value != []} == {
        ("/jobs", "limit"): 100, ("/jobs", "order"): "newest", ("/journal", "limit"): 100, ("/journal", "after"): 0,
        ("/jobs/{job}/logs", "rank"): 0, ("/jobs/{job}/logs", "follow"): False, ("/usage", "by"): ["team"],
        ("/events", "pages"): False,
    }  # fmt: skip
