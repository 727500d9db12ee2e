"""Writes in groups: what many callers ask for at the same time becomes durable with one commit.

A commit waits for the disk, a few milliseconds in which further callers queue up; one thread takes all of them into the
next transaction. One that fails takes nothing with it: the group is then run again with a savepoint around each, which
costs too much to be done every time. Callers wake up after the commit, never before.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Lock, Thread, current_thread
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from fairway.fault_points import reached
from fairway.store.database.sqlite_files import StoreFiles
from fairway.store.errors import StoreError

T = TypeVar("T")
_Answer: TypeAlias = tuple[Any, BaseException | None]

_MOST = 512
"""Operations in one transaction: enough for any crowd, few enough that no client waits long."""


@dataclass(frozen=True, slots=True)
class _Work:
    run: Callable[[Connection], Any]
    vital: bool = False
    done: Future[Any] = field(default_factory=Future)


class GroupWriter:
    """One thread that writes, started with the first operation."""

    def __init__(self, engine: Engine, files: StoreFiles | None = None) -> None:
        self._engine = engine
        self._files = files
        self._queue: SimpleQueue[_Work | None] = SimpleQueue()
        self._lock = Lock()
        self._thread: Thread | None = None
        self._closed = False

    def run(self, operation: Callable[[Connection], T], *, vital: bool = False) -> T:
        """Run an operation and wait until what it wrote is durable; returns or raises what it did.

        It may be run twice, what it did the first time being undone, so it must do nothing but use its connection.
        """
        if current_thread() is self._thread:
            raise RuntimeError("an operation cannot wait for another one; call the other with its connection")
        return self.begin(operation, vital=vital).result()

    def begin(self, operation: Callable[[Connection], T], *, vital: bool = False) -> Future[T]:
        """The same without waiting: the future is done when what the operation wrote is durable."""
        work = _Work(operation, vital)
        work.done.set_running_or_notify_cancel()  # it cannot be taken back, also by who does not want to wait any more
        with self._lock:
            if self._closed:
                raise StoreError("the store is closed")
            self._queue.put(work)
            self._see_to_it()
        return work.done

    def close(self) -> None:
        """Finish what is queued, then stop."""
        with self._lock:
            self._closed = True
            thread = self._thread
            self._queue.put(None)
        if thread is not None:
            thread.join()

    def _see_to_it(self) -> None:
        """Something is queued: there has to be a thread that writes it. A simulation, which has none, knows when."""
        if self._thread is None:
            # A daemon, since nothing is acknowledged that is not committed: it may be cut off at any moment.
            self._thread = Thread(target=self._serve, name="fairway-store-writer", daemon=True)
            self._thread.start()

    def _serve(self) -> None:
        while not self._write_next_group():
            pass

    def _write_next_group(self) -> bool:
        """Write what is queued, or wait for something; returns whether it was the last."""
        group, last = self._next_group()
        if self._files is not None and self._files.short_of_room:
            group = self._vital(group, self._files.refusal())
        if group:
            self._commit(group)
        return last

    def _next_group(self) -> tuple[list[_Work], bool]:
        group: list[_Work] = []
        work = self._queue.get()
        while work is not None:
            group.append(work)
            if len(group) == _MOST:
                return group, False
            try:
                work = self._queue.get_nowait()
            except Empty:
                return group, False
        return group, True

    def _vital(self, group: list[_Work], refusal: StoreError) -> list[_Work]:
        """Those of a group that may take what is left of the disk; the others are refused."""
        for work in group:
            if not work.vital:
                work.done.set_exception(refusal)
        return [work for work in group if work.vital]

    def _commit(self, group: list[_Work]) -> None:
        try:
            if self._files is not None:
                self._files.check()
            with self._engine.begin() as connection:
                answers = _answers(connection, group)
                if self._files is not None:
                    self._files.count(connection)
                reached("store.written")
            reached("store.committed")
            if self._files is not None:
                self._files.keep()
        except BaseException as error:  # nothing of the group is in the store, and everyone must hear of it
            answers = [(None, failure(error)) for _ in group]
        for work, (value, problem) in zip(group, answers, strict=True):
            if problem is None:
                work.done.set_result(value)
            else:
                work.done.set_exception(problem)


MakeWriter: TypeAlias = Callable[[Engine, StoreFiles | None], GroupWriter]


def _answers(connection: Connection, group: list[_Work]) -> list[_Answer]:
    values, problem = _attempt(connection, lambda connection: [work.run(connection) for work in group])
    if problem is None:
        return [(value, None) for value in values]
    if len(group) == 1:
        return [(None, problem)]
    return [_attempt(connection, work.run) for work in group]


def _attempt(connection: Connection, run: Callable[[Connection], Any]) -> _Answer:
    """Run something inside a savepoint, so that all of it is done or nothing.

    The savepoint is set by plain statements, which are cheaper than `begin_nested` in every commit. That it can be
    released shows that the database has not given up the transaction behind the back of the operation.
    """
    connection.exec_driver_sql("SAVEPOINT attempt")
    try:
        value = run(connection)
        connection.exec_driver_sql("RELEASE SAVEPOINT attempt")
    except Exception as error:
        try:
            connection.exec_driver_sql("ROLLBACK TO SAVEPOINT attempt")
        except SQLAlchemyError as lost:
            # The database has given up the whole transaction, such as on a full disk: the group fails as one.
            raise error if isinstance(error, SQLAlchemyError) else lost from None
        return None, failure(error)
    return value, None


def failure(error: BaseException) -> BaseException:
    """The error that a caller gets: one line on what the database said, or the operation's own."""
    if not isinstance(error, SQLAlchemyError):
        return error
    problem = StoreError(f"the store failed: {said(error)}")
    problem.__cause__ = error
    return problem


def said(error: SQLAlchemyError) -> str:
    """What the database itself said, on one line."""
    return " ".join(str(getattr(error, "orig", None) or error).split())
