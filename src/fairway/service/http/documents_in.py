"""Reads the body of a request, without ever holding more of it than a job may have.

A body that says that it is too long is refused before any of it is read, one that turns out to be is refused there.
What follows is dropped by the server as it comes in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import TypeVar

from fastapi import Request
from starlette.requests import ClientDisconnect

from fairway.documents import Form
from fairway.errors import InputError
from fairway.service.http.problems import ProblemError

T = TypeVar("T")

MOST_BYTES = 1024 * 1024
MOST_YAML_BYTES = 128 * 1024
"""YAML takes a hundred times as long to read as JSON; this much, a second or two."""

JSON = "application/json"
YAML = frozenset({"application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"})
TEXT = "text/plain"

_PATIENCE_SECONDS = 30.0


async def read_body(request: Request, most: int = MOST_BYTES) -> bytes:
    """The body, of at most 1 MiB if nothing else is said."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > most:
        raise _too_large(most)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise _too_large(most)
                parts.append(part)
    except TimeoutError:
        raise ProblemError(
            408, "too-slow", f"the body did not come within {_PATIENCE_SECONDS:.0f} s; send it again"
        ) from None
    except ClientDisconnect:  # whom no answer reaches; a defect it is not, and no client may fill the log with those
        raise ProblemError(400, "broken-off", "the body broke off before its end; send it again") from None
    return parts[0] if len(parts) == 1 else b"".join(parts)


def media_type(request: Request, known: Collection[str]) -> str | None:
    """The kind of body that a request says it has, None if it says nothing; refuses a kind that is not known."""
    given = request.headers.get("content-type")
    if given is None:
        return None
    name, _, parameters = given.partition(";")
    name = name.strip().lower()
    if name not in known:
        expected = ", ".join(sorted(known))
        raise ProblemError(415, "wrong-content-type", f"Content-Type: '{name}' given, expected one of {expected}")
    charset = parameters.partition("charset=")[2].split(";")[0].strip().strip('"').lower()
    if charset not in {"", "utf-8", "utf8", "us-ascii"}:
        raise ProblemError(415, "wrong-content-type", f"Content-Type: charset '{charset}' given, expected utf-8")
    return name


async def read_form(request: Request, form: Form[T]) -> T:
    """A body in JSON that has to have a form."""
    media_type(request, {JSON})
    body = await read_body(request)
    if body.strip() and not looks_like_json(body):
        raise InputError(f"body: not JSON, expected {form.expected['']}")
    return form.read(body, "body")


def looks_like_json(body: bytes) -> bool:
    """Whether a document begins as one in JSON does."""
    return body[:1024].lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in {b"{", b"["}


def refuse_long_yaml(body: bytes) -> None:
    """Refuse a document in YAML that would take long to read."""
    if len(body) > MOST_YAML_BYTES:
        raise _too_large(MOST_YAML_BYTES, " in YAML; send JSON, or move what is long into a file")


def _too_large(most: int, remedy: str = "") -> ProblemError:
    return ProblemError(413, "too-large", f"the body is larger than {most // 1024} KiB, the most that is taken{remedy}")
