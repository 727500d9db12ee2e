"""SQLite as a store: a write-ahead log, so that readers and the writer do not wait for each other, fully synced.

Python's driver would begin transactions by itself, and too late for a reader to see one moment or for a writer to take
its turn; it is told not to, and every transaction begins explicitly.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, create_engine, event

from fairway.store.database.sqlite_files import uri_of

_WAIT_SECONDS = 30.0
"""How long a writer waits for its turn."""


def sqlite_engines(path: Path) -> tuple[Engine, Engine]:
    """One way in to read and one to write."""
    return _engine(path, writes=False), _engine(path, writes=True)


def _engine(path: Path, *, writes: bool) -> Engine:
    def connect() -> sqlite3.Connection:
        return sqlite3.connect(uri_of(path, "rw"), uri=True, timeout=_WAIT_SECONDS, check_same_thread=False)

    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        creator=connect,
        pool_size=1 if writes else 8,
        max_overflow=0 if writes else 24,
    )
    begin = "BEGIN IMMEDIATE" if writes else "BEGIN"

    def prepare(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None
        _use_log(connection)
        for setting in (
            "synchronous=FULL",
            "fullfsync=ON",
            "foreign_keys=ON",
            f"query_only={'OFF' if writes else 'ON'}",
        ):
            connection.execute(f"PRAGMA {setting}")

    def begin_explicitly(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    event.listen(engine, "connect", prepare)
    event.listen(engine, "begin", begin_explicitly)
    return engine


def _use_log(connection: sqlite3.Connection) -> None:
    """Turn the write-ahead log on.

    It stays on, but the first to do so needs the file for itself, and SQLite then refuses others without waiting.
    """
    until = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
        except sqlite3.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
            continue
        if mode != "wal":
            raise sqlite3.OperationalError("this file system keeps no write-ahead log")
        return
