"""Reads server-sent events out of the pieces in which they arrive (the WHATWG's `text/event-stream`)."""

from __future__ import annotations

import codecs
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event: its name, its data and the last id that the server has sent."""

    kind: str
    data: str
    id: str | None


class EventReader:
    """Takes bytes, gives events; an event is there when the empty line after it has come."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = ""
        self._kind = ""
        self._data: list[str] = []
        self._id: str | None = None

    def feed(self, piece: bytes) -> list[ServerEvent]:
        """The events that are complete with this piece."""
        self._text += self._decoder.decode(piece)
        # A carriage return at the very end may be half of a line end.
        whole = len(self._text) - self._text.endswith("\r")
        *lines, rest = self._text[:whole].replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._text = rest + self._text[whole:]
        return [event for line in lines if (event := self._line(line)) is not None]

    def _line(self, line: str) -> ServerEvent | None:
        if not line:
            event = ServerEvent(self._kind or "message", "\n".join(self._data), self._id) if self._data else None
            self._kind, self._data = "", []
            return event
        name, _, value = line.partition(":")  # a line that begins with a colon is a comment, and has no name
        value = value.removeprefix(" ")
        match name:
            case "event":
                self._kind = value
            case "data":
                self._data.append(value)
            case "id" if "\0" not in value:
                self._id = value
        return None
