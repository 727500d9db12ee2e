"""Values over HTTP: inputs from a body, results into one.

JSON carries most of them. Arrays become lists, and bytes inside JSON are base64; an input that is bytes by itself is
sent as the body, and so is a result that is.
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from fairway.errors import InputError
from fairway.live.serving.application.definition import ServedWorkflow
from fairway.service.http.documents_in import JSON, looks_like_json, read_body
from fairway.service.http.problems import ProblemError

T = TypeVar("T")

BYTES = "application/octet-stream"
_SMALL = 256 * 1024


async def inputs_of(request: Request, workflow: ServedWorkflow, most_bytes: int) -> dict[str, object]:
    """What a request brings; refuses what the workflow does not take."""
    body = await read_body(request, most_bytes)
    if not _is_json(request.headers.get("content-type", ""), body):
        return workflow.payload({_bytes_input(workflow): body})
    try:
        given = await _aside(json.loads, body) if body.strip() else {}
    except (ValueError, RecursionError):
        raise InputError("body: not valid JSON; send an object with the inputs of the workflow") from None
    if not isinstance(given, dict):
        raise InputError(f"body: expected an object with {', '.join(workflow.inputs) or 'nothing in it'}")
    return workflow.payload({name: _decoded(workflow, name, value) for name, value in given.items()})


def _is_json(content_type: str, body: bytes) -> bool:
    """Whether a body is meant as JSON; without a type, or with curl's own, if it begins as an object does."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind in {"", "application/x-www-form-urlencoded"}:
        return not body or looks_like_json(body)
    return kind == JSON or kind.endswith("+json")


def _bytes_input(workflow: ServedWorkflow) -> str:
    takers = [name for name in workflow.inputs if workflow.input_types.get(name, bytes) is bytes]
    if len(takers) != 1:
        raise InputError(
            f"body: the inputs {', '.join(workflow.inputs)} cannot all be the body; send JSON, bytes as base64"
        )
    return takers[0]


def _decoded(workflow: ServedWorkflow, name: str, value: object) -> object:
    if workflow.input_types.get(name) is not bytes or not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except ValueError:
        raise InputError(f"{name}: not valid base64, in which JSON carries bytes") from None


async def response_of(result: object) -> Response:
    """A result as a response."""
    if isinstance(result, bytes | bytearray | memoryview):
        return Response(bytes(result), media_type=BYTES)
    return Response(await _aside(json_of, result), media_type=JSON)


def json_of(value: object) -> bytes:
    """A value as JSON; numbers that are none, or infinite, become null."""
    try:
        try:
            text = json.dumps(value, default=_plain, separators=(",", ":"), allow_nan=False)
        except ValueError:
            loose = json.dumps(value, default=_plain)
            text = json.dumps(json.loads(loose, parse_constant=lambda _: None), separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        detail = f"the result cannot be JSON: {error}; let the workflow return plain values"
        raise ProblemError(500, "failed", " ".join(detail.split())) from None
    return text.encode()


async def _aside(function: Callable[[Any], T], value: Any) -> T:
    """Do what may take long for large values beside the loop."""
    if isinstance(value, bytes) and len(value) < _SMALL:
        return function(value)
    if isinstance(value, str | int | float | bool | None):
        return function(value)
    return await asyncio.to_thread(function, value)


def _plain(value: Any) -> object:
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if hasattr(value, "tolist"):  # an array, or one of its numbers
        return value.tolist()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return list(value)
    raise TypeError(f"it holds a {type(value).__name__}")
