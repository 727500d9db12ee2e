"""Workflows from Python: calling stages on each other's results records the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fairway import InputError, Model, stage, workflow_of

OPT = Model("opt", 6_141_853_204)


@stage(model=OPT, seconds=0.561, input_bytes=1024, output_bytes=2048)
def draft(question: str) -> str:
    return f"about {question}"


@stage(model="mt5", seconds={"t4": 0.8, "a100": 0.2}, output_bytes=2048)
def translate(text: Any, language: str) -> None: ...


@stage(seconds=0.001)
def answer(*texts: Any) -> None: ...


def test_calls_become_stages_and_results_edges() -> None:
    text = draft("the weather")
    workflow = workflow_of(
        answer([translate(text, "zh"), translate(text, language="ja")], text), models={"mt5": 2_000}, name="translation"
    )
    assert [each.name for each in workflow.stages] == ["draft", "translate", "translate-2", "answer"]
    assert set(workflow.edges) == {
        ("draft", "translate"),
        ("draft", "translate-2"),
        ("draft", "answer"),
        ("translate", "answer"),
        ("translate-2", "answer"),
    }
    assert workflow.name == "translation"
    assert workflow.models == {"opt": OPT, "mt5": Model("mt5", 2_000)}
    first = workflow.stages[0]
    assert (first.models, first.input_bytes, first.output_bytes) == (("opt",), 1024, 2048)
    assert workflow.stages[1].seconds_on("a100") == 0.2


def test_a_call_runs_nothing_and_the_function_stays() -> None:
    assert draft.function("rain") == "about rain"
    assert draft("rain").arguments == ("rain",)
    with pytest.raises(TypeError, match="not known while a workflow is being recorded"):
        bool(draft("rain"))


def test_results_may_be_several_and_only_what_they_need_is_in() -> None:
    text = draft("x")
    translate(text, "unused")
    workflow = workflow_of(answer(text), translate(text, "fr"), models={"mt5": 1})
    assert [each.name for each in workflow.stages] == ["draft", "answer", "translate"]


def test_a_long_chain_needs_no_deep_stack() -> None:
    text = answer()
    for _ in range(3000):
        text = answer(text)
    assert len(workflow_of(text)) == 3001


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: workflow_of(answer(translate("x", "fr"))), "'mt5' is not one of the models"),
        (lambda: workflow_of(translate("x", "fr"), models={"mt5": -1}), "models.mt5: -1 given"),
        (lambda: workflow_of("text"), "'text' given, expected what a stage returns"),
        (workflow_of, "stages: none given"),
        (lambda: stage(seconds=-1)(print), "stage 'print': seconds: -1 given"),
        (lambda: workflow_of(answer(draft(1), stage(model=Model("opt", 3), seconds=1)(print)())), "choose one"),
    ],
)
def test_what_makes_no_workflow_is_refused_in_one_line(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
