from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from fairway.simtest.plan import Plan, Step
from fairway.simtest.shrinking import shrunk


def _plan(count: int) -> Plan:
    return Plan(
        "training", "uniform", 7, {"workers": 2}, tuple(Step(float(i), "tick", {"number": i}) for i in range(count))
    )


def _numbers(plan: Plan) -> set[int]:
    return {step.arguments["number"] for step in plan.steps}


@given(st.integers(1, 60), st.data())
def test_a_plan_shrinks_to_the_steps_that_it_needs_to_fail(count: int, data: st.DataObject) -> None:
    needed = data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=3))
    small = shrunk(_plan(count), lambda plan: needed <= _numbers(plan), most_attempts=10_000)
    assert _numbers(small) == needed
    assert [step.at for step in small.steps] == sorted(step.at for step in small.steps)


def test_shrinking_ends_after_so_many_attempts() -> None:
    tried = []
    shrunk(_plan(100), lambda plan: tried.append(plan) is not None, most_attempts=5)
    assert len(tried) == 5


def test_a_plan_is_the_same_after_a_way_through_json() -> None:
    plan = _plan(3)
    assert Plan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
