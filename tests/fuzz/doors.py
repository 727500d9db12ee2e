"""Every door through which bytes come in that may have been written by anybody, as a function of bytes.

A door takes what it is given or refuses it with an error of ours, in one line; whatever else it raises is a defect. The
beginnings from which hostile bytes are made are written down here, so that there is no corpus to keep.
"""

from __future__ import annotations

import asyncio
import functools
import json
import socket
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from starlette.requests import Request
from uvicorn.server import ServerState

from fairway.allocate.problem_file import parse_problem
from fairway.allocate.registry import policy_of
from fairway.cli.server.teams import teams_of
from fairway.cli.terminal_text import harmless
from fairway.client.event_stream import EventReader
from fairway.client.place import checked_address
from fairway.cluster import Cluster
from fairway.cluster_file import parse_cluster
from fairway.configure.problem_file import parse_configuration
from fairway.documents import Form
from fairway.errors import FairwayError
from fairway.jobs.description import parse_job
from fairway.live.backend.accelerators import emulated_accelerators
from fairway.live.local.agent.frames import read_message
from fairway.live.local.agent.messages import REQUESTS
from fairway.live.local.outcomes import outcome_of
from fairway.live.local.run_files import RunFiles
from fairway.live.serving.application.application_form import FORM as APPLICATION
from fairway.live.serving.application.definition import ServedWorkflow, load_application
from fairway.live.serving.application.profile_file import parse_profile
from fairway.live.serving.nodes.guarded_channel import Credentials, GuardedChannel
from fairway.live.serving.sockets.channel import Channel
from fairway.place.problem_file import parse_placement
from fairway.profiles.csv_table import parse_csv
from fairway.profiles.gavel_json import parse_gavel_json
from fairway.quantities import bytes_of, seconds_of
from fairway.service.http.connections import ConnectionLimits, Connections, LimitedConnection
from fairway.service.http.sites import Sites, checked_host, checked_origin
from fairway.service.inference.request import request_of
from fairway.sim.scenario_file import parse_scenario
from fairway.traces.files import parse_trace
from fairway.traces.generate_options import parse_generate
from fairway.traces.requests import parse_requests
from fairway.workflows.workflow_file import parse_workflows

EXAMPLES = Path(__file__).parents[2] / "examples"


@dataclass(frozen=True, slots=True)
class Door:
    """A way in, and bytes that it takes, from which others are made."""

    enter: Callable[[bytes], object]
    beginnings: tuple[bytes, ...]


def _text(read: Callable[[str], object]) -> Callable[[bytes], object]:
    """A door for text, as a file or an argument is turned into it."""
    return lambda data: read(data.decode("utf-8", "replace"))


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _file(name: str, most: int = 2000) -> bytes:
    return (EXAMPLES / name).read_bytes()[:most]


# Files that a job can write


def _progress(data: bytes) -> object:
    files = _run_files()
    (files.channel.directory / "progress-0.json").write_bytes(data)
    return files.progress(range(1)), files.is_cooperative(range(1)), files.channel.lease()


def _run_directory(data: bytes) -> object:
    """What the keeper writes; a job of the agent's own user can write it as well."""
    files = _run_files()
    for name in ("exit.json", "lease.json", "ranks.json", "order.json", "claim.json"):
        (files.directory / name).write_bytes(data)
    return files.lease(), files.started(), files.order(), files.claimed_by(), outcome_of(files, range(1))


@functools.cache
def _run_files() -> RunFiles:
    root = Path(tempfile.mkdtemp(prefix="fairway-fuzz-"))
    files = RunFiles(root / "runs" / "1-job")
    for directory in (files.directory, files.channel.directory):
        directory.mkdir(parents=True)
    return files


# Sockets


def _agent_frames(data: bytes) -> object:
    async def read() -> object:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        while (message := await read_message(reader)) is not None:
            REQUESTS.read(message)
        return None

    return asyncio.run(read())


def _frame(message: object) -> bytes:
    body = _json(message)
    return len(body).to_bytes(4, "big") + body


def _wire_heads(data: bytes) -> object:
    """Only the head of a message: what follows is a pickle, which only processes of the same user may send."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        channel = Channel(ours)
        theirs.sendall(data[:8])
        theirs.shutdown(socket.SHUT_WR)
        return channel.receive(0.0)


def _strangers_words(data: bytes) -> object:
    """What one says at a port for other nodes that does not know the secret."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        channel = GuardedChannel(ours, Credentials(b"secret"), is_caller=False)
        theirs.sendall(data[:4096])
        theirs.shutdown(socket.SHUT_WR)
        while (heard := channel.receive(0.0)) is not None:
            assert heard == []
        return channel.is_trusted


