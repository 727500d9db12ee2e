"""Leases as stretches of a Gantt chart."""

from __future__ import annotations

from fairway.report.training.gantt import MOST_WORKERS_PER_TYPE, Gantt, gantt

from tests.report.records import four_jobs, jobs, leases, many_leases, nothing_ran, record


def stretches(chart: Gantt) -> list[tuple[int, float, float, int]]:
    columns = (chart.row.tolist(), chart.start.tolist(), chart.end.tolist(), chart.job.tolist())
    return list(zip(*columns, strict=True))


def test_a_gang_takes_a_row_for_each_worker_and_leases_that_follow_each_other_are_one() -> None:
    chart = gantt(four_jobs(), most=100)
    v100, k80 = (block.first for block in chart.rows)
    assert stretches(chart) == [
        (v100, 0, 100, 0),
        (v100, 100, 300, 1),
        (v100 + 1, 100, 300, 1),
        (k80, 100, 300, 2),
        (k80, 300, 350, 1),
    ]
    assert chart.complete
    assert chart.until == 400


def test_a_pause_and_a_change_of_partner_keep_leases_apart() -> None:
    rows = [(0, 0, 0, 10, [0]), (0, 0, 20, 30, [0]), (0, 0, 30, 40, [0])]
    chart = gantt(record(jobs(ids="ab"), leases(rows, partners=[-1, -1, 1])), most=100)
    assert len(chart) == 3


def test_what_does_not_fit_is_left_out_from_the_end() -> None:
    whole = gantt(many_leases(2000), most=10_000)
    part = gantt(many_leases(2000), most=500)
    assert len(whole) == 2000
    assert not part.complete
    assert len(part) <= 500
    assert part.until < whole.until
    assert part.end.max() <= part.until
    assert set(stretches(part)) <= set(stretches(whole))


def test_of_a_large_type_the_first_workers_are_shown() -> None:
    held = leases([(0, 0, 0, 10, [0]), (0, 0, 0, 10, [500])])
    chart = gantt(record(jobs(ids="a"), held, workers={"v100": 1000}), most=100)
    assert (chart.rows[0].workers, chart.rows[0].shown) == (1000, MOST_WORKERS_PER_TYPE)
    assert len(chart) == 1


def test_without_leases_there_is_nothing_to_draw() -> None:
    assert len(gantt(nothing_ran(), most=100)) == 0
