"""`fairway configure`: what is printed where, and with which exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from fairway.cli.main import app

EXAMPLE = str(Path(__file__).parents[3] / "examples" / "configure-pipeline.json")

ONE = {"batch": 1, "cpu": 1, "gpu": 1}
SMALL: dict[str, Any] = {
    "stages": [
        {"name": name, "configs": [{**ONE, "seconds": seconds}]}
        for name, seconds in (("A", 0.10), ("B", 0.30), ("C", 0.20), ("D", 0.25), ("E", 0.15))
    ],
    "edges": [["A", "B"], ["A", "C"], ["C", "D"], ["B", "E"], ["D", "E"]],
    "slo_seconds": 0.7,
    "queue_length": 8,
}


def run(*arguments: str, document: Any = None) -> Result:
    text = document if isinstance(document, str) or document is None else json.dumps(document)
    return CliRunner().invoke(app, ("configure", *arguments), input=text)


def answer(*arguments: str, document: Any = None) -> dict[str, Any]:
    result = run(*arguments, document=document)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def refused(*arguments: str, document: Any = None) -> str:
    result = run(*arguments, document=document)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("fairway: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("fairway: ").rstrip("\n")


@pytest.mark.parametrize("algorithm", ["esg", "front", "brute-force", "esg:a-star"])
def test_the_answer_has_the_fields_of_the_contract(algorithm: str) -> None:
    document = answer("-", "--algorithm", algorithm, document=SMALL)
    assert {"budgets", "candidates", "feasible", "expanded", "search_seconds"} <= set(document)
    assert document["budgets"] == pytest.approx({"A": 0.1, "B": 0.45, "C": 0.2, "D": 0.25, "E": 0.15})
    (candidate,) = document["candidates"]
    assert candidate["path"] == dict.fromkeys("ABCDE", ONE)
    assert candidate["seconds"] == pytest.approx(0.7)
    assert candidate["cost_dollars"] == pytest.approx(0.704 * 1.0 / 3600)
    assert document["feasible"] is True
    assert document["expanded"] >= 1
    assert 0 < document["search_seconds"] < 0.1


def test_an_slo_below_the_fastest_path_is_answered_with_the_best_effort() -> None:
    for algorithm in ("esg", "front", "brute-force"):
        document = answer("-", "-a", algorithm, document={**SMALL, "slo_seconds": 0.5})
        assert document["feasible"] is False
        assert document["candidates"][0]["seconds"] == pytest.approx(0.7)
        assert document["fastest_seconds"] == pytest.approx(0.7)


def test_the_table_shows_the_plan_and_the_candidates() -> None:
    result = run(EXAMPLE, "--table")
    assert result.exit_code == 0
    for piece in ("sharpen", "classify", "slices", "candidates for 'sharpen'", "$ per 1,000 jobs", "in time; searched"):
        assert piece in result.stdout
    late = run("-", "--table", document={**SMALL, "slo_seconds": 0.5})
    assert "best effort" in " ".join(late.stdout.split())


def test_json_to_a_file_prints_the_table(tmp_path: Path) -> None:
    target = tmp_path / "plans.json"
    result = run(EXAMPLE, "--json", str(target))
    assert result.exit_code == 0
    assert len(json.loads(target.read_text())["candidates"]) == 5
    assert "sharpen" in result.stdout


def test_help_has_examples() -> None:
    result = run("--help")
    assert result.exit_code == 0
    assert "fairway configure pipeline.json --algorithm front" in result.stdout


def without(stage: int) -> list[dict[str, Any]]:
    return [{**each, "configs": []} if number == stage else each for number, each in enumerate(SMALL["stages"])]


def with_first(**sizes: int) -> list[dict[str, Any]]:
    return [{"name": "A", "configs": [{**ONE, **sizes, "seconds": 0.1}]}, *SMALL["stages"][1:]]


@pytest.mark.parametrize(
    ("arguments", "document", "message"),
    [
        (("-", "-a", "fron"), SMALL, "algorithm 'fron' is not known, did you mean 'front'?"),
        (("-", "-a", "esg:fast"), SMALL, "algorithm 'esg' has no option 'fast'"),
        (("-", "--table", "--json", "-"), SMALL, "--table and --json - both print"),
        (("no-such-file.json",), None, "no-such-file.json: cannot be read: No such file or directory"),
        (("-",), "{", "standard input: not valid JSON"),
        (("-",), {**SMALL, "stages": without(1)}, "stages[1] ('B').configs: none given"),
        (("-",), {**SMALL, "stages": with_first(batch=0)}, "stages[0] ('A').configs[0].batch: 0 given"),
        (("-",), {**SMALL, "stages": with_first(gpu=9)}, "gpu: 9 given, but a GPU has 7 slices"),
        (("-",), {**SMALL, "edges": [["A", "B"], ["B", "A"]]}, "is a cycle"),
        (("-",), {**SMALL, "edges": [["A", "X"]]}, "there is no stage 'X'"),
    ],
)
def test_bad_input_is_one_line_and_exit_status_2(arguments: tuple[str, ...], document: Any, message: str) -> None:
    assert message in refused(*arguments, document=document)
