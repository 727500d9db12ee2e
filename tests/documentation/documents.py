"""Whether a document in a page is what the page says it is: each kind is read by the code that reads such files.

A document is told by its fields. One of a kind that is not known here fails, so that none goes unread.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import yaml
from typer.testing import CliRunner

from fairway.allocate.problem_file import parse_problem
from fairway.cli.main import app
from fairway.cli.server.teams import read_teams
from fairway.cluster_file import parse_cluster
from fairway.configure.problem_file import parse_configuration
from fairway.experiments.sweep import Sweep, read_sweep
from fairway.jobs.description import parse_jobs
from fairway.place.problem_file import parse_placement
from fairway.profiles.files import read_table
from fairway.sim.scenario_file import parse_scenario


def check_document(language: str, text: str, source: str) -> None:
    """Raise if the document is not a valid one of its kind."""
    if language == "csv":
        _in_a_file(text, "table.csv", read_table)
    elif language == "toml":
        _check_toml(tomllib.loads(text))
    elif language == "json":
        _check_json(json.loads(text), text, source)
    else:
        first, *_ = yaml.safe_load_all(re.sub(r"(\[\w+, \w+\]:\d)", r'"\1"', text))
        _check_yaml(first, text, source)


def _check_json(document: dict[str, Any], text: str, source: str) -> None:
    if "jobs" in document:
        parse_problem(text, source)
    elif "stages" in document:
        parse_configuration(text, source)
    elif "workflow" in document:
        parse_placement(text, source)
    elif "objective" in document:
        _same_fields(document, _printed("allocate", "examples/mixed-cluster.json", "-p", "max-min-fairness"))
    elif "policy" in document["runs"][0]:
        generated = ("--generate", "jobs=3,lam=0", "--cluster", "v100=2", "-p", "max-min-fairness")
        _same_fields(document["runs"][0], _printed("simulate", "training", *generated, "--json", "-")["runs"][0])
    else:
        _same_fields(document["runs"][0], _printed("simulate", "serving", "--requests", "3", "--json", "-")["runs"][0])


def _check_yaml(document: dict[str, Any], text: str, source: str) -> None:
    if "scrape_configs" in document:
        assert document["scrape_configs"][0]["static_configs"], "the configuration of another program: Prometheus"
    elif "policies" in document:
        _in_a_file(text, "sweep.yaml", lambda path: Sweep(**read_sweep(str(path))))
    elif "run" in document:
        parse_jobs(text, source)
    elif "teams" in document:
        _in_a_file(text, "teams.yaml", lambda path: read_teams(str(path)))
    elif "links" in document:
        parse_scenario(text, source)
    elif "workflows" in document:
        assert all("stages" in workflow for workflow in document["workflows"].values())
    else:
        parse_cluster(text, source)


def _check_toml(document: dict[str, Any]) -> None:
    for group, entries in document["project"]["entry-points"].items():
        assert group in {f"fairway.{kind}" for kind in ("policies", "placers", "configurators", "estimators")}
        for name, value in entries.items():
            assert EntryPoint(name, value, group).attr


def _in_a_file(text: str, name: str, read: Callable[[Path], object]) -> None:
    path = Path(name)
    path.write_text(text, encoding="utf-8")
    read(path)


def _printed(*words: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def _same_fields(shown: dict[str, Any], real: dict[str, Any]) -> None:
    """Every field that is shown exists, at every depth that is shown."""
    for name, value in shown.items():
        assert name in real, f"{name} is shown, and there is no such field"
        if isinstance(value, dict) and isinstance(real[name], dict) and name != "shares":
            _same_fields(value, real[name])
        if isinstance(value, list) and isinstance(value[0], dict):
            _same_fields(value[0], real[name][0])
