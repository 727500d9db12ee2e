"""Opens a store by its address: a file or directory for SQLite, `postgresql://…` for a server.

Nothing is written to a store that is up to date already, so that other processes can open it just to read.
"""

from __future__ import annotations

import re
import sqlite3
from os import PathLike
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from fairway.errors import InputError
from fairway.store.database import migrations
from fairway.store.database.postgresql import postgresql_engines
from fairway.store.database.sqlite import sqlite_engines
from fairway.store.database.sqlite_files import StoreFiles, refuse_damage, refuse_what_is_missing
from fairway.store.database.writer import GroupWriter, MakeWriter, said
from fairway.store.store import Store

_FILE = "fairway.db"
_EXPECTED = "expected a directory, a file or postgresql://user@host/database"


def open_store(url: str | PathLike[str], *, writer: MakeWriter = GroupWriter) -> Store:
    """Open a store, made if it does not exist yet; a simulation has a `writer` without a thread."""
    text = str(url)
    if re.match(r"postgres(ql)?(\+psycopg)?://", text):
        address = _parsed(text).set(drivername="postgresql+psycopg")
        shown = address.set(drivername="postgresql").render_as_string(hide_password=True)
        reading, writing = postgresql_engines(address)
        files = None
        remedy = "start the server or correct the address"
    else:
        path = _path(text)
        shown = str(path)
        remedy = "give another file"
        _look_at(path, shown, remedy)
        reading, writing = sqlite_engines(path)
        files = StoreFiles(path, writing)
    store = Store(shown, reading=reading, writing=writing, files=files, writer=writer)
    try:
        with reading.begin() as connection:
            current = migrations.is_current(connection)
        if not current:
            with writing.begin() as connection:
                migrations.prepare(connection)
    except BaseException as error:
        store.close()
        if isinstance(error, InputError):
            raise InputError(f"store {shown}: {error}") from None
        if isinstance(error, SQLAlchemyError):
            raise InputError(f"store {shown}: cannot be opened: {said(error)}; {remedy}") from None
        raise
    return store


def _parsed(text: str) -> URL:
    try:
        return make_url(text)
    except (ArgumentError, ValueError):
        # Not shown as given: what cannot be parsed may hold a password anywhere.
        raise InputError("store: the address cannot be read; expected postgresql://user@host:port/database") from None


def _path(text: str) -> Path:
    """The file that a path or an SQLite URL means."""
    if text.startswith("sqlite:"):
        file = _parsed(text).database if re.match(r"sqlite(\+pysqlite)?://", text) else None
        if not file or file == ":memory:" or file.startswith("file:"):
            raise InputError("store: an SQLite URL must name a file, as in sqlite:////var/lib/fairway/fairway.db")
        text = file
    elif scheme := re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", text):
        raise InputError(f"store: '{scheme[1]}' is no kind of store; {_EXPECTED}")
    if not text.strip() or "\0" in text:
        raise InputError(f"store: an empty address given, {_EXPECTED}")
    path = Path(text).expanduser()
    # What has no ending is meant as a directory, whether it exists yet or not.
    return path / _FILE if path.is_dir() or text.endswith("/") or not (path.suffix or path.is_file()) else path


def _look_at(path: Path, shown: str, remedy: str) -> None:
    """Make the file if there was none, and refuse one that is damaged or has lost something."""
    try:
        refuse_what_is_missing(path)
        _make_room(path)
        refuse_damage(path)
    except sqlite3.Error as error:
        raise InputError(f"store {shown}: cannot be opened: {error}; {remedy}") from None
    except InputError as error:
        raise InputError(f"store {shown}: {error}") from None


def _make_room(path: Path) -> None:
    """Make the directory and an empty file, both for their owner only: jobs may carry secrets in their environment."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        with path.open("r+b"):  # what cannot be written is refused here and not at the first submission
            pass
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror or error}); give a directory that can") from None
