"""Submitting, listing, looking at and cancelling jobs over HTTP."""

from __future__ import annotations

import asyncio
import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from fairway.service.intake import Intake, Taken
from fairway.store import Store, open_store
from fairway.store.errors import ConflictError
from fairway.store.job_changes import job_named, record_rates
from fairway.store.queries import list_jobs
from fairway.store.states import JobState
from fairway.store.submissions import Submission, submit
from fairway.store.tokens import Role
from tests.service.running import JOB, PATIENCE, Served, served

YAML = {"Content-Type": "application/yaml"}


def test_a_job_in_json_is_stored_with_the_fields_that_were_given(own: Served, client: httpx.Client) -> None:
    job = {"name": "resnet", "run": "sleep 1", "team": "vision", "weight": 2, "steps": 50, "envs": {"B": 1, "A": "x"}}
    before = time.time()
    answer = client.post("/jobs", json=job)
    assert (answer.status_code, answer.headers["content-type"]) == (201, "application/json")
    form = answer.json()
    assert (form["id"], form["number"], form["state"], form["team"]) == ("job-1", 1, "queued", "vision")
    assert (form["weight"], form["steps"], form["steps_left"]) == (2.0, 50.0, 50.0)
    assert before <= form["submitted_at"] <= time.time()
    assert form["submitted_by"].startswith("tester (")
    record = own.store.read(job_named, "job-1")
    assert record.spec == job | {"envs": {"B": "1", "A": "x"}}
    assert list(record.spec["envs"]) == ["B", "A"]


def test_a_job_in_yaml_may_use_brackets_without_quotes(client: httpx.Client) -> None:
    text = "name: resnet\nrun: |\n  sleep 1\nresources: {accelerators: [V100, K80]:1}\n"
    for headers in (YAML, {"Content-Type": "text/yaml; charset=utf-8"}, {"Content-Type": "text/plain"}, {}):
        form = client.post("/jobs", content=text.encode(), headers=headers).raise_for_status().json()
        assert (form["accelerators"], form["count"]) == ("[v100, k80]", 1)
    spec = client.get("/jobs/job-1").json()["spec"]
    assert spec == {"name": "resnet", "run": "sleep 1\n", "resources": {"accelerators": "[v100, k80]"}}


