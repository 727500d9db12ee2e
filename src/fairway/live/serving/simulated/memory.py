"""Values of simulated processes, which all of them find by name, and rows that all of them share."""

from __future__ import annotations

import itertools

from fairway.live.serving.seams.values import Opened, Parcel, packed


class SimulatedValues:
    """The values of one process; `kept` is where all processes keep theirs."""

    def __init__(self, kept: dict[str, bytes], owner: str) -> None:
        self._kept, self._owner = kept, owner
        self._numbers = itertools.count()

    def pack(self, value: object) -> Parcel:
        """A value as a parcel."""
        return packed(value, self._keep, self._let_go)

    def open(self, parcel: Parcel) -> Opened:
        """A parcel with its bytes; raises `OSError` if they are not kept any more."""
        return Opened(parcel, [self._found(buffer) for buffer in parcel.buffers])

    def is_there(self, parcel: Parcel) -> bool:
        """Whether the bytes of a parcel are kept."""
        return all(name in self._kept for name in parcel.names)

    def discard(self, parcel: Parcel) -> None:
        """Let the bytes of a parcel go."""
        for name in parcel.names:
            self._let_go(name)

    def clear(self, owner: str) -> None:
        """Let all go that an owner has kept."""
        for name in [name for name in self._kept if name.startswith(owner)]:
            self._let_go(name)

    def _keep(self, raw: memoryview) -> str:
        name = f"{self._owner}{next(self._numbers)}"
        self._kept[name] = bytes(raw)
        return name

    def _let_go(self, name: str) -> None:
        self._kept.pop(name, None)

    def _found(self, buffer: bytes | str) -> bytes:
        if isinstance(buffer, bytes):
            return buffer
        if buffer not in self._kept:
            raise FileNotFoundError(f"{buffer} is not kept any more")
        return self._kept[buffer]
