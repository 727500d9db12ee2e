"""Workers, the status, the journal and explanations over HTTP."""

from __future__ import annotations

import time

import httpx
import pytest

from fairway.engine.training.messages import BeginRound, RoundBegan
from fairway.live.backend.accelerators import Accelerator
from fairway.live.devices.gpus import DeviceReading
from fairway.store.journal import record_decision, record_start, record_step
from fairway.store.workers import all_workers, lose_workers
from tests.service.running import JOB, PATIENCE, Served


def test_workers_say_what_they_are_and_do(own: Served, client: httpx.Client) -> None:
    client.post("/jobs", json=JOB | {"resources": {"accelerators": "v100:2"}})
    own.store.write(lose_workers, [("k80", 0)], at=1.0)
    body = client.get("/workers").json()
    assert body["emulated"] is True
    k80, first, second = body["workers"]
    assert k80 == {
        "accelerator": "k80", "number": 0, "agent": "local", "device": "k80 0 (emulated)", "emulated": True,
        "state": "lost", "jobs": [], "parts": {}, "lease": None, "trouble": None, "memory_bytes": None,
        "memory_used_bytes": None, "utilization": None, "power_watts": None, "links": [],
    }  # fmt: skip
    assert (first["state"], first["jobs"], first["lease"]) == ("busy", ["job-1"], 1)
    assert second["number"] == 1
    counts = client.get("/status").json()["workers"]
    assert counts == {
        "k80": {"total": 1, "busy": 0, "drained": 0, "lost": 1},
        "v100": {"total": 2, "busy": 2, "drained": 0, "lost": 0},
    }


def test_workers_say_what_their_gpus_measure_and_what_is_wrong_with_them(
    own: Served, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = Accelerator(
        "v100", 0, "GPU-0", "Tesla V100", 16 * 2**30, links=("GPU-1", "GPU-9"), sick="XID 79: it is off the bus",
        reading=DeviceReading(0.5, 2**30, 250.0, 60.0, 3),
    )  # fmt: skip
    unread = Accelerator("v100", 1, "GPU-1", "Tesla V100", reading=DeviceReading())
    monkeypatch.setattr(own.scheduler, "devices", lambda: {("v100", 0): gpu, ("v100", 1): unread})
    _, first, second = client.get("/workers").json()["workers"]
    assert (first["trouble"], first["utilization"], first["power_watts"]) == ("XID 79: it is off the bus", 0.5, 250.0)
    assert (first["memory_bytes"], first["memory_used_bytes"], first["links"]) == (16 * 2**30, 2**30, ["v100/1"])
    assert (second["trouble"], second["utilization"]) == (None, None)
    text = client.get("/metrics").text
    labels = '{accelerator="v100",device="GPU-0",number="0"}'
    assert f"fairway_gpu_utilization_ratio{labels} 0.5" in text
    assert f"fairway_gpu_memory_used_bytes{labels} 1.073741824e+09" in text
    assert f"fairway_gpu_power_watts{labels} 250.0" in text
    assert f"fairway_gpu_ecc_errors{labels} 3.0" in text
    assert f"fairway_gpu_healthy{labels} 0.0" in text
    assert 'fairway_gpu_healthy{accelerator="v100",device="GPU-1",number="1"} 1.0' in text
    assert "fairway_gpu_temperature_celsius" in text
    assert 'fairway_gpu_utilization_ratio{accelerator="v100",device="GPU-1"' not in text, (
        "what is not measured is left out"
    )


def test_workers_are_drained_by_name_or_by_type_and_used_again(own: Served, client: httpx.Client) -> None:
    answer = client.post("/workers/drain", json={"workers": ["V100/1", "k80", "k80/0"]})
    assert answer.status_code == 200
    assert [(one["accelerator"], one["number"], one["state"]) for one in answer.json()["workers"]] == [
        ("k80", 0, "drained"), ("v100", 1, "drained"),
    ]  # fmt: skip
    drained = {(one.accelerator, one.number) for one in own.store.read(all_workers) if one.drained_at is not None}
    assert drained == {("k80", 0), ("v100", 1)}
    answer = client.post("/workers/drain", json={"workers": ["k80"], "on": False})
    assert answer.json()["workers"][0]["state"] == "free"


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"workers": ["v100/2"]}, "workers: 'v100/2' given, but v100 has the numbers 0 to 1"),
        ({"workers": ["v10"]}, "workers: 'v10' is no worker of this cluster, did you mean 'v100'?; types: k80, v100"),
        ({"workers": ["v100/x"]}, "workers: 'v100/x' is no worker"),
        ({"workers": ["/"]}, "workers: '/' is no worker"),
        ({"workers": []}, "body: workers: a list of 0 given, expected a list of 1 to"),
        ({"workers": "v100"}, "body: workers: \"v100\" given, expected a list"),
        ({"workers": ["v100"], "on": "yes"}, "body: on: \"yes\" given, expected true to drain"),
        ({}, "body: workers: missing"),
    ],
)  # fmt: skip
def test_what_is_no_worker_is_not_drained(
    shared: Served, admin: httpx.Client, given: dict[str, object], line: str
) -> None:
    answer = admin.post("/workers/drain", json=given)
    assert answer.status_code == 422
    assert line in answer.json()["detail"]
    assert all(worker.drained_at is None for worker in shared.store.read(all_workers))


