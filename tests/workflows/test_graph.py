"""Workflow graphs: what is refused, and what follows from a graph alone, with ranks and bounds worked out by hand."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway import InputError, Links, Model, Stage, Workflow
from fairway.workflows import models_of
from tests.workflows.edge import IMAGE_TO_SOUND, PERCEPTION, QUESTION_ANSWERING, TRANSLATION, WORKFLOWS


def graph(edges: list[tuple[str, str]], names: str = "abcd", seconds: float = 1.0) -> Workflow:
    return Workflow(tuple(Stage.of(name, seconds) for name in names), tuple(edges))


@pytest.mark.parametrize(
    ("workflow", "milliseconds", "order"),
    [
        (TRANSLATION, [1365.005, 442.003, 779.003, 804.003, 1], [0, 3, 2, 1, 4]),
        (QUESTION_ANSWERING, [587.003, 27], [0, 1]),
        (IMAGE_TO_SOUND, [360.038, 26.205, 77.030, 0.2], [0, 2, 1, 3]),
        (PERCEPTION, [284.261, 282.830, 251.830, 104], [0, 1, 2, 3]),
    ],
    ids=lambda value: value.name if isinstance(value, Workflow) else "",
)
def test_upward_ranks_and_their_order_are_those_worked_out_by_hand(
    workflow: Workflow, milliseconds: list[float], order: list[int]
) -> None:
    seconds = [stage.seconds_on("gpu") for stage in workflow.stages]
    ranks = workflow.upward_ranks(seconds, [Links().between_hosts(stage.output_bytes) for stage in workflow.stages])
    assert [1000 * rank for rank in ranks] == pytest.approx(milliseconds, abs=5e-4)
    assert list(workflow.rank_order(ranks)) == order


@pytest.mark.parametrize(("workflow", "milliseconds"), list(zip(WORKFLOWS, [1365, 587, 359.2, 282.6], strict=True)))
def test_lower_bounds_are_critical_paths(workflow: Workflow, milliseconds: float) -> None:
    path = workflow.critical_path()
    assert 1000 * path.seconds == pytest.approx(milliseconds, abs=1e-9)
    assert sum(workflow.stages[workflow.number(name)].fastest_seconds for name in path.stages) == pytest.approx(
        path.seconds
    )


def test_the_critical_path_takes_each_stage_where_it_is_fastest_unless_told() -> None:
    workflow = Workflow((Stage.of("a", {"t4": 2.0, "a100": 1.0}), Stage.of("b", {"a100": 3.0})), (("a", "b"),))
    assert workflow.critical_path() == (("a", "b"), 4.0)
    assert workflow.critical_path([2.0, 3.0]).seconds == 5.0


def test_dominators_of_a_diamond_with_a_tail() -> None:
    workflow = graph([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", "e")], "abcde")
    assert workflow.dominators == {"a": None, "b": "a", "c": "a", "d": "a", "e": "d"}


def test_with_several_entries_nothing_dominates_where_they_meet() -> None:
    workflow = graph([("a", "c"), ("b", "c"), ("c", "d")])
    assert workflow.dominators == {"a": None, "b": None, "c": None, "d": "c"}


def test_input_is_what_the_stages_before_put_out_unless_given() -> None:
    stages = (
        Stage.of("a", 1.0, input_bytes=7, output_bytes=10),
        Stage.of("b", 1.0, output_bytes=20),
        Stage.of("c", 1.0),
        Stage.of("d", 1.0, input_bytes=5),
    )
    workflow = Workflow(stages, (("a", "c"), ("b", "c"), ("c", "d")))
    assert workflow.input_bytes == (7, 0, 30, 5)


def test_a_batch_takes_the_time_of_the_next_larger_size_that_has_one() -> None:
    stage = Stage.of("a", {"t4": {8: 2.0, 1: 0.5}, "*": 1.0})
    assert [stage.seconds_on("t4", size) for size in (1, 2, 8, 9)] == [0.5, 2.0, 2.0, float("inf")]
    assert stage.seconds_on("a100") == 1.0
    assert Stage.of("a", {"t4": 0.5}).seconds_on("a100") == float("inf")
    assert stage.fastest_seconds == 0.5


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([("a", "b"), ("b", "a")], "edges: 'a' -> 'b' -> 'a' is a cycle; take one of these edges out"),
        ([("a", "a")], "edges: 'a' -> 'a' is a cycle"),
        ([("a", "b"), ("b", "x")], r"edges\[1\]: 'b' -> 'x' given, but there is no stage 'x'; add the stage or take"),
        ([("a", "b"), ("a", "b")], r"edges\[1\]: 'a' -> 'b' given twice"),
    ],
)
def test_edges_that_make_no_graph_are_refused(edges: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        graph(edges)


def test_stages_need_names_of_their_own_and_known_models() -> None:
    with pytest.raises(InputError, match="stages: none given"):
        Workflow(())
    with pytest.raises(InputError, match=r"stages\[1\].name: 'a' is also the name of stages\[0\]"):
        Workflow((Stage.of("a", 1.0), Stage.of("a", 2.0)))
    with pytest.raises(InputError, match=r"\('a'\).model: 'obt' is not one of the models, did you mean 'opt'"):
        Workflow((Stage.of("a", 1.0, "obt"),), models={"opt": Model("opt", 1)})
    with pytest.raises(InputError, match="'opt' given twice"):
        Workflow((Stage.of("a", 1.0, models=["opt", "opt"]),), models={"opt": Model("opt", 1)})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"seconds": -1.0}, "stage 'a': seconds: -1.0 given, expected seconds >= 0"),
        ({"seconds": float("nan")}, "stage 'a': seconds: nan given"),
        ({"seconds": {}}, "stage 'a': seconds: no time on any accelerator given"),
        ({"seconds": {"t4": {}}}, "stage 'a': seconds: no time for 't4' given"),
        ({"seconds": {"t4": {0: 1.0}}}, "0 given as a batch size for 't4', expected a whole number >= 1"),
        ({"seconds": 1.0, "output_bytes": -1}, "stage 'a': output_bytes: -1 given"),
        ({"seconds": 1.0, "input_bytes": -1}, "stage 'a': input_bytes: -1 given"),
    ],
)
def test_a_stage_with_wrong_numbers_is_refused_by_name(fields: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        Stage.of("a", **fields)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_workflows_share_models_of_one_name_and_one_size() -> None:
    assert len(models_of(WORKFLOWS)) == 8
    other = Workflow((Stage.of("a", 1.0),), models={"opt": Model("opt", 5)}, name="other")
    with pytest.raises(InputError, match=r"models\.opt: 5 bytes in workflow 'other'"):
        models_of([TRANSLATION, other])


@st.composite
def acyclic(draw: st.DrawFn) -> Workflow:
    count = draw(st.integers(1, 9))
    pairs = [(source, target) for target in range(count) for source in range(target)]
    chosen = [pair for pair in pairs if draw(st.booleans())]
    names = [f"s{number}" for number in range(count)]
    random.Random(draw(st.integers(0, 99))).shuffle(names)
    stages = tuple(
        Stage.of(name, draw(st.floats(0, 5)), output_bytes=draw(st.integers(0, 10**7))) for name in sorted(names)
    )
    return Workflow(stages, tuple((names[source], names[target]) for source, target in chosen))


@given(acyclic(), st.floats(0, 1))
def test_rank_order_is_topological_and_ranks_bound_the_critical_path(workflow: Workflow, transfer: float) -> None:
    seconds = [stage.fastest_seconds for stage in workflow.stages]
    ranks = workflow.upward_ranks(seconds, [transfer] * len(workflow))
    place = {number: position for position, number in enumerate(workflow.rank_order(ranks))}
    assert sorted(place) == list(range(len(workflow)))
    for number, after in enumerate(workflow.successors):
        assert all(place[number] < place[successor] for successor in after)
        assert all(number in workflow.predecessors[successor] for successor in after)
    bound = workflow.critical_path().seconds
    assert max(seconds) <= bound <= max(ranks) + 1e-9
    assert bound <= sum(seconds) + 1e-9


@given(acyclic())
def test_a_dominator_is_on_every_way_to_a_stage(workflow: Workflow) -> None:
    for name, dominator in workflow.dominators.items():
        if dominator is None:
            continue
        # Without the dominator, nothing can be reached that it dominates.
        reached = {number for number, before in enumerate(workflow.predecessors) if not before}
        reached.discard(workflow.number(dominator))
        for number in workflow.topological_order:
            if number != workflow.number(dominator) and any(each in reached for each in workflow.predecessors[number]):
                reached.add(number)
        assert workflow.number(name) not in reached
