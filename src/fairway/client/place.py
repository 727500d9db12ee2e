"""Where the server is, and what to show it: arguments first, then the environment, then the files of `fairway up`.

`fairway up` writes its address and the token of its administrator to files in its directory, `FAIRWAY_HOME` or
`~/.fairway`. The token from there is only ever sent to this machine or to the address that stands beside it: a server
at another address might not be the user's own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from fairway.errors import InputError
from fairway.hosts import is_this_machine

DEFAULT_ADDRESS = "http://127.0.0.1:8642"


def home_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """The directory of the installation that this user works with by default."""
    return Path(environment.get("FAIRWAY_HOME") or "~/.fairway").expanduser()


@dataclass(frozen=True, slots=True)
class Place:
    """An address and a token. `expected` says that the user or `fairway up` named it: a server should be there."""

    address: str
    token: str | None
    expected: bool = True

    @classmethod
    def find(
        cls, address: str | None = None, token: str | None = None, environment: Mapping[str, str] = os.environ
    ) -> Place:
        """From what was given and what can be found."""
        home = home_directory(environment)
        written = _line_of(home / "address")
        given = address or environment.get("FAIRWAY_ADDRESS")
        chosen = checked_address(given or written or DEFAULT_ADDRESS)
        token = token or environment.get("FAIRWAY_TOKEN")
        if token and token.startswith("@"):  # a file, since every user of a machine sees the arguments of commands
            token = _line_of(Path(token[1:]).expanduser(), must=True)
        if not token and (on_this_machine(chosen) or (written and chosen == checked_address(written))):
            token = _line_of(home / "token")
        if token and not (token.isascii() and token.isprintable()):
            raise InputError("token: characters given that no token has; copy it again")
        return cls(chosen, token or None, expected=bool(given or written))


def checked_address(given: str) -> str:
    """The address of a server without a path; `host:port` is taken as http."""
    text = given.strip()
    text = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(text)
        _ = parts.port  # refuses what is no number
    except ValueError:
        parts = None
    if parts is None or parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InputError(f"address: '{given}' given, expected one such as {DEFAULT_ADDRESS} or https://fairway.example")
    if parts.username or parts.path not in {"", "/"} or parts.query or parts.fragment:
        raise InputError(f"address: '{given}' given, expected scheme, host and port only, as in {DEFAULT_ADDRESS}")
    return text.removesuffix("/")


def on_this_machine(address: str) -> bool:
    """Whether an address is one of the machine itself."""
    return is_this_machine(urlsplit(address).hostname or "")


def _line_of(path: Path, *, must: bool = False) -> str | None:
    """The first line of a file that need not be there, unless it must."""
    try:
        return next(iter(path.read_text(encoding="utf-8").strip().splitlines()), None)
    except FileNotFoundError:
        if must:
            raise InputError(f"{path}: no such file; name one that holds a token") from None
        return None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not text"
        raise InputError(f"{path}: cannot be read: {why}; give --address and --token instead") from None
