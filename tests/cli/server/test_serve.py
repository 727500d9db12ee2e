"""`fairway serve` as a process of its own: it starts, answers, stops, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from fairway.cli.main import app
from fairway.cli.server.serve_run import ServeOptionsGiven
from fairway.live.backend.accelerators import Accelerator
from fairway.live.serving.supervise.settings import ServingSettings

PATIENCE = 120.0
APPLICATION = """
import fairway


@fairway.stage(memory="1MB", seconds=1e-3)
class Add:
    def load(self):
        return 1

    def __call__(self, model, numbers):
        return [number + model for number in numbers]


@fairway.workflow
def add(x: int):
    return Add()(x)
"""

PROFILE = """
models: {Add: {bytes: 1000000, load_seconds: 0.01}}
workflows:
  add:
    stages: [{name: Add, model: Add, seconds: {cpu: {1: 1.5}, cpu-2: {1: 0.9}}}]
"""


def _until(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)
    return value


def _workers(directory: Path) -> list[int]:
    """The processes of workers that serve from a directory."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes()
        except OSError:
            continue
        if b"fairway.live.serving.local.worker_program" in command and bytes(directory) in command:
            found.append(int(path.parent.name))
    return found


@contextmanager
def _serving(
    place: Path, *options: str, application: str = APPLICATION
) -> Iterator[tuple[subprocess.Popen[str], str, dict[str, str]]]:
    (place / "mine.py").write_text(application)
    (place / "t").mkdir(exist_ok=True)
    with subprocess.Popen(
        [sys.executable, "-m", "fairway.cli.main", "serve", "mine:add", "--port", "0", "-w", "2", *options],
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "TMPDIR": str(place / "t"), "COLUMNS": "200"},
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            said = ""
            while "Ctrl-C stops it" not in said:
                line = process.stdout.readline()
                assert line, said
                said += line
            (place / "said").write_text(said)
            address = re.search(r"at (http://\S+)", said)
            directory = re.search(r"token: (\S+)", said)
            assert address is not None
            assert directory is not None
            token = (Path(directory[1]) / "token").read_text().strip()
            headers = {"Authorization": f"Bearer {token}", "directory": directory[1]}
            yield process, address[1], headers
        finally:
            process.kill()


@pytest.fixture
def short_path() -> Iterator[Path]:
    """Names of sockets must not be long, and those of pytest's directories are."""
    with tempfile.TemporaryDirectory(prefix="f", dir="/tmp") as directory:
        yield Path(directory)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_stopped(short_path: Path, number: signal.Signals) -> None:
    with _serving(short_path) as (process, address, headers):
        asked = httpx.post(f"{address}/workflows/add", json={"x": 4}, headers=headers, trust_env=False, timeout=60)
        assert (asked.status_code, asked.json()) == (200, 5)
        assert httpx.get(f"{address}/status", trust_env=False, timeout=60).status_code == 401
        watched = CliRunner().invoke(app, ["top", "--once", "--served", headers["directory"]], env={"COLUMNS": "160"})
        assert "Fairway serves mine:add" in watched.stdout
        assert "EMULATED" in watched.stdout
        assert re.search(r"add +1 .* ms", watched.stdout), watched.stdout
        assert len(re.findall(r"worker-\d +0 +0", watched.stdout)) == 2
        assert len(_workers(short_path / "t")) in {2, 3}, "two that serve, and after a while one that stands by"
        process.send_signal(number)
        out, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (0, "stopped\n")
    assert _workers(short_path / "t") == []
    assert list((short_path / "t").iterdir()) == []


def test_an_application_that_was_never_profiled_is_measured_first(short_path: Path) -> None:
    unmeasured = APPLICATION.replace(", seconds=1e-3", "")
    sampled = unmeasured.replace("@fairway.workflow\n", "@fairway.workflow(samples=lambda: {'x': 1})\n")
    with _serving(short_path, application=sampled) as (process, address, headers):
        asked = httpx.post(f"{address}/workflows/add", json={"x": 4}, headers=headers, trust_env=False, timeout=60)
        assert (asked.status_code, asked.json()) == (200, 5)
        profile = (Path(headers["directory"]) / "profile.yaml").read_text()
        assert "Measured quickly by 'fairway serve mine:add'" in profile
        assert "mine:add was never profiled; measuring it quickly" in (short_path / "said").read_text()
        process.terminate()
        process.communicate(timeout=PATIENCE)
    with _serving(short_path, application=unmeasured) as (process, _, headers):
        assert "add has no samples to measure it with: times are guesses" in (short_path / "said").read_text()
    with _serving(short_path, "--no-profile", application=sampled) as (process, _, headers):
        assert "profiled" not in (short_path / "said").read_text()
        assert not (Path(headers["directory"]) / "profile.yaml").exists()


def test_a_scheduler_that_chooses_configurations_serves_with_the_threads_that_were_chosen(short_path: Path) -> None:
    (short_path / "profile.yaml").write_text(PROFILE)
    options = ("-s", "esg", "--slo", "1s", "--threads", "auto", "--profile", "profile.yaml")
    with _serving(short_path, *options) as (process, address, headers):
        asked = httpx.post(f"{address}/workflows/add", json={"x": 4}, headers=headers, trust_env=False, timeout=60)
        assert (asked.status_code, asked.json()) == (200, 5)
        status = httpx.get(f"{address}/status", headers=headers, trust_env=False, timeout=60).json()
        assert [worker["present"] for worker in status["workers"]] == [True, True]
        assert status["planner"] == {"present": True, "open": 0, "waiting": 0, "replied": 1}
        settings = ServingSettings.read(next((short_path / "t").glob("fairway-serve-*")) / "settings.json")
        assert (settings.threads, settings.workers, settings.slo_seconds) == (2, 2, 1.0)
        metrics = httpx.get(f"{address}/metrics", headers=headers, trust_env=False, timeout=60).text
        assert 'fairway_serving_replies_total{worker="planner"} 1.0' in metrics
        assert 'fairway_serving_worker_up{worker="planner"} 1.0' in metrics
        process.terminate()
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert list((short_path / "t").iterdir()) == []