def test_a_size_of_memory_is_stored_as_the_part_that_has_it(
    own: Served, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = {"run": "sleep 1", "resources": {"accelerators": "v100:4GB"}}
    refused = client.post("/jobs", json=job)
    assert refused.status_code == 422
    assert "resources.accelerators: 4 GB of 'v100' asked for, but how much memory it has is not known" in refused.text
    devices = {place: replace(one, memory_bytes=16 * 10**9) for place, one in own.scheduler.devices().items()}
    monkeypatch.setattr(own.scheduler, "devices", lambda: devices)
    form = client.post("/jobs", json=job).raise_for_status().json()
    assert (form["accelerators"], form["part"]) == ("v100:0.25", 0.25)
    assert client.get(f"/jobs/{form['id']}").json()["spec"]["resources"] == {"accelerators": "v100:0.25"}
    refused = client.post("/jobs", json={"run": "sleep 1", "resources": {"accelerators": "v100:17GB"}})
    assert (refused.status_code, "which has 16 GB" in refused.text) == (422, True)


def test_a_job_is_stored_in_one_form_whichever_way_it_was_written(client: httpx.Client) -> None:
    ways = [
        "run: sleep 1\npriority: 2\nslo: 1h\nresources: {accelerators: [V100, K80]:1}\n",
        "run: sleep 1\nweight: 2.0\ndeadline: 60m\nresources: {accelerators: {v100: 1, k80: 1}}\nretries: null\n",
    ]
    jobs = [client.post("/jobs", content=text, headers=YAML).json()["id"] for text in ways]
    first, second = (client.get(f"/jobs/{job}").json()["spec"] for job in jobs)
    assert first == second
    assert client.post("/jobs", json=first).status_code == 201, "what is stored can be submitted again"


def test_a_job_that_was_stored_as_it_was_written_is_still_read(own: Served, client: httpx.Client) -> None:
    spec = {"run": "sleep 1", "priority": 2, "slo": "1h", "envs": {"A": 1}, "resources": {"accelerators": {"K80": 1}}}
    submissions = [Submission(spec=spec, weight=2.0), Submission(spec={"run": "sleep 1", "of_another_version": 1})]
    own.store.write(submit, submissions, at=time.time())
    for form in (client.get("/jobs", params={"order": "oldest"}).json()["jobs"][0], client.get("/jobs/job-1").json()):
        assert (form["accelerators"], form["count"], form["weight"]) == ("k80", 1, 2.0)
    assert client.get("/jobs/job-1").json()["spec"] == spec
    assert client.get("/jobs/job-1/explain").json()["state"] == "queued"
    assert client.get("/jobs/job-2/explain").json()["state"] == "queued"


def test_a_job_that_runs_says_where_and_how_fast(tmp_path: Path) -> None:
    with served(tmp_path, time_scale=10.0) as service, service.client() as client:
        client.post("/jobs", json=JOB | {"resources": {"accelerators": "k80"}, "steps": 10})
        service.store.write(record_rates, ["job-1"], "k80", [0.5], at=1.0)
        form = client.get("/jobs/job-1").json()
        assert (form["state"], form["accelerator"], form["emulated"]) == ("running", "k80", True)
        assert form["steps_per_second"] == 5.0, "seconds are those of the clock"
        assert [attempt["attempt"] for attempt in form["attempts"]] == [1]
        assert [lease["workers"] for lease in form["leases"]] == [[0]]
        assert form["rates"] == [{"accelerator": "k80", "beside": None, "steps_per_second": 5.0, "measured_at": 1.0}]
        (listed,) = client.get("/jobs", params={"state": "running"}).json()["jobs"]
        assert listed == {name: value for name, value in form.items() if name in listed}
        assert "spec" not in listed


def test_a_key_that_is_sent_again_finds_the_same_job(client: httpx.Client, own: Served) -> None:
    answers = [client.post("/jobs", json=JOB, headers={"Idempotency-Key": "k"}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 200]
    assert answers[0].json()["id"] == answers[1].json()["id"]
    assert answers[1].json()["state"] == "running", "the second answer tells how the job stands by then"
    conflict = client.post("/jobs", json=JOB | {"weight": 3}, headers={"Idempotency-Key": "k"})
    assert (conflict.status_code, conflict.json()["code"]) == (409, "conflict")
    assert "'k' was used for job 'job-1' with other content" in conflict.json()["detail"]
    assert own.stored() == 1


def test_one_key_sent_by_many_at_once_is_new_to_one_of_them(tmp_path: Path) -> None:
    with served(tmp_path, idle=True) as service:

        def send(_: int) -> tuple[int, str]:
            with service.client() as client:
                answer = client.post("/jobs", json=JOB, headers={"Idempotency-Key": "k"})
            return answer.status_code, answer.json()["id"]

        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(send, range(16)))
        assert sorted(answers) == [(200, "job-1")] * 15 + [(201, "job-1")]


async def _taken(path: Path, keys: list[tuple[str, dict[str, object]]]) -> list[object]:
    with open_store(str(path)) as store:
        intake = Intake(store)
        submissions = [Submission(spec=spec, idempotency_key=key) for key, spec in keys]
        taken = await asyncio.gather(*(intake.take([one]) for one in submissions), return_exceptions=True)
        return [one if isinstance(one, BaseException) else one[0] for one in taken]


def test_a_submission_that_fails_takes_none_of_those_with_it_that_were_written_together(tmp_path: Path) -> None:
    keys = [("first", JOB), ("a", JOB), ("b", JOB), ("a", {"run": "other"}), ("c", JOB), ("b", JOB)]
    taken = asyncio.run(_taken(tmp_path, keys))  # type: ignore[arg-type]
    assert isinstance(taken[3], ConflictError)
    done = [one for position, one in enumerate(taken) if position != 3]
    assert [one.new for one in done] == [True, True, True, True, False]  # type: ignore[attr-defined]
    with open_store(str(tmp_path)) as store:
        assert len(store.read(list_jobs).jobs) == 4


def test_a_job_that_comes_after_the_clock_was_set_back_carries_the_time_of_then(tmp_path: Path) -> None:
    async def submit_twice(store: Store) -> list[Taken]:
        noon = 1_800_000_000.0
        walls = iter([noon, noon - 3600.0, noon])  # the last is the same moment again
        intake = Intake(store, lambda: next(walls))
        [first] = await intake.take([Submission(spec=JOB, idempotency_key="a")])
        [second] = await intake.take([Submission(spec=JOB)])
        [third] = await intake.take([Submission(spec=JOB, idempotency_key="a")])
        return [first, second, third]

    with open_store(str(tmp_path)) as store:
        first, second, third = asyncio.run(submit_twice(store))
    assert first.job.submitted_at - second.job.submitted_at == 3600.0
    assert [one.new for one in (first, second, third)] == [True, True, False]
    assert third.job.id == first.job.id


def test_a_dry_run_checks_and_stores_nothing(client: httpx.Client, own: Served) -> None:
    answer = client.post("/jobs", params={"dry_run": "true"}, json=JOB | {"name": "x", "steps": 5})
    assert answer.status_code == 200
    body = answer.json()
    assert (body["job"]["name"], body["job"]["id"], body["job"]["state"]) == ("x", None, "queued")
    assert body["emulated"] is True
    prediction = body["prediction"]
    assert abs(prediction["start_at"] - time.time()) < PATIENCE, "there are free workers"
    assert prediction["earliest_at"] <= prediction["start_at"] <= prediction["latest_at"] < prediction["finish_at"]
    assert prediction["basis"].startswith("simulated from the present state of 0 jobs")
    refused = client.post("/jobs", params={"dry_run": "true"}, json=JOB | {"resources": {"accelerators": "h100"}})
    assert refused.status_code == 422
    assert own.stored() == 0


def test_pages_follow_the_order_of_submission(shared: Served, admin: httpx.Client) -> None:
    team = {"team": "pages"}
    ids = [admin.post("/jobs", json=JOB | team).json()["id"] for _ in range(5)]
    seen: list[str] = []
    page: dict[str, object] = {"order": "oldest", "limit": 2} | team
    while True:
        body = admin.get("/jobs", params=page).json()
        seen += [job["id"] for job in body["jobs"]]
        if body["next"] is None:
            break
        page["after"] = body["next"]
    assert seen == ids
    assert [job["id"] for job in admin.get("/jobs", params=team).json()["jobs"]] == ids[::-1]
    both = admin.get("/jobs", params={"state": ["running", "cancelled"]} | team).json()
    assert both == {"jobs": [], "next": None}
    assert len(admin.get("/jobs", params={"state": ["running", "queued"]} | team).json()["jobs"]) == 5


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ({"limit": 0}, "limit: \"0\" given; input should be greater than or equal to 1"),
        ({"limit": 1001}, "limit: "),
        ({"state": "pending"}, "state.0: \"pending\" given"),
        ({"after": -1}, "after: "),
        ({"order": "random"}, "order: "),
        ({"stat": "queued"}, "stat: no such parameter; take it out"),
        ({"after": 10**30}, "after: "),
    ],
)  # fmt: skip
def test_a_bad_parameter_is_refused(admin: httpx.Client, query: dict[str, object], line: str) -> None:
    answer = admin.get("/jobs", params=query)  # type: ignore[arg-type]
    assert (answer.status_code, answer.json()["code"]) == (422, "bad-input")
    assert line in answer.json()["detail"]


