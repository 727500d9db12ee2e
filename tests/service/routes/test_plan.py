"""Plans over HTTP: the state of the scheduler, a stream with the result, and who may ask."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from fairway.experiments.planning import Change, LiveQueue, Present, plan
from fairway.experiments.planning.documents import plan_document
from fairway.sim.comparison import Pool
from fairway.store.tokens import Role
from tests.service.running import JOB, Served, until


def events_of(answer: httpx.Response) -> list[tuple[str, dict[str, Any]]]:
    parts = [part.split("\n") for part in answer.text.strip().split("\n\n")]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in parts]


def submit(client: httpx.Client, count: int) -> None:
    for _ in range(count):
        assert client.post("/jobs", json=JOB).status_code == 201


def test_the_state_is_what_the_scheduler_knows(own: Served, client: httpx.Client) -> None:
    submit(client, 2)
    document = client.get("/plan/state", params={"type": "p100"}).json()
    present = Present.of_document(document)
    jobs = {one["job"]["id"] for one in document["start"]["resumption"] if one["type"] == "JobResumed"}
    assert jobs == {"job-1", "job-2"}
    assert present.start.policy == own.scheduler.settings.policy
    assert set(present.elsewhere) <= jobs


def test_a_plan_is_what_the_state_gives_when_it_is_simulated_here(client: httpx.Client) -> None:
    submit(client, 4)
    present = Present.of_document(client.get("/plan/state").json())
    answer = client.post("/plan", json={"changes": ["add v100=2"], "seeds": 2}, timeout=300)
    assert answer.headers["content-type"].startswith("text/event-stream")
    *news, (name, made) = events_of(answer)
    assert name == "plan"
    assert {one for one, _ in news} <= {"progress"}
    assert made["jobs"] == 4
    assert made["changes"][0]["change"]["text"] == "add v100=2"
    here = plan_document(plan(LiveQueue(present), [Change(add={"v100": 2})], seeds=2, pool=Pool(1)))
    for metric in ("makespan", "unfinished"):
        assert made["base"][metric]["mean"] == pytest.approx(here["base"][metric]["mean"], rel=0.05, abs=60.0)


def test_a_goal_is_searched(client: httpx.Client) -> None:
    submit(client, 1)
    answer = client.post("/plan", json={"find": "unfinished <= 0", "seeds": 1}, timeout=300)
    name, found = events_of(answer)[-1]
    assert (name, found["change"]["text"]) == ("plan", "as it is")


def test_what_cannot_be_planned_is_one_line_of_the_stream(client: httpx.Client) -> None:
    answer = client.post("/plan", json={"changes": ["remove v100=9"]}, timeout=300)
    name, told = events_of(answer)[-1]
    assert name == "failed"
    assert told["detail"].startswith("remove v100=9: there are 2")


def test_one_plan_is_made_at_a_time_and_ends_with_its_stream(client: httpx.Client) -> None:
    submit(client, 4)
    long = {"changes": ["add v100=1", "add v100=2"], "seeds": 100}
    with client.stream("POST", "/plan", json=long, timeout=60) as stream:
        lines = stream.iter_lines()  # kept: the stream ends with it
        assert next(lines) == "event: progress"
        refused = client.post("/plan", json=long)
        assert (refused.status_code, refused.json()["code"]) == (429, "busy")
    until(lambda: _plans(client))


def _plans(client: httpx.Client) -> bool:
    """Whether a plan is made again."""
    answer = client.post("/plan", json={"changes": ["remove v100=9"]}, timeout=60)
    return answer.status_code == 200 and events_of(answer)[-1][0] == "failed"


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({}, "expected either changes or find"),
        ({"changes": ["add v100=1"], "find": "slo > 1"}, "expected either changes or find"),
        ({"changes": ["ad v100=1"]}, "change: 'ad' given, did you mean 'add'"),
        ({"changes": "add v100=1"}, "body: changes: "),
        ({"find": "luck > 3"}, "find: 'luck' is not known"),
        ({"changes": ["add v100=1"], "seeds": 0}, "body: seeds: "),
        ({"changes": ["add v100=1"] * 21}, "body: changes: "),
        ({"changes": ["add v100=1"], "prices": {"v100": "x"}}, "body: prices"),
        ({"change": []}, "body: change: no such field"),
    ],
)
def test_bad_input_is_one_line(admin: httpx.Client, given: dict[str, Any], line: str) -> None:
    answer = admin.post("/plan", json=given)
    assert answer.status_code == 422
    assert line in answer.json()["detail"]


@pytest.mark.parametrize("name", ["os:system:command=touch PLACE", "os:mkdir:path=PLACE", "antigravity:fly"])
def test_a_policy_over_http_is_one_by_name_and_no_code_of_whoever_asks(
    admin: httpx.Client, name: str, tmp_path: Path
) -> None:
    place = tmp_path / "made"
    answer = admin.post("/plan", json={"changes": [f"policy {name.replace('PLACE', str(place))}"]})
    assert answer.status_code == 422
    assert "expected one that this server has by name: " in answer.json()["detail"]
    assert not place.exists()


def test_only_admins_may_plan(shared: Served) -> None:
    with shared.client(Role.MEMBER, "vision") as member:
        assert member.get("/plan/state").status_code == 403
        assert member.post("/plan", json={"changes": ["add v100=1"]}).status_code == 403
