"""Becoming a client of a Ray cluster, and which of its nodes have accelerators; all that can be wrong is one line.

A head that is not there Ray waits for for a minute, and ends the process for one that does not speak as it does: so
this looks before it asks.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from fairway.errors import InputError

NAMESPACE = "fairway-serve"
_AUTO = "auto"
_OLDEST = (2, 49)
"""The first Ray whose actors can be pinned to a node by a label."""
_TRY_SECONDS = 5.0
_MOST_WRITTEN = 1 << 16


class RayNode(NamedTuple):
    """A node of the cluster: its identity in Ray, its address, and how many accelerators it has."""

    id: str
    host: str
    accelerators: int


def connect(address: str) -> None:
    """Be a client of the cluster at an address; raises `InputError` if that cannot be."""
    _check_address(address)
    ray = ray_module()
    if ray.is_initialized():
        return
    with _set_aside() as written:
        try:
            ray.init(
                address=address,
                namespace=NAMESPACE,
                log_to_driver=False,
                logging_level=logging.ERROR,
                configure_logging=False,
            )
            ray.nodes()  # which a wrong token does not get
        except Exception as error:
            disconnect()
            raise InputError(f"--address: {_why_not(address, error, written())}") from None
        except SystemExit:
            raise InputError(f"--address: what listens at {address} does not answer as Ray does") from None


def disconnect() -> None:
    """Be a client no more; what this one has started in Ray ends."""
    ray = ray_module()
    if ray.is_initialized():
        ray.shutdown()


def living_nodes() -> list[RayNode]:
    """The nodes that are there, in the order of their addresses, with their GPUs as Ray counts them."""
    ray = ray_module()
    return sorted(
        (
            RayNode(each["NodeID"], each["NodeManagerAddress"], int(each["Resources"].get("GPU", 0)))
            for each in ray.nodes()
            if each["Alive"]
        ),
        key=lambda node: (_as_numbers(node.host), node.id),
    )


def ray_module() -> Any:
    """Ray itself; refuses to go on without it, or with one that is too old."""
    try:
        import ray  # noqa: PLC0415 - an extra, and slow to import
    except ImportError:
        raise InputError("--backend: ray given, and Ray is not installed; pip install 'fairway[ray]'") from None
    if tuple(int(part) for part in re.findall(r"\d+", ray.__version__)[:2]) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise InputError(f"ray {ray.__version__} is installed, expected {oldest} or later; pip install 'ray>={oldest}'")
    return ray


@contextmanager
def _set_aside() -> Iterator[Callable[[], str]]:
    """Keep what Ray's own code writes about each of its attempts from the user, who gets one line in the end.

    It is the only place where Ray says that a token is wrong; what it has written can be asked for.
    """
    with tempfile.TemporaryFile() as written:
        sys.stderr.flush()
        kept = os.dup(2)
        os.dup2(written.fileno(), 2)
        try:
            yield lambda: os.pread(written.fileno(), _MOST_WRITTEN, 0).decode(errors="replace")
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def _check_address(address: str) -> None:
    if address == _AUTO:
        return
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isascii() and port.isdecimal() and 0 < int(port) < 65536):
        raise InputError(f"--address: '{address}' given, expected auto, or HOST:PORT of a head of Ray")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _TRY_SECONDS).close()
    except OSError as error:
        why = error.strerror or str(error) or "it does not answer"
        raise InputError(
            f"--address: no Ray at {address} ({why}); start one with 'ray start --head', or give the address of another"
        ) from None


def _why_not(address: str, error: Exception, written: str) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    if any(word in f"{type(error).__name__} {error} {written}" for word in ("uthentication", "nauthenticated")):
        return f"Ray at {address} refuses this client, {_token()}; give it the token of the cluster in RAY_AUTH_TOKEN"
    if isinstance(error, ConnectionError) and address == _AUTO:
        return "no Ray runs on this machine; start one with 'ray start --head', or give the address of another"
    if "ersion mismatch" in str(error):
        return f"Ray at {address} is of another version: {' '.join(lines)}"
    return f"Ray at {address} cannot be used: {lines[0]}"


def _token() -> str:
    """Where this client's token comes from, without the token itself."""
    if os.environ.get("RAY_AUTH_MODE", "token").lower() != "token":
        return f"whose RAY_AUTH_MODE is {os.environ['RAY_AUTH_MODE']}"
    if "RAY_AUTH_TOKEN" in os.environ:
        return "whose token is that of RAY_AUTH_TOKEN"
    path = Path(os.environ.get("RAY_AUTH_TOKEN_PATH", "~/.ray/auth_token")).expanduser()
    return f"whose token is that of {path}" if path.exists() else "which has no token"


def _as_numbers(host: str) -> tuple[int | str, ...]:
    parts = host.split(".")
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else (1 << 16, host)