def test_a_misspelt_dry_run_submits_nothing(shared: Served, admin: httpx.Client) -> None:
    before = shared.stored()
    answer = admin.post("/jobs", params={"dryrun": "true"}, json=JOB)
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("dryrun: no such parameter, did you mean 'dry_run'?")
    assert shared.stored() == before


def test_a_waiting_job_is_cancelled_at_once_and_a_running_one_is_stopped(client: httpx.Client, own: Served) -> None:
    own.scheduler.idle = True
    client.post("/jobs", json=JOB)
    answer = client.post("/jobs/job-1/cancel")
    assert (answer.status_code, answer.json()) == (202, {"id": "job-1", "state": "cancelled"})
    assert client.get("/jobs/job-1").json()["reason"] == "cancelled by tester"
    assert client.post("/jobs/job-1/cancel").json()["state"] == "cancelled", "twice is not wrong"
    own.scheduler.idle = False
    client.post("/jobs", json=JOB)
    running = client.post("/jobs/job-2/cancel")
    assert (running.status_code, running.json()["state"]) == (202, "running")
    assert own.store.read(job_named, "job-2").state is JobState.CANCELLED
    assert own.store.read(job_named, "job-2").cancel_requested_at is not None


def test_a_job_that_has_ended_cannot_be_cancelled(client: httpx.Client, own: Served) -> None:
    client.post("/jobs", json=JOB)
    own.scheduler.finish("job-1")
    answer = client.post("/jobs/job-1/cancel")
    assert (answer.status_code, answer.json()["code"]) == (409, "illegal-change")
    assert "job 'job-1' has succeeded already" in answer.json()["detail"]


@pytest.mark.parametrize("job", ["job-99999", "x", "..%2F..%2Fetc%2Fpasswd", "%00", "a" * 200])
@pytest.mark.parametrize("route", ["", "/cancel", "/explain", "/logs", "/events"])
def test_an_unknown_job_is_not_found(admin: httpx.Client, job: str, route: str) -> None:
    answer = admin.request("POST" if route == "/cancel" else "GET", f"/jobs/{job}{route}")
    assert answer.status_code in ({422} if len(job) > 128 else {404})
    assert answer.headers["content-type"] == "application/problem+json"


def test_submissions_go_to_postgresql_as_well(tmp_path: Path, postgresql_url: str) -> None:
    with served(tmp_path, postgresql_url) as service, service.client() as client:
        text = json.dumps(JOB | {"team": "vision"})

        def send(number: int) -> int:
            return client.post("/jobs", content=text, headers={"Idempotency-Key": str(number % 20)}).status_code

        with ThreadPoolExecutor(8) as pool:
            codes = list(pool.map(send, range(40)))
        assert sorted(codes) == [200] * 20 + [201] * 20
        listed = client.get("/jobs", params={"team": "vision", "limit": 1000}).json()["jobs"]
        assert sorted(job["number"] for job in listed) == list(range(1, 21))
        assert {job["state"] for job in listed} == {"running", "queued"}
        metrics = client.get("/metrics").text
        assert 'fairway_jobs{state="running",team="vision"} 3.0' in metrics
        assert "fairway_queue_wait_seconds_count 3.0" in metrics
        with service.client(Role.MEMBER, "vision") as member:
            assert member.get("/status").json()["jobs"]["running"] == 3
