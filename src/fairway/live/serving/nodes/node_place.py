"""What the processes on one node know of it: where it is, what nodes know each other by, and which time it is there.

It is a file in the node's serving directory, beside the book of addresses. Clocks of machines differ: `clock_seconds`
is what has to be added to this machine's monotonic clock to have that of the supervisor, by which times travel.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from fairway.errors import InputError
from fairway.live.durable_file import read_json, write_json
from fairway.live.serving.nodes.address_book import AddressBook
from fairway.live.serving.nodes.guarded_channel import Credentials

_FILE, _BOOK = "node.json", "addresses.json"


class NodePlace(NamedTuple):
    """One node of an application, or a process that is on none of them and only calls."""

    name: str
    host: str
    credentials: Credentials
    clock_seconds: float = 0.0

    def write(self, directory: Path) -> None:
        """Let the processes of this node know."""
        secret, certificate, key = self.credentials
        write_json(
            directory / _FILE,
            {
                "name": self.name,
                "host": self.host,
                "secret": secret.hex(),
                "certificate": None if certificate is None else str(certificate),
                "key": None if key is None else str(key),
                "clock_seconds": self.clock_seconds,
            },
            durable=False,
        )

    @classmethod
    def read(cls, directory: Path) -> NodePlace:
        """What was written."""
        content = read_json(directory / _FILE)
        if content is None:
            raise InputError(f"{directory}: nothing is served from here; start it with 'fairway serve --backend ray'")
        files = (None if content[name] is None else Path(content[name]) for name in ("certificate", "key"))
        credentials = Credentials(bytes.fromhex(content["secret"]), *files)
        return cls(content["name"], content["host"], credentials, content["clock_seconds"])


def address_book(directory: Path) -> AddressBook:
    """The book of the node with this serving directory."""
    return AddressBook(directory / _BOOK)
