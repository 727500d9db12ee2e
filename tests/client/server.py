"""A small HTTP server with the routes of a Fairway and made-up jobs, on a free port, which can be made to fail.

It shows what clients make of answers; that the real service gives such answers is shown by `tests/cli/test_live.py`.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

TOKEN = "fairway_made-up"
NOW = time.time()
"""Half an hour from any of the times below, so that they read the same however long the tests take."""

HOUR, DAY = 3600.0, 86400.0


def job(number: int, state: str = "queued", **fields: Any) -> dict[str, Any]:
    """A job as the server tells it."""
    return {
        "id": f"job-{number}", "number": number, "name": f"name-{number}", "team": "vision", "state": state,
        "weight": 1.0, "submitted_at": NOW - 2 * DAY - 5.5 * HOUR, "submitted_by": "admin", "started_at": None,
        "ended_at": None,
        "changed_at": NOW - 300, "attempt_count": 0, "failures": 0, "exit_code": None, "reason_code": "WaitingForShare",
        "reason": "others are owed more", "steps": 1000.0, "steps_left": 1000.0, "steps_per_second": None,
        "checkpoint_steps_left": None, "accelerators": "[v100, k80]:2", "count": 2, "accelerator": None,
        "emulated": True, "cancel_requested_at": None, "of_a_later_version": 1, **fields,
    }  # fmt: skip


def running(number: int, **fields: Any) -> dict[str, Any]:
    """One that runs."""
    return job(number, "running", **{
        "started_at": NOW - DAY - 3.5 * HOUR, "attempt_count": 1, "reason_code": "Running", "reason": "runs on v100",
        "steps_left": 250.0, "steps_per_second": 6.25, "checkpoint_steps_left": 400.0, "accelerator": "v100", **fields,
    })  # fmt: skip


DETAILS: dict[str, Any] = {
    "attempts": [
        {"attempt": 1, "lease": 3, "started_at": NOW - 500, "ended_at": NOW - 400, "outcome": "preempted",
         "exit_code": 75, "reason": "the round ended"},
        {"attempt": 2, "lease": 9, "started_at": NOW - 120, "ended_at": None, "outcome": None, "exit_code": None,
         "reason": None},
    ],
    "leases": [
        {"number": 9, "jobs": ["job-1"], "accelerator": "v100", "workers": [0, 1], "until": NOW + 30,
         "planned_at": NOW - 121, "granted_at": NOW - 120, "extended_at": None, "ended_at": None, "reason": None},
    ],
    "rates": [{"accelerator": "v100", "beside": "", "steps_per_second": 6.25, "measured_at": NOW - 2}],
    "spec": {"run": "python train.py", "resources": {"accelerators": "[v100, k80]:2"}},
}  # fmt: skip

PREDICTION = {
    "start_at": NOW + DAY + 12.5 * HOUR, "earliest_at": NOW + DAY + 0.5 * HOUR, "latest_at": NOW + 3 * DAY + 0.5 * HOUR,
    "finish_at": NOW + 5 * DAY + 0.5 * HOUR,
    "basis": "the engine was run ahead",
}  # fmt: skip

EXPLANATION = {
    "job": "job-2", "state": "queued", "code": "NotEnoughWorkers", "reason": "2 of v100 asked for, 1 is free",
    "since": NOW - DAY - 1.5 * HOUR, "ahead": [{"job": "job-1", "team": "speech", "workers": 2, "why": "is owed more"}],
    "position": 2, "prices": {"v100": {"price": 1.5, "affordable": False}, "k80": {"price": 0.25, "affordable": True}},
    "prediction": PREDICTION, "smallest_change": "ask for 1 worker instead of 2", "emulated": True,
}  # fmt: skip

WORKERS = [
    {"accelerator": "v100", "number": 0, "agent": "local", "device": "emulated-0", "emulated": True, "state": "busy",
     "jobs": ["job-1"], "lease": 9},
    {"accelerator": "v100", "number": 1, "agent": "local", "device": "emulated-1", "emulated": True, "state": "busy",
     "jobs": ["job-1"], "lease": 9},
    {"accelerator": "k80", "number": 0, "agent": "local", "device": "emulated-0", "emulated": True, "state": "free",
     "jobs": [], "lease": None},
]  # fmt: skip

STATUS = {
    "version": "0.1.0", "policy": "max-min-fairness", "round_seconds": 60.0, "time_scale": 1.0, "emulated": True,
    "round_ends_at": NOW + DAY + 12.5 * HOUR, "rounds": 7, "solves": 3,
    "jobs": {"queued": 1, "running": 1, "succeeded": 4},
    "workers": {"v100": {"total": 2, "busy": 2, "drained": 0, "lost": 0},
                "k80": {"total": 1, "busy": 0, "drained": 0, "lost": 0}},
    "healthy": True, "store": "/var/lib/fairway/fairway.db",
    "caveats": ["parts are counted, but not enforced: no control group"],
}  # fmt: skip


USAGE = {
    "since": NOW - 7 * DAY, "until": NOW, "by": ["team", "user"], "emulated": True,
    "rows": [
        {"team": "vision", "user": "alice", "jobs": 3, "accelerator_seconds": {"v100": 7200.0}, "cost_dollars": 1.48},
        {"team": None, "user": "\x1b[2Jbob", "jobs": 1, "accelerator_seconds": {"k80": 36.0}, "cost_dollars": None},
    ],
}  # fmt: skip


def problem(status: int, detail: str, code: str = "some-code") -> Response:
    """A refusal as the server words it."""
    return JSONResponse(
        {"type": "about:blank", "title": "Refused", "status": status, "detail": detail, "code": code},
        status,
        media_type="application/problem+json",
    )


@dataclass
class Made:
    """What the server holds and has seen; tests change it as they like.

    `failures` are answers that are given instead, one per request; a failure that is None breaks the connection off.
    """

    jobs: list[dict[str, Any]] = field(default_factory=lambda: [running(1), job(2)])
    seen: list[Request] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    failures: list[Response | None] = field(default_factory=list)
    log: bytes = b"one\ntwo\nthree\n"
    resumable: bool = True
    silences: list[float] = field(default_factory=list)
    breaks: list[int] = field(default_factory=list)
    events: list[list[bytes]] = field(default_factory=list)
    address: str = ""

    def forget(self) -> None:
        """Be as new."""
        self.__init__(address=self.address)  # type: ignore[misc]

    def named(self, name: str) -> dict[str, Any] | None:
        return next((one for one in self.jobs if one["id"] == name), None)


class _Brokenly(StreamingResponse):
    """A stream whose connection is lost after some bytes."""

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for piece in self.body_iterator:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        raise ConnectionError("broken off on purpose")


def _application(made: Made) -> Starlette:
    async def jobs(request: Request) -> Response:
        after = int(request.query_params.get("after", 0))
        states = request.query_params.getlist("state")
        name = request.query_params.get("name")
        chosen = [one for one in made.jobs if (not states or one["state"] in states) and name in {None, one["name"]}]
        chosen = chosen[after:]
        limit = int(request.query_params["limit"])
        following = after + limit if len(chosen) > limit else None
        return JSONResponse({"jobs": chosen[:limit], "next": following})

    async def submit(request: Request) -> Response:
        body = await request.body()
        made.bodies.append(body)
        if request.query_params.get("dry_run") == "true":
            planned = {**job(0), "id": None, "number": None}
            return JSONResponse({"job": planned, "prediction": PREDICTION, "emulated": True})
        key = request.headers["idempotency-key"]
        known = next((one for one in made.jobs if one.get("key") == key), None)
        if known is not None:
            return JSONResponse(known)
        several = json.loads(body) if body.startswith(b"[") else [{}]
        for _ in several:
            made.jobs.append(job(len(made.jobs) + 1, key=key))
        if body.startswith(b"["):
            return JSONResponse({"jobs": made.jobs[-len(several) :]}, 201)
        return JSONResponse(made.jobs[-1], 201)

    async def one(request: Request) -> Response:
        found = made.named(request.path_params["job"])
        if found is None:
            return problem(404, f"no job '{request.path_params['job']}'")
        return JSONResponse({**found, **DETAILS})

    async def cancel(request: Request) -> Response:
        found = made.named(request.path_params["job"])
        if found is None:
            return problem(404, f"no job '{request.path_params['job']}'")
        found["state"] = "cancelled" if found["state"] == "queued" else found["state"]
        return JSONResponse({"id": found["id"], "state": found["state"]}, 202)

    async def cancel_all(request: Request) -> Response:
        name = request.query_params.get("name")
        chosen = [one for one in made.jobs if name in {None, one["name"]}]
        return JSONResponse({"jobs": [{"id": one["id"], "state": one["state"]} for one in chosen], "more": False}, 202)

    async def explain(request: Request) -> Response:
        return JSONResponse(EXPLANATION)

    async def logs(request: Request) -> Response:
        start = 0
        if "tail" in request.query_params:
            lines = made.log.splitlines(keepends=True)
            start = len(made.log) - sum(map(len, lines[len(lines) - int(request.query_params["tail"]) :]))
        if "offset" in request.query_params and made.resumable:
            start = int(request.query_params["offset"])
        content = made.log[start:]

        async def pieces(content: bytes) -> AsyncIterator[bytes]:
            for at in range(0, len(content), 2):
                yield content[at : at + 2]
                if made.silences:
                    await asyncio.sleep(made.silences.pop())

        headers = {"Fairway-Log-Offset": str(start)}
        if made.breaks:
            return _Brokenly(pieces(content[: made.breaks.pop(0)]), headers=headers, media_type="text/plain")
        return StreamingResponse(pieces(content), headers=headers, media_type="text/plain")

    async def events(request: Request) -> Response:
        async def pieces(events: list[bytes]) -> AsyncIterator[bytes]:
            for event in events:
                yield event

        return StreamingResponse(pieces(made.events.pop(0)), media_type="text/event-stream")

    async def reservations(request: Request) -> Response:
        return JSONResponse({"reservations": []})

    async def workers(request: Request) -> Response:
        return JSONResponse({"workers": WORKERS, "emulated": True})

    async def drain(request: Request) -> Response:
        asked = await request.json()
        made.bodies.append(json.dumps(asked).encode())
        chosen = [
            one
            for one in WORKERS
            if {one["accelerator"], f"{one['accelerator']}/{one['number']}"} & {*asked["workers"]}
        ]
        if not chosen:
            return problem(422, f"worker: no '{asked['workers'][0]}' in this cluster")
        state = "drained" if asked["on"] else "free"
        return JSONResponse({"workers": [{**worker, "state": state} for worker in chosen], "emulated": True})

    async def tokens(request: Request) -> Response:
        if request.method == "POST":
            made.bodies.append(await request.body())
            told = {"id": "1f0c", "created_at": NOW, "revoked_at": None, **json.loads(made.bodies[-1])}
            return JSONResponse({**told, "token": "fairway_new"}, 201)
        listed = {"id": "1f0c", "role": "member", "team": "vision", "name": "alice", "created_at": NOW}
        return JSONResponse({"tokens": [listed]})

    async def simple(request: Request) -> Response:
        return {
            "/status": JSONResponse(STATUS),
            "/usage": JSONResponse(USAGE),
            "/metrics": PlainTextResponse("fairway_jobs 2\n"),
            "/journal": JSONResponse({"entries": [{"sequence": 1, "kind": "start", "body": {}}], "next": None}),
        }[request.url.path]

    def guarded(answer: Callable[[Request], Any]) -> Callable[[Request], Any]:
        async def checked(request: Request) -> Response:
            made.seen.append(request)
            if made.failures:
                failure = made.failures.pop(0)
                return failure if failure is not None else _Brokenly(iter(()), media_type="application/json")
            if request.headers.get("authorization") != f"Bearer {TOKEN}":
                return problem(401, "the token is not known here")
            response: Response = await answer(request)
            return response

        return checked

    return Starlette(
        routes=[
            Route("/jobs", guarded(submit), methods=["POST"]),
            Route("/jobs", guarded(jobs)),
            Route("/jobs/cancel", guarded(cancel_all), methods=["POST"]),
            Route("/jobs/{job}", guarded(one)),
            Route("/jobs/{job}/cancel", guarded(cancel), methods=["POST"]),
            Route("/jobs/{job}/explain", guarded(explain)),
            Route("/jobs/{job}/logs", guarded(logs)),
            Route("/jobs/{job}/events", guarded(events)),
            Route("/events", guarded(events)),
            Route("/workers", guarded(workers)),
            Route("/workers/drain", guarded(drain), methods=["POST"]),
            Route("/reservations", guarded(reservations)),
            Route("/tokens", guarded(tokens), methods=["GET", "POST"]),
            Route("/tokens/{id}", guarded(lambda _: _no_content()), methods=["DELETE"]),
            *(Route(path, guarded(simple)) for path in ("/status", "/usage", "/metrics", "/journal")),
        ]
    )


async def _no_content() -> Response:
    return Response(status_code=204)


@contextmanager
def serving(made: Made, port: int = 0) -> Iterator[Made]:
    """The server runs meanwhile; its address is `made.address`."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    made.address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    # What is raised on purpose above would be told at length otherwise.
    config = uvicorn.Config(_application(made), log_config=None, lifespan="off", ws="none", access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.should_exit = True
        thread.join(30)
        listener.close()
        assert not thread.is_alive()
