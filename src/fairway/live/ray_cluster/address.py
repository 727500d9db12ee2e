"""What can be said of the address of a Ray cluster, and of the Ray that is installed, before Ray itself is asked.

Ray waits for more than a minute for a head that is not there, and does not name the address or the token that it tried.
"""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

from fairway.errors import InputError

AUTO = "auto"

OLDEST = (2, 49)
"""The first version of Ray whose actors can be pinned to a node by a label."""

_TRY_SECONDS = 5.0


def refuse_old_ray(version: str) -> None:
    """Refuse a Ray of before, by its version as it writes it."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if numbers < OLDEST:
        oldest = ".".join(str(part) for part in OLDEST)
        raise InputError(f"ray {version} is installed, expected {oldest} or later; pip install 'ray>={oldest}'")


def refuse_silent_address(address: str) -> None:
    """Refuse an address that is none, or at which nothing listens."""
    if address == AUTO:
        return
    plain = address.removeprefix("ray://")
    host, colon, port = plain.rpartition(":")
    if not (colon and host and port.isascii() and port.isdecimal() and 0 < int(port) < 65536):
        raise InputError(
            f"address: '{address}' given, expected auto, the HOST:PORT of a head of Ray, or ray://HOST:PORT"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), _TRY_SECONDS).close()
    except OSError as error:
        why = error.strerror or str(error) or "it does not answer"
        raise InputError(
            f"address: no Ray at {address} ({why}); start one by 'ray start --head', or give the address of another"
        ) from None


def said_of(address: str, error: Exception) -> str:
    """What an error of Ray means, in one line."""
    name = type(error).__name__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    first = lines[0] if lines else name
    if "uthentication" in name or "uthentication" in str(error) or "token" in first.lower():
        return f"Ray at {address} refuses this client ({_credentials()}): {first}"
    if isinstance(error, ConnectionError) and address == AUTO:
        return "no Ray runs on this machine; start one by 'ray start', or give the address of another"
    if "ersion mismatch" in str(error):
        return f"Ray at {address} is of another version: {' '.join(lines)}"
    return f"Ray at {address} cannot be used: {first}"


def _credentials() -> str:
    """Where a token of this client comes from, without the token itself."""
    mode = os.environ.get("RAY_AUTH_MODE")
    if mode is not None and mode.lower() != "token":
        return f"RAY_AUTH_MODE={mode}"
    if "RAY_AUTH_TOKEN" in os.environ:
        return "its token is that of RAY_AUTH_TOKEN"
    path = Path(os.environ.get("RAY_AUTH_TOKEN_PATH", "~/.ray/auth_token")).expanduser()
    return f"its token is that of {path}" if path.exists() else f"it has no token: neither RAY_AUTH_TOKEN nor {path}"
