"""`fairway replay`: what is printed, and with which exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from fairway.cli.main import app
from fairway.engine.training.messages import BeginRound, RoundBegan
from fairway.store import open_store
from fairway.store.journal import record_step
from tests.sim.journalled import journal_a_run


def run(*arguments: str, environment: dict[str, str] | None = None) -> Result:
    return CliRunner(env=environment).invoke(app, ("replay", *arguments))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with open_store(tmp_path) as store:
        journal_a_run(store, "max-min-fairness", count=6)
    return tmp_path


def test_a_table_says_that_all_is_the_same(home: Path) -> None:
    for result in (run(str(home)), run(str(home / "fairway.db")), run(environment={"FAIRWAY_HOME": str(home)})):
        assert result.exit_code == 0, result.output
        assert "decisions made again: all the same" in result.stdout
        assert "events since the start at entry 1: the same" in result.stdout
        assert "max-min-fairness" in result.stdout


def test_json_has_every_decision(home: Path, tmp_path: Path) -> None:
    document = json.loads(run(str(home), "--json", "-").stdout)
    assert list(document) == ["store", "same", "decisions", "engine"]
    assert document["same"] is True
    assert all(decision["same"] and decision["difference"] <= 1e-6 for decision in document["decisions"])
    assert document["engine"]["events"] > 10
    file = tmp_path / "replayed.json"
    result = run(str(home), "--json", str(file), "--after", str(document["decisions"][0]["sequence"]))
    assert "all the same" in result.stdout
    assert json.loads(file.read_text())["decisions"] == document["decisions"][1:]


def test_what_is_different_gives_another_exit_status(home: Path) -> None:
    with open_store(home) as store:
        store.write(record_step, 1e6, [RoundBegan()], [BeginRound(1e6 + 11)], at=1.0)
    result = run(str(home))
    assert result.exit_code == 1
    assert "was answered by BeginRound(" in " ".join(result.stdout.split())
    assert json.loads(run(str(home), "--json", "-").stdout)["same"] is False


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    for given in (tmp_path, tmp_path / "nothing", tmp_path / "no.db"):
        result = run(str(given))
        assert result.exit_code == 2
        assert "there is no store" in result.stderr
        assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_an_empty_journal_has_nothing_to_tell(tmp_path: Path) -> None:
    with open_store(tmp_path):
        pass
    result = run(str(tmp_path))
    assert result.exit_code == 0
    assert "0 decisions made again" in result.stdout
    assert "no start of an engine in the journal" in result.stdout
