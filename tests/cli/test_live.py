"""The whole system as people use it: `fairway up` with emulated accelerators, real jobs, and every command."""

from __future__ import annotations

import json
import re
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairway.store import counters, open_store
from tests.cli.installation import PATIENCE, Installation, until

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc, as on Linux")

COUNTING = """
import sys, time
import fairway

for step in fairway.leased(range(int(sys.argv[1])), checkpoint=lambda step: step):
    print("step", step, flush=True)
    time.sleep(float(sys.argv[2]))
print("done", flush=True)
"""


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    directory = tmp_path_factory.mktemp("live")
    with Installation(directory, "--emulate", "v100=1,k80=1", "--port", "0", "--round", "2s") as installation:
        installation.up()
        yield installation
        printed = installation.end(signal.SIGINT)
        assert "accelerators: 1 k80, 1 v100 (emulated)" in printed
        assert printed.rstrip().endswith("stopped")
        assert not (installation.home / "address").exists()
        assert installation.processes() == []


@pytest.fixture
def counting(tmp_path: Path) -> list[str]:
    (tmp_path / "counting.py").write_text(COUNTING)
    return [sys.executable, str(tmp_path / "counting.py")]


def submitted(live: Installation, *arguments: str) -> str:
    return live.printed("submit", "--quiet", *arguments).strip()


def test_the_token_is_for_its_owner_only(live: Installation) -> None:
    assert (live.home / "token").stat().st_mode & 0o777 == 0o600


def test_a_job_from_yaml_runs_and_its_log_can_be_followed(
    live: Installation, tmp_path: Path, counting: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.yaml").write_text(
        f"name: counting\nrun: {json.dumps([counting[0], 'counting.py', '20', '0.01'])}\nsteps: 20\n"
        "resources:\n  accelerators: [V100, K80]\n"
    )
    done = live.in_a_process("submit", "job.yaml", "--follow")
    assert (done.returncode, done.stderr) == (0, "")
    job = done.stdout.split()[0]
    assert [line for line in done.stdout.splitlines() if line.startswith("step")] == [f"step {n}" for n in range(20)]
    assert live.printed("logs", job, "--tail", "1") == "done\n"
    story = live.document("status", job)
    assert (story["state"], story["exit_code"], story["steps_left"]) == ("succeeded", 0, 0)
    assert story["spec"]["workdir"] == str(tmp_path)
    text = live.printed("status", job)
    assert "counting succeeded" in text
    assert re.search(r"(v100|k80)/0", text)
    assert job in live.printed("ls", "--all")
    assert live.document("explain", job)["code"] == "Succeeded"


def test_a_plain_command_that_fails_is_told_with_its_code(live: Installation) -> None:
    done = live.in_a_process("submit", "--follow", "--retries", "0", "--", "echo here it is && exit 7")
    assert done.returncode == 1
    assert "here it is" in done.stdout
    assert re.fullmatch(r"fairway: job-\d+ failed: .*7.*\n", done.stderr)


def test_a_queue_is_seen_explained_and_cancelled(live: Installation) -> None:
    hold = ["--no-preempt", "--", "sleep 600"]
    holders = [submitted(live, "--accelerators", name, *hold) for name in ("v100", "k80")]
    until(lambda: all(live.state_of(job) == "running" for job in holders), "for both to run")
    waiting = submitted(live, "--team", "speech", "--accelerators", "v100", "--", "true")

    listed = {job["id"]: job for job in live.document("ls")["jobs"]}
    assert [listed[job]["accelerator"] for job in holders] == ["v100", "k80"]
    assert listed[waiting]["state"] == "queued"
    assert "v100 (emulated)" in live.printed("ls")
    states = {f"{one['accelerator']}/{one['number']}": one["state"] for one in live.document("workers")["workers"]}
    assert states == {"v100/0": "busy", "k80/0": "busy"}
    assert live.document("status")["jobs"]["running"] == 2
    frame = live.printed("top", "--once")
    assert "EMULATED" in frame
    assert re.search(r"v100 \(emulated\) +1 of 1", frame)
    assert waiting in frame

    told = live.document("explain", waiting)
    assert told["state"] == "queued"
    assert re.fullmatch(r"[A-Z][A-Za-z]+", told["code"])
    assert holders[0] in [one["job"] for one in told["ahead"]]
    assert told["emulated"] is True
    panel = live.printed("explain", waiting)
    assert told["code"] in panel
    assert holders[0] in panel

    tried = live.document("submit", "--dry-run", "--accelerators", "k80", "--", "true")
    assert (tried["job"]["id"], tried["emulated"]) == (None, True)

    live.printed("cancel", waiting, *holders)
    until(lambda: all(live.state_of(job) == "cancelled" for job in [waiting, *holders]), "for all to be cancelled")
    assert live.document("ls")["jobs"] == []


