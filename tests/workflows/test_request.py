"""What a client may ask of an application."""

from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

from fairway.documents import Form
from fairway.workflows.request import WorkflowRequest


def test_a_request_needs_a_workflow_only() -> None:
    request = WorkflowRequest(workflow="read")
    assert (request.inputs, request.deadline_seconds, request.trace) == ({}, None, None)


@pytest.mark.parametrize(
    ("field", "value"),
    [("workflow", ""), ("deadline_seconds", 0), ("deadline_seconds", math.inf), ("deadline_seconds", "soon"),
     ("trace", 5), ("inputs", [1]), ("deadline", 3)],
)  # fmt: skip
def test_what_no_request_can_say_is_refused(field: str, value: object) -> None:
    with pytest.raises(ValidationError) as caught:
        WorkflowRequest.model_validate({"workflow": "read", field: value})
    assert [error["loc"] for error in caught.value.errors()] == [(field,)]


def test_every_field_says_what_it_means_and_what_is_expected() -> None:
    expected = Form.of(WorkflowRequest, "a request").expected
    assert set(expected) == {"", *WorkflowRequest.model_fields}
    assert all(facts.description for facts in WorkflowRequest.model_fields.values())
