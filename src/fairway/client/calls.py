"""Everything that can be asked of a server: the one description of each request, and of how its answer is read.

Each method is a flow of steps, which `Client` and `AsyncClient` carry out.
"""

from __future__ import annotations

import json
import math
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote

from fairway.back_off import BackOff
from fairway.client.errors import TimedOutError, document_of, not_understood
from fairway.client.job_body import JobLike, described, job_body, jobs_body
from fairway.client.patience import Patience
from fairway.client.records import (
    DryRun,
    Explanation,
    Job,
    JournalEntry,
    Reservation,
    Status,
    Token,
    Usage,
    Worker,
)
from fairway.client.steps import Answer, Give, Part, Pause, Request, Steps
from fairway.errors import InputError

T = TypeVar("T")
Query = Sequence[tuple[str, str]]

JSON = "application/json"

_PAGE = 500
_BETWEEN_LOOKS = BackOff(0.05, 1.0, factor=1.5)


def id_of(job: str | Job) -> str:
    """The id of a job, from either."""
    name = job.id if isinstance(job, Job) else job
    if name in {"", ".", ".."}:
        raise InputError(f"job: '{name}' given, expected the id of one; 'fairway ls' lists them")
    return name


def path_of(job: str | Job, *parts: str) -> str:
    """Where the server has something about a job."""
    return "/".join(("/jobs", quote(id_of(job), safe="", errors="replace"), *parts))


def selection(name: str | None, labels: Mapping[str, str] | None, team: str | None) -> Query:
    """The parameters that say which jobs are meant."""
    given = [("name", name), *(("label", f"{one}={value}") for one, value in (labels or {}).items()), ("team", team)]
    return [(parameter, value) for parameter, value in given if value is not None]


