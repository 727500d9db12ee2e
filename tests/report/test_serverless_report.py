"""Numbers, table and page of serverless runs."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from fairway.engine.containers import ContainerRule
from fairway.errors import InputError
from fairway.report.serverless_comparison import SERVERLESS_MEASURES
from fairway.report.serverless_metrics import summarize_serverless
from fairway.report.serverless_page import serverless_page, write_serverless_page
from fairway.report.serverless_record import ApplicationFacts, ServerlessRecord
from fairway.report.serving_table import serving_table
from fairway.sim.serverless import ServerlessOptions
from fairway.sim.serverless_workload import EsgApps, ServerlessRun
from tests.report.test_training_page import HOSTILE, Elements


def record(scheduler: str = "esg", seed: int = 1, rule: ContainerRule | None = None) -> ServerlessRecord:
    options = ServerlessOptions(1.0, 3.0, containers=rule, seed=seed)
    return ServerlessRun(EsgApps("normal", "strict"), scheduler, options, {"scheduler": scheduler})()


def test_a_request_that_never_ended_was_not_in_time() -> None:
    made = record()
    numbers = summarize_serverless(made)
    finish = made.requests.finish.copy()
    finish[-1] = np.nan
    fewer = summarize_serverless(replace(made, requests=replace(made.requests, finish=finish)))
    assert fewer["completed"] == numbers["completed"] - 1
    assert (fewer["slo_hit_rate"] or 0) <= (numbers["slo_hit_rate"] or 0)
    assert fewer["cost_dollars"] == numbers["cost_dollars"]


def test_a_run_of_nothing_has_no_numbers() -> None:
    made = replace(record(), window=(100.0, 200.0))
    numbers = summarize_serverless(made)
    assert numbers["slo_hit_rate"] is None
    assert numbers["cost_per_1000_requests"] is None
    assert numbers["latency_seconds"]["p50"] is None
    json.dumps(numbers, allow_nan=False)
    serverless_page([made], command="x")


def test_the_table_fits_80_columns() -> None:
    runs = [summarize_serverless(record(name, seed)) for name in ("esg:margin=0.1,shed", "front") for seed in (1, 2)]
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(serving_table(runs, SERVERLESS_MEASURES))
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= 80
    assert "±" in text
    assert "…" not in text


def test_the_page_has_every_chart(tmp_path: Path) -> None:
    records = [record("esg", rule=ContainerRule(0)), record("front", rule=ContainerRule(0))]
    write_serverless_page(records, tmp_path / "report.html", command="fairway simulate serving")
    found = Elements((tmp_path / "report.html").read_text())
    assert {"trade", "latency", "sizes", "cold", "numbers"} <= found.ids
    data = json.loads(found.data)
    assert set(data["figures"]) == {"trade", "latency", "sizes", "cold"}
    assert {trace["name"] for trace in data["figures"]["trade"]["data"]} == {"esg", "front"}
    warm = Elements(serverless_page([record()], command="x"))
    assert "All functions were warm" in "".join(warm.text)


def test_the_same_runs_give_the_same_page() -> None:
    first, second = (
        serverless_page([replace(record(), wall_seconds=1.0, decision_seconds=np.zeros(3))], command="x")
        for _ in range(2)
    )
    assert first == second


def test_names_from_outside_cannot_break_out() -> None:
    made = record()
    facts = ApplicationFacts(HOSTILE, 1.0, 0.5, (HOSTILE,) * 3, (0,))
    hostile = replace(made, scheduler=HOSTILE, applications=(facts, *made.applications[1:]), settings={"x": HOSTILE})
    html = serverless_page([hostile], command=HOSTILE)
    assert not [tag for tag, attributes in Elements(html).found if tag == "img" or "onerror" in attributes]


def test_a_page_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="no runs given"):
        serverless_page([], command="x")
