"""One rule for the sizes of numbers, and every door keeps to it: the line names the field, the value and the range."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairway.allocate.problem_file import parse_problem
from fairway.cli.server.prices import prices_of
from fairway.cli.server.teams import read_teams
from fairway.client.job_body import job_body
from fairway.cluster import Cluster
from fairway.cluster_file import parse_cluster
from fairway.errors import InputError
from fairway.jobs import Entity
from fairway.jobs.description import job_of, parse_job
from fairway.live.training.settings import ControllerSettings
from fairway.magnitudes import AMOUNTS, FACTORS
from fairway.profiles.csv_table import parse_csv
from fairway.profiles.gavel_json import parse_gavel_json
from fairway.store.submissions import Submission
from fairway.traces.trace import TraceJob

TOO_SMALL, TOO_LARGE = 1e-309, 1e300


def refusal(door: object, *given: object) -> str:
    with pytest.raises(InputError) as caught:
        door(*given)  # type: ignore[operator]
    line = str(caught.value)
    assert "\n" not in line
    return line


def problem(**fields: object) -> str:
    job = {"id": "a", "throughputs": {"v100": 1.0}, **fields}
    return json.dumps({"workers": {"v100": 1}, "jobs": [job]})


@pytest.mark.parametrize("size", [TOO_SMALL, TOO_LARGE])
def test_every_door_refuses_a_factor_out_of_range_with_its_field_its_value_and_the_range(
    size: float, tmp_path: Path
) -> None:
    yaml, json_job = f"run: a\nweight: {size!r}", {"run": "a", "weight": size}
    for line, field in (
        (refusal(parse_problem, problem(weight=size), "p"), "jobs[0].weight"),
        (refusal(parse_problem, problem(throughputs={"v100": size}), "p"), "jobs[0].throughputs.v100"),
        (refusal(parse_job, yaml, "job.yaml"), "weight"),
        (refusal(job_of, json_job, "job"), "weight"),
        (refusal(job_of, {"run": "a", "throughputs": {"v100": size}}, "job"), "throughputs.v100"),
        (refusal(parse_cluster, f"workers: {{v100: 1}}\nprices: {{v100: {size!r}}}", "c.yaml"), "prices.v100"),
        (refusal(lambda: Cluster({"v100": 1}, {"v100": size})), "prices.v100"),
        (refusal(prices_of, f"v100={size}"), "--prices"),
        (refusal(read_teams, f"red={size}"), "--teams"),
        (refusal(lambda: ControllerSettings(tmp_path, entities={"red": Entity(weight=size)})), "teams.red.weight"),
        (refusal(lambda: ControllerSettings(tmp_path, emulate="v100=1", time_scale=size)), "time scale"),
        (refusal(lambda: Submission(spec={"run": "a"}, weight=size)), "weight"),
        (refusal(lambda: TraceJob("a", 0.0, weight=size)), "weight"),
        (
            refusal(parse_csv, f"job_type,scale_factor,accelerator,steps_per_second\nlm,1,v100,{size}", "t.csv"),
            "steps_",
        ),
        (refusal(parse_gavel_json, json.dumps({"v100": {"('lm', 1)": {"null": size}}}), "t.json"), "steps_per_second"),
    ):
        assert field in line, line
        assert "1e-09 to 1e+12" in line, line
        assert f"{size!r}" in line, line


def test_what_the_python_client_sends_is_checked_by_the_same_rule() -> None:
    assert "weight: 1e-309 given" in refusal(lambda: job_body({"run": "a", "weight": TOO_SMALL}))


def test_the_ends_of_the_range_are_taken() -> None:
    for size in (FACTORS.least, FACTORS.most):
        assert job_of({"run": "a", "weight": size, "throughputs": {"v100": size}}, "job").weight == size
        assert parse_problem(problem(weight=size), "p").weights.tolist() == [size]


def test_an_amount_out_of_range_is_refused_in_traces_and_problems() -> None:
    for size in (1e-31, 1e16):
        assert "1e-30 to 1e+15" in refusal(lambda size=size: TraceJob("a", 0.0, total_steps=size))
        assert "1e-30 to 1e+15" in refusal(parse_problem, problem(steps_left=size), "p")
    assert TraceJob("a", 0.0, total_steps=AMOUNTS.most).total_steps == AMOUNTS.most


@pytest.mark.parametrize("field", ["deadline", "grace"])
@pytest.mark.parametrize("size", ["1e-300", "1e12", "1" * 400, "1e-300s", ".nan", ".inf", "-0.0", "-1"])
def test_a_length_of_time_out_of_range_is_refused(field: str, size: str) -> None:
    assert f"{field}: " in refusal(parse_job, f"run: a\n{field}: {size}", "job.yaml")


@pytest.mark.parametrize("digits", [20, 400, 5000])
@pytest.mark.parametrize("field", ["weight", "steps", "retries", "deadline", "grace", "num_nodes", "preemptible"])
@pytest.mark.parametrize("kind", ["job", "job.yaml"])
def test_a_whole_number_of_any_length_is_refused_in_one_line(digits: int, field: str, kind: str) -> None:
    number = "9" * digits
    text = f'{{"run": "a", "{field}": {number}}}' if kind == "job" else f"run: a\n{field}: {number}"
    assert len(refusal(parse_job, text, kind)) < 500


def test_a_negative_zero_is_a_zero() -> None:
    rates = job_of({"run": "a", "throughputs": {"v100": -0.0, "k80": 1.0}}, "job").throughputs
    assert rates is not None
    assert str(rates["v100"]) == "0.0"
