"""The files by which people on this machine find the service: `token` with an admin's token, and `address`.

Whoever may read the directory of an installation owns it; the token file lets its owner in and no other user, and is at
no moment readable by others.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from fairway.live.durable_file import replacing
from fairway.store import Store
from fairway.store.tokens import Role, Token, create_token, find_token

TOKEN_FILE = "token"
ADDRESS_FILE = "address"


def ensure_first_token(store: Store, directory: Path) -> bool:
    """See to it that the directory has an admin's token; returns whether one had to be made.

    One is made at the first start, and again if the file is gone or what it holds is worth nothing in this store, such
    as after a crash between the two.
    """
    with suppress(FileNotFoundError):
        (directory / TOKEN_FILE).chmod(0o600)
    token = token_in_file(store, directory)
    if token is not None and token.role is Role.ADMIN:
        return False
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    secret, _ = store.write(create_token, Role.ADMIN, at=time.time(), name="first admin")
    write_token(directory, secret)
    return True


def token_in_file(store: Store, directory: Path) -> Token | None:
    """Whose token the directory has; None if there is no file, or what it holds is worth nothing."""
    with suppress(FileNotFoundError):
        secret = (directory / TOKEN_FILE).read_text(encoding="utf-8", errors="replace").strip()
        return store.read(find_token, secret) if secret else None
    return None


def write_token(directory: Path, secret: str) -> None:
    """Put a token into the file of the directory, for its owner only."""
    _write(directory / TOKEN_FILE, f"{secret}\n", mode=0o600)


def write_address(directory: Path, address: str) -> None:
    """Write down where the service is reached."""
    _write(directory / ADDRESS_FILE, f"{address}\n", mode=0o644)


def _write(path: Path, content: str, *, mode: int) -> None:
    with replacing(path) as part:
        part.unlink(missing_ok=True)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(content)
