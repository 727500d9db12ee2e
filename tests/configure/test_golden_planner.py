"""Questions to a planner, with the answers of a reference simulation written separately.

They are the five best first configurations and what their paths cost, to 1e-6.
"""

from __future__ import annotations

from typing import Any

import pytest

from fairway import Answer, Application, Platform
from fairway.configure.budgets.shares import Shares
from fairway.configure.search.esg_search import search_group
from fairway.configure.search.front import search_front
from fairway.configure.tables import Tables
from fairway.sim.scenarios.esg_apps import esg_apps
from tests.figures import esg_planner_questions

Golden = tuple[Platform, tuple[Application, ...], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def golden() -> Golden:
    scenario = esg_apps(apps="dag", overhead_seconds=0.0)
    return scenario.platform(), scenario.applications(), esg_planner_questions()


def answer(search: str, application: Application, platform: Platform, case: dict[str, Any]) -> Answer:
    tables, shares = Tables(application, platform), Shares.of(application)
    group, seconds = shares.group_rests[case["node"]], case["budget_after_fetch_ms"] / 1e3
    if search == "front":
        return search_front(tables, group[0], group[1:], case["queue_len"], seconds, 5)
    return search_group(tables, group, case["queue_len"], seconds, 5, form=search)  # type: ignore[arg-type]


@pytest.mark.parametrize("search", ["front", "layered", "a-star"])
def test_every_question_has_the_answer_of_the_reference(golden: Golden, search: str) -> None:
    platform, applications, cases = golden
    assert len(cases) == 39
    for case in cases:
        application = applications[case["app"]]
        found = answer(search, application, platform, case)
        starts = [candidate.plan[case["node"]] for candidate in found.candidates]
        assert [list(start) for start in starts] == [triple for triple, _, _ in case["answers"]]
        costs = [1e3 * candidate.cost_dollars for candidate in found.candidates]
        assert costs == pytest.approx([cost for _, _, cost in case["answers"]], rel=1e-6)
        times = [1e3 * application.profiles[case["node"]].seconds_of(*start) for start in starts]
        assert times == pytest.approx([time for _, time, _ in case["answers"]], rel=1e-6)
        assert Shares.of(application).share(case["node"]) == pytest.approx(case["share"], rel=1e-6)


def test_the_scaled_weights_are_those_of_the_reference(golden: Golden) -> None:
    reference = [
        [0.1617, 0.5468, 0.2914],
        [0.2630, 0.0721, 0.6650],
        [0.0629, 0.2294, 0.7076],
        [0.1728, 0.0473, 0.5326, 0.1609, 0.0863],
        [0.2328, 0.6516, 0.0638, 0.5879, 0.1156],
        [0.0831, 0.3480, 0.3230, 0.3230, 0.0953, 0.7663, 0.1506],
    ]
    for application, weights in zip(golden[1], reference, strict=True):
        shares = Shares.of(application)
        assert [weight / shares.total for weight in shares.weights] == pytest.approx(weights, abs=6e-5)
