"""Stages that are classes: a model each, batches in and lists out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import fairway
from fairway import InputError, Model, StageError, workflow_of
from fairway.workflows import Arguments, StageClass, StageFunction


@fairway.stage(model="scaler-{factor}", memory="2MB", seconds=0.5)
class Scale:
    def __init__(self, factor: int, offset: int = 0) -> None:
        self.factor, self.offset = factor, offset

    def load(self, threads: int) -> list[int]:
        return [self.factor, threads]

    def unload(self, model: list[int]) -> None:
        model.clear()

    def __call__(self, model: list[int], numbers: list[int]) -> list[int]:
        return [model[0] * number + self.offset for number in numbers]


@fairway.stage
class Pair:
    def __call__(self, left: list[int], right: list[int]) -> list[tuple[int, int]]:
        return list(zip(left, right, strict=True))


class Unnamed:
    def __init__(self, language: str = "en") -> None:
        self.language = language

    def load(self) -> str:
        return self.language

    def __call__(self, model: str, texts: list[str]) -> list[str]:
        return [model + text for text in texts]


def test_a_use_of_a_class_is_a_stage_with_its_model() -> None:
    workflow = workflow_of(Pair()(Scale(2)(1), Scale(3, offset=1)(1)), name="scaling")
    assert [each.name for each in workflow.stages] == ["Scale", "Scale-2", "Pair"]
    assert [each.models for each in workflow.stages] == [("scaler-2",), ("scaler-3",), ()]
    assert workflow.models == {"scaler-2": Model("scaler-2", 2_000_000), "scaler-3": Model("scaler-3", 2_000_000)}
    assert workflow.stages[0].seconds_on("cpu") == 0.5
    assert set(workflow.edges) == {("Scale", "Pair"), ("Scale-2", "Pair")}


def test_it_loads_with_its_threads_runs_on_batches_and_unloads() -> None:
    use = Scale(3, offset=1)
    model = use.load(threads=4)
    assert model == [3, 4]
    assert use.run(model, [Arguments((1,)), Arguments((2,))]) == [4, 7]
    use.unload(model)
    assert model == []


def test_every_argument_is_a_list_with_the_value_of_each_request_by_name_too() -> None:
    batch = [Arguments((1,), {"right": 10}), Arguments((2,), {"right": 20})]
    assert Pair().run(None, batch) == [(1, 10), (2, 20)]


def test_a_model_without_a_name_is_called_as_its_class_and_what_it_was_made_with() -> None:
    unnamed = fairway.stage(Unnamed)
    assert isinstance(unnamed, StageClass)
    assert unnamed().model_name == "Unnamed(language='en')"
    assert unnamed("de").model_name == "Unnamed(language='de')"
    assert unnamed("de").models == ()
    assert fairway.stage(name="speak")(Unnamed)("de").stage.name == "speak"


def test_uses_share_a_model_if_they_were_made_alike() -> None:
    assert Scale(2).same_model_as(Scale(2, offset=0))
    assert not Scale(2).same_model_as(Scale(2, offset=1))
    assert not Scale(2).same_model_as(fairway.stage(Unnamed)())


def test_functions_stay_stages_of_one_request_at_a_time() -> None:
    @fairway.stage
    def add(one: int, two: int = 1) -> int:
        return one + two

    assert isinstance(add, StageFunction)
    assert add.run(None, [Arguments((1,)), Arguments((2,), {"two": 5})]) == [2, 7]
    assert add(3).of.stage.name == "add"


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ([1], "returned 1 results for a batch of 2"),
        ("ab", "returned str for a batch of 2"),
        ({"a": 1, "b": 2}, "returned dict for a batch of 2"),
        (None, "returned NoneType for a batch of 2"),
    ],
)
def test_a_stage_that_returns_no_list_of_results_is_told_so(returned: Any, message: str) -> None:
    @fairway.stage(name="wrong")
    class Wrong:
        def __call__(self, _values: list[int]) -> Any:
            return returned

    with pytest.raises(StageError, match=f"stage 'wrong' {message}"):
        Wrong().run(None, [Arguments((1,)), Arguments((2,))])


class _WithoutCall:
    def load(self) -> None: ...


class _Async:
    async def __call__(self, values: list[int]) -> None: ...


class _Plain:
    def __call__(self, values: list[int]) -> list[int]:
        return values


async def _async_function(value: int) -> None: ...


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fairway.stage(_WithoutCall), "has no __call__"),
        (lambda: fairway.stage(_Async), "__call__ is async"),
        (lambda: fairway.stage(_async_function), "'_async_function' is async"),
        (lambda: fairway.stage(memory="1MB")(_Plain), "memory given, but the class has no load"),
        (lambda: fairway.stage(model="m")(_Plain), "model given, but the class has no load"),
        (lambda: fairway.stage(memory="lots")(Unnamed), "stage 'Unnamed': memory: \"lots\" given, expected bytes"),
        (lambda: fairway.stage(memory="1MB")(print), "memory given, but a function loads no model"),
        (lambda: fairway.stage(model=Model("m", 1))(Unnamed), "give its name as model and its size as memory"),
        (lambda: fairway.stage(model="m-{size}")(Unnamed)().model_name, "'size' is no parameter of the constructor"),
        (lambda: fairway.stage(Unnamed)(tongue="de"), "unexpected keyword argument 'tongue'"),
        (lambda: fairway.stage(7), "7 given, expected a function or a class"),  # type: ignore[call-overload]
    ],
)
def test_what_makes_no_stage_is_refused_in_one_line(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
