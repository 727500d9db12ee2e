"""The service with a real controller, a real agent and real processes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from fairway.live.training.controller import Controller
from fairway.live.training.settings import ControllerSettings
from fairway.service.first_token import ensure_first_token
from fairway.store import open_store
from tests.service.listening import heard_of, listening
from tests.service.running import PATIENCE, running_server, until

COUNTING = """
import sys, time
import fairway
for batch in fairway.leased(range(int(sys.argv[1])), checkpoint=lambda step: {"step": step}):
    print("batch", batch, flush=True)
    time.sleep(0.02)
"""


@pytest.fixture
def live(tmp_path: Path) -> Iterator[httpx.Client]:
    settings = ControllerSettings(tmp_path / "home", round_seconds=2.0, restart_seconds=0.1, emulate="v100=1,k80=1")
    with open_store(str(tmp_path / "home")) as store:
        controller = Controller(settings, store)
        controller.start()
        try:
            ensure_first_token(store, settings.directory)
            secret = (settings.directory / "token").read_text().strip()
            headers = {"Authorization": f"Bearer {secret}"}
            with (
                running_server(controller) as server,
                httpx.Client(base_url=server.address, headers=headers, timeout=PATIENCE, trust_env=False) as client,
            ):
                yield client
        finally:
            controller.shut_down()


def counting(steps: int, accelerator: str) -> dict[str, object]:
    return {
        "run": [sys.executable, "-c", COUNTING, str(steps)],
        "steps": steps,
        "throughputs": {accelerator: 1000.0},
        "resources": {"accelerators": accelerator},
        "team": "vision",
    }


def test_jobs_run_are_watched_explained_and_cancelled(live: httpx.Client) -> None:
    with listening(live, "/events") as heard:
        first = live.post("/jobs", json=counting(40, "v100")).raise_for_status().json()["id"]
        with live.stream("GET", f"/jobs/{first}/logs", params={"follow": "true"}) as log:
            lines = [line for line in log.iter_lines() if line.startswith("batch")]
        assert lines == [f"batch {number}" for number in range(40)]
        heard_of(heard, first, "succeeded")
        assert "running" in heard.states(first)
        endless = (
            live.post("/jobs", json=counting(10**6, "k80") | {"preemptible": False}).raise_for_status().json()["id"]
        )
        heard_of(heard, endless, "running")
        waiting = live.post("/jobs", json={"run": "sleep 600", "resources": {"accelerators": "k80"}}).json()["id"]
        told = until(
            lambda: (told := live.get(f"/jobs/{waiting}/explain").json())["position"] is not None and told,
            "for the engine to know of the job",
        )
        assert told["code"] == "Held"
        assert [one["job"] for one in told["ahead"]] == [endless]
        assert told["prediction"]["basis"]
        until(lambda: live.get(f"/jobs/{endless}").json()["steps_per_second"], "for a rate that was measured")
        assert live.post(f"/jobs/{endless}/cancel").status_code == 202
        heard_of(heard, endless, "cancelled")
        heard_of(heard, waiting, "running")
        assert live.post(f"/jobs/{waiting}/cancel").status_code == 202
        heard_of(heard, waiting, "cancelled")
    ended = live.get(f"/jobs/{first}").json()
    assert (ended["exit_code"], ended["steps_left"], ended["emulated"]) == (0, 0.0, True)
    status = live.get("/status").json()
    assert (status["jobs"]["succeeded"], status["jobs"]["cancelled"], status["healthy"]) == (1, 2, True)
    assert {worker["state"] for worker in live.get("/workers").json()["workers"]} == {"free"}
    assert 'fairway_jobs{state="succeeded",team="vision"} 1.0' in live.get("/metrics").text
    assert live.get("/journal", params={"kind": "decision"}).json()["entries"]


def test_workers_are_drained_and_used_again(live: httpx.Client) -> None:
    drained = live.post("/workers/drain", json={"workers": ["v100"]}).raise_for_status().json()["workers"]
    assert [worker["state"] for worker in drained] == ["drained"]
    job = live.post("/jobs", json={"run": "sleep 600", "resources": {"accelerators": "v100"}}).json()["id"]
    until(lambda: live.get(f"/jobs/{job}").json()["reason_code"] == "WorkersDrained", "for the reason")
    live.post("/workers/drain", json={"workers": ["v100/0"], "on": False})
    until(lambda: live.get(f"/jobs/{job}").json()["state"] == "running", "until it runs")
    live.post(f"/jobs/{job}/cancel")
