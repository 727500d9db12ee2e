"""`fairway.AsyncClient`: talks to a running Fairway from asyncio; the same methods as `fairway.Client`, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any, Literal, Self, TypeVar, overload

import httpx

from fairway.client import httpx_adapter, streams
from fairway.client.calls import Calls, selection
from fairway.client.job_body import JobLike
from fairway.client.patience import Patience
from fairway.client.place import Place
from fairway.client.records import (
    DryRun,
    Event,
    Explanation,
    Job,
    JournalEntry,
    Reservation,
    Status,
    Token,
    Usage,
    Worker,
)
from fairway.client.steps import Answer, Give, NoAnswer, Open, Pause, Read, Send, Steps

T = TypeVar("T")


class AsyncClient:
    """A running Fairway, for asyncio; see `fairway.Client` for where it is looked for and how patient it is.

    What gives one result there is awaited here, and what gives several is iterated over with `async for`.
    """

    def __init__(
        self,
        address: str | None = None,
        token: str | None = None,
        *,
        patience: float | None = None,
        waiting: Callable[[str], None] | None = None,
    ) -> None:
        place = Place.find(address, token)
        self.address = place.address
        self._calls = Calls(Patience.towards(place, patience))
        self._waiting = waiting
        self._http = httpx.AsyncClient(**httpx_adapter.settings(place))

    async def close(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @overload
    async def submit(
        self, job: JobLike, *, idempotency_key: str | None = None, dry_run: Literal[False] = False
    ) -> Job: ...
    @overload
    async def submit(self, job: JobLike, *, idempotency_key: str | None = None, dry_run: Literal[True]) -> DryRun: ...
    async def submit(self, job: JobLike, *, idempotency_key: str | None = None, dry_run: bool = False) -> Job | DryRun:
        """Submit a job: its fields as a mapping, YAML as text, or the path of a file; it is safe when this returns.

        A submission with the key of an earlier one finds the job that was made then; by default every call has a key of
        its own. With `dry_run` nothing is submitted, and the answer says when the job would start.
        """
        if dry_run:
            return await self._one(self._calls.try_out(job))
        return await self._one(self._calls.submit(job, idempotency_key))

    async def submit_all(self, jobs: JobLike | Sequence[JobLike], *, idempotency_key: str | None = None) -> list[Job]:
        """Submit several jobs, all of them or none: a sequence, or the documents of YAML and files."""
        return await self._one(self._calls.submit_all(jobs, idempotency_key))

    def jobs(
        self,
        *,
        state: str | Iterable[str] | None = None,
        team: str | None = None,
        name: str | None = None,
        labels: Mapping[str, str] | None = None,
        order: Literal["newest", "oldest"] = "newest",
        limit: int | None = None,
    ) -> AsyncIterator[Job]:
        """Jobs, only those in some states, of a team, of a name or with labels if so asked; fetched page by page."""
        return self._all(self._calls.jobs(state, selection(name, labels, team), order, limit))

    async def job(self, job: str | Job) -> Job:
        """One job, with its attempts, its leases and its measured rates."""
        return await self._one(self._calls.job(job))

    async def cancel(self, job: str | Job) -> str:
        """Ask for the end of a job; returns the state in which it was. It may take a moment to stop."""
        return await self._one(self._calls.cancel(job))

    async def cancel_all(
        self, *, name: str | None = None, labels: Mapping[str, str] | None = None, team: str | None = None
    ) -> dict[str, str]:
        """Ask for the end of all jobs of a name, with labels or of a team that wait or run; their states, by id."""
        return await self._one(self._calls.cancel_all(selection(name, labels, team)))

    async def explain(self, job: str | Job) -> Explanation:
        """Why a job waits, which jobs are ahead of it, when it will start and what would start it now."""
        return await self._one(self._calls.explain(job))

    def logs(
        self, job: str | Job, *, rank: int = 0, tail: int | None = None, follow: bool = False
    ) -> AsyncIterator[str]:
        """The output of one rank in pieces, as they come: all of it or its last `tail` lines.

        With `follow` it goes on until the job has ended, over attempts, preemptions and restarts of the server.
        """
        return self._all(streams.logs(self._calls, job, rank, tail, follow))

    def events(self, job: str | Job | None = None, *, after: str | None = None) -> AsyncIterator[Event]:
        """What happens to jobs from now on, or after an event by its id; of one job, until it has ended."""
        return self._all(streams.events(self._calls, job, after))

    async def wait(self, job: str | Job, timeout: float | None = None) -> Job:
        """Wait until a job has ended, and return how it ended; raises a `TimeoutError` after so many seconds."""
        return await self._one(self._calls.wait(job, timeout))

    async def workers(self) -> list[Worker]:
        """All accelerators, and what runs on them."""
        return await self._one(self._calls.workers())

    async def drain(self, *workers: str, on: bool = True) -> list[Worker]:
        """Let workers get no more jobs (`on=False`: let them again): `v100/0`, or `v100` for all of the type."""
        return await self._one(self._calls.drain(workers, on))

    async def reservations(self) -> list[Reservation]:
        """The reservations that are not over."""
        return await self._one(self._calls.reservations())

    async def reserve(
        self, team: str, workers: Mapping[str, int], *, begins: str = "now", span: str | float
    ) -> Reservation:
        """Let workers, by type, be a team's alone: from a time with its zone, or now, for a span as in `2h`."""
        return await self._one(self._calls.reserve(team, workers, begins, span))

    async def cancel_reservation(self, name: str) -> Reservation:
        """Let the workers of a reservation be for all again."""
        return await self._one(self._calls.cancel_reservation(name))

    async def status(self) -> Status:
        """The cluster in a few numbers."""
        return await self._one(self._calls.status())

    async def usage(
        self,
        *,
        by: Sequence[str] = ("team",),
        since: float | None = None,
        until: float | None = None,
        team: str | None = None,
    ) -> Usage:
        """What was used in the last week, or between two moments in seconds since 1970, by team, user or both."""
        return await self._one(self._calls.usage(by, since, until, team))

    async def plan_state(self, types: Iterable[str] = ()) -> dict[str, Any]:
        """What the scheduler knows at this moment, for plans: with rates on types that the cluster lacks."""
        return await self._one(self._calls.plan_state(types))

    async def history(self) -> dict[str, Any]:
        """What happened, as the document of a saved run: of `fairway up` or of `fairway serve`."""
        return await self._one(self._calls.history())

    async def metrics(self) -> str:
        """The metrics in Prometheus' form."""
        return await self._one(self._calls.metrics())

    async def tokens(self) -> list[Token]:
        """All tokens, without the secrets."""
        return await self._one(self._calls.tokens())

    async def create_token(
        self,
        role: Literal["admin", "member", "reader"],
        *,
        team: str | None = None,
        name: str | None = None,
        expires_seconds: float | None = None,
    ) -> Token:
        """Make a token; its `token` is the secret, which the server shows this once."""
        return await self._one(self._calls.create_token(role, team, name, expires_seconds))

    async def rotate_token(self, token: str, *, grace_seconds: float = 0.0) -> Token:
        """Replace a token, by its id, with one that may do the same; the old one is taken for the grace, or no more."""
        return await self._one(self._calls.rotate_token(token, grace_seconds))

    async def revoke_token(self, token: str) -> None:
        """Let a token, by its id, be worth nothing from now on."""
        await self._one(self._calls.revoke_token(token))

    def journal(self, *, kind: str | None = None, limit: int | None = None) -> AsyncIterator[JournalEntry]:
        """What happened and was decided, the oldest first."""
        return self._all(self._calls.journal(kind, limit))

    async def _one(self, steps: Steps[T]) -> T:
        """The one result of a flow."""
        (result,) = [one async for one in self._all(steps)]
        return result

    async def _all(self, steps: Steps[T]) -> AsyncIterator[T]:
        """Carry a flow out, and give its results as they come."""
        async with _Connection(self._http, self._waiting) as connection:
            with closing(steps):
                came: object = None
                while True:
                    try:
                        step = steps.send(came)
                    except StopIteration:
                        return
                    came = None
                    if isinstance(step, Give):
                        yield step.value
                    else:
                        came = await connection.do(step)


