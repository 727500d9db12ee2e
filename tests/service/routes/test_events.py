"""Server-sent events: nothing is missed, nobody hears what is not theirs, and the slow hold nobody up."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from fairway.service.representation import Terms
from fairway.service.watch import ROOM, Listener, Watch, event_text
from fairway.store import Store, open_store
from fairway.store.job_changes import change_job, record_progress
from fairway.store.states import JobState
from fairway.store.submissions import Submission, submit
from fairway.store.tokens import Role, Token, create_token, revoke_token
from fairway.wall_clock import MachineClock
from tests.service.listening import heard_of, listening
from tests.service.running import JOB, PATIENCE, Served, served, until
from tests.store.making import running, submitted, with_workers


def test_every_change_of_state_is_heard_in_order(own: Served, client: httpx.Client) -> None:
    with listening(client, "/events") as heard:
        for _ in range(4):
            client.post("/jobs", json=JOB)
        heard_of(heard, "job-3", "running")
        heard_of(heard, "job-4", "queued")
        own.scheduler.finish("job-1")
        heard_of(heard, "job-1", "succeeded")
        heard_of(heard, "job-4", "running")
        client.post("/jobs/job-4/cancel")
        heard_of(heard, "job-4", "cancelled")
        data = next(data for data in heard.of("job") if data["id"] == "job-4" and data["state"] == "running")
        assert set(data) == set(client.get("/jobs").json()["jobs"][0])
        assert heard.ids() == sorted(set(heard.ids())), "ids only grow"


def test_who_comes_back_hears_what_changed_meanwhile(own: Served, client: httpx.Client) -> None:
    client.post("/jobs", json=JOB)
    with listening(client, "/events", params={"after": 0}) as heard:
        heard_of(heard, "job-1", "running")
        last = heard.ids()[-1]
    own.scheduler.finish("job-1")
    for way in ({"params": {"after": last}}, {"headers": {"Last-Event-ID": str(last)}}):
        with listening(client, "/events", **way) as heard:
            heard_of(heard, "job-1", "succeeded")
    later = {"Last-Event-ID": str(int(time.time() * 1e6) + 60_000_000)}
    with listening(client, "/events", headers=later) as heard:
        client.post("/jobs", json=JOB)
        heard_of(heard, "job-2", "running")
        assert heard.states("job-1") == []


def test_one_job_is_followed_to_its_end(own: Served, client: httpx.Client) -> None:
    client.post("/jobs", json=JOB | {"steps": 100})
    with listening(client, "/jobs/job-1/events") as heard:
        heard_of(heard, "job-1", "running")
        client.post("/jobs", json=JOB)
        own.store.write(record_progress, "job-1", 60.0)
        until(lambda: heard.of("progress"), "for progress")
        assert heard.of("progress")[0]["steps_left"] == 60.0
        own.scheduler.finish("job-1")
        until(lambda: heard.over, "for the end of the stream")
        assert heard.states("job-1")[-1] == "succeeded"
        assert heard.states("job-2") == []
    with listening(client, "/jobs/job-1/events") as heard:
        until(lambda: heard.over, "for the end of the stream")
        assert heard.states("job-1") == ["succeeded"], "of a job that has ended, how it did"


def test_one_job_can_be_picked_from_all(own: Served, client: httpx.Client) -> None:
    client.post("/jobs", json=JOB)
    client.post("/jobs", json=JOB)
    with listening(client, "/events", params={"job": "job-2"}) as heard:
        heard_of(heard, "job-2", "running")
        own.scheduler.finish("job-1")
        own.scheduler.finish("job-2")
        heard_of(heard, "job-2", "succeeded")
        assert heard.states("job-1") == []


def test_a_member_hears_of_the_own_team_only(own: Served, client: httpx.Client) -> None:
    with own.client(Role.MEMBER, "a") as member, listening(member, "/events", params={"after": 0}) as heard:
        client.post("/jobs", json=JOB | {"team": "b"})
        client.post("/jobs", json=JOB)
        client.post("/jobs", json=JOB | {"team": "a"})
        heard_of(heard, "job-3", "running")
        assert {data["team"] for data in heard.of("job")} == {"a"}


def test_a_page_is_told_of_leases_and_of_how_the_system_stands(own: Served, client: httpx.Client) -> None:
    def leases() -> list[str]:
        runs = [data["runs"][0] for data in heard.of("history")]
        return [run["jobs"]["id"][job] for run in runs for job in run["leases"]["job"]]

    with listening(client, "/events", params={"pages": "true", "after": int(time.time() * 1e6)}) as heard:
        until(lambda: heard.of("status"), "for how it stands")
        client.post("/jobs", json=JOB)
        heard_of(heard, "job-1", "running")
        until(lambda: "job-1" in leases(), "for the lease of the job")


def test_a_page_of_a_member_is_told_of_no_other_team(own: Served, client: httpx.Client) -> None:
    headers = {"Authorization": f"Bearer {own.new_token(Role.MEMBER, 'red')}"}
    client.post("/jobs", json=JOB | {"team": "blue"})
    with listening(client, "/events", params={"pages": "true", "after": 0}, headers=headers) as heard:
        until(lambda: heard.of("history"), "for what happened")
        assert all(not data["runs"][0]["jobs"]["id"] for data in heard.of("history"))


def test_who_loses_the_token_hears_no_more(own: Served, client: httpx.Client) -> None:
    made = client.post("/tokens", json={"role": "reader"}).json()
    with own.client_with(made["token"]) as reader, listening(reader, "/events") as heard:
        client.delete(f"/tokens/{made['id']}")
        until(lambda: heard.over, "for the end of the stream")
        assert heard.events[-1][0] == "revoked"


def test_listeners_are_let_go_when_the_service_stops(tmp_path: Path) -> None:
    with served(tmp_path) as service, service.client() as client, listening(client, "/events") as heard:
        began = time.monotonic()
        service.server.stop()
        until(lambda: heard.over, "for the end of the stream")
        assert heard.events[-1][0] == "closing"
        assert time.monotonic() - began < PATIENCE


def test_a_listener_that_hangs_up_is_forgotten(own: Served, client: httpx.Client) -> None:
    watch = own.server.service.watch
    with own.client() as other, listening(client, "/events"), listening(other, "/events"):
        until(lambda: len(watch._listeners) == 2)
    until(lambda: not watch._listeners, "until both are forgotten")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(str(tmp_path / "store"))


class SetClock:
    """The clock of a machine whose owner sets it."""

    monotonic = staticmethod(time.monotonic)
    set_by = 0.0

    def time(self) -> float:
        return time.time() + self.set_by


def watching(store: Store, test: Callable[[Watch], object], machine: MachineClock = time) -> None:
    """Run a test of a watch on an event loop."""

    async def run() -> None:
        watch = Watch(store, lambda: Terms(emulated=True), machine=machine)
        await test(watch)  # type: ignore[misc]
        watch.close()

    with store:
        asyncio.run(asyncio.wait_for(run(), PATIENCE))


async def _heard(listener: Listener, enough: int) -> list[dict[str, object]]:
    data: list[dict[str, object]] = []
    while len(data) < enough:
        for event in await listener.take(PATIENCE) or ():
            data.append(json.loads(event.decode().partition("data: ")[2]))
    return data


def test_changes_that_carry_earlier_or_equal_times_are_not_missed(store: Store) -> None:
    """Commits come in another order than the times that they carry, and one time may be carried by two changes."""
    with_workers(store)
    now = time.time()
    submitted(store, 2, at=now)

    async def test(watch: Watch) -> None:
        listener = Listener(_valid(store))
        await watch.add(listener)
        at = time.time()
        submitted(store, at=at)
        assert [one["id"] for one in await _heard(listener, 1)] == ["job-3"]
        submitted(store, at=at - 2.0)  # asked for before the one that was just heard of, durable after it
        submitted(store, at=at)
        assert {one["id"] for one in await _heard(listener, 2)} == {"job-4", "job-5"}
        lease = running(store, "job-1", at=at)
        assert [one["state"] for one in await _heard(listener, 1)] == ["running"]
        store.write(change_job, "job-1", JobState.QUEUED, at=at, lease=lease)
        assert [one["state"] for one in await _heard(listener, 1)] == ["queued"]
        store.write(change_job, "job-1", JobState.CANCELLED, at=at)
        assert [one["state"] for one in await _heard(listener, 1)] == ["cancelled"]
        assert not listener.events

    watching(store, test)


@pytest.mark.parametrize("step", [3600.0, -3600.0], ids=["forwards", "back"])
def test_events_go_on_when_the_clock_is_set(store: Store, step: float) -> None:
    """What changes then is heard, also by who comes back, and who loses the token hears no more."""
    machine = SetClock()
    submitted(store, at=machine.time())

    async def test(watch: Watch) -> None:
        token = _valid(store)
        listener = Listener(token)
        await watch.add(listener)
        submitted(store, at=machine.time())
        assert [one["id"] for one in await _heard(listener, 1)] == ["job-2"]
        last = int(machine.time() * 1e6)
        machine.set_by += step
        submitted(store, at=machine.time())
        assert [one["id"] for one in await _heard(listener, 1)] == ["job-3"]
        replayed = [json.loads(event.decode().partition("data: ")[2])["id"] async for event in watch.replay(last, None)]
        assert "job-3" in replayed
        store.write(revoke_token, token.id, at=machine.time())
        while not listener.ended:
            await listener.take(PATIENCE)

    watching(store, test, machine)


def test_what_happened_before_is_not_told_and_what_happens_after_is(store: Store) -> None:
    submitted(store, 3, at=time.time())

    async def test(watch: Watch) -> None:
        for number in range(4, 8):
            listener = Listener(_valid(store))
            await watch.add(listener)
            submitted(store, at=time.time())
            assert [one["id"] for one in await _heard(listener, 1)] == [f"job-{number}"]
            watch.remove(listener)

    watching(store, test)


def test_thousands_of_changes_at_once_reach_who_keeps_up_and_drop_who_does_not(store: Store) -> None:
    count = ROOM + 500

    async def test(watch: Watch) -> None:
        quick, slow, other = (Listener(_valid(store)) for _ in range(3))
        other.team = "other"
        for listener in (quick, slow, other):
            await watch.add(listener)
        jobs = [Submission(spec=JOB) for _ in range(count)]
        await asyncio.to_thread(store.write, submit, jobs, at=time.time())
        assert len({one["id"] for one in await _heard(quick, count)}) == count
        events = await slow.take(PATIENCE)
        assert events is not None
        assert len(events) == 1
        assert b"event: dropped" in events[0]
        assert b"connect again with the last id you saw" in events[0]
        assert await slow.take(PATIENCE) is None
        assert not other.events

    watching(store, test)


def test_an_event_is_one_block_of_lines() -> None:
    assert event_text("job", '{"a": 1}', 7) == b'id: 7\nevent: job\ndata: {"a": 1}\n\n'


def _valid(store: Store) -> Token:
    """A token that the store knows."""
    return store.write(create_token, Role.ADMIN, at=1.0)[1]
