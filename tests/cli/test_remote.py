"""The commands that talk to a running Fairway: what they ask, what they print, and how they fail."""

from __future__ import annotations

import csv
import io
import json
import re
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from fairway.cli.main import app
from fairway.jobs.description import JobDescription
from tests.client.server import EXPLANATION, NOW, STATUS, TOKEN, USAGE, WORKERS, Made, job, problem, running, serving

COMMANDS = ["submit", "ls", "status", "logs", "cancel", "explain", "top", "workers", "drain", "usage", "up"]


@pytest.fixture(scope="module")
def running_server() -> Iterator[Made]:
    with serving(Made()) as server:
        yield server


@pytest.fixture
def made(running_server: Made, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Made:
    running_server.forget()
    monkeypatch.setenv("FAIRWAY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FAIRWAY_ADDRESS", running_server.address)
    monkeypatch.setenv("FAIRWAY_TOKEN", TOKEN)
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.chdir(tmp_path)
    return running_server


def run(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(app, arguments, input=text)


def printed(*arguments: str, text: str | None = None) -> str:
    result = run(*arguments, text=text)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def document(command: str, *arguments: str) -> Any:
    return json.loads(printed(command, "--json", "-", *arguments))


def refused(*arguments: str, status: int = 2, text: str | None = None) -> str:
    result = run(*arguments, text=text)
    assert result.exit_code == status, result.output
    assert result.stderr.startswith("fairway: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("fairway: ").rstrip("\n")


@pytest.mark.parametrize("command", [*COMMANDS, "token", "token create", "token ls", "token revoke"])
def test_every_command_has_help_with_examples(command: str) -> None:
    text = printed(*command.split(), "--help")
    assert "Usage: fairway" in text
    if command != "token":
        assert "Examples" in text
        assert re.search(rf"fairway {command} |fairway {command}\n", text)


# submit


def test_the_options_of_a_job_mean_what_its_fields_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    text = printed("submit", "--help")
    for field in ("name", "team", "weight", "steps", "job_type", "workdir", "retries", "deadline"):
        meaning = JobDescription.model_fields[field].description
        assert meaning is not None
        assert re.search(rf"--{field.replace('_', '-')} .*{re.escape(meaning.replace('`', ''))}", text), field
    assert re.search(r"--accelerators,--gpus .* As in V100, V100:2, \[A100, V100\]:2\.", text)
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


def test_ls_shows_who_waits_and_runs_and_why(made: Made) -> None:
    made.jobs = [running(1, name=None), job(2), job(3, "failed", reason_code="Failed", reason="exit code 3")]
    text = printed("ls")
    first, second = text.splitlines()[1:]
    assert re.match(r"job-1 +· +vision +running +v100 × 2 \(emulated\) +75% of 1000 +6.25 +1d03h +Running", first)
    assert re.match(r"job-2 +name-2 +vision +queued +\[v100, k80\]:2 +0% of 1000 +· +2d05h", second)
    assert second.rstrip().endswith("WaitingForShare: others are owed more")
    assert "job-3" in printed("ls", "--all")
    assert [one["id"] for one in document("ls", "--state", "failed")["jobs"]] == ["job-3"]
    assert made.seen[-1].query_params.getlist("state") == ["failed"]


def test_ls_prints_what_jobs_have_used_as_csv(made: Made) -> None:
    rows = list(csv.DictReader(io.StringIO(printed("ls", "--all", "--format", "csv"))))
    assert sorted(row["id"] for row in rows) == ["job-1", "job-2"]
    assert all(float(row["wait"]) >= 0 and row["team"] == "vision" for row in rows)
    assert (
        refused("ls", "--format", "csv", "--watch") == "--format csv: given with --watch or --json; choose one of them"
    )


def test_ls_says_that_there_are_more_or_none(made: Made) -> None:
    made.jobs = [job(number) for number in range(1, 6)]
    text = printed("ls", "--limit", "3")
    assert text.count("job-") == 3
    assert "and more" in text
    assert "and more" not in printed("ls", "--limit", "5")
    made.jobs = []
    assert printed("ls").startswith("no such jobs")
    assert document("ls") == {"jobs": []}


def test_json_goes_to_a_file_beside_the_table(made: Made, tmp_path: Path) -> None:
    assert "job-1" in printed("ls", "--json", "jobs.json")
    assert len(json.loads((tmp_path / "jobs.json").read_text())["jobs"]) == 2


def test_what_the_server_says_cannot_move_the_cursor(made: Made) -> None:
    made.jobs = [job(1, name="a\x1b[2Jb", reason="one\ntwo [bold]three[/bold]")]
    text = printed("ls")
    assert "\x1b" not in text
    assert "one two [bold]three[/bold]" in text


def test_status_of_the_cluster(made: Made) -> None:
    text = printed("status")
    for part in ("max-min-fairness", "emulated", "1 queued, 1 running, 4 succeeded", "healthy", "fairway.db"):
        assert part in text
    assert re.search(r"v100 \(emulated\) +2 +2 +0 +0", text)
    assert document("status") == STATUS


def test_status_of_a_job_is_its_whole_story(made: Made) -> None:
    text = printed("status", "job-1")
    for part in ("running", "75% of 1000", "600 steps in its last checkpoint", "1, 0 failed", "run: python train.py"):
        assert part in text
    assert re.search(r"1 +[-\d: ]+ +1m40s +preempted +75 +the round ended", text)
    assert re.search(r"9 +v100/0, v100/1", text)
    assert document("status", "job-1")["rates"][0]["steps_per_second"] == 6.25


def test_explain_says_why_who_when_and_what_would_help(made: Made) -> None:
    text = printed("explain", "job-2")
    for part in (
        "NotEnoughWorkers: 2 of v100 asked for, 1 is free",
        "ask for 1 worker instead of 2",
        "the engine was run ahead",
        "the accelerators are emulated",
    ):
        assert part in text
    assert re.search(r"job-1 +speech +· +2 +is owed more", text)
    assert re.search(r"v100 +1.5 +· +no", text)
    assert re.search(r"will start +in 1d12h .* between 1d00h and 3d00h from now", text)
    assert document("explain", "job-2") == EXPLANATION


def test_top_shows_the_cluster_on_one_screen(made: Made) -> None:
    text = printed("top", "--once")
    for part in ("EMULATED", "max-min-fairness", "round ends in 1d12h", "1 queued, 1 running, 4 succeeded"):
        assert part in text
    assert re.search(r"v100 \(emulated\) +2 of 2 +█+ +6.25 +job-1 \(name-1\)", text)
    assert re.search(r"vision +2 \(67%\) +█+░+ +1", text)
    assert re.search(r"job-2 .* queued", text)


def test_top_without_jobs_or_teams(made: Made) -> None:
    made.jobs = [running(1, team=None)]
    assert "team" not in printed("top", "--once").partition("job ")[0]
    made.jobs = []
    assert "no job waits or runs" in printed("top", "--once")


@pytest.mark.parametrize("command", [["ls", "--watch"], ["top", "--interval", "0.1"]])
def test_watching_goes_on_until_it_is_interrupted(
    made: Made, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:  # the server is away for a moment
            monkeypatch.setattr("fairway.client.patience.PATIENCE_SECONDS", 0.0)
            made.failures = [problem(503, "the store fails")]
        if len(slept) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr("fairway.cli.screens.screen.time.sleep", sleep)
    text = printed(*command)
    assert "job-1" in text
    assert len(slept) == 4


# logs, cancel, workers, drain, token


def test_logs_are_printed_as_they_are(made: Made) -> None:
    assert printed("logs", "job-1") == "one\ntwo\nthree\n"
    assert printed("logs", "job-1", "--tail", "1", "--rank", "0") == "three\n"
    made.jobs = [job(1, "succeeded")]
    assert printed("logs", "-f", "job-1") == "one\ntwo\nthree\n"


def test_all_jobs_that_can_be_are_cancelled(made: Made) -> None:
    assert printed("cancel", "job-1", "job-2") == "job-1 asked to stop (running)\njob-2 cancelled\n"
    result = run("cancel", "job-8", "job-2", "job-9")
    assert result.exit_code == 2
    assert result.stdout == "job-2 cancelled\n"
    assert [line[:22] for line in result.stderr.splitlines()] == ["fairway: no job 'job-8", "fairway: no job 'job-9"]
    assert document("cancel", "job-2") == {"jobs": [{"id": "job-2", "state": "cancelled"}]}


def test_jobs_are_cancelled_by_name_label_or_team(made: Made) -> None:
    assert printed("cancel", "name-1") == "job-1 asked to stop (running)\n"
    assert printed("cancel", "--label", "sweep=lr", "-l", "by=me", "--team", "vision").startswith("job-1 asked to stop")
    assert made.seen[-1].query_params.multi_items() == [("label", "sweep=lr"), ("label", "by=me"), ("team", "vision")]
    assert refused("cancel").startswith("no job given; name one by its id or name, or give --label or --team")
    assert refused("cancel", "job-1", "--team", "a") == "a job and --label or --team both given; choose one of them"
    for wrong in ("sweep", "=lr", "sweep="):
        assert refused("cancel", "--label", wrong) == f"--label: '{wrong}' given, expected NAME=VALUE, as in sweep=lr"
    assert refused("cancel", "-l", "a=1", "-l", "a=2").startswith("--label: two values given for 'a'")
    made.jobs = []
    assert refused("cancel", "--team", "vision").startswith("no such job waits or runs")


@pytest.mark.parametrize("command", ["logs", "explain", "status"])
def test_a_name_means_the_newest_job_that_has_it(made: Made, command: str) -> None:
    assert run(command, "name-2").stderr == ""
    assert made.seen[-1].url.path.startswith("/jobs/job-2")
    made.jobs = [job(9, name="twice"), job(4, name="twice"), job(1, name="job-9")]
    result = run(command, "twice")
    assert result.exit_code == 0
    assert result.stderr == "fairway: several jobs are called 'twice'; this is the newest, job-9\n"
    assert made.seen[-1].url.path.startswith("/jobs/job-9")
    assert run(command, "job-9").stderr == ""  # an id goes before the name of another job
    assert refused(command, "no-such") == "no job 'no-such', by id or by name; 'fairway ls --all' lists them"
    if command != "status":
        assert run(command, "--team", "vision").stderr.startswith("fairway: several jobs match; this is the newest")


def test_usage_is_a_table_csv_or_json(made: Made) -> None:
    text = printed("usage", "--by", "team,user", "--since", "30d")
    assert re.search(r"vision +alice +3 +0\.00 +2\.00 +\$1\.48", text)
    assert "\x1b[2J" not in text
    query = made.seen[-1].query_params
    assert query.getlist("by") == ["team", "user"]
    assert float(query["since"]) == pytest.approx(NOW - 30 * 86400, abs=3600)
    rows = list(csv.DictReader(io.StringIO(printed("usage", "--format", "csv"))))
    assert rows[0] == {
        "team": "vision", "user": "alice", "jobs": "3", "k80_seconds": "0.0", "v100_seconds": "7200.0",
        "cost_dollars": "1.48",
    }  # fmt: skip
    assert rows[1]["cost_dollars"] == ""
    assert json.loads(printed("usage", "--format", "json")) == document("usage") == USAGE
    seen = len(made.seen)
    assert refused("usage", "--by", "colour") == "--by: 'colour' given, expected team, user or team,user"
    assert refused("usage", "--since", "soon").startswith("--since: ")
    assert refused("usage", "--format", "csv", "--json", "-").startswith("--format and --json both given")
    assert len(made.seen) == seen


def test_workers_and_draining_them(made: Made) -> None:
    text = printed("workers")
    assert re.search(r"v100/0 +busy +job-1 +9 +emulated +local", text)
    assert document("workers")["workers"] == WORKERS
    assert re.search(r"k80/0 +drained", printed("drain", "k80"))
    assert re.search(r"k80/0 +free", printed("drain", "k80/0", "--undo"))
    assert [json.loads(body)["on"] for body in made.bodies] == [True, False]
    assert refused("drain", "tpu") == "worker: no 'tpu' in this cluster"


def test_a_token_is_printed_alone_and_once(made: Made, tmp_path: Path) -> None:
    result = run("token", "create", "--role", "member", "--team", "vision", "--name", "alice")
    assert (result.exit_code, result.stdout) == (0, "fairway_new\n")
    assert result.stderr == "token 1f0c, member of team vision; it is not shown again\n"
    assert json.loads(made.bodies[0]) == {"role": "member", "team": "vision", "name": "alice"}
    assert "alice" in printed("token", "ls")
    assert "fairway_new" not in printed("token", "ls")
    assert printed("token", "revoke", "1f0c") == "1f0c revoked\n"


# what goes wrong


def test_nobody_there_is_one_line_at_once(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = f"http://127.0.0.1:{probe.getsockname()[1]}"
    monkeypatch.setattr("fairway.client.patience.PATIENCE_SECONDS", 0.0)
    for command in (["ls"], ["status"], ["submit", "--", "true"], ["logs", "job-1"], ["top"]):
        name, *rest = command
        said = refused(name, "--address", free, *rest, status=1)
        assert said == (
            f"no Fairway answers at {free} (connection refused); start one with 'fairway up' or give --address"
        )


def test_a_wrong_token_is_one_line(made: Made) -> None:
    assert refused("ls", "--token", "fairway_wrong") == "the token is not known here"


def test_no_token_is_one_line_that_says_where_one_could_come_from(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIRWAY_TOKEN")
    assert "give --token, or set FAIRWAY_TOKEN" in refused("workers")


@pytest.mark.parametrize("command", ["status", "cancel"])
def test_an_unknown_job_is_one_line(made: Made, command: str) -> None:
    assert refused(command, "job-99").startswith("no job 'job-99'")


def test_the_address_and_token_are_found_in_the_directory(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIRWAY_ADDRESS")
    monkeypatch.delenv("FAIRWAY_TOKEN")
    home = Path("home")
    home.mkdir()
    (home / "address").write_text(f"{made.address}\n")
    (home / "token").write_text(f"{TOKEN}\n")
    (home / "token").chmod(stat.S_IRUSR)
    monkeypatch.setenv("FAIRWAY_HOME", "home")
    assert "job-1" in printed("ls")


def test_the_commands_do_not_wait_for_numerical_libraries(made: Made) -> None:
    heavy = {"numpy", "scipy", "numba", "highspy", "rustworkx", "sqlalchemy", "fastapi"}
    script = f"""
import sys
from typer.testing import CliRunner
from fairway.cli.main import app
for command in (["ls"], ["submit", "--", "true"], ["logs", "job-1"], ["explain", "job-2"], ["top", "--once"]):
    assert CliRunner().invoke(app, command).exit_code == 0, command
print({heavy} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
