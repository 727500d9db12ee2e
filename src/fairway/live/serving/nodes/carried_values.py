"""Values on several nodes: in shared memory within each, and inside messages from one node to another.

A large buffer is a file in the memory of the node where it was made, and goes by its name there. A message that leaves
the node is pickled with the bytes of each name in it (`Carriage`), so that no process ever has to ask another node for
them; what arrives are these bytes, which still say what they were called. With some messages a value changes its owner
(`HANDED_OVER`): the receiver has a copy then, and the file goes.
"""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

from fairway.live.serving.local.shared_memory import SharedMemoryValues
from fairway.live.serving.seams.transport import Message
from fairway.live.serving.seams.values import HANDED_OVER, CarriedBytes


class Name(str):
    """The name of a buffer that is kept in the memory of this node."""

    __slots__ = ()


class NodeValues(SharedMemoryValues):
    """The values of one process on one of several nodes."""

    def _write(self, raw: memoryview) -> str:
        return Name(super()._write(raw))


class Carriage:
    """Pickles messages that leave this node; `directory` is where its buffers are kept."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def pickled(self, message: Message) -> bytes:
        """A message with the bytes of all that is kept here and spoken of in it."""
        content = io.BytesIO()
        pickler = _CarryingPickler(content, self._directory)
        pickler.dump(message)
        if pickler.carried and type(message) is tuple and message[0] in HANDED_OVER:
            for path in pickler.carried:
                path.unlink(missing_ok=True)
        return content.getvalue()


class _CarryingPickler(pickle.Pickler):
    def __init__(self, content: io.BytesIO, directory: Path) -> None:
        super().__init__(content, protocol=5)
        self._directory = directory
        self.carried: list[Path] = []

    def reducer_override(self, value: Any) -> Any:
        if type(value) is not Name:
            return NotImplemented
        path = self._directory / value
        try:
            content = path.read_bytes()
        except OSError:  # it was let go: the receiver does not find it either
            return str, (str(value),)
        self.carried.append(path)
        return CarriedBytes.of, (str(value), content)
