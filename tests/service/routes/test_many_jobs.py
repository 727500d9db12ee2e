"""Several jobs in one request, all or none, and jobs that are cancelled and listed by what they have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from fairway.store.tokens import Role
from tests.service.running import JOB, Served, served

YAML = {"Content-Type": "application/yaml"}


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("many"), idle=True) as service:
        yield service


@pytest.fixture(scope="module")
def client(quiet: Served) -> Iterator[httpx.Client]:
    with quiet.client() as client:
        yield client


def ids(answer: httpx.Response, *, status: int = 200) -> list[str]:
    assert answer.status_code == status, answer.text
    return [job["id"] for job in answer.json()["jobs"]]


def names(client: httpx.Client, **query: Any) -> list[str]:
    answer = client.get("/jobs", params=query)
    assert answer.status_code == 200, answer.text
    return [job["name"] for job in answer.json()["jobs"]]


def test_several_documents_are_taken_in_together(client: httpx.Client) -> None:
    text = "run: 'true'\nname: m-1\n---\nrun: 'true'\nname: m-2\n---\n"
    first = ids(client.post("/jobs", content=text, headers=YAML | {"Idempotency-Key": "m"}), status=201)
    assert len(set(first)) == 2
    again = client.post("/jobs", content=text, headers=YAML | {"Idempotency-Key": "m"})
    assert ids(again) == first
    fewer = client.post("/jobs", content="run: 'true'\nname: m-1\n", headers=YAML | {"Idempotency-Key": "m"})
    assert fewer.status_code == 409
    one = client.post("/jobs", json=[{**JOB, "name": "m-3"}])
    assert len(ids(one, status=201)) == 1


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("run: 'true'\n---\nrun: 'true'\nsteps: 0\n", "job.yaml, document 2: steps: 0 given"),
        ("run: 'true'\n---\nrun: 'true'\nresources: {accelerators: h100}\n", "job, document 2: resources.accelerators"),
        ("run: 'true'\n---\nrun: 'true'\n---\nrun: [no-such-program]\n", "job, document 3: run"),
        ("run: 'true'\n---\n" * 101, "job.yaml: more than 100 documents given"),
        ("---\n---\n", "job.yaml: empty, expected a job"),
    ],
)
def test_one_wrong_document_and_nothing_is_stored(quiet: Served, client: httpx.Client, text: str, line: str) -> None:
    before = quiet.stored()
    answer = client.post("/jobs", content=text, headers=YAML)
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(line), answer.text
    assert quiet.stored() == before


def test_a_dry_run_is_for_one_document(client: httpx.Client) -> None:
    answer = client.post("/jobs", json=[JOB, JOB], params={"dry_run": "true"})
    assert answer.json()["detail"] == "dry_run: 2 jobs given; try them one by one"


def test_jobs_are_listed_and_cancelled_by_name_label_and_team(quiet: Served, client: httpx.Client) -> None:
    for name, team, labels in [("a", "red", {"x": "1"}), ("a", "blue", {"x": "1", "y": "2"}), ("b", "red", {"x": "2"})]:
        posted = client.post("/jobs", json={**JOB, "name": name, "team": team, "labels": labels})
        assert posted.status_code == 201
    assert names(client, label=["x=1", "y=2"]) == ["a"]
    assert names(client, name="a", team="red") == ["a"]
    with quiet.client(Role.MEMBER, "red") as red, quiet.client(Role.READER) as reader:
        assert names(red, label="x=1") == ["a"]
        assert red.post("/jobs/cancel", params={"team": "blue"}).status_code == 403
        assert reader.post("/jobs/cancel", params={"name": "a"}).status_code == 403
        cancelled = red.post("/jobs/cancel", params={"name": "a"}).json()
        assert [one["state"] for one in cancelled["jobs"]] == ["cancelled"]  # and not that of the other team
    assert names(client, name="a", state="queued", team="blue") == ["a"]
    assert len(ids(client.post("/jobs/cancel", params={"label": "x=2"}), status=202)) == 1
    assert ids(client.post("/jobs/cancel", params={"label": "x=2"}), status=202) == []
    assert names(client, team="red", state="queued") == []


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ({}, "no jobs named; give a name, a label or a team"),
        ({"label": "x"}, 'label: "x" given, expected name=value'),
        ({"label": "x=\n"}, 'label: "\\n" given, expected names and values of 1 to 63'),
        ({"label": ["x=1", "x=2"]}, "label: two values given for 'x'"),
        ({"nme": "x"}, "nme: no such parameter"),
    ],
)
def test_a_wrong_selection_cancels_nothing(client: httpx.Client, query: dict[str, Any], line: str) -> None:
    answer = client.post("/jobs/cancel", params=query)
    assert (answer.status_code, answer.json()["detail"][: len(line)]) == (422, line)


@pytest.mark.parametrize(
    ("labels", "line"),
    [
        ({"a b": "1"}, 'labels: "a b" given, expected names and values'),
        ({"a": "\x1b[2J"}, "labels: "),
        ({"a": [1]}, "labels: a list of 1 given"),
        ({f"l{number}": "1" for number in range(33)}, "labels: 33 labels given, expected at most 32"),
        ([1], "labels: a list of 1 given, expected labels by name"),
    ],
)
def test_a_wrong_label_is_refused(client: httpx.Client, labels: object, line: str) -> None:
    answer = client.post("/jobs", json={**JOB, "labels": labels})
    assert (answer.status_code, answer.json()["detail"][5 : 5 + len(line)]) == (422, line)


def test_an_array_is_so_many_jobs_that_are_cancelled_as_one(client: httpx.Client) -> None:
    array = {**JOB, "name": "sweep", "array": "0-8:4%2"}
    answer = client.post("/jobs", json=array, headers={"Idempotency-Key": "array"})
    members = answer.json()["jobs"]
    assert [one["name"] for one in members] == ["sweep-0", "sweep-4", "sweep-8"]
    assert {(one["array_id"], one["array_name"]) for one in members} == {(members[0]["id"], "sweep")}
    again = client.post("/jobs", json=array, headers={"Idempotency-Key": "array"})
    assert (again.status_code, again.json()["jobs"]) == (200, members)
    assert client.post("/jobs", json=JOB, headers={"Idempotency-Key": "array"}).status_code == 409
    assert client.get(f"/jobs/{members[1]['id']}").json()["spec"] == {**JOB, "name": "sweep-4", "array": "4%2"}
    assert names(client, name="sweep") == ["sweep-8", "sweep-4", "sweep-0"]
    assert len(ids(client.post("/jobs/cancel", params={"name": "sweep-4"}), status=202)) == 1
    assert len(ids(client.post("/jobs/cancel", params={"name": "sweep"}), status=202)) == 2


def test_a_matrix_is_so_many_jobs_and_a_dry_run_is_about_the_first(quiet: Served, client: httpx.Client) -> None:
    before = quiet.stored()
    matrix = {**JOB, "name": "m", "matrix": {"LR": [0.1, 1], "SEED": [1, 2]}}
    tried = client.post("/jobs", json=matrix, params={"dry_run": "true"})
    assert (tried.status_code, tried.json()["job"]["name"]) == (200, "m-0")
    assert quiet.stored() == before
    assert len(ids(client.post("/jobs", json=matrix), status=201)) == 4
    assert quiet.stored() == before + 4


def test_arrays_of_several_documents_are_limited_together(quiet: Served, client: httpx.Client) -> None:
    before = quiet.stored()
    answer = client.post("/jobs", json=[{**JOB, "array": "0-500"}, {**JOB, "array": "0-499"}])
    assert answer.json()["detail"] == "job: 1001 jobs given; at most 1000 are made at once"
    assert quiet.stored() == before


def test_a_pipeline_in_one_file_waits_for_its_own_jobs(quiet: Served, client: httpx.Client) -> None:
    text = "run: 'true'\nname: prepare\n---\nrun: 'true'\nname: train\nafterok: prepare\n"
    assert len(ids(client.post("/jobs", content=text, headers=YAML), status=201)) == 2
    with quiet.client(Role.MEMBER, "green") as green:
        hidden = green.post("/jobs", json={**JOB, "after": ["prepare"]})
        assert (hidden.status_code, hidden.json()["detail"]) == (
            422,
            'after: no job "prepare"; only jobs that exist can be waited for, by id or name',
        )


@pytest.mark.parametrize(
    ("after", "line"),
    [
        (["job-1"] * 1_001, "job: after: a list of 1001 given, expected up to 1000 ids or names"),
        (["\x1b[2J"], "job: after: "),
        ([7], "job: after: 7 given, expected the id or name of a job"),
        ({"a": 1}, "job: after: an object given"),
        (["no-such-job"], 'after: no job "no-such-job"; only jobs that exist can be waited for'),
    ],
)
def test_what_cannot_be_waited_for_is_one_line(quiet: Served, client: httpx.Client, after: object, line: str) -> None:
    before = quiet.stored()
    answer = client.post("/jobs", json={**JOB, "after": after})
    assert (answer.status_code, answer.json()["detail"][: len(line)]) == (422, line)
    assert quiet.stored() == before