def test_a_pipeline_with_an_array_runs_in_order_and_is_named(live: Installation, tmp_path: Path) -> None:
    go = tmp_path / "go"
    (tmp_path / "jobs.yaml").write_text(
        f"name: prepare\nrun: while [ ! -e {go} ]; do sleep 0.1; done\n---\n"
        "name: sweep\nrun: echo index $FAIRWAY_ARRAY_INDEX lr $LR\nmatrix: {LR: [0.1, 0.2]}\nafterok: prepare\n---\n"
        "name: never\nrun: echo never\nafterok: [sweep, prepare]\nlabels: {kind: late}\n"
    )
    names = live.printed("submit", str(tmp_path / "jobs.yaml"), "--team", "speech").split("\n")
    assert [name.split()[-1] for name in names[:-1]] == ["(prepare)", "(sweep-0)", "(sweep-1)", "(never)"]
    until(lambda: live.document("explain", "never")["code"] == "WaitingForJobs", "for the job to be seen")
    assert live.document("cancel", "--label", "kind=late")["jobs"][0]["state"] == "cancelled"
    go.touch()
    until(lambda: live.state_of("sweep-1") == live.state_of("sweep-0") == "succeeded", "for the array to end")
    assert live.printed("logs", "sweep-1", "--tail", "1") == "index 1 lr 0.2\n"
    prepared, first = live.document("status", "prepare"), live.document("status", "sweep-0")
    assert first["started_at"] >= prepared["ended_at"]
    assert [job["name"] for job in live.document("ls", "--all", "--name", "sweep")["jobs"]] == ["sweep-1", "sweep-0"]
    rows = live.document("usage", "--by", "team,user")["rows"]
    assert next(row["jobs"] for row in rows if row["team"] == "speech") >= 3
    assert "tells no such host" in live.refused("submit", "--notify", "http://169.254.169.254/latest", "--", "true")


def test_a_drained_worker_gets_no_jobs(live: Installation) -> None:
    (drained,) = live.document("drain", "v100")["workers"]
    assert (drained["accelerator"], drained["state"]) == ("v100", "drained")
    waiting = submitted(live, "--accelerators", "v100", "--", "true")
    other = submitted(live, "--", "true")
    until(lambda: live.state_of(other) == "succeeded", "for a job on the other worker")
    assert live.state_of(waiting) == "queued"
    assert live.document("explain", waiting)["code"] == "WorkersDrained"
    assert re.search(r"v100/0 +free", live.printed("drain", "v100/0", "--undo"))
    until(lambda: live.state_of(waiting) == "succeeded", "for the worker to be used again")


