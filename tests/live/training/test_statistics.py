"""What a controller counts of its decisions."""

from __future__ import annotations

from fairway.live.training.statistics import Statistics


def test_a_decision_ends_that_nothing_was_decided_and_the_last_thousand_are_kept() -> None:
    counted = Statistics(5.0, undecided="too slow")
    counted.count_decision(0.5)
    assert (counted.solves, counted.undecided, counted.decision_seconds) == (1, None, [0.5])
    for number in range(1000):
        counted.count_decision(float(number))
    assert (counted.solves, len(counted.decision_seconds)) == (1001, 1000)
    assert counted.decision_seconds[0] == 0.0
    assert counted.decision_seconds[-1] == 999.0


def test_it_begins_with_nothing() -> None:
    new = Statistics(5.0)
    totals = (
        new.leases_granted_total, new.preemptions_total, new.restarts_total, new.failures_total,
        new.agent_restarts_total, new.recoveries_total, new.rounds, new.solves, new.undecided_total,
    )  # fmt: skip
    assert (new.started_at, *totals) == (5.0, *[0] * 9)
