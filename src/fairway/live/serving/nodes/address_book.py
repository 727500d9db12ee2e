"""Where the processes of an application listen, on whichever node they are: a file on each node, the same on all.

The supervisor writes it there, through each node's keeper, before any process hears of a new one: so a process that has
heard of another one can reach it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from fairway.live.durable_file import write_json


class Place(NamedTuple):
    """Where one life of a process listens."""

    host: str
    port: int
    epoch: int


class AddressBook:
    """The book of one node, as it was last written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int] | None = None
        self._places: dict[int, Place] = {}

    @property
    def places(self) -> Mapping[int, Place]:
        """All places by number."""
        try:
            found = self._path.stat()
        except OSError:
            return self._places
        seen = (found.st_ino, found.st_mtime_ns)
        if seen != self._seen:
            content = json.loads(self._path.read_text())
            self._places = {int(number): Place(*place) for number, place in content.items()}
            self._seen = seen
        return self._places

    def find(self, number: int) -> Place:
        """Where a process listens; raises `OSError` if that is not known."""
        place = self.places.get(number)
        if place is None:
            raise ConnectionRefusedError(f"process {number} is not in {self._path}")
        return place

    def write(self, places: Mapping[int, Place]) -> None:
        """Let all processes of this node know these places, instead of those before."""
        write_json(self._path, {str(number): list(place) for number, place in places.items()}, durable=False)
