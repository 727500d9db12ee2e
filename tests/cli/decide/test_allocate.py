"""`fairway allocate` and its neighbours: what is printed where, and with which exit status."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from fairway import allocate, parse_problem
from fairway.allocate import registry
from fairway.allocate.allocation import Allocation
from fairway.allocate.policies import POLICIES
from fairway.allocate.problem import Problem
from fairway.cli.main import app
from fairway.cli.output import json_text, plain
from fairway.errors import FairwayError, InputError

EXAMPLE = str(Path(__file__).parents[3] / "examples" / "mixed-cluster.json")

# By hand: each job is fastest on its own type, and two thirds of the V100 make `vision` as well off as all of the K80
# makes `recommendation` (both at 10.4 / 8.95 of what an equal mixture would give). What is left of the V100 goes to
# `vision`, as the other job has no time left.
SMALL: dict[str, Any] = {
    "workers": {"v100": 1, "k80": 1},
    "jobs": [
        {"id": "vision", "throughputs": {"v100": 4.4, "k80": 0.6}},
        {"id": "recommendation", "throughputs": {"v100": 7.5, "k80": 10.4}},
    ],
}


def no_constants(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


def run(*arguments: str, document: Any = None) -> Result:
    text = document if isinstance(document, str) or document is None else json.dumps(document)
    return CliRunner().invoke(app, arguments, input=text)


def answer(*options: str, document: Any = None, policy: str = "max-min-fairness") -> dict[str, Any]:
    result = run("allocate", "-", "--policy", policy, *options, document=SMALL if document is None else document)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout, parse_constant=no_constants)


def refused(*arguments: str, document: Any = None, status: int = 2) -> str:
    result = run(*arguments, document=document)
    assert result.exit_code == status
    assert result.stdout == ""
    assert result.stderr.startswith("fairway: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("fairway: ").rstrip("\n")


def test_the_answer_has_the_fields_of_the_contract_and_what_explains_them() -> None:
    document = answer(policy=" max-min-fairness ")
    assert list(document) == [
        "policy",
        "objective",
        "sense",
        "solve_seconds",
        "gap",
        "optimal",
        "prices",
        "allocation",
        "bindings",
    ]
    assert document["policy"] == " max-min-fairness "
    assert document["objective"] == pytest.approx(10.4 / 8.95, rel=1e-6)
    assert document["sense"] == "max"
    assert 0 < document["solve_seconds"] < 5
    assert document["optimal"] is True
    assert document["gap"] <= 1e-6
    assert set(document["prices"]) == {"v100", "k80"}
    shares = {tuple(row["jobs"]): row["shares"] for row in document["allocation"]}
    assert shares["recommendation",] == {"k80": pytest.approx(1.0)}
    assert shares["vision",] == {"v100": pytest.approx(1.0)}
    assert document["bindings"]["recommendation"] == {"kind": "time", "accelerator": None}


def test_a_bare_answer_stops_at_the_level() -> None:
    document = answer(policy="max-min-fairness:bare")
    shares = {tuple(row["jobs"]): row["shares"] for row in document["allocation"]}
    assert document["objective"] == pytest.approx(10.4 / 8.95, rel=1e-6)
    assert shares["vision",] == {"v100": pytest.approx(10.4 / 8.95 * 2.5 / 4.4, rel=1e-6)}
    assert document["bindings"]["vision"] == {"kind": "objective", "accelerator": None}


def test_json_to_a_dash_is_the_default() -> None:
    document, same = answer(), answer("--json", "-")
    assert {**document, "solve_seconds": 0} == {**same, "solve_seconds": 0}


def test_the_policy_is_repeated_as_it_was_given() -> None:
    assert answer(policy="max-min-fairness:agnostic")["policy"] == "max-min-fairness:agnostic"


@pytest.mark.parametrize("name", list(POLICIES))
def test_every_policy_answers_the_example_in_strict_json(name: str) -> None:
    result = run("allocate", EXAMPLE, "--policy", name)
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout, parse_constant=no_constants)
    assert document["sense"] in {"max", "min"}
    assert document["allocation"]
    for row in document["allocation"]:
        assert 1 <= len(row["jobs"]) <= 2
        assert all(0 < share <= 1 + 1e-6 for share in row["shares"].values())


def test_json_to_a_file_prints_the_table(tmp_path: Path) -> None:
    target = tmp_path / "answer.json"
    result = run("allocate", EXAMPLE, "--policy", "makespan", "--json", str(target))
    assert result.exit_code == 0
    assert json.loads(target.read_text())["policy"] == "makespan"
    assert "language-model" in result.stdout
    assert "objective" in result.stdout
    assert list(tmp_path.iterdir()) == [target]


def test_a_file_is_replaced_as_a_whole_and_keeps_its_mode_and_its_links(tmp_path: Path) -> None:
    target, link = tmp_path / "answer.json", tmp_path / "link.json"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    assert run("allocate", EXAMPLE, "--policy", "makespan", "--json", str(link)).exit_code == 0
    assert link.is_symlink()
    assert json.loads(target.read_text())["policy"] == "makespan"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_device_is_written_to_and_not_replaced() -> None:
    assert run("allocate", EXAMPLE, "--policy", "makespan", "--json", os.devnull).exit_code == 0
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


def test_a_file_that_cannot_be_written_is_refused_and_the_old_one_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("allocate", EXAMPLE, "--policy", "makespan", "--json")
    assert "cannot be written: No such file or directory" in refused(*arguments, str(tmp_path / "none" / "a.json"))
    assert "cannot be written: Is a directory" in refused(*arguments, str(tmp_path))
    target = tmp_path / "answer.json"
    target.write_text("old")

    def full_disk(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    assert "cannot be written: No space left" in refused(*arguments, str(target))
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_bad_problem_leaves_the_file_alone(tmp_path: Path) -> None:
    target = tmp_path / "answer.json"
    refused("allocate", "-", "--policy", "makespan", "--json", str(target), document="{")
    assert not target.exists()


def test_the_table_shows_jobs_pairs_prices_and_the_objective() -> None:
    result = run("allocate", EXAMPLE, "--policy", "max-min-fairness:space-sharing", "--table")
    assert result.exit_code == 0
    decided = allocate("max-min-fairness:space-sharing", parse_problem(Path(EXAMPLE).read_bytes(), EXAMPLE))
    shares = [f"{share:.1%}" for share in decided.shares[: len(decided.ids)].ravel().tolist() if share > 0.001]
    objective = f"objective {decided.objective:.6g} (more is better, optimal)"
    for piece in ("v100", "cyclegan", "transformer +", *shares, "workers busy", "one more adds", objective):
        assert piece in result.stdout


def test_the_table_takes_names_as_they_are_and_stays_short() -> None:
    jobs = [{"id": f"[red]{number}[/]", "throughputs": {"[b]": 1.0}} for number in range(300)]
    result = run("allocate", "-", "-p", "max-min-fairness", "--table", document={"workers": {"[b]": 3}, "jobs": jobs})
    assert result.exit_code == 0
    assert "[red]7[/]" in result.stdout
    assert "[b]" in result.stdout
    assert "and 100 more rows" in result.stdout


def test_a_table_and_json_cannot_both_be_printed() -> None:
    assert "choose one" in refused("allocate", EXAMPLE, "-p", "makespan", "--table", "--json", "-")


def test_jobs_that_cannot_run_are_named() -> None:
    document = {**SMALL, "jobs": [*SMALL["jobs"], {"id": "stuck\n", "throughputs": {"tpu": 3.0}}]}
    result = run("allocate", "-", "--policy", "max-min-fairness", document=document)
    assert result.exit_code == 0
    assert result.stderr == "fairway: warning: no accelerator type of this cluster can run 'stuck\\n'\n"
    printed = json.loads(result.stdout)
    assert printed["unrunnable"] == ["stuck\n"]
    assert printed["bindings"]["stuck\n"] == {"kind": "unrunnable", "accelerator": None}
    assert printed["objective"] == pytest.approx(10.4 / 8.95, rel=1e-6)


@pytest.mark.parametrize("workers", [{}, {"v100": 0}])
def test_an_empty_cluster_is_an_outcome_and_no_error(workers: dict[str, int]) -> None:
    printed = answer(document={**SMALL, "workers": workers})
    assert printed["allocation"] == []
    assert printed["unrunnable"] == ["vision", "recommendation"]
    assert run("allocate", "-", "-p", "makespan", "--table", document={"workers": workers, "jobs": []}).exit_code == 0


def test_no_jobs_are_an_outcome_and_no_error() -> None:
    printed = answer(document={"workers": {"v100": 1}, "jobs": []})
    assert printed["allocation"] == []
    assert printed["bindings"] == {}


def test_a_deadline_that_has_passed_is_told_in_the_details() -> None:
    jobs = [{"id": "late", "throughputs": {"v100": 1.0}, "steps_left": 5, "slo_seconds": -1}]
    printed = answer(document={"workers": {"v100": 1}, "jobs": jobs}, policy="min-cost-slo")
    assert printed["details"]["slos"] == {"kept": [], "dropped": [], "missed": ["late"]}


@dataclass(frozen=True, slots=True)
class Odd:
    """A policy with everything that is awkward to print."""

    name: ClassVar[str] = "odd"
    fails: bool = False

    def allocate(self, problem: Problem) -> Allocation:
        if self.fails:
            raise FairwayError("the solver\ngave up")
        details: Mapping[str, Any] = {"seed": np.int64(problem.seed), "levels": np.array([1.0, np.nan]), "set": {1}}
        shares = np.zeros((len(problem), len(problem.types)))
        return Allocation.of_jobs("odd", problem, shares, objective=np.inf, gap=0.003, details=details)


@pytest.fixture
def odd_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "POLICY_PARTS", replace(registry.POLICY_PARTS, ours={"odd": Odd}))


@pytest.mark.usefixtures("odd_policy")
def test_what_json_cannot_say_is_null_and_a_gap_is_a_warning() -> None:
    result = run("allocate", "-", "--policy", "odd", "--seed", "5", document={**SMALL, "seed": 3})
    assert result.exit_code == 0
    assert result.stderr == "fairway: warning: not proven optimal: gap 0.3 %\n"
    printed = json.loads(result.stdout, parse_constant=no_constants)
    assert printed["objective"] is None
    assert printed["optimal"] is False
    assert printed["prices"] is None
    assert printed["details"] == {"seed": 5, "levels": [1.0, None], "set": [1]}
    assert answer(policy="odd", document={**SMALL, "seed": 3})["details"]["seed"] == 3


@pytest.mark.usefixtures("odd_policy")
def test_a_decision_that_fails_is_one_line_and_status_1() -> None:
    assert refused("allocate", "-", "-p", "odd:fails", document=SMALL, status=1) == "the solver gave up"


def test_bad_input_is_one_line_and_status_2(tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_bytes(b"\xff\xfe\x00")
    expected = f"{bad}: not text in UTF-8; save it as JSON or YAML in UTF-8"
    assert refused("allocate", str(bad), "-p", "makespan") == expected
    absent = str(tmp_path / "absent.json")
    assert refused("allocate", absent, "-p", "makespan").startswith(f"{absent}: cannot be read: No such file")
    assert "a directory given, expected a problem file" in refused("allocate", str(tmp_path), "-p", "makespan")
    assert refused("allocate", "-", "-p", "makespan", document="").startswith("standard input: empty, expected")
    assert refused("allocate", "-", "-p", "makespan", document=SMALL).startswith("jobs: 'vision' has no steps_left")
    assert "did you mean 'makespan'?" in refused("allocate", EXAMPLE, "-p", "makspan")
    assert "has no option 'fast'" in refused("allocate", EXAMPLE, "-p", "makespan:fast")


@pytest.mark.parametrize("arguments", [["allocate", EXAMPLE], ["allocate"], ["no-such-command"], ["allocate", "--x"]])
def test_wrong_usage_is_status_2(arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Usage" in result.stderr


def test_help_shows_the_commands_and_examples() -> None:
    assert "allocate" in run("--help").stdout
    assert "fairway allocate cluster.json --policy max-min-fairness" in run("allocate", "--help").stdout
    assert run("--version").stdout.startswith("fairway")


def test_the_policies_are_listed_with_their_options(tmp_path: Path) -> None:
    table = run("policies")
    assert table.exit_code == 0
    listed = {policy["name"]: policy for policy in json.loads(run("policies", "--json", "-").stdout)["policies"]}
    assert list(listed) == list(POLICIES)
    for name, policy in listed.items():
        assert name in table.stdout
        assert policy["about"]
    assert listed["makespan"]["options"] == ["agnostic", "space-sharing", "bare", "reference=VALUE"]
    assert run("policies", "--json", str(tmp_path / "p.json")).exit_code == 0


def test_plain_makes_json_of_anything() -> None:
    awkward = {"a": np.float64("nan"), 1: (np.bool_(True), b"x", Path("p")), "n": np.array([[1, 2]]), "s": "text"}
    assert json.loads(json_text(awkward)) == plain(awkward)
    assert plain(awkward)["n"] == [[1, 2]]
    assert plain(awkward)["1"][0] is True


# What only a real process shows.

COMMAND = [sys.executable, "-m", "fairway.cli.main"]


def process(*arguments: str, given: str | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], input=given, capture_output=True, text=True, timeout=60, check=False, **options
    )


def test_a_real_process_answers_from_standard_input() -> None:
    done = process("allocate", "-", "--policy", "max-min-fairness", given=json.dumps(SMALL))
    assert done.returncode == 0
    assert done.stderr == ""
    assert json.loads(done.stdout)["policy"] == "max-min-fairness"


def test_a_real_process_ends_with_status_2_and_one_line_on_broken_json(tmp_path: Path) -> None:
    problem = tmp_path / "broken.json"
    problem.write_text('{"workers": {"v100": 1},\n "jobs": [}')
    done = process("allocate", str(problem), "--policy", "makespan", "--json", str(tmp_path / "out.json"))
    assert done.returncode == 2
    assert done.stdout == ""
    where = "not valid JSON: Expecting value at line 2 column 11"
    assert done.stderr == f"fairway: {problem}: {where}; correct it there\n"
    assert list(tmp_path.iterdir()) == [problem]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_output_that_cannot_be_written_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*COMMAND, "policies", "--json", "-"], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert done.stderr == b"fairway: [Errno 28] No space left on device\n"


def test_output_that_the_terminal_cannot_show_is_one_line() -> None:
    document = {"workers": {"v100": 1}, "jobs": [{"id": "é", "throughputs": {"v100": 1}}]}
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    arguments = ("allocate", "-", "-p", "max-min-fairness")
    assert process(*arguments, given=json.dumps(document), env=environment).returncode == 0
    done = process(*arguments, "--table", given=json.dumps(document), env=environment)
    assert done.returncode == 2
    assert done.stderr.startswith("fairway: standard output cannot show ")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(os.name != "posix", reason="pipes and signals as POSIX has them")
def test_a_reader_that_goes_away_is_nobodys_error() -> None:
    jobs = [{"id": f"job-{number}", "throughputs": {"v100": 1.0}} for number in range(3000)]
    with subprocess.Popen(
        [*COMMAND, "allocate", "-", "-p", "max-min-fairness"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        running.stdin.write(json.dumps({"workers": {"v100": 8}, "jobs": jobs}).encode())
        running.stdin.close()
        assert running.stderr.read() == b""


@pytest.mark.skipif(os.name != "posix", reason="pipes and signals as POSIX has them")
def test_an_interrupt_is_quiet(tmp_path: Path) -> None:
    pipe = tmp_path / "problem.json"
    os.mkfifo(pipe)
    command = [*COMMAND, "allocate", str(pipe), "-p", "max-min-fairness"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as running, pipe.open("w"):  # opens once it is being read
        assert running.stderr is not None
        running.send_signal(signal.SIGINT)
        assert running.stderr.read() == b""
    assert running.returncode == 130


def test_input_errors_are_always_one_line() -> None:
    assert str(InputError("a\nb\r\x1b[31m\u2028c")) == r"a\nb\r\x1b[31m\u2028c"
