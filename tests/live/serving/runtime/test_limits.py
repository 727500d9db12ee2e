"""How long stages and loads may take."""

from __future__ import annotations

import math

import pytest

from fairway.live.serving.runtime.limits import Limits


def test_a_stage_may_take_several_times_what_was_expected_and_a_while_more() -> None:
    limits = Limits()
    assert limits.of_stage(2.0, is_known=True) == pytest.approx(30.0)
    assert limits.of_stage(1e-3, is_known=False) == pytest.approx(30.01), "a guess of ours is no measurement"
    assert limits.of_stage(0.01, is_known=True, left=1.0) == pytest.approx(6.0), "its client waits no longer"
    assert limits.of_stage(2.0, is_known=True, left=1.0) == pytest.approx(25.0), "a short deadline ends no good worker"
    assert limits.of_load(2.0) == pytest.approx(35.0)
    assert limits.of_load(None) == pytest.approx(60.0)


def test_what_was_given_counts() -> None:
    limits = Limits(stage_seconds=3.0, load_seconds=4.0)
    assert limits.of_stage(100.0, is_known=True, left=0.1) == 3.0
    assert limits.of_load(100.0) == 4.0


def test_a_run_is_overdue_after_several_times_what_is_usual_and_the_first_one_in_a_process_later() -> None:
    assert Limits.overdue_after(1.0, is_known=True, longest=0.0) == 6.0
    assert Limits.overdue_after(1.0, is_known=True, longest=0.5) == 5.0
    assert Limits.overdue_after(1.0, is_known=True, longest=4.0) == 14.0, "it has taken that long before"
    assert Limits.overdue_after(1.0, is_known=False, longest=0.5) == 3.5
    assert Limits.overdue_after(1.0, is_known=False, longest=0.0) == math.inf
