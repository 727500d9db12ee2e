"""`fairway submit`: what it sends of files, options and commands, and what it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fairway.jobs.description import JobDescription
from tests.cli.remote_commands import document, printed, refused
from tests.client.server import Made, problem


def test_the_options_of_a_job_mean_what_its_fields_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    text = printed("submit", "--help")
    for field in ("name", "team", "weight", "steps", "job_type", "workdir", "retries", "deadline"):
        meaning = JobDescription.model_fields[field].description
        assert meaning is not None
        assert re.search(rf"--{field.replace('_', '-')} .*{re.escape(meaning.replace('`', ''))}", text), field
    assert re.search(r"--accelerators,--gpus .* As in V100, V100:2, V100:0\.5, V100:8GB, \[A100, V100\]:2", text)
    assert re.search(r"--env .* Variables for its environment\. Repeatable\.", text)


def test_an_option_that_is_wrong_is_refused_without_asking(made: Made) -> None:
    said = refused("submit", "--accelerators", "v100:0", "--", "true")
    assert said.startswith('job: resources.accelerators: a count of "0" given, expected a whole number')
    assert made.seen == []


def test_a_command_is_submitted_word_by_word_and_runs_here(made: Made, tmp_path: Path) -> None:
    options = [
        "--name",
        "lm",
        "--team",
        "speech",
        "--weight",
        "2",
        "--accelerators",
        "[a100, v100]:2",
        "--steps",
        "500",
    ]
    options += ["--env", "DATA=/data", "--env", "EMPTY=", "--retries", "0", "--deadline", "8h", "--no-preempt"]
    text = printed("submit", *options, "--", "python", "train.py", "--name", "other", "--", "x y")
    assert text == "job-3 queued (name-3)\n"
    assert json.loads(made.bodies[0]) == {
        "run": ["python", "train.py", "--name", "other", "--", "x y"],
        "name": "lm",
        "team": "speech",
        "weight": 2.0,
        "steps": 500,
        "retries": 0,
        "deadline": 28800.0,
        "preemptible": False,
        "resources": {"accelerators": "[a100, v100]:2"},
        "envs": {"DATA": "/data", "EMPTY": ""},
        "workdir": str(tmp_path),
    }


def test_one_word_with_blanks_is_for_a_shell(made: Made) -> None:
    printed("submit", "--", "make data && python train.py")
    assert json.loads(made.bodies[0])["run"] == "make data && python train.py"


def test_a_file_is_submitted_and_options_go_before_it(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(
        "run: python train.py\nworkdir: data\npriority: 3\nenvs: {A: 1, B: 2}\n"
        "resources:\n  accelerators: [A100, V100]:2\ncheckpoint: {directory: saved}\n"
    )
    assert printed("submit", "job.yaml", "--quiet") == "job-3\n"
    printed("submit", "job.yaml", "--weight", "5", "--env", "B=x", "--accelerators", "k80")
    first, second = map(json.loads, made.bodies)
    assert first == {
        "run": "python train.py",
        "workdir": str(tmp_path / "data"),
        "weight": 3.0,
        "envs": {"A": "1", "B": "2"},
        "resources": {"accelerators": "[a100, v100]:2"},
        "checkpoint": {"directory": str(tmp_path / "saved")},
    }
    assert second["weight"] == 5.0
    assert second["envs"] == {"A": "1", "B": "x"}
    assert second["resources"] == {"accelerators": "k80"}


def test_a_job_comes_from_standard_input(made: Made) -> None:
    printed("submit", "-", text="run: echo hello\n")
    assert json.loads(made.bodies[0])["run"] == "echo hello"


def test_paths_mean_nothing_on_another_machine(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairway.client.place.on_this_machine", lambda _: False)
    printed("submit", "--", "true")
    assert json.loads(made.bodies[0]) == {"run": ["true"]}


def test_several_jobs_are_submitted_in_their_order(made: Made, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.yaml").write_text(f"run: echo {name}\n")
    assert printed("submit", "one.yaml", "two.yaml", "-q").split() == ["job-3", "job-4"]
    assert [job["id"] for job in document("submit", "one.yaml", "two.yaml")["jobs"]] == ["job-5", "job-6"]


def test_an_array_is_sent_as_one_and_all_of_its_jobs_are_told(made: Made, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("run: echo\nmatrix: {LR: [0.1, 1]}\n")
    printed("submit", "job.yaml")
    assert json.loads(made.bodies[0])[0]["matrix"] == {"LR": ["0.1", "1"]}
    assert printed("submit", "--array", "0-9:3%2", "-q", "--", "true").split() == ["job-4"]
    assert json.loads(made.bodies[1])[0]["array"] == "0-9:3%2"
    printed("submit", "--array", "3", "--", "true")  # one index is one job
    assert json.loads(made.bodies[2])["array"] == "3"
    seen = len(made.seen)
    assert refused("submit", "--array", "0-1000000000", "--", "true").endswith("at most 1000 are made at once")
    assert refused("submit", "--array", "x", "--", "true").startswith('job: array: "x" given, expected indexes')
    assert refused("submit", "--array", "0-1", "--follow", "--", "true").startswith("several jobs given, but --follow")
    assert len(made.seen) == seen


def test_a_directory_is_refused_with_the_file_in_it_that_may_be_meant(made: Made, tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    said = refused("submit", "jobs")
    assert said == "jobs: a directory given, expected a job file; there is no .yaml or .json file in it"
    (tmp_path / "jobs" / "train.yaml").write_text("run: echo hello\n")
    assert refused("submit", "jobs").endswith("expected a job file, as in jobs/train.yaml")


def test_of_several_jobs_none_is_submitted_if_one_cannot_be_read(made: Made, tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text("run: echo\n")
    (tmp_path / "bad.yaml").write_text("run: echo\nsteps: many\n")
    assert refused("submit", "good.yaml", "bad.yaml").startswith('bad.yaml: steps: "many" given, expected')
    assert made.seen == []


def test_several_jobs_are_sent_at_once_and_the_one_that_the_server_refuses_is_named(made: Made, tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("run: echo\n")
    (tmp_path / "two.yaml").write_text("run: echo\n---\nrun: echo 2\n---\n")
    no_such = "resources.accelerators: 'h100' is not an accelerator of this cluster"
    made.failures = [problem(422, f"job, document 2: {no_such}"), problem(422, f"job, document 3: {no_such}")]
    assert refused("submit", "one.yaml", "two.yaml", "-q") == f"two.yaml, document 1: {no_such}"
    assert refused("submit", "one.yaml", "two.yaml", "-q") == f"two.yaml, document 2: {no_such}"
    assert len(made.seen) == 2


def test_the_documents_of_a_file_are_so_many_jobs_or_none(made: Made, tmp_path: Path) -> None:
    (tmp_path / "jobs.yaml").write_text("run: echo 1\n---\nrun: echo 2\nlabels: {sweep: lr}\n")
    assert printed("submit", "jobs.yaml", "-q", "--label", "by=me").split() == ["job-3", "job-4"]
    sent = json.loads(made.bodies[0])
    assert [one["run"] for one in sent] == ["echo 1", "echo 2"]
    assert [one["labels"] for one in sent] == [{"by": "me"}, {"sweep": "lr", "by": "me"}]
    (tmp_path / "jobs.yaml").write_text("run: echo 1\n---\nrun: echo 2\nsteps: many\n")
    assert refused("submit", "jobs.yaml").startswith('jobs.yaml, document 2: steps: "many" given, expected')
    assert refused("submit", "jobs.yaml", "--name", "x").startswith("jobs.yaml, document 2: steps")
    (tmp_path / "jobs.yaml").write_text("run: echo 1\n---\nrun: echo 2\n")
    assert refused("submit", "jobs.yaml", "--name", "x") == "--name given for 2 jobs; names are for one each"
    (tmp_path / "jobs.yaml").write_text("run: echo\n---\n" * 101)
    assert refused("submit", "jobs.yaml").startswith("jobs.yaml: more than 100 documents given")
    assert len(made.seen) == 1


def test_the_key_makes_a_second_submission_find_the_first(made: Made) -> None:
    first = document("submit", "--idempotency-key", "mine", "--", "true")
    assert document("submit", "--idempotency-key", "mine", "--", "true") == first
    assert first["id"] == "job-3"


def test_a_dry_run_predicts_the_start(made: Made) -> None:
    text = printed("submit", "--dry-run", "--", "true")
    assert re.search(r"predicted start: in 1d12h \(at [-\d: ]+\), between 1d00h and 3d00h from now", text)
    assert "(emulated)" in text
    assert text.endswith("nothing was submitted\n")
    assert set(document("submit", "--dry-run", "--", "true")) == {"job", "prediction", "emulated"}
    assert len(made.jobs) == 2


def test_following_prints_the_output_and_fails_with_the_job(made: Made) -> None:
    made.failures = []
    made.jobs = []

    class Ended(list[dict[str, Any]]):
        def append(self, one: dict[str, Any]) -> None:
            super().append({**one, "state": state, "reason": "exit code 3"})

    state = "succeeded"
    made.jobs = Ended()
    assert printed("submit", "--follow", "--", "true") == "job-1 succeeded (name-1)\none\ntwo\nthree\n"
    state = "failed"
    assert refused("submit", "--follow", "--", "true", status=1) == "job-2 failed: exit code 3"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "nothing to submit; name a file, or give a command after --"),
        (["--"], "no command after --; expected one"),
        (["a.yaml", "--", "true"], "a.yaml and a command after -- both given"),
        (["no-such.yaml"], "no-such.yaml: cannot be read: No such file or directory"),
        (["--env", "A", "--", "true"], "--env: 'A' given, expected NAME=VALUE"),
        (["--follow", "--dry-run", "--", "true"], "--follow given with --dry-run or --json"),
    ],
)
def test_what_cannot_be_submitted_is_refused_without_asking(made: Made, arguments: list[str], said: str) -> None:
    assert refused("submit", *arguments).startswith(said)
    assert made.seen == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("run: [python\nname: x\n", "job.yaml: not valid YAML: expected ',' or ']', but got ':' at line 2 column 5"),
        ("run: a\nrun: b\n", "job.yaml: line 1: 'run' given twice"),
        ("name: x\n", "job.yaml: run: missing, expected the command to run"),
        ("run: a\nname: ../../etc\n", "job.yaml: name: '../../etc' given, but it must not be a path"),
        ("run: a\nresorces: {}\n", "job.yaml: resorces: no such field, did you mean 'resources'?"),
        ("run: a\ncheckpoint: {interval: soon}\n", 'job.yaml: checkpoint.interval: "soon" given, expected seconds'),
        ("- a\n- b\n", "job.yaml: the document: a list of 2 given, expected a job"),
        ("\x00\x01", "job.yaml: not valid YAML"),
        ("", "job.yaml: empty, expected a job"),
    ],
)
def test_malformed_yaml_is_one_line_with_the_place(made: Made, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "job.yaml").write_text(text)
    assert refused("submit", "job.yaml").startswith(said)
    assert made.seen == []


def test_options_are_checked_with_the_file(made: Made, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("run: a\n")
    said = refused("submit", "job.yaml", "--deadline", "tomorrow")
    assert said.startswith('job.yaml with the options given: deadline: "tomorrow" given, expected')


# ls, status, explain, top
