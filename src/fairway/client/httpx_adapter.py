"""Between the clients and httpx: requests in its terms, and its answers and errors in ours."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import httpx

from fairway.client.place import Place, on_this_machine
from fairway.client.steps import Answer, NoAnswer, Request
from fairway.errors import InputError

_CONNECT_SECONDS = 5.0
_IDLE_SECONDS = 3.0
"""Below the time after which servers close an idle connection, so that a request does not meet one that just did."""


def settings(place: Place) -> dict[str, Any]:
    """The arguments of `httpx.Client` and `httpx.AsyncClient`."""
    headers = {"User-Agent": "fairway-client"}
    if place.token is not None:
        headers["Authorization"] = f"Bearer {place.token}"
    try:
        address = httpx.URL(place.address)
    except httpx.InvalidURL as error:
        raise InputError(f"address: '{place.address}' given, which is none: {error}") from None
    return {
        "base_url": address,
        "headers": headers,
        "limits": httpx.Limits(max_connections=None, keepalive_expiry=_IDLE_SECONDS),
        # A proxy that the environment names is for elsewhere: it cannot reach this machine's own address.
        "trust_env": not on_this_machine(place.address),
        "verify": _trusted() if place.address.startswith("https:") else False,
    }


def _trusted() -> ssl.SSLContext:
    """The certificates that a server may show: those that SSL_CERT_FILE names, or the system's."""
    return ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE") or None)


def built(http: httpx.Client | httpx.AsyncClient, request: Request) -> httpx.Request:
    """A request in httpx's terms."""
    timeout = httpx.Timeout(request.silence_seconds, connect=_CONNECT_SECONDS)
    return http.build_request(
        request.method,
        request.path,
        params=[(name, _writable(value)) for name, value in request.query] or None,
        headers=dict(request.headers),
        content=request.body,
        timeout=timeout,
    )


def _writable(value: str) -> str:
    """Text as it can be sent: an argument of a command may hold bytes that are none."""
    return value.encode("utf-8", "replace").decode()


def answer_of(response: httpx.Response, body: bytes = b"") -> Answer:
    """An answer in our terms."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return Answer(response.status_code, kind, response.headers, body)


def no_answer(error: httpx.RequestError) -> NoAnswer:
    """Why there is no answer, in a few words."""
    causes = list(_causes(error))
    arrived = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
    for one in causes:
        if isinstance(one, ssl.SSLCertVerificationError):
            why = f"its certificate cannot be trusted: {one.verify_message}"
            return NoAnswer(why, arrived=False, remedy="name a file with it or its issuer in SSL_CERT_FILE")
        if isinstance(one, ssl.SSLError):
            why = f"no TLS: {(one.reason or str(one)).lower().replace('_', ' ')}"
            return NoAnswer(why, arrived=False, remedy="if it speaks plain HTTP, give an address with http://")
        if isinstance(one, socket.gaierror):
            remedy = "correct the address" if one.errno == socket.EAI_NONAME else None
            return NoAnswer(f"no such host: {one.strerror}", arrived=False, remedy=remedy)
    for one in causes:
        if isinstance(one, OSError) and one.errno:
            return NoAnswer(_words(one.errno), arrived)
    if isinstance(error, httpx.TimeoutException):
        return NoAnswer("it says nothing", arrived)
    return NoAnswer(str(error).strip().rstrip(".").lower() or type(error).__name__, arrived)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error, what caused it, and so on; a group of errors stands for its first."""
    while error is not None:
        yield error
        first = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else None
        error = first or error.__cause__ or error.__context__


def _words(number: int) -> str:
    """What an error of the system is called; httpx's own words for it differ from release to release."""
    known = {errno.ECONNREFUSED: "connection refused", errno.ECONNRESET: "connection broken off"}
    return known.get(number) or os.strerror(number).lower()
