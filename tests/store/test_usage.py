"""What jobs have used, added up by the database as it would be by hand."""

from __future__ import annotations

import pytest

from fairway.engine.training.messages import Grant
from fairway.store import Store
from fairway.store.leases import end_lease, grant_lease, last_lease
from fairway.store.usage import usage
from tests.store.making import submitted, with_workers


def lease(store: Store, *jobs: str, workers: tuple[int, ...], accelerator: str = "v100", begin: float,
          end: float | None) -> None:  # fmt: skip
    number = store.read(last_lease) + 1
    store.write(grant_lease, Grant(number, jobs, accelerator, workers, until=1e6), at=begin)
    if end is not None:
        store.write(end_lease, number, at=end)


def test_seconds_are_added_up_by_team_submitter_and_type_within_the_time(store: Store) -> None:
    with_workers(store, 4)
    with_workers(store, 2, "k80", agent="there")
    [one] = submitted(store, team="a", submitted_by="alice (1)")
    [two] = submitted(store, team="a", submitted_by="bob (2)")
    [other] = submitted(store, submitted_by="alice (1)")
    submitted(store, team="idle", submitted_by="carol (3)")
    lease(store, one, workers=(0, 1), begin=100.0, end=200.0)
    lease(store, one, workers=(0,), accelerator="k80", begin=300.0, end=310.0)
    lease(store, one, two, workers=(0,), begin=400.0, end=500.0)  # which share it
    lease(store, other, workers=(2,), begin=50.0, end=None)  # and is held still

    def used(since: float, until: float, team: str | None = None) -> list[tuple[object, ...]]:
        found = store.read(usage, since=since, until=until, team=team)
        return [(each.team, each.submitted_by, each.jobs, each.seconds) for each in found]

    assert used(0.0, 1000.0) == [
        (None, "alice (1)", 1, {"v100": pytest.approx(950.0)}),
        ("a", "alice (1)", 1, {"k80": pytest.approx(10.0), "v100": pytest.approx(250.0)}),
        ("a", "bob (2)", 1, {"v100": pytest.approx(50.0)}),
    ]
    assert used(150.0, 405.0, "a") == [
        ("a", "alice (1)", 1, {"k80": pytest.approx(10.0), "v100": pytest.approx(102.5)}),
        ("a", "bob (2)", 1, {"v100": pytest.approx(2.5)}),
    ]
    assert used(600.0, 700.0, "a") == []
    assert used(0.0, 40.0) == []
