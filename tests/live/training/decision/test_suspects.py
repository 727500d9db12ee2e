"""Of the jobs about which no decision comes about, the one to blame is found by halves and set aside."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fairway.engine.training.messages import Undecided
from fairway.live.training import ledger
from fairway.live.training.decision.suspects import Suspects


class Scheduler:
    """As much of a scheduler as suspects need: jobs go out of the engine and come back."""

    def __init__(self, count: int) -> None:
        names = [f"job-{number}" for number in range(count)]
        self.jobs = {name: SimpleNamespace(waiting="something") for name in names}
        self.engine = SimpleNamespace(jobs=dict.fromkeys(names))
        self.statistics = SimpleNamespace(undecided_total=0, undecided=None)
        self.set_aside: set[str] = set()
        self.clock = SimpleNamespace(today=lambda: 77.0)
        self.explained: dict[str, Any] = {}
        self.written: list[tuple[Any, ...]] = []

    def take_out(self, job: str) -> None:
        del self.engine.jobs[job]

    def bring_back(self, job: str) -> None:
        self.engine.jobs[job] = None

    def explain(self, reasons: dict[str, Any]) -> None:
        self.explained.update(reasons)

    def unexplain(self, job: str) -> None:
        del self.explained[job]

    def change(self, how: object, job: str, why: str, *, at: float) -> None:
        self.written.append((how, job, why, at))


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_the_one_to_blame_is_found_and_the_others_are_let_in_again(count: int) -> None:
    for blame in range(count):
        scheduler = Scheduler(count)
        suspects = Suspects(scheduler)  # type: ignore[arg-type]
        rounds, old = 0, set()
        while scheduler.set_aside != {f"job-{blame}"}:
            rounds += 1
            assert rounds <= (count.bit_length() + 1) ** 2 // 2 + 1
            new = tuple(job for job in sorted(scheduler.engine.jobs) if job not in old)
            if f"job-{blame}" in new:
                suspects.undecided(Undecided("it takes too long", new))
                assert scheduler.statistics.undecided == "it takes too long"
                if len(new) > 1:
                    assert set(scheduler.explained) >= set(new[len(new) - len(new) // 2 :]), "the newer half"
            else:
                old |= set(new)
                suspects.decided()
                assert (scheduler.statistics.undecided, scheduler.explained) == (None, {})
                assert set(scheduler.engine.jobs) == set(scheduler.jobs)
        suspects.decided()
        assert set(scheduler.engine.jobs) == set(scheduler.jobs) - {f"job-{blame}"}
        assert scheduler.jobs[f"job-{blame}"].waiting is None
        why = "set aside, since no decision comes about with it: it takes too long; change it and submit it again"
        assert scheduler.written == [(ledger.note_set_aside, f"job-{blame}", why, 77.0)]
        assert 1 <= scheduler.statistics.undecided_total <= rounds


def test_half_of_the_newcomers_are_held_back_the_newest() -> None:
    scheduler = Scheduler(5)
    Suspects(scheduler).undecided(Undecided("no", tuple(scheduler.jobs)))  # type: ignore[arg-type]
    assert list(scheduler.engine.jobs) == ["job-0", "job-1", "job-2"]
    assert list(scheduler.explained) == ["job-3", "job-4"]
    assert {reason.code for reason in scheduler.explained.values()} == {"HeldBack"}


def test_without_a_newcomer_that_is_still_there_no_job_is_set_aside() -> None:
    scheduler = Scheduler(2)
    suspects = Suspects(scheduler)  # type: ignore[arg-type]
    suspects.undecided(Undecided("no", ()))
    suspects.undecided(Undecided("no", ("gone",)))
    del scheduler.jobs["job-1"]
    suspects.undecided(Undecided("no", ("job-1",)))
    del scheduler.engine.jobs["job-0"]
    suspects.undecided(Undecided("no", ("job-0",)))
    assert scheduler.set_aside == set()
    assert scheduler.statistics.undecided_total == 4


def test_why_a_job_is_set_aside_is_said_again_and_of_no_other_job() -> None:
    scheduler = Scheduler(2)
    suspects = Suspects(scheduler)  # type: ignore[arg-type]
    suspects.undecided(Undecided("no", ("job-1",)))
    suspects.explain("job-0")
    assert len(scheduler.written) == 1
    suspects.explain("job-1")
    assert len(scheduler.written) == 2
    assert scheduler.written[0] == scheduler.written[1]
