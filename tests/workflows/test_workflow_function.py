"""Workflows with inputs: recorded from a function, checked, and run in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import fairway
from fairway import InputError
from fairway.workflows.execution import Execution


@fairway.stage(memory="1MB")
class Count:
    def __init__(self, start: int = 0) -> None:
        self.start = start

    def load(self) -> list[str]:
        LOADED.append("count")
        return ["model"]

    def unload(self, _model: list[str]) -> None:
        LOADED.remove("count")

    def __call__(self, model: list[str], texts: list[str]) -> list[int]:
        assert model == ["model"]
        return [self.start + len(text) for text in texts]


LOADED: list[str] = []


@fairway.stage
def shout(text: str, mark: str = "!") -> str:
    return text.upper() + mark


@fairway.stage
class Report:
    def __call__(self, parts: list[list[Any]], texts: list[str]) -> list[str]:
        return [f"{text}: {part}" for part, text in zip(parts, texts, strict=True)]


@fairway.workflow(slo="1.5s")
def describe_text(text: str, mark: str = "!") -> Any:
    loud = shout(text, mark=mark)
    return {"report": Report()([Count()(text), loud], text), "loud": loud, "kind": "text"}


def test_it_records_its_stages_inputs_and_defaults() -> None:
    recorded = describe_text.recorded
    assert (recorded.name, recorded.inputs, recorded.slo_seconds) == ("describe-text", ("text", "mark"), 1.5)
    assert recorded.defaults == {"mark": "!"}
    assert recorded.input_types == {"text": str, "mark": str}
    assert set(recorded.stage_names) == {"shout", "Count", "Report"}
    assert set(recorded.workflow().edges) == {("Count", "Report"), ("shout", "Report")}


def test_it_runs_in_this_process_and_lets_its_models_go() -> None:
    assert describe_text.run(text="abc", mark="?") == {
        "report": "abc: [3, 'ABC?']",
        "loud": "ABC?",
        "kind": "text",
    }
    assert LOADED == []


def test_models_are_let_go_when_a_stage_fails() -> None:
    @fairway.stage
    def fail(number: int) -> None:
        assert LOADED == ["count"]
        raise ValueError("no such number")

    @fairway.workflow
    def failing(text: str) -> Any:
        return fail(Count()(text))

    with pytest.raises(ValueError, match="no such number"):
        failing.run(text="abc")
    assert LOADED == []


def test_stages_run_on_batches_by_number_and_the_reply_is_what_was_returned() -> None:
    execution = Execution(describe_text.recorded)
    numbers = {name: number for number, name in enumerate(describe_text.recorded.stage_names)}
    count, loud, report = numbers["Count"], numbers["shout"], numbers["Report"]
    assert [execution.takes_input(number) for number in (count, loud, report)] == [True, True, True]
    payloads = [describe_text.recorded.payload({"text": text}) for text in ("ab", "cde")]
    batch = [execution.arguments(count, payload, {}) for payload in payloads]
    assert execution.run(count, ["model"], batch) == [2, 3]
    assert execution.arguments(report, payloads[1], {count: 3, loud: "CDE!"}).positional == ([3, "CDE!"], "cde")
    assert execution.exits == tuple(sorted((loud, report)))
    assert execution.reply({loud: 1, report: 2}) == {"report": 2, "loud": 1, "kind": "text"}


def test_a_workflow_called_in_another_becomes_part_of_it() -> None:
    @fairway.workflow(name="twice")
    def twice(first: str, second: str) -> Any:
        return [describe_text(first)["loud"], describe_text(second, "?")["loud"]]

    assert twice.recorded.stage_names == ("shout", "shout-2")
    assert twice.run(first="a", second="b") == ["A!", "B?"]


def test_a_stage_that_yields_streams_pieces_and_keeps_the_model_until_the_last() -> None:
    @fairway.stage
    class Spell:
        def load(self) -> str:
            LOADED.append("spell")
            return "-"

        def unload(self, _model: str) -> None:
            LOADED.remove("spell")

        def __call__(self, model: str, texts: list[str]) -> Iterator[str]:
            (text,) = texts
            for letter in text:
                yield letter + model

    @fairway.workflow
    def spell(text: str) -> Any:
        return Spell()(shout(text))

    pieces = spell.run(text="ab")
    assert next(pieces) == "A-"
    assert LOADED == ["spell"]
    assert list(pieces) == ["B-", "!-"]
    assert LOADED == []

    @fairway.workflow
    def middle(text: str) -> Any:
        return shout(Spell()(text))

    with pytest.raises(InputError, match="yields its result in pieces, so it must be the last one"):
        _ = middle.recorded
    execution = Execution(spell.recorded)
    with pytest.raises(fairway.StageError, match="takes one request at a time"):
        execution.run(1, "-", [execution.arguments(1, {}, {0: "a"})] * 2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "workflow 'describe-text': input 'text' is missing"),
        ({"txt": "a"}, "no input 'txt', did you mean 'text'"),
        ({"text": 7}, "input 'text': 7 given, expected str"),
        ({"text": "a", "mark": b"!"}, "input 'mark': bytes given, expected str"),
    ],
)
def test_a_payload_that_does_not_fit_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        describe_text.run(**given)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (bytes, b"a", "a"),
        (bytes, bytearray(b"a"), 1),
        (float, 1, True),
        (int, 1, 1.5),
        (int, 1, True),
        (bool, True, 1),
        (list, [1], "a"),
        (dict, {}, []),
    ],
)
def test_inputs_are_checked_for_plain_types(kind: type, good: object, bad: object) -> None:
    def function(value: Any) -> Any:
        return shout(value)

    function.__annotations__["value"] = kind
    recorded = fairway.workflow(function).recorded
    assert recorded.payload({"value": good}) == {"value": good}
    with pytest.raises(InputError, match=f"expected {kind.__name__}"):
        recorded.payload({"value": bad})


def _conditional(text: Any) -> Any:
    return shout(text) if shout(text) else text


def _unpacking(text: Any) -> Any:
    first, _ = shout(text)
    return shout(first)


def _variadic(*texts: Any) -> Any:
    return shout(texts)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fairway.workflow(_conditional).recorded, "the result of stage 'shout' is not known while"),
        (lambda: fairway.workflow(_unpacking).recorded, "the result of stage 'shout' is not known while"),
        (lambda: fairway.workflow(_variadic).recorded, "parameter 'texts' has no name"),
        (lambda: fairway.workflow(lambda x: x).recorded, "returns no result of a stage"),
        (lambda: fairway.workflow(lambda x: shout(x.size)).recorded, "cannot be recorded: AttributeError: 'Input'"),
        (
            lambda: fairway.workflow(lambda x: shout(Count(ende=1)(x))).recorded,
            "stage 'Count': .*keyword argument 'ende'",
        ),
        (lambda: fairway.workflow(lambda x: [shout(x), x]).recorded, "returns an input as it came"),
        (lambda: fairway.workflow(lambda x: shout(x[0])).recorded, "the input 'x' is not known while"),
        (lambda: fairway.workflow(name="w", slo="soon")(_conditional), "workflow 'w': slo: \"soon\" given"),
        (lambda: fairway.workflow(name="")(_conditional), "an empty name given"),
    ],
)
def test_what_makes_no_workflow_is_refused_in_one_line(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_a_model_name_that_means_two_things_is_refused() -> None:
    @fairway.stage(model="same")
    class Other:
        def __init__(self, size: int) -> None: ...
        def load(self) -> None: ...
        def __call__(self, _model: None, values: list[int]) -> list[int]:
            return values

    with pytest.raises(InputError, match="both call their model 'same', but load it differently"):
        _ = fairway.workflow(lambda x: Other(1)(Other(2)(x))).recorded
    assert len(fairway.workflow(lambda x: Other(1)(Other(1)(x))).recorded.uses) == 1
