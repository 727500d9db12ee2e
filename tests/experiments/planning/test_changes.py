"""Changes and goals as text: what can be said, and one line for what cannot."""

from __future__ import annotations

import math

import pytest

from fairway.errors import InputError
from fairway.experiments.planning import Change, Goal


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("add a100=8", Change(add={"a100": 8})),
        ("add a100=8, v100=2", Change(add={"a100": 8, "v100": 2})),
        ("add v100=1, add v100=2", Change(add={"v100": 3})),
        ("remove k80=4, add v100=1", Change(add={"v100": 1}, remove={"k80": 4})),
        ("weight team b=2", Change(weights={"team b": 2.0})),
        ("policy max-min-fairness:agnostic,space-sharing", Change(policy="max-min-fairness:agnostic,space-sharing")),
        ("slo-scale 1.5, policy fifo", Change(policy="fifo", slo_scale=1.5)),
    ],
)
def test_a_change_reads_as_it_is_written(text: str, change: Change) -> None:
    assert Change.parse(text) == change
    assert Change.parse(str(change)) == change


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "'' changes nothing"),
        ("a100=8", "'a100=8' given; expected one of add, remove, weight, policy, slo-scale"),
        ("ad a100=8", "did you mean 'add'"),
        ("add a100", "add: 'a100' given, expected TYPE=COUNT"),
        ("add a100=0", "expected TYPE=COUNT with a count from 1"),
        ("add a100=-1", "expected TYPE=COUNT"),
        ("add a100=999999999", "expected TYPE=COUNT"),
        ("add v100=1, remove v100=1", "v100: added and removed in one change"),
        ("weight vision", "weight: 'vision' given, expected TEAM=NUMBER"),
        ("weight vision=heavy", "weight vision: 'heavy' given, expected a number above 0"),
        ("weight vision=nan", "weight vision: "),
        ("weight vision=1e300", "expected a size from"),
        ("slo-scale 0", "slo-scale: 0"),
        ("slo-scale inf", "slo-scale: "),
    ],
)
def test_what_is_no_change_is_one_line(text: str, line: str) -> None:
    with pytest.raises(InputError) as refused:
        Change.parse(text)
    assert line in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "metric", "bound", "within", "beyond"),
    [
        ("p95 wait < 1h", "p95 wait", 3600.0, 3599.0, 3600.0),
        ("Mean  JCT <= 2.5h", "mean jct", 9000.0, 9000.0, 9001.0),
        ("slo >= 99%", "slo", 0.99, 0.99, 0.98),
        ("slo > 0.5", "slo", 0.5, 0.51, 0.5),
        ("cost < $100", "cost", 100.0, 99.0, 100.0),
        ("unfinished <= 0", "unfinished", 0.0, 0.0, 1.0),
    ],
)
def test_a_goal_is_reached_within_its_bound(text: str, metric: str, bound: float, within: float, beyond: float) -> None:
    goal = Goal.parse(text)
    assert (goal.metric, goal.bound) == (metric, pytest.approx(bound))
    assert goal.reached(within)
    assert not goal.reached(beyond)
    assert not goal.reached(math.nan)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("p95 wait", "'p95 wait' given, expected a number and its bound"),
        ("waiting < 1h", "'waiting' is not known; known: mean jct"),
        ("p95 wait < soon", "'soon' given for p95 wait, expected a time"),
        ("slo > most", "'most' given for slo, expected a share"),
        ("cost < -3", "'-3' given for cost, expected dollars"),
    ],
)
def test_what_is_no_goal_is_one_line(text: str, line: str) -> None:
    with pytest.raises(InputError) as refused:
        Goal.parse(text)
    assert line in str(refused.value)
