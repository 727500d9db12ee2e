"""Leases: two never hold the same worker, numbers are never used again, late messages change nothing."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule
from sqlalchemy import Connection, insert, select
from sqlalchemy.exc import IntegrityError

from fairway.engine.training.messages import Grant
from fairway.errors import InputError
from fairway.store import Store, open_store
from fairway.store.database import schema
from fairway.store.errors import ConflictError, HeldError, IllegalChangeError, StoreError, UnknownError
from fairway.store.job_changes import change_job, run_jobs
from fairway.store.leases import (
    end_lease,
    end_leases,
    extend_leases,
    grant_lease,
    grant_leases,
    last_lease,
    lease_numbered,
    open_leases,
    plan_lease,
    start_lease,
)
from fairway.store.queries import snapshot
from fairway.store.states import JobState
from tests.store.making import granted, submitted, with_workers


def test_a_lease_is_granted_extended_and_ended(store: Store) -> None:
    with_workers(store)
    (job,) = submitted(store)
    number = granted(store, job, workers=(1, 3), at=2.0)
    assert store.write(extend_leases, 200.0, at=3.0) == 1
    lease = store.read(lease_numbered, number)
    assert (lease.jobs, lease.accelerator, lease.workers) == ((job,), "v100", (1, 3))
    assert (lease.granted_at, lease.extended_at, lease.until, lease.held) == (2.0, 3.0, 200.0, True)
    assert store.write(end_lease, number, at=4.0, reason="preempted")
    ended = store.read(lease_numbered, number)
    assert (ended.ended_at, ended.reason, ended.held) == (4.0, "preempted", False)
    assert store.write(extend_leases, 300.0, at=5.0) == 0
    assert not store.write(end_lease, number, at=5.0, reason="again")
    assert not store.write(start_lease, number, at=5.0)
    assert store.read(lease_numbered, number) == ended
    assert store.read(open_leases) == []


def test_only_some_leases_can_be_extended(store: Store) -> None:
    with_workers(store)
    first, second = (granted(store, job, workers=(place,)) for place, job in enumerate(submitted(store, 2)))
    assert store.write(extend_leases, 200.0, at=3.0, only=[second]) == 1
    assert [store.read(lease_numbered, number).until for number in (first, second)] == [100.0, 200.0]


def test_a_held_worker_is_not_given_again_until_it_is_free(store: Store) -> None:
    with_workers(store)
    first, second = submitted(store, 2)
    held = granted(store, first, workers=(0, 1))
    with pytest.raises(HeldError, match=rf"worker v100 1 is held by lease {held}, lease {held + 1} has to wait"):
        granted(store, second, workers=(1, 2))
    assert [lease.number for lease in store.read(open_leases)] == [held], "nothing of the refused lease remains"
    store.write(end_lease, held, at=3.0)
    assert granted(store, second, workers=(1, 2)) == held + 1


def test_a_planned_lease_waits_for_the_one_before_it(store: Store) -> None:
    with_workers(store)
    first, second = submitted(store, 2)
    held = granted(store, first)
    planned = store.write(plan_lease, Grant(held + 1, (second,), "v100", (0,), 100.0), at=3.0)
    assert not planned.held
    later = Grant(held + 2, (first,), "v100", (1,), 100.0)
    with pytest.raises(HeldError, match=rf"worker v100 0 is held by lease {held}"):
        store.write(start_lease, planned.number, at=3.0)
    with pytest.raises(HeldError, match=rf"job '{first}' holds lease {held}"):
        store.write(grant_lease, later, at=3.0)
    store.write(end_lease, held, at=4.0)
    store.write(grant_lease, later, at=4.0)
    assert store.write(start_lease, planned.number, at=5.0)
    assert not store.write(start_lease, planned.number, at=6.0)
    assert store.read(lease_numbered, planned.number).granted_at == 5.0


def test_a_planned_lease_can_be_withdrawn(store: Store) -> None:
    with_workers(store)
    (job,) = submitted(store)
    store.write(plan_lease, Grant(1, (job,), "v100", (0,), 100.0), at=3.0)
    assert store.write(end_lease, 1, at=4.0, reason="withdrawn")
    assert not store.write(start_lease, 1, at=5.0)
    assert store.read(lease_numbered, 1).granted_at is None


def test_many_leases_are_granted_and_ended_at_once_or_not_at_all(store: Store) -> None:
    with_workers(store, 1300)
    jobs = submitted(store, 1300)
    grants = [Grant(place + 1, (job,), "v100", (place,), 9.0) for place, job in enumerate(jobs)]
    store.write(grant_leases, grants[:1100], at=1.0)
    for wrong in (replace(grants[1101], workers=(1100,)), replace(grants[1101], jobs=(jobs[1100],))):
        with pytest.raises(HeldError, match="lease 1101, lease 1102 has to wait"):
            store.write(grant_leases, [grants[1100], wrong], at=1.0)
    with pytest.raises(ConflictError, match="numbers up to 1102 were used"):
        store.write(grant_leases, [grants[1101], grants[1100]], at=1.0)
    assert len(store.read(open_leases)) == 1100
    store.write(run_jobs, {job: place + 1 for place, job in enumerate(jobs[:1099])}, at=2.0)
    with pytest.raises(HeldError, match=f"lease 5 is not held for job '{jobs[1099]}'"):
        store.write(run_jobs, {jobs[1099]: 5}, at=2.0)
    with pytest.raises(IllegalChangeError, match="is running and cannot become running"):
        store.write(run_jobs, {jobs[1099]: 1100, jobs[0]: 1}, at=2.0)
    assert len(store.read(snapshot).attempts) == 1099
    assert store.write(end_leases, [7], at=3.0) == {7}
    assert store.write(end_leases, range(1, 1101), at=4.0) == {*range(1, 1101)} - {7}
    with pytest.raises(UnknownError, match="no lease 1101"):
        store.write(end_leases, [1, 1101], at=5.0)
    store.write(grant_leases, [], at=5.0)
    store.write(grant_leases, [replace(grants[1250], workers=tuple(range(1300)))], at=5.0)


def test_numbers_only_grow_also_over_restarts(url: str) -> None:
    with open_store(url) as store:
        with_workers(store)
        (job,) = submitted(store)
        store.write(grant_lease, Grant(7, (job,), "v100", (0,), 100.0), at=1.0)
        store.write(end_lease, 7, at=2.0)
    with open_store(url) as store:
        assert store.read(last_lease) == 7
        for number in (0, 3, 7):
            with pytest.raises(ConflictError, match=f"lease {number} cannot be new: numbers up to 7 were used"):
                store.write(grant_lease, Grant(number, (job,), "v100", (0,), 100.0), at=3.0)
        store.write(grant_lease, Grant(8, (job,), "v100", (0,), 100.0), at=3.0)


@pytest.mark.parametrize(
    ("grant", "error", "message"),
    [
        (Grant(1, (), "v100", (0,), 1.0), InputError, "expected at least one, none twice"),
        (Grant(1, ("a",), "v100", (), 1.0), InputError, "expected at least one, none twice"),
        (Grant(1, ("a", "a"), "v100", (0,), 1.0), InputError, "none twice"),
        (Grant(1, ("a",), "v100", (0, 0), 1.0), InputError, "none twice"),
        (Grant(1, ("b",), "v100", (0,), 1.0), UnknownError, "lease 1: no job 'b'"),
        (Grant(1, ("a",), "v100", (4,), 1.0), UnknownError, "lease 1: no worker v100 4 is registered"),
        (Grant(1, ("a",), "k80", (0,), 1.0), UnknownError, "no worker k80 0"),
    ],
)
def test_a_lease_that_makes_no_sense_is_refused(
    store: Store, grant: Grant, error: type[Exception], message: str
) -> None:
    with_workers(store)
    submitted(store, id="a")
    with pytest.raises(error, match=message):
        store.write(grant_lease, grant, at=1.0)
    assert store.read(last_lease) == 0
    with pytest.raises(UnknownError, match="no lease 1"):
        store.write(end_lease, 1, at=1.0)


def test_a_job_that_has_ended_gets_no_lease_and_numbers_too_large_are_unknown(store: Store) -> None:
    with_workers(store)
    (job,) = submitted(store)
    store.write(change_job, job, JobState.CANCELLED, at=2.0)
    with pytest.raises(IllegalChangeError, match=f"job '{job}' is cancelled and needs no workers"):
        granted(store, job)
    for number in (10**30, -(10**30)):
        with pytest.raises(UnknownError, match=f"no lease {number}"):
            store.read(lease_numbered, number)


def test_the_database_itself_refuses_a_second_holder(store: Store) -> None:
    with_workers(store)
    first, second = submitted(store, 2)
    held = granted(store, first)
    store.write(plan_lease, Grant(held + 1, (second,), "v100", (1,), 9.0), at=3.0)
    rows = [
        insert(schema.held_workers).values(accelerator="v100", worker=0, lease=held + 1),
        insert(schema.lease_jobs).values(job=first, lease=held + 1, held=True),
        insert(schema.held_workers).values(accelerator="v100", worker=9, lease=held + 1),
    ]
    for row in rows:
        with pytest.raises(StoreError) as raised:
            store.write(lambda connection, row=row: connection.execute(row) and None)
        assert isinstance(raised.value.__cause__, IntegrityError)


def test_many_at_once_who_want_one_worker_get_it_one_after_the_other(store: Store) -> None:
    with_workers(store, 1)
    jobs = submitted(store, 16)

    def take(connection: Connection, job: str) -> bool:
        number = last_lease(connection) + 1
        grant_lease(connection, Grant(number, (job,), "v100", (0,), 9.0), at=1.0)
        return True

    def attempt(job: str) -> bool:
        try:
            return store.write(take, job)
        except HeldError:
            return False

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(attempt, jobs)) == 1


class LeasesOverTime(RuleBasedStateMachine):
    """Leases come and go in any order, with late messages and restarts, beside a model that knows who holds what."""

    numbers: Bundle[int] = Bundle("numbers")

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.store = open_store(self.directory.name)
        self.holders: dict[int, int] = {}
        self.busy: dict[str, int] = {}
        self.planned: dict[int, tuple[str, tuple[int, ...]]] = {}
        self.late: set[int] = set()
        self.last = 0

    @initialize()
    def begin(self) -> None:
        with_workers(self.store, 4)
        self.jobs = submitted(self.store, 4)

    def _free(self, job: str, workers: tuple[int, ...]) -> bool:
        return job not in self.busy and not any(worker in self.holders for worker in workers)

    def _holders_of(self, job: str, workers: tuple[int, ...]) -> set[int]:
        return {self.holders[worker] for worker in workers if worker in self.holders} | (
            {self.busy[job]} if job in self.busy else set()
        )

    def _hold(self, number: int, job: str, workers: tuple[int, ...]) -> None:
        self.busy[job] = number
        self.holders |= dict.fromkeys(workers, number)

    @rule(
        target=numbers,
        job=st.integers(0, 3),
        workers=st.sets(st.integers(0, 3), min_size=1).map(lambda found: tuple(sorted(found))),
        skip=st.integers(0, 2),
        plan=st.booleans(),
    )
    def grant(self, job: int, workers: tuple[int, ...], skip: int, plan: bool) -> object:
        number, name = self.last + 1 + skip, self.jobs[job]
        grant = Grant(number, (name,), "v100", workers, until=9.0)
        if plan:
            self.store.write(plan_lease, grant, at=1.0)
            self.planned[number] = (name, workers)
        elif self._free(name, workers):
            self.store.write(grant_lease, grant, at=1.0)
            self._hold(number, name, workers)
        else:
            with pytest.raises(HeldError):
                self.store.write(grant_lease, grant, at=1.0)
            return multiple()
        self.last = number
        return number

    @rule(number=numbers)
    def start(self, number: int) -> None:
        if number not in self.planned:
            assert not self.store.write(start_lease, number, at=2.0)
        elif self._free(*self.planned[number]):
            assert self.store.write(start_lease, number, at=2.0)
            self._hold(number, *self.planned.pop(number))
        elif any(holder < number for holder in self._holders_of(*self.planned[number])):
            with pytest.raises(HeldError):
                self.store.write(start_lease, number, at=2.0)
        else:
            assert self.store.write(start_lease, number, at=2.0), "news that comes after those of the next"
            job, _ = self.planned.pop(number)
            self.late.add(number)
            self.busy.setdefault(job, number)

    @rule(number=numbers)
    def end(self, number: int) -> None:
        is_open = number in self.planned or number in self.late or number in self.busy.values()
        assert self.store.write(end_lease, number, at=3.0) == is_open
        self.planned.pop(number, None)
        self.late.discard(number)
        self.holders = {worker: lease for worker, lease in self.holders.items() if lease != number}
        self.busy = {job: lease for job, lease in self.busy.items() if lease != number}

    @rule(number=numbers)
    def grant_an_old_number(self, number: int) -> None:
        with pytest.raises(ConflictError):
            self.store.write(grant_lease, Grant(number, (self.jobs[0],), "v100", (0,), 9.0), at=4.0)

    @rule()
    def restart(self) -> None:
        self.store.close()
        self.store = open_store(self.directory.name)

    @invariant()
    def the_store_agrees_on_who_holds_what(self) -> None:
        rows = self.store.read(lambda connection: connection.execute(select(schema.held_workers)).all())
        assert {row.worker: row.lease for row in rows} == self.holders
        leases = self.store.read(open_leases)
        held = [worker for lease in leases if lease.held and lease.number not in self.late for worker in lease.workers]
        assert len(held) == len(set(held))
        assert sorted(held) == sorted(self.holders)
        assert {lease.number for lease in leases if not lease.held} == set(self.planned)
        assert self.store.read(last_lease) == self.last

    def teardown(self) -> None:
        self.store.close()
        self.directory.cleanup()


TestLeasesOverTime = LeasesOverTime.TestCase
TestLeasesOverTime.settings = settings(max_examples=12, stateful_step_count=25)


def test_leases_on_parts_hold_a_worker_together_but_no_more_than_the_whole_of_it(store: Store) -> None:
    with_workers(store)
    jobs = submitted(store, 4)
    store.write(grant_lease, Grant(1, (jobs[0],), "v100", (0,), 10.0, part=0.5), at=1.0)
    store.write(grant_lease, Grant(2, (jobs[1],), "v100", (0,), 10.0, part=0.3), at=1.0)
    with pytest.raises(HeldError, match=r"0\.8 of worker v100 0 are held by leases 1, 2, lease 3 has to wait"):
        store.write(grant_lease, Grant(3, (jobs[2],), "v100", (0,), 10.0, part=0.3), at=1.0)
    with pytest.raises(HeldError, match=r"0\.8 of worker v100 0 are held"):
        store.write(grant_lease, Grant(3, (jobs[2],), "v100", (0,), 10.0), at=1.0)
    store.write(end_lease, 1, at=2.0)
    store.write(grant_lease, Grant(3, (jobs[2],), "v100", (0,), 10.0, part=0.7), at=2.0)
    assert [(lease.number, lease.part) for lease in store.read(open_leases)] == [(2, 0.3), (3, 0.7)]


def test_a_part_waits_for_a_whole_worker_that_is_held(store: Store) -> None:
    with_workers(store)
    jobs = submitted(store, 2)
    store.write(grant_lease, Grant(1, (jobs[0],), "v100", (0,), 10.0), at=1.0)
    with pytest.raises(HeldError, match="worker v100 0 is held by lease 1, lease 2 has to wait"):
        store.write(grant_lease, Grant(2, (jobs[1],), "v100", (0,), 10.0, part=0.1), at=1.0)


def test_news_that_comes_after_the_next_lease_has_begun_holds_no_worker_and_changes_nothing_of_that_one(
    store: Store,
) -> None:
    with_workers(store)
    first, second = submitted(store, 2)
    for number, job in ((1, first), (2, second)):
        store.write(plan_lease, Grant(number, (job,), "v100", (0, 1), until=100.0, restart=0.0), at=1.0)
    assert store.write(start_lease, 2, at=3.0)
    assert store.write(start_lease, 1, at=2.0), "it ran before, or the other one could not have begun"
    store.write(run_jobs, {first: 1}, at=4.0, started_at=2.0)
    store.write(change_job, first, JobState.FAILED, at=4.0, exit_code=1)
    assert store.write(end_lease, 1, at=4.0)
    store.write(run_jobs, {second: 2}, at=4.0)
    with pytest.raises(HeldError, match="is held by lease 2"):
        granted(store, submitted(store)[0], workers=(1,))
