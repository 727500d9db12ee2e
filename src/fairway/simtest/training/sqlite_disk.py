"""A disk under SQLite that knows what was synced: after a loss of power, the rest may be there, torn, or gone.

SQLite reaches its files through a table of functions, its VFS. A copy of the system's own is put in its place, in which
`open`, `write`, `truncate` and `sync` pass by here; everything else goes the usual way, to files in memory. What was
written since the last sync is remembered, and when the power fails, a random part of it is taken back. What a killed
process still wants to write is refused, so that its connections can be closed as if it had never got to it.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_void_p
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

_OK, _IO_ERROR, _FULL = 0, 10, 13
_SECTOR = 512


class _File(Structure):
    _fields_ = [("methods", c_void_p)]


_Write = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_Truncate = CFUNCTYPE(c_int, c_void_p, c_int64)
_Sync = CFUNCTYPE(c_int, c_void_p, c_int)
_Close = CFUNCTYPE(c_int, c_void_p)
# Names are passed on as the pointers that they came as: SQLite keeps them, and looks for options behind their end.
_Open = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)
_Delete = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int)


class _Methods(Structure):
    _fields_ = [("version", c_int), ("close", c_void_p), ("read", c_void_p), ("write", c_void_p),
                ("truncate", c_void_p), ("sync", c_void_p), *((f"rest{number}", c_void_p) for number in range(13)),
               ]  # fmt: skip


class _Vfs(Structure):
    _fields_ = [("version", c_int), ("file_size", c_int), ("path_size", c_int), ("next", c_void_p),
                ("name", c_char_p), ("data", c_void_p), ("open", c_void_p), ("delete", c_void_p),
                *((f"rest{number}", c_void_p) for number in range(14))]  # fmt: skip


@dataclass(slots=True)
class DiskFile:
    """A file: what of it is on the platter, and what was written since, as offsets with bytes (or as new sizes)."""

    platter: bytearray
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)

    def sync(self) -> None:
        """All that was written is on the platter."""
        for offset, data in self.pending:
            _apply(self.platter, offset, data)
        self.pending.clear()

    def after_power_loss(self, draw: Random) -> bytes:
        """What is found of it: of what was not synced, any part may be there, and one write may be torn."""
        keep = draw.choice((0.0, 0.5, 0.9))
        for offset, data in self.pending:
            if draw.random() < keep:
                torn = data is not None and draw.random() < 0.3
                most = draw.randrange(0, len(data) + 1, _SECTOR) if torn and data is not None else None
                _apply(self.platter, offset, None if data is None else data[:most])
        self.pending.clear()
        return bytes(self.platter)


def _apply(content: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del content[offset:]
        return
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


class SqliteDisk:
    """The files of SQLite below a directory. `is_dead` says whether the process that opened a file is dead.

    `opener` gives the process that opens a file; while the disk is `full`, nothing can be written.
    """

    def __init__(self, directory: Path, *, opener: Callable[[], object], is_dead: Callable[[object], bool]) -> None:
        self._prefix = f"{directory}{os.sep}"
        self.opener, self.is_dead = opener, is_dead
        self.files: dict[str, DiskFile] = {}
        self.full = False
        self.syncs = 0

    def holds(self, path: str) -> bool:
        """Whether a file is on this disk."""
        return path.startswith(self._prefix)

    def file(self, path: str) -> DiskFile:
        """A file, whose content of before counts as synced."""
        known = self.files.get(path)
        if known is None:
            found = Path(path)
            known = self.files[path] = DiskFile(bytearray(found.read_bytes() if found.exists() else b""))
        return known

    def lose_power(self, draw: Random) -> None:
        """Write into every file what is left of it; all processes that had it open are dead."""
        for path, file in self.files.items():
            target = Path(path)
            if target.exists() and (file.pending or target.stat().st_size != len(file.platter)):
                target.write_bytes(file.after_power_loss(draw))
        for index in Path(self._prefix).glob("*-shm"):
            index.unlink()


class _Shim:
    """The functions that SQLite calls in place of its own, and the disk that they work for at the moment."""

    def __init__(self) -> None:
        library = ctypes.CDLL("libsqlite3.so.0")
        library.sqlite3_libversion.restype = c_char_p
        if library.sqlite3_libversion().decode() != sqlite3.sqlite_version:
            raise OSError("the SQLite of this Python is another than that of the system")
        library.sqlite3_vfs_find.restype = POINTER(_Vfs)
        library.sqlite3_vfs_register.argtypes = [c_void_p, c_int]
        self._library = library
        self._original = library.sqlite3_vfs_find(None)
        source = self._original.contents
        self._open, self._delete = _Open(source.open), _Delete(source.delete)
        self._vfs = _Vfs.from_buffer_copy(source)
        self._functions = (_Open(self._on_open), _Delete(self._on_delete), _Write(self._on_write),
                           _Truncate(self._on_truncate), _Sync(self._on_sync), _Close(self._on_close))  # fmt: skip
        on_open, on_delete, *_ = (ctypes.cast(function, c_void_p) for function in self._functions)
        self._vfs.name, self._vfs.open, self._vfs.delete = b"fairway-simulated", on_open, on_delete
        self._methods: dict[int, _Methods] = {}
        self._originals: dict[int, tuple[Any, Any, Any, Any]] = {}
        self._open_files: dict[int, tuple[SqliteDisk, DiskFile, object, int]] = {}
        self.disk: SqliteDisk | None = None

    @property
    def open_files(self) -> int:
        """How many files are open."""
        return len(self._open_files)

    @contextmanager
    def used_for(self, disk: SqliteDisk) -> Iterator[None]:
        """While this lasts, files that SQLite opens below the disk's directory are on it."""
        self.disk = disk
        self._library.sqlite3_vfs_register(ctypes.byref(self._vfs), 1)
        try:
            yield
        finally:
            self._library.sqlite3_vfs_register(self._original, 1)
            self.disk = None

    def _on_open(self, _: int, name: int | None, file: int, flags: int, out: int) -> int:
        code = int(self._open(ctypes.addressof(self._original.contents), name, file, flags, out))
        disk = self.disk
        if code != _OK or disk is None or name is None or not disk.holds(path := ctypes.string_at(name).decode()):
            return code
        held = _File.from_address(file)
        if not held.methods:
            return code
        original: int = held.methods
        if original not in self._methods:
            table = _Methods.from_address(original)
            self._originals[original] = (_Write(table.write), _Truncate(table.truncate), _Sync(table.sync),
                                         _Close(table.close))  # fmt: skip
            write, truncate, sync, close = (ctypes.cast(function, c_void_p) for function in self._functions[2:])
            changed = _Methods.from_buffer_copy(table)
            changed.write, changed.truncate, changed.sync, changed.close = write, truncate, sync, close
            self._methods[original] = changed
        held.methods = ctypes.addressof(self._methods[original])
        self._open_files[file] = disk, disk.file(path), disk.opener(), original
        return code

    def _on_delete(self, _: int, name: int, sync: int) -> int:
        disk = self.disk
        path = ctypes.string_at(name).decode()
        if disk is not None and disk.holds(path):
            if disk.is_dead(disk.opener()):
                return _IO_ERROR
            disk.files.pop(path, None)
        return int(self._delete(ctypes.addressof(self._original.contents), name, sync))

    def _on_write(self, file: int, data: int, size: int, offset: int) -> int:
        disk, content, owner, original = self._open_files[file]
        if disk.is_dead(owner):
            return _IO_ERROR
        if disk.full:
            return _FULL
        content.pending.append((offset, ctypes.string_at(data, size)))
        return int(self._originals[original][0](file, data, size, offset))

    def _on_truncate(self, file: int, size: int) -> int:
        disk, content, owner, original = self._open_files[file]
        if disk.is_dead(owner):
            return _IO_ERROR
        content.pending.append((size, None))
        return int(self._originals[original][1](file, size))

    def _on_sync(self, file: int, _: int) -> int:
        disk, content, owner, _original = self._open_files[file]
        if disk.is_dead(owner):
            return _IO_ERROR
        disk.syncs += 1
        content.sync()
        return _OK

    def _on_close(self, file: int) -> int:
        *_, original = self._open_files.pop(file)
        _File.from_address(file).methods = original
        return int(self._originals[original][3](file))


_shim: _Shim | None = None


def shim() -> _Shim:
    """The functions of this process, made when they are first needed."""
    global _shim  # noqa: PLW0603
    if _shim is None:
        _shim = _Shim()
    return _shim
