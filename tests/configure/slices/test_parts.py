"""Parts of workers for models: how they are given, and what follows for stages."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as some

from fairway.configure.slices.parts import (
    WHOLE,
    Slice,
    accelerator_on,
    check_slices,
    copies_within,
    on_slices,
    shares_of,
    slices_of,
    whole_only,
)
from fairway.errors import InputError
from fairway.workflows import Model, Stage, Workflow
from fairway.workflows.stage_class import UNMEASURED_SECONDS


def _workflow(*stages: Stage) -> Workflow:
    names = {model for stage in stages for model in stage.models}
    edges = tuple((a.name, b.name) for a, b in pairwise(stages))
    return Workflow(stages, edges, {name: Model(name, 100) for name in names})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=0.25", Slice(250)),
        ("a=1", Slice(1000)),
        ("a=.5:200MB", Slice(500, 200_000_000)),
        ("a=25MB", Slice(250, 25_000_000)),
        ("a=33.33MB", Slice(334, 33_330_000)),
        ("Table(size=3)=0.1", None),
    ],
)
def test_slices_are_given_as_parts_as_memory_or_as_both(text: str, expected: Slice | None) -> None:
    found = slices_of([text], worker_memory_bytes=100e6)
    assert found == ({"a": expected} if expected else {"Table(size=3)": Slice(100)})


@pytest.mark.parametrize(
    ("texts", "memory", "words"),
    [
        (["a"], None, "'a' given, expected a model"),
        (["=0.5"], None, "'=0.5' given, expected a model"),
        (["a=0"], None, "a: a part of 0 given, which no worker has"),
        (["a=1.5"], None, "a: a part of 1.5 given, which no worker has"),
        (["a=0.0001"], None, "a: a part of 0.0001 given, expected one in thousandths, as in 0.001"),
        (["a=-0.5"], None, "a: '-0.5' given"),
        (["a=much"], None, "a: 'much' given"),
        (["a=20MB"], None, "a: 20MB of memory given, of workers without a budget; give --memory"),
        (["a=20MB"], 10e6, "a: 20MB of memory given, but a worker has 10 MB"),
        (["a=0.5:lots"], None, "a: '0.5:lots' given"),
        (["a=20MB:0.5"], 100e6, "a: '20MB:0.5' given"),
        (["a=0.5", "a=0.25"], None, "model 'a' has two slices"),
    ],
)
def test_what_is_no_slice_is_refused_in_one_line(texts: list[str], memory: float | None, words: str) -> None:
    with pytest.raises(InputError) as refused:
        slices_of(texts, memory)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@given(part=some.integers(1, WHOLE), memory=some.none() | some.integers(1, 10**12))
def test_a_slice_that_was_written_is_read_again(part: int, memory: int | None) -> None:
    own = Slice(part, memory)
    text = f"m={own.part:g}" + ("" if memory is None else f":{memory}")
    assert slices_of([text]) == {"m": own}


def test_a_stage_takes_longer_on_a_part_unless_that_was_measured() -> None:
    workflow = _workflow(
        Stage.of("guessed", {"cpu": {1: 0.2, 4: 0.6}}, "a"),
        Stage.of("measured", {"cpu": {1: 0.2}, "cpu@0.25": {1: 0.7}}, "a"),
        Stage.of("other", {"cpu": {1: 0.2}, "cpu@0.5": {1: 0.3}}, "b"),
        Stage.of("plain", 0.1),
        Stage.of("unknown", UNMEASURED_SECONDS, "a"),
    )
    times = [stage.seconds for stage in on_slices(workflow, {"a": Slice(250)}).stages]
    assert times[0] == {"cpu": {1: 0.8, 4: 2.4}}
    assert times[1] == {"cpu": {1: 0.7}}
    assert times[2] == {"cpu": {1: 0.2}}, "without a slice, the whole worker counts"
    assert times[3:] == [{"*": {1: 0.1}}, {"*": {1: UNMEASURED_SECONDS}}]
    assert on_slices(workflow, {}) is workflow


def test_stages_hold_the_slice_of_their_model_or_all_of_the_worker() -> None:
    workflow = _workflow(Stage.of("x", 1.0, "a"), Stage.of("y", 1.0, "b"), Stage.of("z", 1.0))
    assert shares_of(workflow, {"a": Slice(250)}, (1, WHOLE)) == ((0, 250), (1, WHOLE), (0, 1))


def test_memory_without_a_budget_has_room_for_all_copies_that_can_run_at_once() -> None:
    assert copies_within({"a": Slice(300)}, {"a": 10, "b": 7}) == 3 * 10 + 7


def test_names_of_slices_in_profiles() -> None:
    assert accelerator_on("cpu", Slice(250)) == "cpu@0.25"
    assert accelerator_on("cpu-2", Slice(WHOLE)) == "cpu-2"
    assert whole_only({"cpu": {1: 1.0}, "cpu@0.25": {1: 4.0}}) == {"cpu": {1: 1.0}}


def test_slices_have_to_fit_models_and_workers() -> None:
    check_slices({"a": Slice(500, 100)}, {"a": 100}, 100)
    for slices, words in (
        ({"b": Slice(500)}, "no model 'b'"),
        ({"a": Slice(1001)}, "a: 1.001 of a worker given"),
        ({"a": Slice(500, 99)}, "but the model alone needs"),
        ({"a": Slice(500, 101)}, "but a worker has"),
    ):
        with pytest.raises(InputError, match=words):
            check_slices(slices, {"a": 100}, 100)
