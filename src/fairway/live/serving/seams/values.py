"""Values between processes: what requests bring, what stages put out, what goes into replies.

A value is pickled once, by the process that made it, into a `Parcel`, which travels inside messages. Large buffers, as
those of arrays, are not part of the pickle: the `Values` of the maker keep each of them under a name, and a process
that opens the parcel finds them by it, if possible without a copy. The maker lets them go when the request is over;
what is open stays readable. Arrays that come out are read-only, since several stages may look at the same bytes.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

LARGE = 32 * 1024
"""Buffers of at least so many bytes are kept apart; copying less costs no more than looking them up does."""

HANDED_OVER = frozenset({"reply", "chunk", "batch-done"})
"""The first words of messages with which a value changes its owner: letting it go is for the receiver from then on."""

_SHORT = 64


class CarriedBytes(bytes):
    """The bytes of a buffer that came in the message itself; `name` is what they are kept by where they come from."""

    name: str

    @classmethod
    def of(cls, name: str, content: bytes) -> CarriedBytes:
        """Bytes under a name."""
        carried = cls(content)
        carried.name = name
        return carried


class Parcel(NamedTuple):
    """A value on its way: its pickle, and for each buffer that is not in it, the bytes or the name they are kept by."""

    pickled: bytes
    buffers: tuple[bytes | str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the buffers that are kept apart."""
        return tuple(buffer for buffer in self.buffers if isinstance(buffer, str))


class Opened(NamedTuple):
    """A parcel with its bytes at hand, whatever becomes of those that are kept."""

    parcel: Parcel
    buffers: list[bytes | memoryview]

    def value(self) -> Any:
        """The value in it."""
        if not self.buffers:
            return pickle.loads(self.parcel.pickled)
        return pickle.loads(self.parcel.pickled, buffers=self.buffers)


class Values(Protocol):
    """Makes and opens parcels; all that one process makes has the same owner, so that others can clear up after it."""

    def pack(self, value: object) -> Parcel:
        """A value as a parcel; if it cannot be one, this raises what pickle or the machine does, and keeps nothing."""
        ...

    def open(self, parcel: Parcel) -> Opened:
        """A parcel of any process with its bytes; raises `OSError` if they are not kept any more."""
        ...

    def is_there(self, parcel: Parcel) -> bool:
        """Whether other processes can still open a parcel."""
        ...

    def discard(self, parcel: Parcel) -> None:
        """Let go what is kept for a parcel, whichever process made it; a second time does no harm."""
        ...

    def clear(self, owner: str) -> None:
        """Let go all that an owner has left which is gone."""
        ...


class ValueStore(Protocol):
    """Where the processes of one application keep what they share."""

    def values(self, owner: str) -> Values:
        """The values of one process; no two processes have the same owner, and none begins with another one."""
        ...


def worker_owner(number: int, epoch: int) -> str:
    """The owner of what a worker makes in one of its lives."""
    return f"w{number}-{epoch}-"


def client_owner(pid: int, word: str) -> str:
    """The owner of what a client makes in this process; `word` tells it from the other clients there."""
    return f"c{pid}-{word}-"


def packed(value: object, keep: Callable[[memoryview], str], let_go: Callable[[str], None]) -> Parcel:
    """A value as a parcel; `keep` takes each large buffer and returns its name, `let_go` undoes that."""
    buffers: list[bytes | str] = []

    def apart(buffer: pickle.PickleBuffer) -> bool:
        try:
            raw = buffer.raw()
        except BufferError:  # neither in rows nor in columns; pickle copies it
            return True
        if raw.nbytes < LARGE:
            return True
        try:
            buffers.append(keep(raw))
        except OSError:  # there is no room, which another stage may have taken: it goes with the message, as a copy
            return True
        return False

    try:
        pickled = pickle.dumps(_with_bytes_apart(value), protocol=5, buffer_callback=apart)
    except BaseException:
        for name in buffers:
            assert isinstance(name, str)
            let_go(name)
        raise
    return Parcel(pickled, tuple(buffers))


class _Bytes:
    """Large `bytes`, which pickle would copy into its own otherwise; they come out as `bytes` again."""

    __slots__ = ("_content",)

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __reduce__(self) -> tuple[type[bytes], tuple[pickle.PickleBuffer]]:
        return bytes, (pickle.PickleBuffer(self._content),)


def _with_bytes_apart(value: Any) -> Any:
    """The same value, but for large bytes where they mostly are: by themselves, by name, or in a short list."""
    kind = type(value)
    if kind is bytes:
        return _Bytes(value) if len(value) >= LARGE else value
    if kind is dict:
        if any(type(member) is bytes for member in value.values()):
            return {name: _Bytes(each) if _is_large(each) else each for name, each in value.items()}
    elif kind in {list, tuple} and len(value) <= _SHORT and any(_is_large(member) for member in value):
        return kind(_Bytes(each) if _is_large(each) else each for each in value)
    return value


def _is_large(value: object) -> bool:
    return type(value) is bytes and len(value) >= LARGE
