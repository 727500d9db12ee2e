"""Serves an application over HTTP: on one address, with TLS if asked for, until SIGINT or SIGTERM.

Tokens would be readable on the way where there is no TLS, so without it only this machine is served, unless the
operator insists.
"""

from __future__ import annotations

import errno
import functools
import signal
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from fairway.errors import InputError
from fairway.hosts import is_this_machine
from fairway.service.app import create_app
from fairway.service.context import Service
from fairway.service.http.connections import ConnectionLimits, Connections, LimitedConnection
from fairway.service.http.sites import Sites, names_in_certificate
from fairway.service.scheduler_view import SchedulerView

_BACKLOG = 2048
_PATIENCE_SECONDS = 5
"""How long requests may take that are under way when the service is to stop."""


class HttpServer(uvicorn.Server):
    """A server of one application; `run` returns after `stop`, or a signal if it runs on the main thread.

    `address` is a port, or a socket that is bound already (`bound_socket`). `ready` is called with the address once it
    answers; `before_shutdown` before it waits for requests that are under way, to end those that never would. `limits`
    are those of its connections, by default what the descriptors of this process allow; `sites` says by which names it
    may be called, and by the pages of which sites.
    """

    def __init__(
        self,
        app: ASGIApp,
        host: str,
        address: int | socket.socket,
        *,
        certificate: Path | None = None,
        key: Path | None = None,
        plain_text: bool = False,
        ready: Callable[[str], None] | None = None,
        before_shutdown: Callable[[], None] | None = None,
        limits: ConnectionLimits | None = None,
        sites: Sites | None = None,
    ) -> None:
        secure = check_reach(host, certificate, key, plain_text=plain_text)
        names = () if certificate is None or key is None else names_in_certificate(certificate, key)
        super().__init__(
            uvicorn.Config(
                (sites or Sites()).around(app, [host, *names]),
                http=functools.partial(  # type: ignore[arg-type]  # it is called as a class would be
                    LimitedConnection, Connections(limits or ConnectionLimits.of_this_process())
                ),
                ws="none",
                lifespan="on",
                log_level="error",  # what is wrong with a request is for its client to know, not for the log
                access_log=False,
                server_header=False,
                backlog=_BACKLOG,
                timeout_graceful_shutdown=_PATIENCE_SECONDS,
                ssl_certfile=certificate,
                ssl_keyfile=key,
            )
        )
        self._ready = ready
        self._before_shutdown = before_shutdown
        self._socket = bound_socket(host, address) if isinstance(address, int) else address
        scheme, (name, number) = "https" if secure else "http", self._socket.getsockname()[:2]
        self.address = f"{scheme}://[{name}]:{number}" if ":" in name else f"{scheme}://{name}:{number}"

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until told to stop."""
        try:
            super().run(sockets or [self._socket])
        finally:
            self._socket.close()

    def close(self) -> None:
        """Let go of the address, if `run` will not be called."""
        self._socket.close()

    def stop(self) -> None:
        """Let `run` return, from any thread."""
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, and say so."""
        await super().startup(sockets)
        if self._ready is not None and self.started:
            self._ready(self.address)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let those go who would stay for ever, then the rest."""
        if self._before_shutdown is not None:
            self._before_shutdown()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Stop; at a second SIGINT, without waiting. `run` then returns: its caller has more to stop."""
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True


class ServiceServer(HttpServer):
    """A server of one scheduler's API; whoever listens to its events is let go when it stops."""

    def __init__(
        self,
        controller: SchedulerView,
        host: str,
        port: int,
        *,
        certificate: Path | None = None,
        key: Path | None = None,
        plain_text: bool = False,
        ready: Callable[[str], None] | None = None,
        limits: ConnectionLimits | None = None,
        sites: Sites | None = None,
    ) -> None:
        app = create_app(controller)
        self.service: Service = app.state.service
        super().__init__(
            app,
            host,
            port,
            certificate=certificate,
            key=key,
            plain_text=plain_text,
            ready=ready,
            before_shutdown=self.service.watch.close,
            limits=limits,
            sites=sites,
        )


def serve(
    controller: SchedulerView,
    host: str = "127.0.0.1",
    port: int = 8642,
    *,
    certificate: Path | None = None,
    key: Path | None = None,
    plain_text: bool = False,
    ready: Callable[[str], None] | None = None,
    sites: Sites | None = None,
) -> None:
    """Serve a scheduler's API until SIGINT or SIGTERM; `ready` is called with the address once it answers.

    `plain_text` allows addresses that others can reach without TLS.
    """
    ServiceServer(
        controller, host, port, certificate=certificate, key=key, plain_text=plain_text, ready=ready, sites=sites
    ).run()


def check_reach(host: str, certificate: Path | None, key: Path | None, *, plain_text: bool) -> bool:
    """Whether there is TLS; refuses a certificate that cannot be used, and to let tokens travel in plain text."""
    secure = _check_certificate(certificate, key)
    if not (secure or plain_text or is_this_machine(host)):
        raise InputError(
            f"host {host}: without TLS, tokens could be read on the way; give --tls-certificate and --tls-key, "
            "serve only this machine with --host 127.0.0.1, or insist with --plain-text"
        )
    return secure


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket that is bound already, so that a port in use is told before anything else is done."""
    if not 0 <= port <= 65535:
        raise InputError(f"port: {port} given, expected 0 to 65535")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError):
        raise InputError(
            f"host: '{host}' is not an address of this machine; give one, as in --host 127.0.0.1"
        ) from None
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(_BACKLOG)  # already here, since two may bind a port but only one can listen
    except OSError as error:
        bound.close()
        raise InputError(_why_not(host, port, error)) from None
    return bound


def _why_not(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} is in use; give another with --port"
    if error.errno == errno.EACCES:
        return f"port {port} is only for the administrator of this machine; give one above 1023 with --port"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"host: '{host}' is not an address of this machine; give one, as in --host 127.0.0.1"
    return f"host {host}, port {port}: cannot be served ({error.strerror or error})"


def _check_certificate(certificate: Path | None, key: Path | None) -> bool:
    """Whether there is TLS; refuses what cannot be used."""
    if certificate is None and key is None:
        return False
    if certificate is None or key is None:
        missing = "--tls-certificate" if certificate is None else "--tls-key"
        raise InputError(f"{missing} is missing; TLS needs both a certificate and its key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ValueError) as error:  # an SSLError is an OSError
        why = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"certificate {certificate}, key {key}: cannot be used ({why}); give both in PEM form"
        ) from None
    return True