class _Connection:
    """Carries out the steps of one flow; keeps the stream that it has opened."""

    def __init__(self, http: httpx.AsyncClient, waiting: Callable[[str], None] | None) -> None:
        self._http, self._waiting = http, waiting
        self._stream: httpx.Response | None = None
        self._pieces: AsyncIterator[bytes]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._stream is not None:
            await self._stream.aclose()

    async def do(self, step: Send | Open | Read | Pause) -> Answer | NoAnswer | bytes | None:
        """What came of a step."""
        try:
            match step:
                case Pause(seconds, why):
                    if self._waiting is not None and why:
                        self._waiting(why)
                    await asyncio.sleep(seconds)
                    return None
                case Send(request):
                    response = await self._http.send(httpx_adapter.built(self._http, request))
                    return httpx_adapter.answer_of(response, response.content)
                case Open(request):
                    await self.__aexit__()
                    self._stream = await self._http.send(httpx_adapter.built(self._http, request), stream=True)
                    self._pieces = self._stream.aiter_bytes()
                    body = b"" if self._stream.is_success else await self._stream.aread()
                    return httpx_adapter.answer_of(self._stream, body)
                case Read():
                    return await anext(self._pieces, None)
        except httpx.RequestError as error:
            return httpx_adapter.no_answer(error)
