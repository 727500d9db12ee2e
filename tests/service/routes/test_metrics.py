"""Metrics in Prometheus form."""

from __future__ import annotations

import re

import httpx
from prometheus_client.parser import text_string_to_metric_families

from fairway.store.job_changes import change_job
from fairway.store.states import JobState
from tests.service.running import JOB, Served


def read(client: httpx.Client) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def value(metrics: dict[tuple[str, frozenset[tuple[str, str]]], float], name: str, **labels: str) -> float:
    return metrics[name, frozenset(labels.items())]


def test_metrics_tell_of_jobs_workers_and_decisions(own: Served, client: httpx.Client) -> None:
    for team in ("a", "a", "b", "b"):
        client.post("/jobs", json=JOB | {"team": team})
    own.store.write(change_job, "job-1", JobState.FAILED, at=2e9, exit_code=3)
    metrics = read(client)
    assert value(metrics, "fairway_jobs", state="running", team="a") == 1
    assert value(metrics, "fairway_jobs", state="failed", team="a") == 1
    assert value(metrics, "fairway_jobs", state="queued", team="b") == 1
    assert value(metrics, "fairway_submissions_total") == 4
    assert value(metrics, "fairway_job_failures_total") == 1
    assert value(metrics, "fairway_workers", accelerator="v100", state="busy") == 2
    assert value(metrics, "fairway_workers", accelerator="k80", state="busy") == 1
    assert value(metrics, "fairway_team_share", team="b") == 1 / 3
    assert value(metrics, "fairway_worker_info", accelerator="k80", number="0", agent="local", emulated="true") == 1
    assert value(metrics, "fairway_queue_wait_seconds_count") == 3
    assert value(metrics, "fairway_queue_wait_seconds_bucket", le="+Inf") == 3
    assert value(metrics, "fairway_queue_wait_seconds_bucket", le="604800.0") == 3
    assert value(metrics, "fairway_job_duration_seconds_count", state="failed") == 1
    assert value(metrics, "fairway_job_duration_seconds_bucket", state="failed", le="1.0") == 0
    assert value(metrics, "fairway_decisions_total") == value(metrics, "fairway_decision_seconds_count") == 1
    assert value(metrics, "fairway_rounds_total") == 1
    assert value(metrics, "fairway_leases_granted_total") == 3
    assert value(metrics, "fairway_preemptions_total") == 0
    assert value(metrics, "fairway_emulated") == value(metrics, "fairway_healthy") == 1
    assert value(metrics, "fairway_http_request_seconds_count", method="POST", route="/jobs", status="201") == 4
    again = read(client)
    assert value(again, "fairway_decisions_total") == 1, "a decision is counted once"


def test_names_begin_with_fairway_and_end_in_base_units(admin: httpx.Client) -> None:
    families = list(text_string_to_metric_families(admin.get("/metrics").text))
    assert len(families) > 15
    for family in families:
        assert family.name.startswith("fairway_")
        assert family.documentation
        assert not re.search(r"_(ms|milliseconds|minutes|hours|percent|kb|mb)$", family.name)


def test_addresses_that_do_not_exist_make_no_series(admin: httpx.Client) -> None:
    for number in range(5):
        admin.get(f"/nothing/{number}")
        admin.get(f"/jobs/none-{number}")
    text = admin.get("/metrics").text
    assert "/nothing" not in text
    assert "none-" not in text
    assert 'route="/jobs/{job}",status="404"' in text
