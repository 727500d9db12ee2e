"""`fairway sweep` and `fairway compare`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fairway.cli.main import app
from tests.dashboard.inside import inside

SMALL = ("sweep", "-p", "fifo", "-p", "isolated", "--rate", "2,30", "--seed", "0,1", "--cluster", "v100=1,k80=1",
         "--generate", "jobs=5,slos", "--processes", "1")  # fmt: skip


def test_a_sweep_writes_its_results_and_a_page_and_two_policies_can_be_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, [*SMALL, "--report", "sweep.html"])
    assert result.exit_code == 0, result.output
    assert "8 runs" in result.stderr
    assert result.stdout.splitlines()[0].split() == ["policy", "at", "2", "(h)", "at", "30", "(h)", "knee"]
    (page,) = inside((tmp_path / "sweep.html").read_text())["runs"]
    assert page["charts"][0]["title"] == "mean JCT against load"
    assert page["columns"]["title"][1:] == ["at 2 (h)", "at 30 (h)"]
    assert page["rows"]["name"] == ["fifo", "isolated"]
    again = CliRunner().invoke(app, [*SMALL, "--report", "sweep.html"])
    assert "8 runs, 8 of them in sweep.parquet already" in again.stderr
    compared = CliRunner().invoke(app, ["compare", "fifo", "isolated", "--json", "-"])
    assert json.loads(compared.stdout)["pairs"] == 4
    said = CliRunner().invoke(app, ["compare", "fifo", "isolated", "--metric", "cost_dollars"])
    assert said.stdout.startswith("cost_dollars of isolated is ")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--rate", "x"), "--rate: 'x' given, expected numbers, as in --rate 0,1,2"),
        (("--option", "round"), "--option: 'round' given, expected NAME=VALUE,..., as in round=6m,12m"),
        (("--to", "a.csv"), "--to: 'a.csv' given, expected the name of a .parquet file"),
        (("-s", "compass"), "expected either policies (training) or schedulers (serving); give one of them"),
        (("--processes", "0"), "--processes: 0 given"),
        (("no-such.yaml",), "no-such.yaml: cannot be read: No such file or directory; name a sweep file"),
    ],
)
def test_what_is_wrong_is_one_line_and_status_2(
    more: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, [*SMALL, *more])
    assert result.exit_code == 2
    assert result.stderr.startswith(f"fairway: {message}")
    assert not list(tmp_path.iterdir())
