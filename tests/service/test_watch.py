"""What listeners are told, poll by poll, on a clock that the test sets: each change once, in order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from fairway.service.http.problems import ProblemError
from fairway.service.representation import Terms
from fairway.service.watch import MOST_LISTENERS, ROOM, Listener, Watch, event_text
from fairway.store import Store, open_store
from fairway.store.job_changes import change_job, record_progress, request_cancel
from fairway.store.states import JobState
from fairway.store.tokens import Role, Token, create_token, revoke_token
from tests.store.making import running, submitted, with_workers


class Machine:
    """A clock that stands still until it is set."""

    now = 1000.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now - 500.0


class Watching:
    """A watch whose polls are up to the test."""

    def __init__(self, store: Store) -> None:
        self.store, self.machine = store, Machine()
        self.watch = Watch(store, lambda: Terms(emulated=True), machine=self.machine)
        self.token = store.write(create_token, Role.ADMIN, at=1.0)[1]

    async def listen(self, token: Token | None = None, **asked: object) -> Listener:
        listener = Listener(token or self.token, **asked)  # type: ignore[arg-type]
        await self.watch.add(listener)
        assert self.watch._task is not None
        self.watch._task.cancel()
        return listener

    async def told(self, listener: Listener) -> list[tuple[str, str]]:
        await self.watch._poll()
        return [(kind, data.get("id", "")) for kind, data, _ in heard(listener)]


def heard(listener: Listener) -> list[tuple[str, dict[str, object], int | None]]:
    found = []
    for event in listener.events:
        fields = dict(line.split(": ", 1) for line in event.decode().strip().splitlines())
        found.append((fields["event"], json.loads(fields["data"]), int(fields["id"]) if "id" in fields else None))
    listener.events.clear()
    return found


@pytest.fixture
def watching(tmp_path: Path) -> Iterator[Watching]:
    with open_store(tmp_path) as store:
        yield Watching(store)


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def with_end() -> None:
        await asyncio.wait_for(main(), 120.0)

    asyncio.run(with_end())


def test_an_event_is_one_block_with_or_without_a_number() -> None:
    assert event_text("job", "{}", 7) == b"id: 7\nevent: job\ndata: {}\n\n"
    assert event_text("dropped", "x") == b"event: dropped\ndata: x\n\n"


def test_each_change_is_told_once_and_to_its_team_only(watching: Watching) -> None:
    async def main() -> None:
        store = watching.store
        submitted(store, team="a", at=990.0)
        everything, of_b = await watching.listen(), await watching.listen(team="b")
        assert await watching.told(everything) == [], "what was before is not told"
        (first,) = submitted(store, team="a", at=1001.0)
        (second,) = submitted(store, team="b", at=1002.0)
        watching.machine.now = 1003.0
        assert await watching.told(everything) == [("job", first), ("job", second)]
        assert [data["id"] for _, data, _ in heard(of_b)] == [second]
        assert await watching.told(everything) == []
        store.write(change_job, first, JobState.CANCELLED, at=1003.5)
        assert await watching.told(everything) == [("job", first)]
        assert heard(of_b) == []

    run(main)


def test_numbers_of_events_are_microseconds_and_always_rise(watching: Watching) -> None:
    async def main() -> None:
        listener = await watching.listen()
        for at in (1001.5, 1001.25, 1001.5):
            submitted(watching.store, at=at)
            await watching.watch._poll()
        numbers = [number for _, _, number in heard(listener)]
        assert numbers == [1_001_500_000, 1_001_500_001, 1_001_500_002]

    run(main)


def test_what_becomes_visible_late_is_found_within_seconds_and_by_a_sweep_within_a_minute(watching: Watching) -> None:
    async def main() -> None:
        listener, machine = await watching.listen(), watching.machine
        machine.now = 1010.0
        assert await watching.told(listener) == []
        (late,) = submitted(watching.store, at=1005.0)
        assert await watching.told(listener) == [("job", late)], "five seconds are looked back"
        (later,) = submitted(watching.store, at=990.0)
        assert await watching.told(listener) == []
        machine.now = 1014.9
        assert await watching.told(listener) == []
        machine.now = 1015.0
        assert await watching.told(listener) == [("job", later)], "every fifteen seconds, a minute is"
        machine.now = 1200.0
        await watching.watch._poll()
        assert watching.watch._seen == {}, "what is older than two minutes is forgotten"

    run(main)


def test_of_one_job_it_is_told_how_it_stands_then_changes_and_progress_if_wanted(watching: Watching) -> None:
    async def main() -> None:
        store = watching.store
        with_workers(store)
        job, other = submitted(store, 2, at=990.0, steps=100.0)
        plain, curious = await watching.listen(job=job), await watching.listen(job=job, progress=True, until_end=True)
        assert await watching.told(plain) == [("job", job)]
        heard(curious)
        assert await watching.told(plain) == []
        lease = running(store, job, at=1001.0)
        running(store, other, workers=(1,), at=1001.0)
        assert await watching.told(plain) == [("job", job)]
        assert [kind for kind, _, _ in heard(curious)] == ["job"]
        store.write(record_progress, job, 60.0, lease=lease)
        assert await watching.told(plain) == []
        ((kind, data, number),) = heard(curious)
        assert (kind, data["steps_left"], data["steps"], number) == ("progress", 60.0, 100.0, None)
        assert "state" not in data
        assert await watching.told(curious) == []
        assert not curious.ended
        store.write(request_cancel, job, at=1002.0)
        assert await watching.told(curious) == [("job", job)]
        store.write(change_job, job, JobState.CANCELLED, at=1003.0, lease=lease)
        assert await watching.told(curious) == [("job", job)]
        assert (curious.ended, plain.ended) == (True, False)
        assert await curious.take(0.0) is None

    run(main)


def test_a_listener_whose_token_was_revoked_is_let_go_within_half_a_second(watching: Watching) -> None:
    async def main() -> None:
        _, token = watching.store.write(create_token, Role.ADMIN, at=2.0, name="short")
        listener, other = await watching.listen(token), await watching.listen()
        assert await watching.told(listener) == []
        watching.store.write(revoke_token, token.id, at=1000.0)
        watching.machine.now = 1000.4
        await watching.watch._poll()
        assert not listener.ended
        watching.machine.now = 1000.5
        await watching.watch._poll()
        assert [kind for kind, _, _ in heard(listener)] == ["revoked"]
        assert (listener.ended, other.ended) == (True, False)

    run(main)


def test_a_listener_that_falls_behind_is_dropped_and_hears_no_more(watching: Watching) -> None:
    listener = Listener(watching.token)
    for number in range(ROOM):
        listener.put(b"%d" % number)
    assert (len(listener.events), listener.ended) == (ROOM, False)
    listener.put(b"one more")
    assert [kind for kind, _, _ in heard(listener)] == ["dropped"]
    listener.put(b"another")
    listener.end("closing", "again")
    assert (list(listener.events), listener.ended) == ([], True)


def test_taking_waits_for_news_and_ends_with_the_last(watching: Watching) -> None:
    async def main() -> None:
        listener = Listener(watching.token)
        assert await listener.take(0.0) == []
        waiting = asyncio.create_task(listener.take(60.0))
        await asyncio.sleep(0)
        listener.put(b"a")
        listener.put(b"b")
        assert await waiting == [b"a", b"b"]
        assert await listener.take(0.0) == [], "it is not told again"
        listener.put(b"c")
        listener.end()
        assert await listener.take(60.0) == [b"c"]
        assert await listener.take(60.0) is None

    run(main)


def test_no_more_listen_than_there_is_room_for(watching: Watching) -> None:
    async def main() -> None:
        for _ in range(MOST_LISTENERS - 1):
            watching.watch._listeners.add(Listener(watching.token))
        last = await watching.listen()
        with pytest.raises(ProblemError, match="listen already"):
            await watching.watch.add(Listener(watching.token))
        watching.watch.remove(last)
        await watching.listen()

    run(main)


def test_all_are_let_go_when_the_service_stops_and_those_that_come_then(watching: Watching) -> None:
    async def main() -> None:
        listener = await watching.listen()
        watching.watch.close()
        late = Listener(watching.token)
        await watching.watch.add(late)
        for each in (listener, late):
            assert [kind for kind, _, _ in heard(each)] == ["closing"]
            assert each.ended

    run(main)


def test_without_listeners_to_all_jobs_none_of_them_is_asked_for(watching: Watching) -> None:
    async def main() -> None:
        everything, of_one = await watching.listen(), await watching.listen(job="job-9")
        assert watching.watch._sees_all
        watching.watch.remove(everything)
        assert not watching.watch._sees_all
        submitted(watching.store, at=1001.0)
        assert await watching.told(of_one) == []
        again = await watching.listen()
        assert await watching.told(again) == [], "what happened meanwhile is not news"

    run(main)


def test_how_all_stands_that_changed_since_an_event_is_told_again_in_order(watching: Watching) -> None:
    async def main() -> None:
        ids = [
            submitted(watching.store, team=team, at=at)[0] for team, at in (("a", 980.0), ("b", 996.0), ("a", 995.0))
        ]
        told = [event async for event in watching.watch.replay(1_000_000_000, None)]
        assert [event.split(b"\n")[0] for event in told] == [b"id: 995000000", b"id: 996000000"]
        assert ids[2].encode() in told[0]
        assert len([event async for event in watching.watch.replay(1_000_000_000, "a")]) == 1
        assert len([event async for event in watching.watch.replay(985_000_000, None)]) == 3

    run(main)
