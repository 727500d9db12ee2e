"""One machine as the backend of a served application: Unix sockets, shared memory, processes, threads."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from fairway.live.serving.local.serving_directory import ServingDirectory
from fairway.live.serving.local.shared_file import make_file, mapped
from fairway.live.serving.local.shared_memory import SharedMemoryValues, clear_after_clients
from fairway.live.serving.local.shared_table import SharedTable
from fairway.live.serving.local.slices import LocalSlices, clear_slices
from fairway.live.serving.local.unix_socket import connect
from fairway.live.serving.local.unix_transport import UnixTransport
from fairway.live.serving.local.worker_pool import ProcessPool
from fairway.live.serving.runtime.background_thread import BackgroundThread
from fairway.live.serving.seams.message_board import MessageBoard, MessageMarks
from fairway.live.serving.seams.run_record import RunRecord
from fairway.live.serving.seams.state_board import RowMarks, RowTable, SharedBoard, SharedMarks, StateBoard
from fairway.live.serving.seams.transport import Message, Transport
from fairway.live.serving.sockets.channel import Channel
from fairway.live.serving.supervise.environment import stage_environment
from fairway.live.serving.supervise.settings import ServingSettings
from fairway.place.arrays import BoolArray
from fairway.place.fleet import Fleet


class LocalBackend:
    """One machine, with the state table in shared memory."""

    now = staticmethod(time.monotonic)
    sleep = staticmethod(time.sleep)

    def __init__(self, settings: ServingSettings) -> None:
        self._settings = settings
        self._directory = ServingDirectory(settings)
        self._running = settings.memory_directory / "running"
        self._running_bytes = RunRecord.size(len(settings.processes))

    def transport(self, number: int) -> UnixTransport:
        """The sockets of a worker."""
        return UnixTransport(number, self._settings.socket)

    def connect(self, number: int) -> Channel:
        """A connection to a worker."""
        return Channel(connect(self._settings.socket(number)))

    def is_near(self, number: int) -> bool:  # noqa: ARG002
        """All of them are."""
        return True

    def values(self, owner: str) -> SharedMemoryValues:
        """Files in the directory in memory."""
        return SharedMemoryValues(self._settings.memory_directory, owner)

    def make_rows(self, fleet: Fleet) -> None:
        """Make the file of the state table."""
        SharedTable.create(fleet, self._settings.table)

    def board(
        self,
        number: int,
        fleet: Fleet,
        homes: BoolArray | None,
        transport: Transport,  # noqa: ARG002 - rows do not travel here
    ) -> StateBoard:
        """The rows in shared memory."""
        return SharedBoard(SharedTable(fleet, self._settings.table, homes), number)

    def marks(self, fleet: Fleet, tell_others: Callable[[int, Message], None]) -> RowMarks:  # noqa: ARG002
        """The supervisor writes in the rows themselves."""
        return SharedMarks(SharedTable(fleet, self._settings.table))

    def background(self, name: str, wake: Callable[[], None]) -> BackgroundThread:
        """A thread."""
        return BackgroundThread(name, wake)

    def pool(self) -> ProcessPool:
        """Children of this process."""
        settings = self._settings
        return ProcessPool(self._command, self._environment, settings.log, self._program("standby"), settings.log_bytes)

    def run_record(self) -> RunRecord:
        """A file in the directory in memory."""
        return RunRecord(mapped(self._running, self._running_bytes))

    def slices(self, number: int) -> LocalSlices:
        """Processes in control groups."""
        return LocalSlices(self._settings, number)

    def check(self) -> None:
        """Refuse a directory that cannot be served from."""
        self._directory.check()

    def take(self) -> None:
        """Have the directories for this supervisor, and room for what its processes do."""
        self._directory.take()
        make_file(self._running, self._running_bytes)

    def release(self) -> None:
        """Give the directories up."""
        if self._settings.slices:
            clear_slices(self._settings.directory, self._settings.devices)
        self._directory.release()

    def run_beside(self, program: Sequence[str], files: Mapping[str, bytes]) -> list[str]:  # noqa: ARG002
        """Nothing: on one machine, the process of the supervisor is beside the workers."""
        return []

    def clear_after_clients(self) -> None:
        """Remove the files of clients whose processes are gone."""
        clear_after_clients(self._settings.memory_directory)

    def _command(self, number: int, epoch: int) -> list[str]:
        return self._program(number, epoch)

    def _program(self, *what: int | str) -> list[str]:
        arguments = (self._settings.directory / "settings.json", *what, os.getpid())
        return [sys.executable, "-m", "fairway.live.serving.local.worker_program", *map(str, arguments)]

    def _environment(self, number: int) -> dict[str, str]:
        settings = self._settings
        own = {**stage_environment(settings.threads), "FAIRWAY_WORKER": str(number)}
        if settings.devices and number < settings.workers:
            own["CUDA_VISIBLE_DEVICES"] = settings.devices[number]
        return own


class LocalMessagesBackend(LocalBackend):
    """One machine, with rows that travel as messages, as they do between machines."""

    def make_rows(self, fleet: Fleet) -> None:
        """Every worker has rows of its own."""

    def board(self, number: int, fleet: Fleet, homes: BoolArray | None, transport: Transport) -> StateBoard:
        """The rows as this worker knows them from messages."""
        return MessageBoard(RowTable(fleet, homes=homes), number, transport)

    def marks(self, fleet: Fleet, tell_others: Callable[[int, Message], None]) -> RowMarks:  # noqa: ARG002
        """The supervisor tells the workers."""
        return MessageMarks(tell_others)
