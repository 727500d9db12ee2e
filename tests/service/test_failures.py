"""When something fails behind the service: clear answers, nothing acknowledged that is not stored."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from sqlalchemy import Connection

from fairway.live.training.inbox import OverError
from tests.service.running import JOB, Served, served


def sql(service: Served, text: str) -> None:
    def run(connection: Connection) -> None:
        connection.exec_driver_sql(text)

    service.store.write(run)


def test_a_store_that_fails_is_said_and_nothing_is_acknowledged(tmp_path: Path) -> None:
    with served(tmp_path, idle=True) as service, service.client() as client:
        sql(service, "ALTER TABLE jobs RENAME TO elsewhere")
        for method, path in (("GET", "/jobs"), ("GET", "/jobs/job-1"), ("POST", "/jobs"), ("GET", "/status")):
            answer = client.request(method, path, json=JOB if method == "POST" else None)
            assert (answer.status_code, answer.json()["code"]) == (503, "store-failing"), path
            assert answer.headers["retry-after"] == "1"
        sql(service, "ALTER TABLE elsewhere RENAME TO jobs")
        assert client.get("/jobs").json() == {"jobs": [], "next": None}
        assert client.post("/jobs", json=JOB).status_code == 201, "it goes on when the store works again"
        sql(service, "ALTER TABLE tokens RENAME TO elsewhere")
        with service.client_with("fairway_unknown") as stranger:
            assert stranger.get("/jobs").status_code == 503


def test_a_scheduler_that_has_stopped_is_said(
    own: Served, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.post("/jobs", json=JOB)

    def over(_: object) -> None:
        raise OverError("the controller has stopped")

    monkeypatch.setattr(own.scheduler, "look", over)
    answer = client.get("/jobs/job-1/explain")
    assert (answer.status_code, answer.json()["code"]) == (503, "not-scheduling")
    assert client.get("/jobs/job-1").status_code == 200


def test_a_defect_is_answered_without_its_details(
    own: Served, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise RuntimeError("a secret detail")

    monkeypatch.setattr(own.scheduler, "statistics", broken)
    answer = client.get("/status")
    assert (answer.status_code, answer.json()["code"]) == (500, "defect")
    assert "secret" not in answer.text
    assert client.get("/jobs").status_code == 200
