"""`fairway simulate training`: what is printed where, what is refused before anything runs, and what a run tells."""

from __future__ import annotations

import csv
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from fairway.cli.main import app
from fairway.profiles.catalog import PRICES
from tests.dashboard.inside import inside
from tests.figures import GAVEL_CLUSTER_RATES, gavel_trace

EXAMPLES = Path(__file__).parents[3] / "examples"
JOBS = str(EXAMPLES / "jobs.tsv")
CLUSTER = "v100=8,p100=8,k80=16"
HERE = ("--processes", "1")
COMMAND = [sys.executable, "-m", "fairway.cli.main", "simulate", "training"]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["simulate", "training", *arguments])


def answer(*arguments: str, cluster: str = CLUSTER, policy: str = "max-min-fairness") -> dict[str, Any]:
    result = run("--cluster", cluster, "-p", policy, "--json", "-", *HERE, *arguments)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout, parse_constant=pytest.fail)


def refused(*arguments: str, cluster: str = CLUSTER, policy: str = "fifo") -> str:
    result = run("--cluster", cluster, "--policy", policy, *arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("fairway: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("fairway: ").rstrip("\n")


@pytest.fixture
def no_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that is refused may be run first."""

    def started(*_: object, **__: object) -> None:
        raise AssertionError("a run was started")

    monkeypatch.setattr("fairway.sim.comparison.compare", started)


# What is refused, before anything runs.


@pytest.mark.usefixtures("no_runs")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "neither --trace nor --generate given"),
        (("--trace", JOBS, "--generate", "jobs=5,rate=4"), "--trace and --generate both given; choose one"),
        (("--trace", "absent.tsv"), "absent.tsv: cannot be read: No such file"),
        (("--trace", JOBS, "--format", "gavle"), "trace format 'gavle' is not known, did you mean 'gavel'"),
        (("--trace", JOBS, "--format", "gavel", "--columns", "arrival=t"), "--columns: given with --format gavel"),
        (
            ("--trace", JOBS, "--columns", "arival=t"),
            "trace format 'csv' has no option 'arival', did you mean 'arrival'",
        ),
        (("--trace", JOBS, "--speed-up", "0"), "--speed-up: 0 given, expected a number above 0"),
        (("--trace", JOBS, "--fraction", "1.5"), "--fraction: 1.5 given, expected a number above 0 and up to 1"),
        (("--trace", JOBS, "--replicate", "0"), "--replicate: 0 given, expected a whole number of at least 1"),
        (
            ("--generate", "jobs=5,rate=4", "--speed-up", "2"),
            "--speed-up: given with --generate, whose load is its rate",
        ),
        (("--generate", "jobs=5,rate=4", "--generate", "jobs=5,rate=8"), "--generate: given 2 times; give it once"),
        (
            ("--generate", "jobs=5,rate=inf"),
            "generate: rate=inf given, expected jobs per hour above 0, from 1e-09 to 1e",
        ),
        (("--generate", "jobs=5,rate=1e300"), "generate: rate=1e300 given, expected jobs per hour above 0, from 1e-09"),
        (("--generate", "jobs=5,rate=4", "--format", "gavel"), "--format: given with --generate"),
        (("--generate", "jobs=5,rat=4"), "generate: 'rat=4' given, expected one of .*did you mean 'rate'"),
        (("--generate", "rate=4"), "--generate: no jobs=COUNT given, so that it never ends"),
        (("--generate", "jobs=5,rate=4,reference=tpu"), ".*'tpu'"),
        (("--trace", JOBS, "--profiles", "absent.csv"), "absent.csv: cannot be read"),
        (("--trace", JOBS, "--compat", "shockwave"), "--compat: 'shockwave' given, expected 'gavel'"),
        (("--trace", JOBS, "--round-seconds", "-360"), "--round-seconds: -360 given, expected seconds above 0"),
        (("--trace", JOBS, "--round-seconds", "0"), "--round-seconds: 0 given"),
        (("--trace", JOBS, "--round-seconds", "inf"), "--round-seconds: inf given"),
        (("--trace", JOBS, "--restart-seconds", "-1"), "--restart-seconds: -1 given, expected seconds of at least 0"),
        (("--trace", JOBS, "--window", "30:50"), "--window: 30:50 given, but .*jobs.tsv has 40 jobs.*end at 40"),
        (("--generate", "jobs=9,rate=4", "--window", "0:10"), "--window: 0:10 given, but --generate has 9 jobs"),
        (("--trace", JOBS, "--window", "5:5"), "--window: '5:5' given, expected FIRST:END"),
        (("--trace", JOBS, "--window", "5-9"), "--window: '5-9' given, expected FIRST:END"),
        (("--trace", JOBS, "--seed", "-1"), "--seed: -1 given"),
        (("--trace", JOBS, "--processes", "0"), "--processes: 0 given"),
        (("--trace", JOBS, "--teams", "red"), "--teams: 'red' given, expected NAME=WEIGHT"),
        (("--trace", JOBS, "--teams", "red=0"), "--teams: 'red=0' given"),
        (("--trace", JOBS, "--teams", "red=1,red=2"), "--teams: 'red' given twice"),
        (("--trace", JOBS, "--teams", "red=1:lifo"), "--teams: 'red=1:lifo' given"),
        (("--trace", JOBS, "--json", "no/such/dir/a.json"), "no/such/dir/a.json: cannot be written: No such file"),
        (("--trace", JOBS, "--report", "no/such/dir/a.html"), "no/such/dir/a.html: cannot be written: No such file"),
        (("--trace", JOBS, "--report", str(EXAMPLES)), ".*examples: cannot be written: Is a directory"),
        (("--trace", JOBS, "--report", "-"), "--report: '-' given, expected the name of a file"),
        (("--trace", JOBS, "--json", ""), "--json: nothing given"),
        (("--trace", JOBS, "--policy", "max-min"), "policy 'max-min' is not known.*did you mean 'max-min-fairness'"),
        (("--trace", JOBS, "--policy", "fifo:fast"), "policy 'fifo' has no option 'fast'"),
    ],
)
def test_options_that_cannot_be_used_are_one_line_and_status_2(arguments: tuple[str, ...], message: str) -> None:
    line = refused(*arguments)
    with pytest.raises(ValueError, match=f"^{message}"):
        raise ValueError(line)


@pytest.mark.usefixtures("no_runs")
@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ("v100=0", "cluster: 0 workers in total"),
        ("v100", "cluster: 'v100' given, expected TYPE=COUNT"),
        ("absent.yaml", "absent.yaml: cannot be read"),
        ("v100=4,h100=4", "job '0': needs a profile, but the built-in catalog knows no accelerator type 'h100'"),
    ],
)
def test_clusters_that_cannot_be_used_are_one_line_and_status_2(cluster: str, message: str) -> None:
    assert message in refused("--trace", JOBS, cluster=cluster)


@pytest.mark.usefixtures("no_runs")
def test_traces_that_cannot_be_used_are_one_line_and_status_2(tmp_path: Path) -> None:
    trace = tmp_path / "bad.tsv"
    lines = Path(JOBS).read_text().splitlines()

    trace.write_text("\n".join([lines[1], lines[0]]))
    assert f"{trace}, line 2: arrival time goes back from 2838.025 to 0.0 s" in refused("--trace", str(trace))
    trace.write_text("\n".join(line.rpartition("\t")[0] for line in lines))
    assert f"{trace}, line 1: 9 columns given, expected 7, 10, 11 or 12" in refused("--trace", str(trace))
    trace.write_text(lines[0].replace("Recommendation", "Recomendation"))
    assert "job '0': no profile of job type 'Recomendation (batch size 8192)' in the built-in catalog; the nearest" in (
        refused("--trace", str(trace))
    )
    trace.write_text(lines[2].replace("\t4\t", "\t3\t"))
    assert "job '0': no profile of 'ResNet-50 (batch size 64)' at scale factor 3" in refused("--trace", str(trace))
    trace.write_text("name,time,application,num_replicas,batch_size\na,0,A3C,1,\n")
    assert f"{trace}: job 'a': neither steps nor a duration given" in refused("--trace", str(trace))
    trace.write_text("name,time,application,num_replicas\na,0,A3C,1\n")
    assert f"{trace}, line 1: no column batch_size in the header" in refused("--trace", str(trace))
    trace.write_text("")
    assert f"{trace}: empty, expected a trace" in refused("--trace", str(trace))
    assert list(tmp_path.iterdir()) == [trace]


@pytest.mark.usefixtures("no_runs")
def test_results_that_would_overwrite_each_other_are_refused(tmp_path: Path) -> None:
    same = str(tmp_path / "out")
    assert "name two files" in refused("--trace", JOBS, "--json", same, "--report", same)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("no_runs")
def test_what_was_there_stays_when_the_input_is_refused(tmp_path: Path) -> None:
    old = tmp_path / "old.json"
    old.write_text("old")
    refused("--trace", "absent.tsv", "--json", str(old), "--report", str(tmp_path / "new.html"))
    assert old.read_text() == "old"
    assert list(tmp_path.iterdir()) == [old]


def test_wrong_usage_is_status_2() -> None:
    for arguments in ((), ("--cluster", CLUSTER), ("--trace", JOBS, "--policy", "fifo"), ("--x",)):
        assert run(*arguments).exit_code == 2


def test_help_has_examples() -> None:
    help_ = run("--help").stdout
    assert "fairway simulate training --trace jobs.tsv --cluster v100=8,k80=16 -p fifo" in help_
    assert "training" in CliRunner().invoke(app, ["simulate", "--help"]).stdout


# What a run tells.


def test_the_answer_has_the_fields_of_the_contract() -> None:
    (only,) = answer("--generate", "jobs=20,rate=6,seed=5")["runs"]
    contract = (
        "policy jobs completed jct_seconds makespan_seconds utilization rounds solves preemptions cost_dollars rho "
        "wall_seconds per_job"
    )
    assert set(contract.split()) <= set(only)
    assert only["policy"] == "max-min-fairness"
    assert only["jobs"] == only["completed"] == 20
    assert {"mean", "p50", "p95", "p99", "max"} <= set(only["jct_seconds"])
    assert {"mean", "max"} <= set(only["rho"])
    assert 0 < only["utilization"] <= 1
    assert only["makespan_seconds"] >= only["jct_seconds"]["max"]
    assert [job["id"] for job in only["per_job"]] == [str(number) for number in range(20)]
    assert all(job["jct"] == pytest.approx(job["finish"] - job["arrival"]) for job in only["per_job"])
    times = [job["jct"] for job in only["per_job"]]
    assert only["jct_seconds"]["mean"] == pytest.approx(sum(times) / 20)


def test_the_settings_repeat_the_run() -> None:
    (only,) = answer("--generate", "jobs=10,rate=6", "--seed", "4", "--round-seconds", "120")["runs"]
    settings = only["settings"]
    assert settings["generate"] == "jobs=10,rate=6"
    assert settings["seed"] == 4
    assert settings["round-seconds"] == 120
    assert settings["cluster"] == CLUSTER
    assert settings["profiles"] == "builtin"
    assert settings["prices"] == PRICES
    (same,) = answer("--generate", "jobs=10,rate=6,seed=4", "--round-seconds", "120")["runs"]
    assert same["per_job"] == only["per_job"]
    assert same["settings"]["seed"] == 4


def test_policies_and_seeds_are_run_in_the_order_asked_for() -> None:
    result = answer("-p", "fifo", "--seed", "2", "--seed", "1", "--generate", "jobs=8,rate=6")
    assert [(one["policy"], one["seed"]) for one in result["runs"]] == [
        ("max-min-fairness", 2),
        ("fifo", 2),
        ("max-min-fairness", 1),
        ("fifo", 1),
    ]
    arrivals = [[job["arrival"] for job in one["per_job"]] for one in result["runs"]]
    assert arrivals[0] == arrivals[1] != arrivals[2] == arrivals[3]


def test_a_seed_in_the_text_goes_before_the_option() -> None:
    result = answer("--seed", "2", "--seed", "1", "--generate", "jobs=8,rate=6,seed=0")
    arrivals = [[job["arrival"] for job in one["per_job"]] for one in result["runs"]]
    assert arrivals[0] == arrivals[1]
    assert [one["seed"] for one in result["runs"]] == [2, 1]


def test_only_the_jobs_of_a_window_count_and_a_stream_may_have_no_end() -> None:
    (only,) = answer("--generate", "rate=2", "--window", "5:15", cluster="v100=24,p100=24,k80=24")["runs"]
    assert only["jobs"] == only["completed"] == 10
    assert [job["id"] for job in only["per_job"]] == [str(number) for number in range(5, 15)]


def test_the_table_is_printed_and_files_are_written(tmp_path: Path) -> None:
    to = tmp_path / "runs.json"
    result = run(
        "--trace", JOBS, "--cluster", CLUSTER, "-p", "fifo", "-p", "max-min-fairness", *HERE, "--json", str(to)
    )
    assert result.exit_code == 0, result.stderr
    assert "fifo" in result.stdout
    assert "max-min-fairness" in result.stdout
    assert [one["policy"] for one in json.loads(to.read_text())["runs"]] == ["fifo", "max-min-fairness"]
    assert result.stderr == f"{JOBS}: 40 jobs arriving over 19.7 h (gavel)\n"


def test_the_report_names_the_command_that_repeats_it(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    result = run(
        "--generate", "jobs=10,rate=6", "--cluster", CLUSTER, "-p", "fifo", "--report", str(page), "--json", "-"
    )
    assert result.exit_code == 0, result.stderr
    saved = inside(page.read_text())
    assert saved["command"].startswith("fairway simulate training --generate jobs=10,rate=6")
    summary = json.loads(result.stdout)["runs"][0]
    del summary["per_job"]
    assert saved["runs"][0]["summary"] == summary


def test_a_run_that_was_simulated_and_saved_decides_the_same_again(tmp_path: Path) -> None:
    saved = tmp_path / "run.fairway"
    trace = ("--generate", "jobs=12,rate=6", "--cluster", CLUSTER, "-p", "max-min-fairness", "-p", "allox")
    assert run(*trace, "--save", str(saved), "--quiet").exit_code == 0
    again = CliRunner().invoke(app, ["replay", str(saved), "--json", "-"])
    assert again.exit_code == 0, again.output
    decisions = json.loads(again.stdout)["decisions"]
    assert len(decisions) > 12
    assert {decision["policy"] for decision in decisions} == {"max-min-fairness", "allox"}


def test_a_cluster_file_gives_prices_and_nodes() -> None:
    (only,) = answer("--trace", JOBS, cluster=str(EXAMPLES / "cluster.yaml"))["runs"]
    assert only["completed"] == 40
    assert only["cost_dollars"] > 0


def test_rows_that_cannot_be_read_are_told_and_counted(tmp_path: Path) -> None:
    trace = tmp_path / "jobs.tsv"
    trace.write_text(Path(JOBS).read_text().replace("\t84055\t", "\tmany\t"))
    result = run("--trace", str(trace), "--cluster", CLUSTER, "-p", "fifo", "--json", "-")
    assert result.exit_code == 0, result.stderr
    assert "39 jobs arriving" in result.stderr
    assert "1 row cannot be read: 1 × total_steps: 'many' given, expected a number (first at line 1)" in result.stderr
    assert json.loads(result.stdout)["runs"][0]["skipped_rows"] == 1
    quiet = run("--trace", str(trace), "--cluster", CLUSTER, "-p", "fifo", "--json", "-", "--quiet")
    assert quiet.exit_code == 0
    assert quiet.stderr == ""


def test_a_table_of_jobs_is_written_for_all_runs(tmp_path: Path) -> None:
    table = tmp_path / "jobs.csv"
    result = run(
        "--trace", JOBS, "--cluster", CLUSTER, "-p", "fifo", "-p", "isolated", "--quiet", "--jobs", str(table),
        "--fraction", "0.5",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert [row["policy"] for row in rows] == ["fifo"] * 20 + ["isolated"] * 20
    assert all(float(row["wait"]) + float(row["run"]) == pytest.approx(float(row["jct"])) for row in rows)
    assert "--jobs: 'jobs.xls' given, expected the name of a .csv or .parquet file" in refused(
        "--trace", JOBS, "--jobs", "jobs.xls"
    )


def test_jobs_that_can_never_run_are_named_and_counted_and_the_run_ends() -> None:
    result = run("--trace", JOBS, "--cluster", "v100=2,k80=2", "-p", "fifo", "-p", "makespan", *HERE, "--json", "-")
    assert result.exit_code == 0, result.stderr
    _, warning = result.stderr.splitlines()
    assert warning.startswith("fairway: warning: 7 jobs can never run on this cluster: '2', ")
    assert warning.endswith(" and 2 more")
    for one in json.loads(result.stdout)["runs"]:
        assert one["completed"] == 33
        assert len(one["unrunnable"]) == 7


def test_jobs_without_teams_are_dealt_to_those_given() -> None:
    result = run(
        *("--generate", "jobs=9,rate=6", "--cluster", CLUSTER, "-p", "hierarchical"),
        *("--teams", "red=2, blue=1:fifo", "--json", "-"),
    )
    assert result.exit_code == 0, result.stderr
    assert result.stderr == "teams: the jobs have none of their own, and are dealt in turn to red, blue\n"
    (only,) = json.loads(result.stdout)["runs"]
    assert {name: team["jobs"] for name, team in only["teams"].items()} == {"red": 5, "blue": 4}
    assert only["settings"]["entities"] == {
        "red": {"weight": 2.0, "policy": "fairness"},
        "blue": {"weight": 1.0, "policy": "fifo"},
    }


def test_the_teams_of_a_trace_keep_their_jobs(tmp_path: Path) -> None:
    trace = tmp_path / "log.csv"
    trace.write_text(
        "job_id,user,vc,gpu_num,state,submit_time,duration\n"
        "a,u,red,1,COMPLETED,2020-04-01 00:00:00,5000\n"
        "b,u,blue,2,COMPLETED,2020-04-01 00:10:00,4000\n"
        "c,u,red,1,COMPLETED,2020-04-01 00:20:00,3000\n"
    )
    arguments = ("--trace", str(trace), "--teams")
    (only,) = answer(*arguments, "red=3", cluster="gpu=2", policy="hierarchical")["runs"]
    assert {name: team["jobs"] for name, team in only["teams"].items()} == {"red": 2, "blue": 1}
    assert only["settings"]["entities"]["red"]["weight"] == 3
    assert only["settings"]["entities"]["blue"]["weight"] == 1
    assert "--teams: 'rod' owns no job of" in refused(*arguments, "rod=3", cluster="gpu=2")
    assert "its teams are red, blue" in refused(*arguments, "x=3", cluster="gpu=2")


def test_profiles_of_your_own_bring_accelerators_of_your_own(tmp_path: Path) -> None:
    profiles = tmp_path / "rates.csv"
    profiles.write_text("job_type,scale_factor,accelerator,steps_per_second\nmine,1,h100,10\nmine,1,l4,2\n")
    trace = tmp_path / "jobs.tsv"
    trace.write_text("".join(f"mine\tc\t.\t-n\t0\t36000\t1\t1\t-1\t{60 * job}\n" for job in range(4)))
    (only,) = answer("--trace", str(trace), "--profiles", str(profiles), cluster="h100=2,l4=1")["runs"]
    assert only["completed"] == 4
    assert only["cost_dollars"] is None
    assert "no profile of job type 'mine' in the built-in catalog" in refused("--trace", str(trace), cluster="v100=1")


# What only a real process shows.


def test_a_real_process_runs_several_policies_in_processes_of_its_own() -> None:
    command = ["--generate", "jobs=10,rate=6", "--cluster", CLUSTER, "-p", "fifo", "-p", "makespan", "--json", "-"]
    done = subprocess.run([*COMMAND, *command], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert [one["policy"] for one in json.loads(done.stdout)["runs"]] == ["fifo", "makespan"]


def test_the_command_in_the_report_is_the_one_that_was_given() -> None:
    from fairway.cli.simulate.training_options import TrainingOptionsGiven  # noqa: PLC0415

    asked = TrainingOptionsGiven(
        "v100=2", ("fifo", "makespan:agnostic"), trace="my jobs.tsv", seeds=(1, 2), window="0:5"
    )
    assert shlex.split(asked.command()) == shlex.split(
        "fairway simulate training --trace 'my jobs.tsv' --profiles builtin --cluster v100=2 --round-seconds 360 "
        "--restart-seconds 0 --window 0:5 --policy fifo --policy makespan:agnostic --seed 1 --seed 2"
    )


@pytest.mark.skipif(os.name != "posix", reason="pipes as POSIX has them")
def test_a_trace_may_come_through_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "jobs.tsv"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(Path(JOBS).read_bytes(),))
    writer.start()
    runs = answer("--trace", str(pipe), "-p", "fifo")["runs"]
    writer.join()
    assert [one["completed"] for one in runs] == [40, 40]


@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
@pytest.mark.parametrize("policies", [("fifo",), ("fifo", "makespan")])
def test_an_interrupt_is_quiet_and_leaves_nothing(tmp_path: Path, policies: tuple[str, ...]) -> None:
    pipe = tmp_path / "jobs.tsv"
    os.mkfifo(pipe)
    asked = [word for policy in policies for word in ("-p", policy)]
    outputs = ["--json", str(tmp_path / "runs.json"), "--report", str(tmp_path / "report.html")]
    command = [*COMMAND, "--trace", str(pipe), "--cluster", CLUSTER, *asked, *outputs]
    with (
        subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as running,
        pipe.open("w"),  # opens once it is being read
    ):
        assert running.stderr is not None
        os.killpg(running.pid, signal.SIGINT)
        assert running.stderr.read() == b""
    assert running.returncode == 130
    assert list(tmp_path.iterdir()) == [pipe]


# The published traces.


@pytest.mark.parametrize("name", ["small_test", "artifact_evaluation", "max_min_fairness"])
def test_the_published_traces_run_to_their_end(tmp_path: Path, name: str) -> None:
    trace = tmp_path / f"{name}.trace"
    trace.write_text(gavel_trace(name))
    (only,) = answer(
        *("--trace", str(trace)),
        *("--profiles", str(GAVEL_CLUSTER_RATES)),
        cluster="v100=8,p100=16,k80=24",
    )["runs"]
    assert only["completed"] == only["jobs"] > 0
    assert only["unfinished"] == 0
