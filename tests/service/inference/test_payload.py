"""Values over HTTP, one by one: what a body brings, and what a result becomes."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from starlette.requests import Request

from fairway.errors import InputError
from fairway.service.http.problems import ProblemError
from fairway.service.inference.payload import inputs_of, json_of, response_of


def _workflow(**types: type | None) -> Any:
    """A served workflow with these inputs, of which some say what they are."""
    known = {name: kind for name, kind in types.items() if kind is not None}
    return SimpleNamespace(inputs=tuple(types), input_types=known, payload=lambda given: given)


def _inputs(body: bytes, workflow: Any, kind: str | None = "application/json", most: int = 1000) -> Any:
    messages = [{"type": "http.request", "body": body}]

    async def receive() -> Any:
        return messages.pop(0)

    headers = [] if kind is None else [(b"content-type", kind.encode())]
    return asyncio.run(inputs_of(Request({"type": "http", "headers": headers}, receive), workflow, most))


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON; charset=utf-8", "application/vnd.x+json", "", None,
             "application/x-www-form-urlencoded"]
)  # fmt: skip
def test_an_object_in_json_brings_the_inputs_by_name(kind: str | None) -> None:
    assert _inputs(b' {"x": [1, 2.5], "y": null}', _workflow(x=None, y=None), kind) == {"x": [1, 2.5], "y": None}


@pytest.mark.parametrize("kind", ["application/octet-stream", "image/png", "", None, "text/plain"])
def test_another_body_is_the_one_input_that_takes_bytes(kind: str | None) -> None:
    assert _inputs(b"\x89PNG", _workflow(page=bytes), kind) == {"page": b"\x89PNG"}
    assert _inputs(b"\x89PNG", _workflow(page=bytes, scale=float), kind) == {"page": b"\x89PNG"}
    assert _inputs(b"\x89PNG", _workflow(page=None), kind) == {"page": b"\x89PNG"}, "it does not say what it is"


@pytest.mark.parametrize("workflow", [_workflow(x=int), _workflow(x=bytes, y=bytes), _workflow(x=None, y=None)])
def test_a_body_that_could_be_any_input_or_none_is_refused(workflow: Any) -> None:
    with pytest.raises(InputError, match="cannot all be the body; send JSON, bytes as base64"):
        _inputs(b"\x89PNG", workflow, "image/png")


def test_an_empty_body_brings_nothing() -> None:
    for body, kind in ((b"", "application/json"), (b" \n", "application/json"), (b"", None), (b"", "")):
        assert _inputs(body, _workflow(), kind) == {}


def test_bytes_in_json_are_base64_for_an_input_that_takes_bytes_and_text_for_others() -> None:
    workflow = _workflow(page=bytes, text=str)
    assert _inputs(b'{"page": "AAE=", "text": "AAE="}', workflow) == {"page": b"\0\1", "text": "AAE="}
    assert _inputs(b'{"page": 3}', workflow) == {"page": 3}, "the workflow says what is wrong with it"
    with pytest.raises(InputError, match="page: not valid base64, in which JSON carries bytes"):
        _inputs(b'{"page": "A!AE="}', workflow)


@pytest.mark.parametrize("body", [b"{", b"{'x': 1}", b"\xff", b"[" * 100_000])
def test_what_is_not_json_is_refused_in_one_line(body: bytes) -> None:
    with pytest.raises(InputError, match="not valid JSON; send an object with the inputs of the workflow"):
        _inputs(body, _workflow(x=None), most=200_000)


def test_json_that_is_no_object_is_refused_with_the_inputs() -> None:
    for body in (b"[1]", b"3", b'"x"', b"null"):
        with pytest.raises(InputError, match="expected an object with x, y"):
            _inputs(body, _workflow(x=None, y=None))
    with pytest.raises(InputError, match="expected an object with nothing in it"):
        _inputs(b"[1]", _workflow())


def test_a_body_may_be_as_large_as_the_service_takes() -> None:
    page = _workflow(page=bytes)
    assert len(_inputs(bytes(300_000), page, "image/png", most=300_000)["page"]) == 300_000
    with pytest.raises(ProblemError, match="larger than"):
        _inputs(bytes(300_001), page, "image/png", most=300_000)
    large = json.dumps({"x": "a" * 300_000}).encode()
    assert _inputs(large, _workflow(x=None), most=400_000) == {"x": "a" * 300_000}


@dataclasses.dataclass
class _Box:
    left: int
    label: str


def test_results_become_json_of_plain_values() -> None:
    value = {
        "array": np.arange(4).reshape(2, 2), "number": np.float32(0.5), "bytes": b"\0\1", "view": memoryview(b"\2"),
        "buffer": bytearray(b"\3"), "box": _Box(3, "x"), "set": {7}, "frozen": frozenset({8}), "none": None,
    }  # fmt: skip
    assert json.loads(json_of(value)) == {
        "array": [[0, 1], [2, 3]], "number": 0.5, "bytes": "AAE=", "view": "Ag==", "buffer": "Aw==",
        "box": {"left": 3, "label": "x"}, "set": [7], "frozen": [8], "none": None,
    }  # fmt: skip
    assert json_of({"a": [1, 2]}) == b'{"a":[1,2]}'


def test_numbers_that_json_does_not_have_become_null() -> None:
    assert json_of([1.0, float("nan"), float("inf"), -float("inf")]) == b"[1.0,null,null,null]"


def test_what_cannot_be_json_is_a_failure_that_says_what_to_do() -> None:
    loop: list[Any] = []
    loop.append(loop)
    for value in (object(), {"x": object()}, loop, _Box):
        with pytest.raises(ProblemError, match=r"^the result cannot be JSON: ") as caught:
            json_of(value)
        assert (caught.value.status, caught.value.code) == (500, "failed")
        assert str(caught.value).endswith("; let the workflow return plain values")


def test_a_result_that_is_bytes_is_the_body_and_any_other_is_json() -> None:
    for value in (b"\x89PNG", bytearray(b"\x89PNG"), memoryview(b"\x89PNG")):
        answer = asyncio.run(response_of(value))
        assert (bytes(answer.body), answer.headers["content-type"]) == (b"\x89PNG", "application/octet-stream")
    for plain in (None, 3, "x", True, [1], {"x": np.ones(2)}):
        answer = asyncio.run(response_of(plain))
        assert (bytes(answer.body), answer.headers["content-type"]) == (json_of(plain), "application/json")
