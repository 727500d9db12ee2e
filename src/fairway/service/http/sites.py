"""Which sites may ask: by what name a server is called (Host), and the pages of which site may call it (Origin).

A page of any site can let a browser on this machine ask a server that only this machine reaches. Two tricks make that
dangerous. In *DNS rebinding* the name of the page's own site is made to lead to this machine: the browser then takes
the server for a part of that site, but it still sends the site's name as Host, by which it is refused here. In
*cross-site requests* the page asks openly; the browser then says whose page it is, in Origin or Sec-Fetch-Site, and the
request is refused unless the operator has named that origin. Programs that are no browsers send neither header.

The names that count are those of the machine itself, the address that the connection came to, what `--host` and
`--allow-host` name, and the names in the certificate. The same middleware adds the headers by which browsers neither
guess the kind of an answer, nor show it in a frame, nor keep it.
"""

from __future__ import annotations

import ipaddress
import re
import ssl
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairway.errors import InputError
from fairway.hosts import is_this_machine
from fairway.service.http.problems import ProblemError, answer_to

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""What every answer has, unless its route says something else."""

_SENT_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]

_WRITTEN = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+(%[a-z0-9._-]+)?", re.ASCII)
"""A name or an address, as `urlsplit` gives it."""

_PORTS = {"http": 80, "https": 443}
_SENT = ["Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID", "Fairway-Deadline-Seconds", "traceparent"]
_READ = ["Fairway-Log-Offset", "Retry-After"]
_LONGEST = 100
_MOST_CALLED = 64
"""Names by which the server is called that are remembered, since nearly all requests call it by the same."""

_POLICY_VIOLATION = 1008
_NO_CHECK_OF_TIME = 0x200000
"""X509_V_FLAG_NO_CHECK_TIME of OpenSSL, which the module ssl has no name for."""


@dataclass(frozen=True, slots=True)
class Sites:
    """What the operator allows besides this machine's own names: names of the server, and origins of pages."""

    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "hosts", tuple(checked_host(name) for name in self.hosts))
        object.__setattr__(self, "origins", tuple(checked_origin(origin) for origin in self.origins))

    def around(self, app: ASGIApp, names: Iterable[str] = ()) -> ASGIApp:
        """An application behind these checks; `names` are further ones of the server."""
        if self.origins:
            app = CORSMiddleware(
                app,
                allow_origins=self.origins,
                allow_methods=["GET", "POST", "DELETE"],
                allow_headers=_SENT,
                expose_headers=_READ,
            )
        return _OwnSite(app, frozenset({*self.hosts, *(_normal(name) for name in names)}), frozenset(self.origins))


def checked_host(given: str) -> str:
    """A name of the server, as `--allow-host` takes it: no scheme, no port; `*.` in front stands for one label."""
    host, port = _split(given.removeprefix("*."))
    if host is None or port is not None:
        raise InputError(f"--allow-host: '{given[:_LONGEST]}' given, expected a name or an address, as fairway.example")
    return f"*.{host}" if given.startswith("*.") else host


def checked_origin(given: str) -> str:
    """An origin, as `--allow-origin` takes it and browsers send it: scheme, host and, if it is not the usual, port."""
    parts = _origin_of(given)
    if parts is None:
        raise InputError(
            f"--allow-origin: '{given[:_LONGEST]}' given, expected scheme, host and port, as https://fairway.example"
        )
    scheme, host, port = parts
    written = f"[{host}]" if ":" in host else host
    return f"{scheme}://{written}" if port == _PORTS[scheme] else f"{scheme}://{written}:{port}"


