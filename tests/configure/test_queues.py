"""What a queue says of the time that its jobs have left."""

from __future__ import annotations

from fairway.configure.queues import Queue


def test_each_job_has_what_the_stages_after_it_leave() -> None:
    assert Queue(0, 3, 1.0, deadlines=[1.0, 2.5, 4.0]).left(0.5) == [0.5, 2.0, 3.5]


def test_where_no_deadlines_are_known_the_oldest_job_counts() -> None:
    assert Queue(0, 3, 1.0).left(0.25) == [0.75]