def test_workers_end_when_it_is_killed_and_the_next_start_is_not_disturbed(short_path: Path) -> None:
    directory = short_path / "run"
    with _serving(short_path, "-d", str(directory)) as (process, _, _):
        memory = ServingSettings.read(directory / "settings.json").memory_directory
        assert memory.is_dir()
        process.kill()
        process.wait()
        _until(lambda: not _workers(directory))
        _until(lambda: not memory.exists())
    with _serving(short_path, "-d", str(directory)) as (process, address, headers):
        asked = httpx.post(f"{address}/workflows/add", json={"x": 1}, headers=headers, trust_env=False, timeout=60)
        assert asked.json() == 2
        refused = CliRunner().invoke(app, ["serve", "json:loads", "--port", address.rsplit(":", 1)[1]])
        assert (refused.exit_code, "is in use; give another with --port" in refused.stderr) == (2, True)
        process.terminate()
        process.communicate(timeout=PATIENCE)
    assert sorted(path.name for path in directory.iterdir()) == ["worker-0.log", "worker-1.log"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["mine:nothing"], "nothing"),
        (["nowhere:add"], "nowhere"),
        (["mine:add", "--memory", "many"], "--memory: "),
        (["mine:add", "--memory", "1kB"], "fits in the memory of no worker"),
        (["mine:add", "--scheduler", "best"], "known: compass, jit, heft, hash, fairway, esg, front, infless"),
        (["mine:add", "--scheduler", "esg"], "workflow 'add' has no SLO; give one"),
        (["mine:add", "--slo", "soon"], '--slo: "soon" given'),
        (["mine:add", "--threads", "many"], "--threads: 'many' given, expected a whole number of at least 1, or auto"),
        (["mine:add", "--threads", "auto"], "--threads: auto given without --profile"),
        (["mine:add", "--pin", "Ad"], "pinned: no model 'Ad'"),
        (["mine:add", "--host", "0.0.0.0"], "without TLS, tokens could be read on the way"),
        (["mine:add", "--tls-key", "key.pem"], "--tls-certificate is missing"),
        (["mine:add", "--traces", "here"], "traces: 'here' given"),
        (["mine:add", "--profile", "none.yaml"], "none.yaml"),
    ],
)
def test_what_cannot_be_served_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], message: str
) -> None:
    (tmp_path / "mine.py").write_text(APPLICATION)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("PYTHONPATH", "")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    handlers = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGHUP)}
    memory = tmp_path / "memory"
    memory.mkdir()
    monkeypatch.setattr("fairway.live.serving.supervise.supervisor._SHARED_MEMORY", memory)
    try:
        result = CliRunner().invoke(app, ["serve", *options, "--port", "0"])
    finally:
        for one, handler in handlers.items():
            signal.signal(one, handler)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert list(memory.iterdir()) == []
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("fairway-")] == []


def test_nothing_can_be_watched_where_nothing_is_served(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["top", "--once", "--served", str(tmp_path)])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"fairway: {tmp_path}: nothing is served from here; start it with 'fairway serve'\n"


def test_there_is_a_worker_for_each_gpu_unless_workers_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus = [Accelerator("a100", number, f"GPU-{number}", "A100", 40 * 2**30) for number in range(3)]
    monkeypatch.setattr("fairway.cli.server.serve_run.found_accelerators", lambda: gpus)
    asked = _asked(workers=None)
    settings = asked.settings(tmp_path, tmp_path)
    assert (settings.workers, settings.devices) == (3, ("GPU-0", "GPU-1", "GPU-2"))
    assert (settings.emulated, settings.memory_bytes) == (False, int(0.9 * 40 * 2**30))
    few = replace(asked, workers=2).settings(tmp_path, tmp_path)
    assert (few.workers, few.devices, few.emulated, few.memory_bytes) == (2, (), True, None)
    monkeypatch.setattr("fairway.cli.server.serve_run.found_accelerators", list)
    assert (asked.settings(tmp_path, tmp_path).workers, asked.settings(tmp_path, tmp_path).emulated) == (2, True)


def _asked(**options: Any) -> ServeOptionsGiven:
    given = {
        "target": "mine:add", "workers": 2, "memory": None, "threads": "1", "scheduler": "compass", "profile": None,
        "slo": None, "most_open": 10, "directory": None, "host": "127.0.0.1", "port": 0, "most_body": "1MB",
        "certificate": None, "key": None, "plain_text": False, "no_token": True, "pinned": (), "traces": None,
    }  # fmt: skip
    return ServeOptionsGiven(**{**given, **options})


def test_a_port_in_use_is_refused_before_anything_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("PYTHONPATH", "")
    handlers = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGHUP)}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(app, ["serve", "no_such_module:x", "--port", str(port)])
    for one, handler in handlers.items():
        signal.signal(one, handler)
    assert result.exit_code == 2
    assert f"port {port} is in use" in result.stderr