def test_tokens_say_who_may_do_what(live: Installation) -> None:
    member = live.printed("token", "create", "--team", "vision", "--name", "ann").strip()
    reader = live.printed("token", "create", "--role", "reader").strip()
    own = live.printed("submit", "-q", "--", "true", FAIRWAY_TOKEN=member).strip()
    theirs = submitted(live, "--team", "speech", "--", "true")
    assert live.document("status", own)["team"] == "vision"
    assert live.refused("status", theirs, FAIRWAY_TOKEN=member) == _no_job(theirs)
    assert "speech" in live.refused("submit", "--team", "speech", "--", "true", FAIRWAY_TOKEN=member)
    assert "changes nothing" in live.refused("cancel", own, FAIRWAY_TOKEN=reader)
    assert own in live.printed("ls", "--all", FAIRWAY_TOKEN=reader)
    assert "only an admin" in live.refused("token", "ls", FAIRWAY_TOKEN=reader)
    with live.client() as client:
        (ann,) = [token.id for token in client.tokens() if token.name == "ann"]
    live.printed("token", "revoke", ann)
    until(lambda: live.run("ls", FAIRWAY_TOKEN=member).exit_code == 2, "for the token to be worth nothing")


def test_what_is_wrong_is_one_line(live: Installation, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("run: [python\n")
    file = str(tmp_path / "job.yaml")
    assert live.refused("submit", file).startswith(f"fairway: {file}: not valid YAML: ")
    (tmp_path / "job.yaml").write_text("run: 'true'\nresources: {accelerators: h100}\n")
    assert live.refused("submit", file).startswith(f"fairway: {file}: resources.accelerators: 'h100' is not an")
    assert "asked for, but this cluster has at most 1" in live.refused(
        "submit", "--accelerators", "v100:2", "--", "true"
    )
    assert "no-such-command" in live.refused("submit", "--", "no-such-command")
    assert "not known here" in live.refused("ls", "--token", "fairway_wrong")
    assert live.refused("logs", "job-999") == _no_job("job-999")
    assert live.refused("explain", "job-999") == _no_job("job-999")


def _no_job(name: str) -> str:
    return f"fairway: no job '{name}', by id or by name; 'fairway ls --all' lists them"


def test_the_python_client_does_the_same(live: Installation) -> None:
    with live.client() as client:
        job = client.submit({"run": "echo hello", "name": "greeting"})
        ended = client.wait(job, timeout=60)
        assert (ended.state, ended.name) == ("succeeded", "greeting")
        assert "hello\n" in "".join(client.logs(job, follow=True))
        last = list(client.events(job))[-1]
        assert last.job is not None
        assert last.job.state == "succeeded"
        assert "fairway_" in client.metrics()
        first = client.submit("run: echo hello\n", idempotency_key="k")
        assert client.submit("run: echo hello\n", idempotency_key="k").id == first.id
        assert any(entry.kind == "decision" for entry in client.journal())


def test_a_killed_controller_is_not_noticed(tmp_path: Path, counting: list[str]) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    with Installation(tmp_path, "--emulate", "v100=1", "--port", port, "--round", "2s") as live:
        live.up()
        job = submitted(live, "--", *counting, "100", "0.05")
        with live.client() as client:
            pieces: list[str] = []
            reading = threading.Thread(target=lambda: pieces.extend(client.logs(job, follow=True)))
            reading.start()
            until(lambda: "step 10\n" in "".join(pieces), "for the job to be under way")
            live.end(signal.SIGKILL)
            (live.home / "address").unlink()
            starting = threading.Thread(target=live.up)
            starting.start()
            assert client.job(job).state in {"running", "succeeded"}  # asked while nobody answers
            starting.join()
            assert client.wait(job, timeout=60).state == "succeeded"
            reading.join(60)
        lines = [line for line in "".join(pieces).splitlines() if line.startswith(("step", "done"))]
        assert lines == [*(f"step {number}" for number in range(100)), "done"]
        assert live.document("status", job)["attempt_count"] == 1

        running = submitted(live, "--", *counting, "60", "0.05")
        until(lambda: "step 3\n" in live.printed("logs", running), "for the next job to be under way")
        assert "jobs run on" in live.end(signal.SIGTERM)
        live.up()
        assert "stopping" in live.end(signal.SIGINT)
        assert live.processes() == []
        live.up()
        until(lambda: live.state_of(running) == "succeeded", "for the job to go on from its checkpoint")
        log = live.printed("logs", running)
        assert re.findall(r"step \d+|done", log) == [*(f"step {number}" for number in range(60)), "done"]
        live.end(signal.SIGINT)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--emulate", "v100"], "emulate: 'v100' given, expected TYPE=COUNT"),
        (["--emulate", "v100=1", "--policy", "max-min"], "policy 'max-min' is not known"),
        (["--emulate", "v100=1", "--round", "soon"], '--round: "soon" given, expected seconds'),
        (["--emulate", "v100=1", "--time-scale", "0"], "time scale: 0.0 given"),
        (["--emulate", "v100=1", "--teams", "vision=-1"], "--teams: 'vision=-1' given"),
        (["--emulate", "v100=1", "--prices", "v100"], "--prices: 'v100' given, expected TYPE=DOLLARS"),
        (
            ["--emulate", "v100=1,k80=1", "--prices", "v100=2"],
            "prices: 'k80' missing; price every",
        ),
        (["--emulate", "v100=1", "--host", "0.0.0.0"], "host 0.0.0.0: without TLS, tokens could be read"),
        (["--emulate", "v100=1", "--tls-key", "key.pem"], "--tls-certificate is missing"),
        (["--emulate", "v100=1", "--profiles", "none.csv"], "none.csv: cannot be read"),
        (["--emulate", "v100=1", "--store", "redis://x"], "store: 'redis' is no kind of store"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_anything_starts(
    tmp_path: Path, options: list[str], said: str
) -> None:
    with Installation(tmp_path) as installation:
        assert installation.refused("up", "--port", "0", *options).startswith(f"fairway: {said}")
        assert not (installation.home / "agent").exists()


def test_it_ends_when_its_controller_does(tmp_path: Path, counting: list[str]) -> None:
    with Installation(tmp_path, "--emulate", "v100=1", "--port", "0") as live:
        process = live.up()
        job = submitted(live, "--", *counting, "400", "0.05")
        until(lambda: live.state_of(job) == "running", "for the job to run")
        with open_store(live.home) as store:
            store.write(counters.take, counters.EPOCHS, 1)  # as another controller on this store does
        printed, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 1
        said = "fairway: the controller has stopped, jobs run on: another controller has started on this store"
        assert printed.splitlines()[-1].startswith(said)
        live.up()
        assert live.state_of(job) in {"running", "succeeded"}
        assert live.document("status", job)["attempt_count"] == 1
        live.end(signal.SIGINT)


def test_a_second_one_in_the_same_directory_or_on_the_same_port_is_refused(live: Installation, tmp_path: Path) -> None:
    port = (live.home / "address").read_text().strip().rpartition(":")[2]
    assert "another controller works in this directory" in live.refused("up", "--emulate", "v100=1", "--port", "0")
    with Installation(tmp_path) as other:
        assert f"port {port} is in use" in other.refused("up", "--emulate", "v100=1", "--port", port)
    assert live.printed("status")


def test_a_start_that_fails_leaves_no_process_behind(tmp_path: Path) -> None:
    with Installation(tmp_path, "--port", "0") as installation:
        done = installation.in_a_process("up", "--port", "0")
        assert done.returncode == 2
        assert "no accelerator found" in done.stderr
        assert done.stderr.count("\n") == 1
        assert installation.processes() == []


def test_an_ordinary_stop_writes_no_traceback_into_the_log_of_the_agent(tmp_path: Path) -> None:
    with Installation(tmp_path, "--emulate", "v100=1", "--port", "0") as installation:
        for how in (signal.SIGTERM, signal.SIGINT):
            installation.up()
            installation.end(how)
        assert installation.processes() == []
        log = (installation.home / "agent" / "agent.log").read_text()
        assert "INFO agent" in log
        assert "Traceback" not in log
