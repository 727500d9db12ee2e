"""What measured rates tell the engine and the store: new ones, of jobs that the engine has, in its own seconds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fairway.engine.training.messages import Grant, RateMeasured
from fairway.live.training import measurements
from fairway.store.job_changes import replace_rates
from fairway.store.records import MeasuredRate


class Table:
    """The engine's jobs: what it believes of how fast they run here, and elsewhere."""

    def __init__(self, rates: dict[str, float], types: int = 2) -> None:
        self._names = list(rates)
        self.rate = np.array(list(rates.values()))
        self.rates = np.tile(self.rate[:, None], (1, types))

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def position(self, name: str) -> int:
        return self._names.index(name)


class Scheduler:
    def __init__(self, believed: dict[str, float], seen: dict[str, float | None], *, unknown: bool, scale: float = 1.0):
        self.engine = SimpleNamespace(jobs=Table(believed), types=("v100", "k80"))
        self.jobs = {
            name: SimpleNamespace(id=name, steps_per_second=rate, measured={}, spec=unknown)
            for name, rate in seen.items()
        }
        self.leases: list[Any] = []
        self.clock = SimpleNamespace(time_scale=scale, today=lambda: 9.0)
        self.beliefs = SimpleNamespace(elsewhere=lambda _seen, rate, _name: rate / 4)
        self.written: list[MeasuredRate] = []

    def change(self, how: object, rows: list[MeasuredRate]) -> None:
        assert how is replace_rates
        self.written += rows

    def lease(self, *jobs: str, revoked: bool = False) -> Any:
        grant = Grant(1, jobs, "v100", (0,), 5.0)
        self.leases.append(SimpleNamespace(grant=grant, revoked=revoked, recorded=None, believed=None))
        return self.leases[-1]

    def news(self) -> list[RateMeasured]:
        return measurements.news(self)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _descriptions_say_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurements, "is_unknown", lambda spec: spec)


def test_a_rate_that_differs_from_the_belief_is_told_once_and_written_once() -> None:
    scheduler = Scheduler({"a": 2.0}, {"a": 3.0}, unknown=False)
    scheduler.lease("a")
    assert scheduler.news() == [RateMeasured(("a",), "v100", (3.0,))]
    assert scheduler.written == [MeasuredRate("a", "v100", "", 3.0, 9.0)]
    assert scheduler.jobs["a"].measured == {"v100": 3.0}
    assert scheduler.news() == []
    assert len(scheduler.written) == 1
    scheduler.jobs["a"].steps_per_second = 4.0
    assert scheduler.news() == [RateMeasured(("a",), "v100", (4.0,))]
    assert scheduler.written[1:] == [MeasuredRate("a", "v100", "", 4.0, 9.0)]


def test_a_rate_as_believed_is_written_but_no_news() -> None:
    scheduler = Scheduler({"a": 2.0}, {"a": 2.05}, unknown=False)
    scheduler.lease("a")
    assert scheduler.news() == []
    assert scheduler.written == [MeasuredRate("a", "v100", "", 2.05, 9.0)]


def test_what_was_seen_first_of_a_job_that_nothing_is_known_of_says_what_to_expect_elsewhere() -> None:
    scheduler = Scheduler({"a": 2.0}, {"a": 2.0}, unknown=True)
    scheduler.lease("a")
    assert scheduler.news() == [
        RateMeasured(("a",), "v100", (2.0,)),
        RateMeasured(("a",), "k80", (0.5,), expected=True),
    ]
    assert scheduler.news() == [], "it is not the first any more, and as believed"
    scheduler.engine.jobs.rates[0, 1] = 0.0
    scheduler.jobs["a"].steps_per_second = 8.0
    assert scheduler.news() == [RateMeasured(("a",), "v100", (8.0,))], "it cannot run on the other type"


def test_two_that_share_are_told_and_written_together_each_beside_the_other() -> None:
    scheduler = Scheduler({"a": 2.0, "b": 1.0}, {"a": 2.0, "b": 1.5}, unknown=True)
    scheduler.lease("a", "b")
    assert scheduler.news() == [RateMeasured(("a", "b"), "v100", (2.0, 1.5))]
    assert scheduler.written == [MeasuredRate("a", "v100", "b", 2.0, 9.0), MeasuredRate("b", "v100", "a", 1.5, 9.0)]
    assert scheduler.jobs["a"].measured == {}


@pytest.mark.parametrize("rate", [None, 0.0, -1.0, 1e300, float("inf")])
def test_what_makes_no_sense_or_is_not_known_yet_is_passed_over(rate: float | None) -> None:
    scheduler = Scheduler({"a": 2.0, "b": 1.0}, {"a": 3.0, "b": rate}, unknown=False)
    scheduler.lease("a", "b")
    assert scheduler.news() == []
    assert scheduler.written == []


def test_leases_that_end_and_jobs_that_the_engine_does_not_have_are_passed_over() -> None:
    scheduler = Scheduler({"a": 2.0}, {"a": 3.0, "b": 3.0}, unknown=False)
    scheduler.lease("a", revoked=True)
    scheduler.lease("b")
    scheduler.lease("a", "b")
    assert scheduler.news() == []


def test_rates_are_in_the_seconds_of_the_engine() -> None:
    scheduler = Scheduler({"a": 2.0}, {"a": 30.0}, unknown=False, scale=10.0)
    scheduler.lease("a")
    assert scheduler.news() == [RateMeasured(("a",), "v100", (3.0,))]
    assert scheduler.written[0].steps_per_second == 3.0
