"""What can come back instead of an answer, as errors with the server's own line.

ServiceError            anything below; `status` is the HTTP status, None if there was no answer
├── UnreachableError    no server answers
└── RefusedError        what was asked cannot be done as it is (4xx); an `InputError` too
    ├── NotAllowedError     no token, a wrong one, or one that may not do this (401, 403)
    ├── NotFoundError       no such job or token (404)
    └── ConflictError       the key is taken by another job, or it is too late (409)
"""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from fairway.client.steps import Answer
from fairway.errors import FairwayError, InputError


class ServiceError(FairwayError):
    """A request has failed. `status` is the HTTP status, `code` the server's short word for what happened, if any."""

    status: int | None = None
    code: str | None = None


class UnreachableError(ServiceError):
    """No server answers at the address."""


class RefusedError(ServiceError, InputError):
    """The server refuses what it was given."""


class NotAllowedError(RefusedError):
    """There is no token, or not one that may do this."""


class NotFoundError(RefusedError):
    """There is no such thing, or none that this token may see."""


class ConflictError(RefusedError):
    """Something else is in the way: an idempotency key that is taken, or a state that does not allow it."""


class TimedOutError(FairwayError, TimeoutError):
    """The job did not end in time."""


_KINDS = {401: NotAllowedError, 403: NotAllowedError, 404: NotFoundError, 409: ConflictError}


def error_of(answer: Answer, address: str, *, has_token: bool) -> ServiceError:
    """The error that an answer with a status of 300 or above stands for."""
    problem = _problem(answer)
    line = problem.get("detail") or problem.get("title")
    if answer.status < 400:
        line = f"{address} refers to {answer.headers.get('location', 'another address')}; give the address itself"
    elif not isinstance(line, str):
        line = f"what answers at {address} is not Fairway, or something between is in its way: {_status_line(answer)}"
    if answer.status == HTTPStatus.UNAUTHORIZED and not has_token:
        line += "; there is no token here: give --token, or set FAIRWAY_TOKEN"
    kind = _KINDS.get(answer.status, RefusedError if answer.status < 500 else ServiceError)
    error = kind(line)
    error.status = answer.status
    code = problem.get("code")
    error.code = code if isinstance(code, str) else None
    return error


def document_of(answer: Answer, address: str) -> dict[str, Any]:
    """The JSON object of an answer."""
    try:
        document = json.loads(answer.body)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise not_understood(address, f"{answer.kind or 'no content'} instead of a JSON object")
    return document


def not_understood(address: str, what: str) -> ServiceError:
    """The error for an answer of another form than Fairway gives."""
    return ServiceError(f"what answers at {address} is not a Fairway of this version: {what}; check the address")


def _problem(answer: Answer) -> dict[str, Any]:
    """The fields of RFC 9457, if the answer has them."""
    try:
        document = json.loads(answer.body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _status_line(answer: Answer) -> str:
    try:
        return f"{answer.status} {HTTPStatus(answer.status).phrase}"
    except ValueError:
        return str(answer.status)
