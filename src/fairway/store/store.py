"""The store: runs operations, which are plain functions that take a connection first.

Reads see one moment, also if they ask several times. Writes take turns, in this process and among processes, and are
durable when they return. To change several things at once or not at all, write a function that calls the operations
and hand it to `write`. It may be run twice, the first time without effect, so it should do nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from fairway.store.database.sqlite_files import StoreFiles
from fairway.store.database.writer import GroupWriter, MakeWriter, failure

P = ParamSpec("P")
R = TypeVar("R")


class Store:
    """An open store. Any thread may use it; made by `open_store`."""

    def __init__(self, address: str, *, reading: Engine, writing: Engine, files: StoreFiles | None = None,
                 writer: MakeWriter = GroupWriter) -> None:  # fmt: skip
        """With the `files` that it consists of, where it is not kept by a server."""
        self.address = address
        self._reading = reading
        self._writing = writing
        self._files = files
        self._writer = writer(writing, files)

    def write(
        self, operation: Callable[Concatenate[Connection, P], R], /, *arguments: P.args, **options: P.kwargs
    ) -> R:
        """Run an operation; when this returns, all that it wrote is durable, and when it raises, nothing is."""
        return self._writer.run(lambda connection: operation(connection, *arguments, **options))

    def write_vital(
        self, operation: Callable[Concatenate[Connection, P], R], /, *arguments: P.args, **options: P.kwargs
    ) -> R:
        """The same for what must be possible on a full disk, too, since it helps to get room: jobs taken back."""
        return self._writer.run(lambda connection: operation(connection, *arguments, **options), vital=True)

    def begin_write(
        self, operation: Callable[Concatenate[Connection, P], R], /, *arguments: P.args, **options: P.kwargs
    ) -> Future[R]:
        """The same without waiting, for who has better to do: the future is done when all is durable."""
        return self._writer.begin(lambda connection: operation(connection, *arguments, **options))

    def begin_vital_write(
        self, operation: Callable[Concatenate[Connection, P], R], /, *arguments: P.args, **options: P.kwargs
    ) -> Future[R]:
        """Both: vital, and without waiting."""
        return self._writer.begin(lambda connection: operation(connection, *arguments, **options), vital=True)

    def read(self, operation: Callable[Concatenate[Connection, P], R], /, *arguments: P.args, **options: P.kwargs) -> R:
        """Run an operation that changes nothing."""
        try:
            with self._reading.begin() as connection:
                return operation(connection, *arguments, **options)
        except SQLAlchemyError as error:
            raise failure(error) from error

    @property
    def short_of_room(self) -> bool:
        """Whether its disk is so full that nothing is accepted but what is vital."""
        return self._files is not None and self._files.short_of_room

    def check(self) -> None:
        """Raise if the files of the store are not there any more, so that nothing can be written."""
        if self._files is not None:
            self._files.check()

    def close(self) -> None:
        """Finish what was begun and let go of the database."""
        self._writer.close()
        if self._files is not None:
            self._files.close()
        self._reading.dispose()
        self._writing.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
