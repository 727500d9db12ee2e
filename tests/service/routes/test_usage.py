"""Accounting over HTTP: rows by team and user, with cost, for those who may see them."""

from __future__ import annotations

import time
from pathlib import Path

import httpx
import pytest

from fairway.store.tokens import Role
from tests.service.running import JOB, served, until


def test_rows_are_by_team_and_user_and_a_member_sees_its_team(tmp_path: Path) -> None:
    with served(tmp_path) as service, service.client() as admin, service.client(Role.MEMBER, "red") as red:
        assert red.get("/usage").json()["rows"] == []
        for team in ("red", "blue"):
            admin.post("/jobs", json={**JOB, "team": team, "resources": {"accelerators": "v100"}})
        until(lambda: len(admin.get("/jobs", params={"state": "running"}).json()["jobs"]) == 2)
        seen = admin.get("/usage", params={"by": ["user", "team"]}).json()
        assert [(row["team"], row["user"], row["jobs"]) for row in seen["rows"]] == [
            ("blue", "tester", 1), ("red", "tester", 1),
        ]  # fmt: skip
        (whole,) = admin.get("/usage", params={"by": "user"}).json()["rows"]
        assert (whole["team"], whole["user"], whole["jobs"]) == (None, "tester", 2)
        assert whole["accelerator_seconds"]["v100"] > 0
        price = service.scheduler.cluster.prices.get("v100")
        expected = None if price is None else pytest.approx(whole["accelerator_seconds"]["v100"] * price / 3600)
        assert whole["cost_dollars"] == expected
        assert [row["team"] for row in red.get("/usage").json()["rows"]] == ["red"]
        assert red.get("/usage", params={"team": "blue"}).status_code == 403


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ({"by": "colour"}, "by.0: "),
        ({"since": "yesterday"}, "since: "),
        ({"since": "nan"}, "since: "),
        ({"since": time.time() + 9e5}, "since: "),
        ({"by": ["team"] * 3}, "by: "),
        ({"sinse": 1}, "sinse: no such parameter"),
    ],
)
def test_a_wrong_question_is_one_line(admin: httpx.Client, query: dict[str, object], line: str) -> None:
    answer = admin.get("/usage", params=query)  # type: ignore[arg-type]
    assert (answer.status_code, answer.json()["detail"][: len(line)]) == (422, line)
