"""Tells addresses of the ends of jobs: the one of the server, and the one that a job names.

It reads the ends from the store, on a thread and an event loop of its own: the controller knows nothing of it and never
waits for it. Each end is told at least once, over restarts too, and is given up after some tries. A host that never
answers holds up no other: few requests are under way to one host, and what is too much for it is given up. Answers are
not read, and redirect no request.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Collection
from threading import Thread
from typing import Any

import httpx

from fairway.back_off import BackOff
from fairway.errors import FairwayError, InputError
from fairway.jobs.webhooks import host_of, refuse_other_hosts
from fairway.service.representation import Terms, job_form
from fairway.store import Store
from fairway.store.notifications import ended_jobs, load_notified, save_notified
from fairway.store.records import JobRecord
from fairway.wall_clock import WallClock

_LOG = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0
_LOOK_BACK_SECONDS = 5.0
"""Changes become durable in another order than that of the times that they carry, by a moment or so."""

_READ_AT_ONCE = 1000
_MOST_TO_ONE_HOST = 2000
"""Ends that wait to be told to one host."""

_AT_ONCE_TO_ONE_HOST = 8
_TRIES = 6
_ANSWER_SECONDS = 10.0


class Notifier:
    """Tells of ends until it is stopped. `address` is told of all jobs; jobs may name addresses at the `hosts`."""

    def __init__(
        self,
        store: Store,
        terms: Callable[[], Terms],
        *,
        address: str | None = None,
        hosts: Collection[str] = (),
        back_off: BackOff = BackOff(1.0, 60.0),  # noqa: B008 - it never changes
        answer_seconds: float = _ANSWER_SECONDS,
        clock: WallClock | None = None,
    ) -> None:
        self._store, self._terms, self._address, self._hosts = store, terms, address, hosts
        self._back_off, self._answer_seconds = back_off, answer_seconds
        self._clock = WallClock() if clock is None else clock
        self._under_way: dict[str, float] = {}
        self._known: dict[str, float] = {}
        self._waiting: dict[str, int] = defaultdict(int)
        self._tasks: set[asyncio.Task[None]] = set()
        self._at_host: dict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(_AT_ONCE_TO_ONE_HOST))
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._saved = self._began = 0.0
        self._thread = Thread(target=self._serve, name="fairway-notifier", daemon=True)

    def start(self) -> None:
        """Begin, on a thread of its own, if there is an address, or a job may name one."""
        if self._address is not None or self._hosts:
            self._began = self._clock.today()
            self._thread.start()

    def stop(self) -> None:
        """End soon; what was not told is told after the next start."""
        if self._thread.ident is None:
            return
        while self._thread.is_alive():
            if self._loop is not None and self._stopping is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join(0.1)

    def _serve(self) -> None:
        try:
            asyncio.run(self._run())
        except Exception:
            _LOG.exception("no address is told of ends of jobs any more")

    async def _run(self) -> None:
        self._stopping, self._loop = asyncio.Event(), asyncio.get_running_loop()
        since: float | None = None
        # Only what was asked for is connected to: no proxy and no .netrc of the environment, no redirect.
        async with httpx.AsyncClient(timeout=self._answer_seconds, follow_redirects=False, trust_env=False) as client:
            while not self._stopping.is_set():
                try:
                    if since is None:
                        saved = await asyncio.to_thread(self._store.read, load_notified)
                        # The first time, no address has asked yet for what ended before.
                        since = self._began + _LOOK_BACK_SECONDS if saved is None else min(saved, self._began)
                    since = await self._look(client, since)
                except FairwayError as error:  # the store has worse to tell, and is asked again
                    _LOG.warning("ends of jobs cannot be read: %s", error)
                try:
                    await asyncio.wait_for(self._stopping.wait(), _LOOK_SECONDS)
                except TimeoutError:
                    continue
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _look(self, client: httpx.AsyncClient, since: float) -> float:
        """Begin to tell of what has ended; returns the moment up to which all was read."""
        now, limit = self._clock.today(), _READ_AT_ONCE + len(self._known)
        since = self._clock.earliest_since(since)  # what ends after the clock was set back counts, too
        everything = self._address is not None
        found = await asyncio.to_thread(
            self._store.read, ended_jobs, since=since - _LOOK_BACK_SECONDS, everything=everything, limit=limit
        )
        for job in found:
            if job.id not in self._known:
                self._known[job.id] = self._under_way[job.id] = job.changed_at
                task = asyncio.create_task(self._tell(client, job))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        read_until = now if len(found) < limit else found[-1].changed_at
        oldest = self._clock.earliest_since(read_until) - 2 * _LOOK_BACK_SECONDS
        self._known = {job: at for job, at in self._known.items() if at >= oldest}
        told_until = min([read_until, *self._under_way.values()])
        if abs(told_until - self._saved) >= _LOOK_BACK_SECONDS:
            await asyncio.to_thread(self._store.write, save_notified, told_until)
            self._saved = told_until
        return read_until

    async def _tell(self, client: httpx.AsyncClient, job: JobRecord) -> None:
        for address in self._addresses(job):
            host = host_of(address)
            if self._waiting[host] >= _MOST_TO_ONE_HOST:
                _LOG.warning("%s: its end is not told, since too many wait to be told to %s", job.id, host)
                continue
            self._waiting[host] += 1
            try:
                await self._told_to(client, address, job)
            finally:
                self._waiting[host] -= 1
        self._under_way.pop(job.id, None)

    def _addresses(self, job: JobRecord) -> list[str]:
        own: Any = job.spec.get("notify")
        addresses = [] if self._address is None else [self._address]
        if isinstance(own, str) and own != self._address:
            try:
                refuse_other_hosts(own, self._hosts)  # it may have been allowed when the job was submitted
            except InputError as error:
                _LOG.warning("%s: its address is not told of its end: notify: %s", job.id, error)
            else:
                addresses.append(own)
        return addresses

    async def _told_to(self, client: httpx.AsyncClient, address: str, job: JobRecord) -> None:
        form = job_form(job, None, self._terms()).model_dump_json()
        content = f'{{"event":"job.ended","job":{form}}}'
        headers = {"Content-Type": "application/json", "User-Agent": "fairway"}
        why = ""
        for attempt in range(1, _TRIES + 1):
            try:
                async with self._at_host[host_of(address)]:
                    async with asyncio.timeout(self._answer_seconds):
                        async with client.stream("POST", address, content=content, headers=headers) as answer:
                            if answer.is_success:
                                return
                            why = f"it answered {answer.status_code}"
            except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, OSError) as error:
                why = type(error).__name__
            if attempt < _TRIES:
                await asyncio.sleep(self._back_off.seconds(attempt))
        _LOG.warning("%s: its end could not be told, and is given up after %d tries: %s", job.id, _TRIES, why)
