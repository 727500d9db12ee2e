"""The files of an SQLite store: that they are still the ones that were opened, and that nothing in them is missing.

SQLite itself notices neither. Whoever deletes or replaces a file that is open leaves it writing into a file without a
name, which is gone with the process; and of a write-ahead log that was damaged it reads what comes before the damage,
without a word. So every commit counts one number on, inside the database, and the number of the last one is also kept
in a file of its own beside it, the mark. The mark is written after the commit is on the disk, and is not waited for: it
can be behind after a loss of power, never ahead. A database that is behind its mark has lost what was acknowledged.

A full disk must not refuse the cancel of the job that fills it. The log therefore has blocks of its own before they are
needed, which no job can take away, and while the disk is all but full only writes that are vital may use them.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from threading import Lock
from urllib.parse import quote

from sqlalchemy import Connection, Engine, event, insert

from fairway.errors import InputError
from fairway.store import counters
from fairway.store.database.schema import counters as counters_table
from fairway.store.errors import StoreError

_DIGITS = 20
_WAIT_SECONDS = 30.0

RESERVE_BYTES = 8 * 2**20
"""What the log has ahead: thousands of cancels, and few enough for the first part of SQLite's index of the log."""

SHORT_BYTES = 2 * 2**20
"""With less than this left on its disk, a store accepts nothing but what is vital."""


def uri_of(path: Path, mode: str) -> str:
    """The address of a database that exists already; SQLite makes none in its place."""
    return f"file:{quote(str(path.absolute()))}?mode={mode}"


def beside(path: Path, ending: str) -> Path:
    """A file that belongs to a database."""
    return path.with_name(path.name + ending)


def refuse_what_is_missing(path: Path) -> None:
    """Refuse to make a store in the place of one that was there, as the files beside it show."""
    if path.exists():
        return
    mark, log = beside(path, "-mark"), beside(path, "-wal")
    for left in (mark, log):
        if left.exists():
            raise InputError(
                f"the file is missing, but '{left.name}' of it is there; put the file back, "
                f"or delete '{mark.name}' and '{log.name}' to begin with an empty store"
            )


def refuse_damage(path: Path) -> None:
    """Refuse a database that is damaged, or that has lost writes that were acknowledged.

    It is only looked at: what is left of it stays as it was found.
    """
    mark = beside(path, "-mark")
    acknowledged = _read_mark(mark)  # before the database, to which others may be writing
    with closing(sqlite3.connect(uri_of(path, "ro"), uri=True, timeout=_WAIT_SECONDS)) as connection:
        try:
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            there = _last_commit(connection)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError as error:
            if "not a database" in str(error):
                raise
            found, there = str(error), acknowledged
    if found != "ok":
        said = " ".join(str(found).split())
        raise InputError(
            f"the file is damaged ({said}); put a copy of it in its place, "
            f"or get out what can be read with 'sqlite3 {path.name} .recover'"
        )
    if there < acknowledged:
        raise InputError(
            f"{acknowledged - there} acknowledged writes are missing (there were {acknowledged}, there are {there}): "
            f"'{path.name}-wal' was damaged or removed, or an older file was put in its place; "
            f"put the files back that have them, or delete '{mark.name}' to go on without them"
        )


