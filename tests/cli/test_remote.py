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
from pathlib import Path

import pytest

from tests.cli.remote_commands import document, printed, refused, run
from tests.client.server import EXPLANATION, NOW, STATUS, TOKEN, USAGE, WORKERS, Made, job, problem, running

COMMANDS = ["submit", "ls", "status", "logs", "cancel", "explain", "top", "workers", "drain", "usage", "up"]


@pytest.mark.parametrize("command", [*COMMANDS, "token", "token create", "token ls", "token revoke"])
def test_every_command_has_help_with_examples(command: str) -> None:
    text = printed(*command.split(), "--help")
    assert "Usage: fairway" in text
    if command != "token":
        assert "Examples" in text
        assert re.search(rf"fairway {command} |fairway {command}\n", text)


# submit


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
    assert "parts are counted, but not enforced: no control group" in printed("workers")
    assert "not enforced" not in json.dumps(document("workers")), "what scripts read has it in the status alone"
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