class _OwnSite:
    """Refuses requests that come by a strange name or from a page of another site; an ASGI middleware."""

    def __init__(self, app: ASGIApp, names: frozenset[str], origins: frozenset[str]) -> None:
        self._app = app
        self._names = names
        self._origins = origins
        self._called: dict[tuple[str, str | None], tuple[str, int | None]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] not in {"http", "websocket"}:
            return await self._app(scope, receive, send)
        try:
            headers = Headers(scope=scope)
            host = self._checked_host(headers.getlist("host"), scope.get("server"))
            self._check_page(headers, host, secure=scope["scheme"] in {"https", "wss"})
        except ProblemError as problem:
            if scope["type"] == "websocket":
                return await send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": problem.code})
            return await answer_to(problem)(scope, receive, _with_headers(send))
        return await self._app(scope, receive, _with_headers(send))

    def _checked_host(self, given: Sequence[str], server: tuple[str, int | None] | None) -> tuple[str, int | None]:
        """The name by which the server is called, and the port if one is given; refuses a strange one."""
        asked = (given[0] if len(given) == 1 else "", server[0] if server else None)
        known = self._called.get(asked)
        if known is not None:
            return known
        host, port = _split(asked[0])
        if host is None:
            raise ProblemError(400, "no-host", "one header 'Host' with the name of this server expected")
        if not (is_this_machine(host) or self._is_known(host) or (server and host == _normal(server[0]))):
            raise ProblemError(
                421,
                "unknown-host",
                f"Host: '{host[:_LONGEST]}' given, which is no name of this server; ask for it by one that it has, or "
                "start it with --allow-host NAME",
            )
        if len(self._called) >= _MOST_CALLED:
            self._called.clear()
        self._called[asked] = host, port
        return host, port

    def _is_known(self, host: str) -> bool:
        return host in self._names or f"*.{host.partition('.')[2]}" in self._names

    def _check_page(self, headers: Headers, host: tuple[str, int | None], *, secure: bool) -> None:
        """Refuse a request that a page of another site makes."""
        origins = headers.getlist("origin")
        if not origins:
            site, mode = headers.get("sec-fetch-site"), headers.get("sec-fetch-mode")
            if site in {"cross-site", "same-site"} and mode != "navigate":
                raise _other_site("a page of another site")
            return
        if len(origins) > 1 or not (origins[0] in self._origins or _is_same(origins[0], host, secure=secure)):
            raise _other_site(f"'{origins[0][:_LONGEST]}'")


def _other_site(who: str) -> ProblemError:
    return ProblemError(
        403, "other-origin", f"Origin: {who} may not ask here; start the server with --allow-origin ORIGIN to allow it"
    )


def _is_same(origin: str, host: tuple[str, int | None], *, secure: bool) -> bool:
    """Whether a page comes from this very server. A proxy in front may speak TLS where this server does not."""
    parts = _origin_of(origin)
    if parts is None or (secure and parts[0] != "https"):
        return False
    scheme, name, port = parts
    return name == host[0] and port == (host[1] or _PORTS[scheme])


def _origin_of(given: str) -> tuple[str, str, int] | None:
    scheme, separator, rest = given.partition("://")
    host, port = _split(rest)
    if not separator or scheme not in _PORTS or host is None:
        return None
    return scheme, host, port or _PORTS[scheme]


def _split(given: str) -> tuple[str | None, int | None]:
    """Host and port of `host:port`; no host if it is none."""
    text = given.strip()
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return None, None
    if not host or parts.netloc != text or "@" in text or not _WRITTEN.fullmatch(host):
        return None, None
    return _normal(host), port


def _normal(host: str) -> str:
    """A name in small letters and without the dot at its end, an address in its usual form."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host.lower().removesuffix(".")


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = list(message.get("headers", ()))
            names = {name.lower() for name, _ in given}
            message["headers"] = [*given, *[header for header in _SENT_HEADERS if header[0] not in names]]
        await send(message)

    return sending


def names_in_certificate(certificate: Path, key: Path) -> tuple[str, ...]:
    """The names and addresses that a certificate is for; nothing if they cannot be read.

    Python tells them of a peer only, so the certificate is shown to this process itself, which trusts it for that.
    """
    try:
        ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ours.load_cert_chain(certificate, key)
        theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        theirs.check_hostname = False
        theirs.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | _NO_CHECK_OF_TIME
        theirs.load_verify_locations(certificate)
        up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
        server, client = ours.wrap_bio(up, down, server_side=True), theirs.wrap_bio(down, up)
        for end in (client, server, client, server):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
        shown: Any = client.getpeercert() or {}
    except (OSError, ValueError):  # an SSLError is an OSError
        return ()
    names = shown.get("subjectAltName", ())
    return tuple(str(value) for kind, value in names if kind in {"DNS", "IP Address"})