class StoreFiles:
    """The files of a store that is open. `problem` says why nothing can be written any more, None while it can."""

    def __init__(self, path: Path, writing: Engine) -> None:
        self._path, self._writing = path, writing
        self._log, self._mark_path = beside(path, "-wal"), beside(path, "-mark")
        self._database_identity = _identity(path)
        self._log_identity: tuple[int, int] | None = None
        self._mark: int | None = None
        self._last = self._counted = 0
        self._reserved = False
        self._lock = Lock()
        self.problem: str | None = None
        event.listen(writing, "connect", self._connected_anew)

    def check(self) -> None:
        """Raise if the files are not the ones that were opened. Any thread may ask that is not writing just then."""
        if self.problem is None and (what := self._what_is_wrong()) is not None:
            with self._lock:
                if self.problem is None:
                    self._give_up(what)
        if self.problem is not None:
            raise StoreError(self.problem)

    @property
    def short_of_room(self) -> bool:
        """Whether the disk is all but full."""
        try:
            return self._free_bytes() < SHORT_BYTES
        except OSError:
            return False

    def refusal(self) -> StoreError:
        """What is said to writes that have to wait for room."""
        room = f"less than {SHORT_BYTES // 2**20} MiB are free on the disk of {self._path}"
        return StoreError(f"the store failed: the disk is full: {room}; free some and try again")

    def count(self, connection: Connection) -> None:
        """Count a commit, as the last deed of its transaction; raises if those before it are not there any more."""
        row = connection.execute(counters.TAKE, {"counter": counters.COMMITS, "count": 1}).one_or_none()
        number = 1 if row is None else int(row[0])
        if row is None:  # a store of before
            connection.execute(insert(counters_table).values(name=counters.COMMITS, value=number))
        if number <= self._last:
            self.problem = (
                f"store {self._path}: an older copy was written over it while it was open; nothing more is accepted: "
                "stop Fairway, put the right file in its place, and start it again"
            )
            raise StoreError(self.problem)
        self._counted = number

    def keep(self) -> None:
        """What was counted is on the disk: raises if that is no disk of this store, and marks it otherwise."""
        if self._log_identity is None:
            self._log_identity = _identity(self._log)
        self.check()
        self._last = self._counted
        if not self._reserved:
            self._reserve()
        with suppress(OSError):  # as on a full disk: the mark may be behind
            if self._mark is None:
                self._mark = os.open(self._mark_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.pwrite(self._mark, f"{self._last:0{_DIGITS}d}\n".encode(), 0)

    def close(self) -> None:
        """Let go of the mark."""
        if self._mark is not None:
            with suppress(OSError):
                os.fsync(self._mark)
            os.close(self._mark)
            self._mark = None

    def _connected_anew(self, *_: object) -> None:
        """The connection that writes was made anew, with a log of its own if there was no other connection."""
        self._log_identity, self._reserved = None, False

    def _reserve(self) -> None:
        """Give the log blocks ahead. What is behind its content means nothing to SQLite, which recognises its own."""
        with suppress(OSError):
            if self._free_bytes() < RESERVE_BYTES + SHORT_BYTES:
                return  # the next commit tries again
            log = os.open(self._log, os.O_RDWR | os.O_CLOEXEC)
            try:
                self._reserved = True  # also where the file system knows no way to do so
                os.posix_fallocate(log, 0, RESERVE_BYTES)
            finally:
                os.close(log)

    def _free_bytes(self) -> int:
        found = os.statvfs(self._path.parent)
        return found.f_bavail * found.f_frsize

    def _what_is_wrong(self) -> str | None:
        for path, opened in ((self._path, self._database_identity), (self._log, self._log_identity)):
            if opened is not None and (found := _identity(path)) != opened:
                how = "deleted" if found is None else "replaced by another"
                return f"'{path.name}' was {how} while it was open"
        return None

    def _give_up(self, what: str) -> None:
        name = self._path.name
        try:
            copy = self._rescued()
        except (OSError, sqlite3.Error) as error:
            advice = (
                f"what it held could not be saved ({error}): put a copy of '{name}' in its place and start it again"
            )
        else:
            advice = (
                f"all that it held was saved to '{copy.name}': stop Fairway, put that in the place of '{name}', "
                f"delete '{self._log.name}' and '{name}-shm' if they are there, and start it again"
            )
        self.problem = f"store {self._path}: {what}; nothing more is accepted; {advice}"

    def _rescued(self) -> Path:
        """Copy what the open files hold, though they have no name any more, to a new one."""
        number = 0
        while True:
            copy = beside(self._path, "-rescued" + (f"-{number}" if number else ""))
            try:
                os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
                break
            except FileExistsError:
                number += 1
        with self._writing.connect() as connection, closing(sqlite3.connect(copy)) as target:
            source = connection.connection.driver_connection
            assert isinstance(source, sqlite3.Connection)
            source.backup(target)
        return copy


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _read_mark(path: Path) -> int:
    """The number of the last commit that was acknowledged; 0 where that is not known."""
    try:
        return int(path.read_bytes()[:_DIGITS])
    except (OSError, ValueError):
        return 0


def _last_commit(connection: sqlite3.Connection) -> int:
    try:
        row = connection.execute("SELECT value FROM counters WHERE name = ?", (counters.COMMITS,)).fetchone()
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return 0
        raise
    return 0 if row is None else int(row[0])