def test_a_body_that_is_not_json_drains_nothing(admin: httpx.Client) -> None:
    text = "workers: [v100]"
    assert admin.post("/workers/drain", content=text, headers={"Content-Type": "application/json"}).status_code == 422
    assert admin.post("/workers/drain", content=text, headers={"Content-Type": "text/yaml"}).status_code == 415
    assert admin.post("/workers/drain").status_code == 422


def test_the_status_tells_how_things_stand(own: Served, client: httpx.Client) -> None:
    before = client.get("/status").json()
    assert (before["policy"], before["round_seconds"], before["round_ends_at"]) == ("max-min-fairness", 3600.0, None)
    assert (before["emulated"], before["healthy"], before["rounds"]) == (True, True, 0)
    for _ in range(4):
        client.post("/jobs", json=JOB)
    client.post("/jobs/job-4/cancel")
    own.scheduler.finish("job-1")
    status = client.get("/status").json()
    assert status["jobs"] == {
        "queued": 0, "running": 2, "preempting": 0, "succeeded": 1, "failed": 0, "cancelled": 1,
    }  # fmt: skip
    assert (status["rounds"], status["solves"]) == (1, 1)
    assert 3500 < status["round_ends_at"] - time.time() < 3700
    assert own.store.address == status["store"]


def test_the_journal_is_read_page_by_page(shared: Served, admin: httpx.Client) -> None:
    shared.store.write(record_start, "training", {"policy": "fifo"}, at=1.0)
    for number in range(30):
        shared.store.write(record_step, float(number), [RoundBegan()], [BeginRound(number + 1.0)], at=float(number))
    shared.store.write(record_decision, {"policy": "fifo", "problem": {}}, at=99.0, cause=2)
    seen: list[dict[str, object]] = []
    after: int | None = 0
    while after is not None:
        page = admin.get("/journal", params={"after": after, "limit": 25}).json()
        seen += page["entries"]
        after = page["next"]
    assert [entry["sequence"] for entry in seen] == list(range(1, 63))
    assert seen[2] == {
        "sequence": 3, "at": 0.0, "kind": "command", "name": "BeginRound", "cause": 2,
        "body": {"type": "BeginRound", "at": 1.0},
    }  # fmt: skip
    page = admin.get("/journal", params={"kind": ["start", "decision"]}).json()
    assert ([entry["kind"] for entry in page["entries"]], page["next"]) == (["start", "decision"], None)
    assert admin.get("/journal", params={"kind": "gossip"}).status_code == 422


def test_why_a_job_waits(own: Served, client: httpx.Client) -> None:
    for team in ("a", "a", "b"):
        client.post("/jobs", json=JOB | {"team": team, "steps": 600})
    client.post("/jobs", json=JOB | {"team": "b", "steps": 600, "resources": {"accelerators": "v100:2"}})
    told = client.get("/jobs/job-4/explain").json()
    assert (told["job"], told["state"], told["position"]) == ("job-4", "queued", 1)
    assert told["code"] in {"WaitingForShare", "WaitingForRound", "NotEnoughWorkers"}
    assert told["reason"]
    assert {one["job"] for one in told["ahead"]} <= {"job-1", "job-2", "job-3"}
    assert all({"job", "team", "workers", "why"} <= set(one) for one in told["ahead"])
    assert set(told["prices"]) <= {"v100", "k80"}
    assert told["emulated"] is True
    prediction, now = told["prediction"], time.time()
    assert now + 300 < prediction["earliest_at"] <= prediction["start_at"] <= prediction["latest_at"] < now + 4000
    assert prediction["finish_at"] == pytest.approx(prediction["start_at"] + 600, abs=1)
    running = client.get("/jobs/job-1/explain").json()
    assert (running["code"], running["ahead"], running["position"]) == ("Running", [], None)
    assert running["prediction"]["start_at"] == client.get("/jobs/job-1").json()["started_at"]
    assert running["prediction"]["finish_at"] == pytest.approx(now + 600, abs=PATIENCE)


def test_why_a_job_does_not_wait_any_more(own: Served, client: httpx.Client) -> None:
    client.post("/jobs", json=JOB)
    own.scheduler.finish("job-1")
    told = client.get("/jobs/job-1/explain").json()
    assert (told["state"], told["code"], told["reason"]) == ("succeeded", "Succeeded", "it has finished")
    own.scheduler.idle = True
    client.post("/jobs", json=JOB)
    assert client.get("/jobs/job-2/explain").json()["code"] == "WaitingForRound"
    client.post("/jobs/job-2/cancel")
    told = client.get("/jobs/job-2/explain").json()
    assert (told["code"], told["reason"]) == ("Cancelled", "cancelled by tester")


def test_the_status_says_what_is_not_enforced(own: Served, client: httpx.Client) -> None:
    assert client.get("/status").json()["caveats"] == []
    own.scheduler.caveats = ("parts of GPUs are counted, but not enforced: no MPS",)
    assert client.get("/status").json()["caveats"] == ["parts of GPUs are counted, but not enforced: no MPS"]
