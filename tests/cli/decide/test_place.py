"""`fairway place`: what is printed where, and with which exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from fairway.cli.main import app

EXAMPLE = str(Path(__file__).parents[3] / "examples" / "place-request.json")

SMALL: dict[str, Any] = {
    "models": {"opt": {"bytes": 6141853204}},
    "workflow": {
        "stages": [
            {"name": "t0", "model": "opt", "seconds": 0.561, "input_bytes": 1024, "output_bytes": 2048},
            {"name": "t1", "seconds": 0.1, "input_bytes": 2048, "output_bytes": 2048},
        ],
        "edges": [["t0", "t1"]],
    },
    "workers": [
        {"name": "w0", "queued_seconds": 0.0, "memory_bytes": 14336000000, "cached": ["opt"]},
        {"name": "w1", "queued_seconds": 0.0, "memory_bytes": 14336000000, "cached": []},
    ],
    "ingress": "w0",
}


def run(*arguments: str, document: Any = None) -> Result:
    text = document if isinstance(document, str) or document is None else json.dumps(document)
    return CliRunner().invoke(app, ("place", *arguments), input=text)


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


def test_the_answer_has_the_fields_of_the_contract() -> None:
    document = answer("-", "--scheduler", "compass", document=SMALL)
    assert list(document) == [
        "scheduler",
        "order",
        "assignment",
        "finish_seconds",
        "lower_bound_seconds",
        "plan_seconds",
    ]
    assert document["scheduler"] == "compass"
    assert document["order"] == ["t0", "t1"]
    assert document["assignment"] == {"t0": "w0", "t1": "w0"}
    assert document["finish_seconds"] == pytest.approx({"t0": 0.561, "t1": 0.661})
    assert document["lower_bound_seconds"] == pytest.approx(0.661)
    assert 0 < document["plan_seconds"] < 0.1


def test_compass_is_the_default_and_json_to_a_dash_too() -> None:
    first, second = answer("-", document=SMALL), answer("-", "--json", "-", "-s", "compass", document=SMALL)
    assert {**first, "plan_seconds": 0} == {**second, "plan_seconds": 0}


@pytest.mark.parametrize(
    "scheduler", ["compass", "jit", "heft", "hash", "compass:compat", "compass:eviction-penalty=0"]
)
def test_every_scheduler_answers_the_example(scheduler: str) -> None:
    document = answer(EXAMPLE, "--scheduler", scheduler)
    assert document["order"] == ["draft", "japanese", "chinese", "french", "answer"]
    assert set(document["assignment"].values()) <= {"w0", "w1", "w2", "w3", "w4"}
    assert document["finish_seconds"]["answer"] >= document["lower_bound_seconds"] - 1e-9


def test_the_seed_decides_between_equals_and_goes_before_the_files_own() -> None:
    document = {
        **SMALL,
        "workers": [{"name": f"w{number}", "memory_bytes": 7e9} for number in range(9)],
        "ingress": None,
    }
    drawn = [answer("-", "--seed", str(seed), document=document)["assignment"]["t0"] for seed in range(8)]
    assert len(set(drawn)) > 2
    assert answer("-", document={**document, "seed": 5})["assignment"]["t0"] == drawn[5]
    assert answer("-", "--seed", "5", document={**document, "seed": 4})["assignment"]["t0"] == drawn[5]


def test_the_table_shows_where_each_task_goes_and_what_is_fetched() -> None:
    result = run(EXAMPLE, "--table")
    assert result.exit_code == 0
    for piece in ("japanese", "opt (there)", "mt5 (to fetch)", "803.0 ms", "at best 1,365.0 ms", "planned in"):
        assert piece in result.stdout


def test_the_table_takes_names_as_they_are() -> None:
    stages = [{"name": f"[red]{number}[/]", "seconds": 1} for number in range(250)]
    document = {"workflow": {"stages": stages}, "workers": [{"name": "[b]", "memory_bytes": 1}]}
    result = run("-", "--table", document=document)
    assert result.exit_code == 0
    assert "[red]7[/]" in result.stdout
    assert "[b]" in result.stdout
    assert "and 50 more rows" in result.stdout


def test_json_to_a_file_prints_the_table(tmp_path: Path) -> None:
    target = tmp_path / "plan.json"
    result = run(EXAMPLE, "--json", str(target))
    assert result.exit_code == 0
    assert json.loads(target.read_text())["order"][0] == "draft"
    assert "japanese" in result.stdout


def test_help_has_examples() -> None:
    result = run("--help")
    assert result.exit_code == 0
    assert "fairway place request.json --scheduler compass" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "document", "message"),
    [
        (("-", "-s", "compas"), SMALL, "scheduler 'compas' is not known, did you mean 'compass'?"),
        (("-", "-s", "compass:fast"), SMALL, "scheduler 'compass' has no option 'fast'"),
        (("-", "--table", "--json", "-"), SMALL, "--table and --json - both print"),
        (("no-such-file.json",), None, "no-such-file.json: cannot be read: No such file or directory"),
        (("-",), "{", "standard input: not valid JSON"),
        (("-",), {**SMALL, "workflow": {**SMALL["workflow"], "edges": [["t0", "t1"], ["t1", "t0"]]}}, "is a cycle"),
        (("-",), {**SMALL, "workflow": {**SMALL["workflow"], "edges": [["t0", "tx"]]}}, "there is no stage 'tx'"),
        (("-",), {**SMALL, "models": {"opt": {"bytes": -1}}}, "models.opt.bytes: -1 given"),
        (("-",), {**SMALL, "workers": [{"name": "w0", "memory_bytes": 5}]}, "fits in the memory of no worker"),
        (("-",), {**SMALL, "ingress": "w7"}, "ingress: 'w7' is not one of the workers"),
    ],
)
def test_bad_input_is_one_line_and_exit_status_2(arguments: tuple[str, ...], document: Any, message: str) -> None:
    assert message in refused(*arguments, document=document)
