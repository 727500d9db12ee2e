"""Carries values between processes: small ones inside a message, the bytes of large ones in shared memory.

A value is pickled once, by the worker that made it. Large buffers, such as those of arrays, are not part of the pickle:
each is a file in a directory in memory, which every process of this application maps and nobody copies. The worker that
made it removes it when the request is over; what is mapped stays readable. Arrays that come out are read-only, since
several stages may look at the same bytes.
"""

from __future__ import annotations

import itertools
import mmap
import os
import pickle
from pathlib import Path
from typing import Any, NamedTuple

LARGE = 32 * 1024
"""Buffers of at least so many bytes go to shared memory; copying less costs no more than a file does."""

_SHORT = 64


class Parcel(NamedTuple):
    """A value on its way: its pickle, and for each buffer that is not in it, the bytes or the name of their file."""

    pickled: bytes
    buffers: tuple[bytes | str, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """The names of its files."""
        return tuple(buffer for buffer in self.buffers if isinstance(buffer, str))


class Opened(NamedTuple):
    """A parcel with its bytes."""

    parcel: Parcel
    buffers: list[bytes | memoryview]

    def value(self) -> Any:
        """The value in it."""
        if not self.buffers:
            return pickle.loads(self.parcel.pickled)
        return pickle.loads(self.parcel.pickled, buffers=self.buffers)


class SharedBuffers:
    """Makes and opens parcels; the files that it makes begin with `prefix`, so that others can clear up after it."""

    def __init__(self, directory: Path, prefix: str) -> None:
        self._directory = directory
        self._prefix = prefix
        self._numbers = itertools.count()

    def pack(self, value: object) -> Parcel:
        """A value as a parcel."""
        buffers: list[bytes | str] = []

        def keep(buffer: pickle.PickleBuffer) -> bool:
            try:
                raw = buffer.raw()
            except BufferError:  # neither in rows nor in columns; let pickle copy it
                return True
            if raw.nbytes < LARGE:
                return True
            buffers.append(self._write(raw))
            return False

        pickled = pickle.dumps(_with_bytes_apart(value), protocol=5, buffer_callback=keep)
        return Parcel(pickled, tuple(buffers))

    def unpack(self, parcel: Parcel) -> Any:
        """The value in a parcel."""
        return self.opened(parcel).value()

    def opened(self, parcel: Parcel) -> Opened:
        """A parcel whose bytes are at hand, whoever removes its files; raises `OSError` if they are gone."""
        return Opened(parcel, [self._read(buffer) for buffer in parcel.buffers])

    def are_there(self, parcel: Parcel) -> bool:
        """Whether others can still open a parcel."""
        return all((self._directory / name).exists() for name in parcel.files)

    def discard(self, parcel: Parcel) -> None:
        """Remove the files of a parcel that nobody needs any more."""
        for name in parcel.files:
            (self._directory / name).unlink(missing_ok=True)

    def _write(self, raw: memoryview) -> str:
        name = f"{self._prefix}{next(self._numbers)}"
        descriptor = os.open(self._directory / name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            written = 0
            while written < raw.nbytes:  # a single write moves 2 GB at most
                written += os.write(descriptor, raw[written:])
        finally:
            os.close(descriptor)
        return name

    def _read(self, buffer: bytes | str) -> bytes | memoryview:
        if isinstance(buffer, bytes):
            return buffer
        descriptor = os.open(self._directory / buffer, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return memoryview(mmap.mmap(descriptor, 0, prot=mmap.PROT_READ))
        finally:
            os.close(descriptor)


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


def clear_files(directory: Path, prefix: str) -> None:
    """Remove what a process that is gone has left behind."""
    for path in directory.glob(f"{prefix}*"):
        path.unlink(missing_ok=True)