class _Transport(asyncio.Transport):
    """The other end of a connection that is not there."""

    def __init__(self) -> None:
        super().__init__()
        self.closing = False
        self.written = b""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)}.get(name, default)

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    abort = close

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


def _http(data: bytes) -> object:
    """A connection of a server whose application reads the body and says so."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        async for _ in request.stream():
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})

    async def serve() -> bytes:
        config = uvicorn.Config(Sites().around(app), log_config=None, lifespan="off", ws="none")
        config.load()
        connections = Connections(ConnectionLimits())
        connection = LimitedConnection(connections, config, ServerState(), {}, asyncio.get_running_loop())
        transport = _Transport()
        connection.connection_made(transport)
        for start in range(0, len(data), 700):
            connection.data_received(data[start : start + 700])
            await asyncio.sleep(0)
        connection.check()
        connection.connection_lost(None)
        for _ in range(5):
            await asyncio.sleep(0)
        if connections._sweeping is not None:
            connections._sweeping.cancel()
        return transport.written

    return asyncio.run(serve())


def _events(data: bytes) -> object:
    reader = EventReader()
    return [reader.feed(data[start : start + 5]) for start in range(0, len(data), 5)]


# Requests for workflows


@functools.cache
def _workflow() -> ServedWorkflow:
    return load_application("tests.service.inference.offered:measure").workflows["measure"]


def _inference(data: bytes) -> object:
    """Headers in the first lines, the rest is the body."""
    head, _, body = data.partition(b"\n\n")
    pairs = [line.partition(b": ")[::2] for line in head.split(b"\n")]
    headers = [(name.lower(), value) for name, value in pairs if name]

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": headers}
    return asyncio.run(request_of(Request(scope, receive), _workflow(), 100_000))


def _form(form: Form[Any], source: str) -> Callable[[bytes], object]:
    return lambda data: form.read(data, source)


_JOB = b"""name: a
run: python train.py
resources: {accelerators: "[A100, V100]:2"}
team: vision
steps: 50000
deadline: 2030-01-01T00:00:00Z
checkpoint: {interval: 10m}
envs: {A: "1"}
throughputs: {v100: 2.5}
weight: 1e-3
retries: 2
"""
_POST = (
    b"POST /jobs?a=b HTTP/1.1\r\nHost: localhost:1\r\nOrigin: http://localhost:1\r\nTransfer-Encoding: chunked\r\n"
    b"Connection: keep-alive\r\n\r\n5\r\nhello\r\n0\r\nTrailer: x\r\n\r\n"
)
_PROFILE = b"""fairway-profile: 1
application: a
"""

DOORS: Mapping[str, Door] = {
    "job-yaml": Door(lambda data: parse_job(data, "job.yaml"), (_JOB, b"run: [a, b]\nslo: 1h30m", b"{run: x}")),
    "job-json": Door(
        lambda data: parse_job(data, "job"),
        (_json({"run": ["a"], "steps": 1e3, "envs": {"A": "1"}, "checkpoint": {"interval": "1m"}}), b'{"run":"x"}'),
    ),
    "problem": Door(lambda data: parse_problem(data, "problem.json"), (_file("mixed-cluster.json"),)),
    "placement": Door(lambda data: parse_placement(data, "place.json"), (_file("place-request.json"),)),
    "configuration": Door(lambda data: parse_configuration(data, "p.json"), (_file("configure-pipeline.json", 4000),)),
    "scenario": Door(lambda data: parse_scenario(data, "s.yaml"), (_file("serving-scenario.yaml"),)),
    "workflows": Door(
        lambda data: parse_workflows(data, "w.yaml"),
        (b"workflows:\n  a:\n    stages: [{name: x, model: m, seconds: 1}]\nmodels: {m: {bytes: 5}}\n",),
    ),
    "application": Door(_form(APPLICATION, "a.yaml"), (_file("document_reading/application.yaml"),)),
    "profile": Door(lambda data: parse_profile(data, "profile.yaml"), (_PROFILE,)),
    "cluster-file": Door(_text(lambda text: parse_cluster(text, "c.yaml")), (_file("cluster.yaml"),)),
    "cluster": Door(_text(Cluster.parse), (b"v100=36,p100=36", b"k80=1")),
    "emulate": Door(_text(emulated_accelerators), (b"v100=2,p100=1",)),
    "teams": Door(_text(teams_of), (b"vision=2,speech=1",)),
    "generate": Door(_text(parse_generate), (b"jobs=500,rate=4.0,multi-gpu,seed=0", b"jobs=1,gap=2")),
    "policy": Door(_text(policy_of), (b"max-min-fairness:agnostic,space-sharing", b"fifo")),
    "quantities": Door(_text(lambda text: (_tried(bytes_of, text), seconds_of(text))), (b"1h30m", b"1.5GiB", b"1e9")),
    "trace": Door(
        _text(lambda text: parse_trace(text, "trace")),
        (
            _file("jobs.tsv", 800),
            _file("gavel-cluster-jobs.tsv", 800),
            b'[{"status": "Pass", "vc": "a", "jobid": "j", "attempts": [], "submitted_time": "2017-10-07 06:14:39"}]',
            b"; SWF\n1 0 2 100 4 -1 -1 4 200 -1 1 1 1 1 1 1 -1 -1\n",
        ),
    ),
    "requests": Door(
        _text(lambda text: parse_requests(text, "trace")),
        (b"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,374,44\n", b"arrival_seconds\n1.5\n"),
    ),
    "requests-in-windows": Door(
        _text(lambda text: parse_requests(text, "trace", "arrival=second,workflow=name")),
        (b"second,count,name\n0,3,a\n0,2,b\n60,0,a\n", b"second,name\n2023-11-16 18:15:46.68,a\n"),
    ),
    "rates-csv": Door(
        _text(lambda text: parse_csv(text, "t.csv")),
        (b"job_type,scale_factor,accelerator,steps_per_second\na,1,v100,2.5\n",),
    ),
    "rates-json": Door(
        _text(lambda text: parse_gavel_json(text, "t.json")), (_json({"v100": {"('a', 1)": {"null": 2.5}}}),)
    ),
    "progress": Door(
        _progress, (_json({"rank": 0, "step": 5, "since": 0, "steps_per_second": 2.0, "checkpoint_step": 1}),)
    ),
    "run-directory": Door(
        _run_directory,
        (
            _json({"codes": [1], "first": 0, "failed": True, "time": 1.0}),
            _json({"lease": 1, "until": 1.0, "expires": 2.0, "stop": "save", "pace": 1.0}),
        ),
    ),
    "agent-frames": Door(
        _agent_frames,
        (
            _frame({"command": "hello", "epoch": 1}) + _frame({"command": "ping"}),
            _frame({"command": "end-run", "lease": 1, "job": "a"}),
        ),
    ),
    "agent-bodies": Door(
        lambda data: _agent_frames(len(data).to_bytes(4, "big") + data),
        (
            _json({"command": "hello", "epoch": 1}),
            _json(
                {
                    "command": "start-run",
                    "lease": 1,
                    "job": "a",
                    "program": {"run": "x"},
                    "accelerator": "v100",
                    "workers": [0],
                    "attempt": 1,
                    "until": 1.0,
                    "expires": 2.0,
                }
            ),
        ),
    ),
    "wire-heads": Door(_wire_heads, (b"Fwy1\x00\x00\x00\x00", b"Fwy1\xff\xff\xff\xff")),
    "strangers-words": Door(_strangers_words, (b"FwT1" + b"n" * 32, b"FwT1" + b"n" * 64, b"GET / HTTP/1.1\r\n\r\n")),
    "http": Door(_http, (_POST, b"GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n" * 2, b"GET / HTTP/1.0\r\n\r\n")),
    "host": Door(_text(checked_host), (b"*.fairway.example", b"[::1]")),
    "origin": Door(_text(checked_origin), (b"https://fairway.example:8642", b"http://[::1]:80")),
    "address": Door(_text(checked_address), (b"https://fairway.example:8642", b"127.0.0.1:80")),
    "events": Door(_events, (b"id: 1\r\nevent: job\r\ndata: {}\r\n\r\n: x\n\n",)),
    "inference": Door(
        _inference,
        (
            b'content-type: application/json\nfairway-deadline-seconds: 2.5\n\n{"blob": "aGk=", "times": 2}',
            b"traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n\nraw",
        ),
    ),
    "terminal": Door(_text(lambda text: "".join(harmless([text]))), (b"\x1b[31mred\x1b[0m\x1b]0;x\x07",)),
}


def _tried(read: Callable[[str], object], text: str) -> object:
    """So that one door can stand for two readers of the same text."""
    try:
        return read(text)
    except FairwayError:
        return None
