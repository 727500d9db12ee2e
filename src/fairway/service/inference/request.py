"""A request for a workflow as it comes over HTTP: its inputs in the body, the rest in the path and in headers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from starlette.requests import Request

from fairway.documents import Form, shown
from fairway.errors import InputError
from fairway.live.serving.application.definition import ServedWorkflow
from fairway.service.inference.payload import inputs_of
from fairway.workflows.request import WorkflowRequest

HEADERS = {"deadline_seconds": "Fairway-Deadline-Seconds", "trace": "traceparent"}
"""The fields of a request that are headers, and which."""

_EXPECTED = Form.of(WorkflowRequest, "a request for a workflow").expected


async def request_of(request: Request, workflow: ServedWorkflow, most_bytes: int) -> WorkflowRequest:
    """What the client asks for; a header that is wrong is refused before the body is read."""
    asked = _with_headers(workflow.name, request.headers)
    return asked.model_copy(update={"inputs": await inputs_of(request, workflow, most_bytes)})


def _with_headers(workflow: str, headers: Mapping[str, str]) -> WorkflowRequest:
    given = {field: headers[name] for field, name in HEADERS.items() if name in headers}
    try:
        return WorkflowRequest.model_validate({"workflow": workflow, **given})
    except ValidationError as failure:
        field = str(failure.errors(include_url=False)[0]["loc"][0])
        raise InputError(f"{HEADERS[field]}: {shown(given[field])} given, expected {_EXPECTED[field]}") from None


def header_parameters() -> list[dict[str, Any]]:
    """The headers in the terms of OpenAPI."""
    properties = WorkflowRequest.model_json_schema()["properties"]
    return [
        {"name": name, "in": "header", "required": False, "description": facts.pop("description"), "schema": facts}
        for field, name in HEADERS.items()
        for facts in [properties[field]]
    ]
