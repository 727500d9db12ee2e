"""Reservations over HTTP."""

from __future__ import annotations

import time

import httpx
import pytest

from fairway.store.reservations import open_reservations
from tests.service.running import Served

ASKED = {"team": "vision", "accelerators": {"v100": 2}, "for": "2h"}


def test_workers_are_reserved_listed_and_let_go(own: Served, client: httpx.Client) -> None:
    made = client.post("/reservations", json=ASKED | {"from": "2100-01-01T08:00+01:00"})
    assert made.status_code == 201
    body = made.json()
    assert body == {
        "id": "reservation-1", "team": "vision", "workers": {"v100": 2}, "begins_at": 4102470000.0,
        "ends_at": 4102477200.0, "created_by": body["created_by"],
    }  # fmt: skip
    now = client.post("/reservations", json=ASKED).json()
    assert abs(now["begins_at"] - time.time()) < 60
    assert [one["id"] for one in client.get("/reservations").json()["reservations"]] == [body["id"], now["id"]]
    assert client.delete("/reservations/reservation-1").json() == body
    assert client.delete("/reservations/reservation-1").status_code == 404


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"for": "0s"}, "body: for: \"0s\" given, expected seconds"),
        ({"for": "long"}, "body: for: \"long\" given"),
        ({"from": "yesterday"}, "body: from: \"yesterday\" given, expected a time with its zone"),
        ({"from": "2100-01-01T08:00"}, "given, expected a time with its zone"),
        ({"from": "2000-01-01T08:00Z"}, "for: the reservation would be over already"),
        ({"from": "9999-12-31T23:00Z"}, "for: the reservation would end after the year 9998"),
        ({"accelerators": {}}, "body: accelerators: "),
        ({"accelerators": {"v100": 0}}, "expected whole numbers above 0 by accelerator type"),
        ({"accelerators": {"v100": 1.5}}, "expected whole numbers above 0 by accelerator type"),
        ({"accelerators": "v100"}, "expected whole numbers above 0 by accelerator type"),
        ({"accelerators": {"v100": 3}}, "accelerators: 3 v100 asked for, but there are 2"),
        ({"accelerators": {"h100": 1}}, "accelerators: no accelerator 'h100' in this cluster; known: "),
        ({"team": ""}, "body: team: "),
        ({"until": 3}, "body: until: no such field"),
    ],
)  # fmt: skip
def test_what_cannot_be_reserved_is_one_line(
    shared: Served, admin: httpx.Client, given: dict[str, object], line: str
) -> None:
    answer = admin.post("/reservations", json=ASKED | given)
    assert answer.status_code == 422
    assert line in answer.json()["detail"]
    assert shared.store.read(open_reservations, at=0.0) == []