@dataclass(frozen=True, slots=True)
class Calls:
    """What can be asked of the server behind `patience`."""

    patience: Patience

    def submit(self, job: JobLike, idempotency_key: str | None) -> Steps[Job]:
        """A key of its own makes it safe to send a submission again when it is not known whether it arrived."""
        return self._one(_submission(job_body(job), idempotency_key), Job.of)

    def submit_all(self, jobs: JobLike | Sequence[JobLike], idempotency_key: str | None) -> Steps[list[Job]]:
        """The same for several, all or none."""
        request = _submission(jobs_body(jobs), idempotency_key)
        return self._one(request, lambda answer: list(map(Job.of, answer["jobs"])))

    def try_out(self, job: JobLike) -> Steps[DryRun]:
        """What would become of a job."""
        query, body = (("dry_run", "true"),), json.dumps(described(job).document()).encode()
        return self._one(Request("POST", "/jobs", query, {"Content-Type": JSON}, body), DryRun.of)

    def jobs(self, state: str | Iterable[str] | None, selected: Query, order: str, limit: int | None) -> Steps[Job]:
        """Jobs, page after page."""
        states = () if state is None else (state,) if isinstance(state, str) else tuple(state)
        query = [*(("state", one) for one in states), *selected, ("order", order)]
        return self._pages("/jobs", query, "jobs", Job.of, limit)

    def job(self, job: str | Job) -> Steps[Job]:
        """One job, with all that happened to it."""
        yield Give((yield from self.standing(job)))

    def cancel(self, job: str | Job) -> Steps[str]:
        """The state in which the server had found it."""
        return self._one(Request("POST", path_of(job, "cancel")), lambda answer: str(answer["state"]))

    def cancel_all(self, selected: Query) -> Steps[dict[str, str]]:
        """The states in which the server had found the jobs, by id."""
        cancelled: dict[str, str] = {}
        more = True
        while more:
            request = Request("POST", "/jobs/cancel", tuple(selected))
            found, more = yield from self._answer(
                request, lambda answer: ({one["id"]: str(one["state"]) for one in answer["jobs"]}, answer["more"])
            )
            cancelled |= found
        yield Give(cancelled)

    def explain(self, job: str | Job) -> Steps[Explanation]:
        """Why it is where it is."""
        return self._one(Request("GET", path_of(job, "explain")), Explanation.of)

    def wait(self, job: str | Job, timeout: float | None) -> Steps[Job]:
        """Look until it has ended: often at first, then once a second."""
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        looks = 0
        while True:
            standing = yield from self.standing(job)
            if standing.ended:
                yield Give(standing)
                return
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimedOutError(f"job {standing.id} is still {standing.state} after {timeout:g} s")
            looks += 1
            yield Pause(min(_BETWEEN_LOOKS.seconds(looks), left))

    def standing(self, job: str | Job) -> Part[Job]:
        """How a job stands, for flows that go on with it."""
        return self._answer(Request("GET", path_of(job)), Job.of)

    def workers(self) -> Steps[list[Worker]]:
        """All accelerators."""
        return self._one(Request("GET", "/workers"), _workers)

    def drain(self, workers: Sequence[str], on: bool) -> Steps[list[Worker]]:
        """Let workers get no more jobs, or again."""
        if not workers:
            raise InputError("workers: none given, expected names such as v100/0, or v100 for all of a type")
        return self._one(_json_request("POST", "/workers/drain", {"workers": list(workers), "on": on}), _workers)

    def reservations(self) -> Steps[list[Reservation]]:
        """Those that are not over."""
        return self._one(
            Request("GET", "/reservations"), lambda answer: list(map(Reservation.of, answer["reservations"]))
        )

    def reserve(self, team: str, workers: Mapping[str, int], begins: str, span: str | float) -> Steps[Reservation]:
        """Let workers be a team's alone for some time."""
        body = {"team": team, "accelerators": dict(workers), "from": begins, "for": span}
        return self._one(_json_request("POST", "/reservations", body), Reservation.of)

    def cancel_reservation(self, name: str) -> Steps[Reservation]:
        """Let its workers be for all again."""
        return self._one(Request("DELETE", f"/reservations/{quote(name, safe='')}"), Reservation.of)

    def status(self) -> Steps[Status]:
        """The cluster in a few numbers."""
        return self._one(Request("GET", "/status"), Status.of)

    def usage(self, by: Sequence[str], since: float | None, until: float | None, team: str | None) -> Steps[Usage]:
        """Who has used how much."""
        given = [*(("by", one) for one in by), ("since", since), ("until", until), ("team", team)]
        query = tuple((name, str(value)) for name, value in given if value is not None)
        return self._one(Request("GET", "/usage", query), Usage.of)

    def plan_state(self, types: Iterable[str]) -> Steps[dict[str, Any]]:
        """The state that plans begin from."""
        query = tuple(("type", name) for name in types)
        return self._one(Request("GET", "/plan/state", query), dict)

    def history(self) -> Steps[dict[str, Any]]:
        """All that happened, as a saved run."""
        return self._one(Request("GET", "/history"), dict)

    def metrics(self) -> Steps[str]:
        """What Prometheus would read."""
        answer = yield from self.patience.answered(Request("GET", "/metrics"))
        yield Give(answer.body.decode("utf-8", "replace"))

    def tokens(self) -> Steps[list[Token]]:
        """All tokens that were ever made."""
        return self._one(Request("GET", "/tokens"), lambda answer: list(map(Token.of, answer["tokens"])))

    def create_token(
        self, role: str, team: str | None, name: str | None, expires_seconds: float | None
    ) -> Steps[Token]:
        """Sent once only: a repetition would make a second token."""
        given = {"role": role, "team": team, "name": name, "expires_seconds": expires_seconds}
        fields = {field: value for field, value in given.items() if value is not None}
        return self._one(_json_request("POST", "/tokens", fields, repeatable=False), Token.of)

    def rotate_token(self, token: str, grace_seconds: float) -> Steps[Token]:
        """Sent once only: a repetition would find the old token gone."""
        fields = {"grace_seconds": grace_seconds}
        return self._one(_json_request("POST", f"{_token_path(token)}/rotate", fields, repeatable=False), Token.of)

    def revoke_token(self, token: str) -> Steps[None]:
        """Let a token, by its id, be worth nothing from now on."""
        yield from self.patience.answered(Request("DELETE", _token_path(token)))
        yield Give(None)

    def journal(self, kind: str | None, limit: int | None) -> Steps[JournalEntry]:
        """The journal from its beginning."""
        query = [("kind", kind)] if kind is not None else []
        return self._pages("/journal", query, "entries", JournalEntry.of, limit)

    def _one(self, request: Request, read: Callable[[Mapping[str, Any]], T]) -> Steps[T]:
        """A request whose answer is one result."""
        yield Give((yield from self._answer(request, read)))

    def _answer(self, request: Request, read: Callable[[Mapping[str, Any]], T]) -> Part[T]:
        answer: Answer = yield from self.patience.answered(request)
        return self.read(document_of(answer, self.patience.address), read)

    def read(self, document: Mapping[str, Any], read: Callable[[Mapping[str, Any]], T]) -> T:
        """A JSON object as a record."""
        try:
            return read(document)
        except (KeyError, TypeError, AttributeError) as error:
            raise not_understood(self.patience.address, f"its answer lacks {error}") from error

    def _pages(
        self, path: str, query: Query, field: str, read: Callable[[Mapping[str, Any]], T], limit: int | None
    ) -> Steps[T]:
        """Everything behind a list, page after page, each fetched when those before are used up."""
        if limit is not None and limit < 0:
            raise InputError(f"limit: {limit} given, expected a whole number of at least 0")
        left = math.inf if limit is None else limit
        after: str | None = None
        while left > 0:
            page = [("limit", str(int(min(left, _PAGE)))), *([("after", after)] if after is not None else [])]
            request = Request("GET", path, (*query, *page))
            rows, following = yield from self._answer(request, lambda one: (list(map(read, one[field])), one["next"]))
            for row in rows[: None if math.isinf(left) else int(left)]:
                yield Give(row)
            left -= len(rows)
            if following is None:
                return
            after = str(following)


def _submission(body: bytes, idempotency_key: str | None) -> Request:
    key = str(uuid.uuid4()) if idempotency_key is None else idempotency_key
    if not (key and key.isascii() and key.isprintable()):
        raise InputError(f"idempotency key: {key!a} given, expected some letters, digits and signs of ASCII")
    return Request("POST", "/jobs", headers={"Content-Type": JSON, "Idempotency-Key": key}, body=body)


def _token_path(token: str) -> str:
    return f"/tokens/{quote(token, safe='', errors='replace')}"


def _json_request(method: str, path: str, fields: Mapping[str, Any], *, repeatable: bool = True) -> Request:
    body = json.dumps(fields).encode()
    return Request(method, path, headers={"Content-Type": JSON}, body=body, repeatable=repeatable)


def _workers(answer: Mapping[str, Any]) -> list[Worker]:
    return list(map(Worker.of, answer["workers"]))
