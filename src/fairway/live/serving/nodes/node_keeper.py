"""Keeps one node of a served application: brings rows to the other nodes and takes theirs in, and does for the
supervisor what has to be done on the node.

The supervisor has a line to it, and says where all processes are, which of them begin here and which are over; what it
has to be sure of, the keeper answers with ("done", its number). The keeper tells it at which port a new process listens
and, from time to time, what each process does (`run_record`). No request passes through it.

What runs the workers of the node has a line to the keeper as well (`worker_lines`), by which it hears what to begin. So
whatever has started them need not be there any more.

A keeper wakes once in a period, takes in what the others have sent, and sends what has changed. It does so at a moment
of the period that is its own. What the others send at theirs waits for half a period, in the mean, and their messages
do not all come at once.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fairway.live.durable_file import read_json
from fairway.live.serving.local.shared_memory import clear_after_clients, clear_files
from fairway.live.serving.nodes.address_book import AddressBook, Place
from fairway.live.serving.nodes.node_rows import NodeRows
from fairway.live.serving.nodes.node_transport import NodeTransport
from fairway.live.serving.nodes.worker_lines import WorkerLines
from fairway.live.serving.seams.message_board import PERIOD_SECONDS
from fairway.live.serving.seams.run_record import LANE_BYTES, LaneKind
from fairway.live.serving.seams.transport import Address, Message, WireError

_LOG = logging.getLogger(__name__)

_FIRST_KEEPER = 1 << 20
_LANES_SECONDS = 0.25
_APART = (math.sqrt(5) - 1) / 2
"""The part of a period by which two keepers in a row are apart: however many they are, they are spread over it."""

_PORTS_SECONDS = 0.02
LANES_BYTES = len(LaneKind) * LANE_BYTES
"""What one process says of what it does."""


def keeper_number(node: int) -> int:
    """The number of the keeper of a node, in the address book: above those of all workers."""
    return _FIRST_KEEPER + node


def is_keeper(number: int) -> bool:
    """Whether a number is that of a keeper."""
    return number >= _FIRST_KEEPER


class NodeKeeper:
    """The keeper of one node; `port_file` is where a process says at which port it listens.

    `lanes` is the memory of the run record, `memory_directory` where values are kept, `now` the clock. `met` is called
    when a supervisor has come, and `left` when its line has ended.
    """

    def __init__(
        self,
        number: int,
        transport: NodeTransport,
        book: AddressBook,
        rows: NodeRows,
        lanes: Any,
        memory_directory: Path,
        port_file: Callable[[int], Path],
        now: Callable[[], float],
        period_seconds: float = PERIOD_SECONDS,
        sleep: Callable[[float], None] = time.sleep,
        met: Callable[[], None] = lambda: None,
        left: Callable[[], None] = lambda: None,
    ) -> None:
        self._number, self._transport, self._book, self._rows = number, transport, book, rows
        self._met, self._left, self._runners = met, left, WorkerLines(transport)
        self._lanes, self._memory_directory, self._port_file = lanes, memory_directory, port_file
        self._now, self._period, self._sleep = now, period_seconds, sleep
        self._supervisor: Address | None = None
        self._hosted: dict[int, int] = {}
        self._unannounced: set[int] = set()
        self._told: dict[int, bytes] = {}
        self._others: list[int] = []
        self._lanes_due = self._ports_due = now()
        self._is_over = False

    def serve(self) -> None:
        """Take turns until `stop`."""
        self._transport.listen()
        moment = (self._number - _FIRST_KEEPER) * _APART % 1.0 * self._period
        while not self._is_over:
            self._sleep(self._period - (self._now() - moment) % self._period)
            self.take_in()
            self.turn()
        self._transport.close()

    def stop(self) -> None:
        """Let `serve` return soon; from any thread."""
        self._is_over = True

    def take_in(self) -> None:
        """Take in what has come."""
        for sender, message in self._transport.receive(0.0):
            if message is None:
                self._gone(sender)
                continue
            try:
                self._take(sender, message)
            except (WireError, TypeError, ValueError, IndexError) as error:
                _LOG.warning("a connection is closed: %s", error)
                self._transport.hang_up(sender)
                self._gone(sender)

    def turn(self) -> None:
        """Send what is due."""
        now = self._now()
        if self._runners.news and self._supervisor is not None:
            for message in self._runners.news:
                self._transport.send(self._supervisor, message)
            self._runners.news.clear()
        rows = self._rows.changed()
        if rows is not None:
            self._transport.send_to_all(self._others, rows)
        if self._unannounced and now >= self._ports_due:
            self._ports_due = now + _PORTS_SECONDS
            self._announce()
        if now >= self._lanes_due:
            self._lanes_due = now + _LANES_SECONDS
            self._tell_lanes()
            self._transport.stay_reachable()

    def _take(self, sender: Address, message: Message) -> None:
        if message[0] == "rows":
            self._rows.take(*message[1:])
            return
        match message:
            case ("book", int(number), dict(places)):
                self._supervisor = sender
                self._met()
                self._booked({worker: Place(*place) for worker, place in places.items()})
                self._transport.send(sender, ("done", number))
            case ("leave", int(number), int(worker), int(epoch)):
                self._rows.leave(worker, epoch)
                if self._hosted.get(worker, epoch + 1) <= epoch:
                    del self._hosted[worker]
                    self._unannounced.discard(worker)
                self._transport.send(sender, ("done", number))
            case ("host", int(process), int(epoch), bool(has_row)):
                self._hosted[process] = epoch
                self._unannounced.add(process)
                if has_row:
                    self._rows.host(process, epoch)
            case ("begin", str(name), int(process), int(epoch)):
                self._runners.begin(name, process, epoch)
            case ("kill", str(name)):
                self._runners.tell(("kill",), name)
            case ("stop", float()):
                self._runners.tell(message)
            case ("dismiss", str(name)):
                self._runners.dismiss(name)
            case ("actor", str(name)):
                self._runners.came(name, sender)
            case ("ended", str(), int(), int(), str(), str(), bytes()):
                self._runners.news.append(message)
            case ("busy", int(worker), float(until)):
                self._rows.call_busy(worker, until)
            case ("clear", str(owner)):
                clear_files(self._memory_directory, owner)
            case ("clear-clients",):
                clear_after_clients(self._memory_directory)
            case _:
                raise WireError(f"a message {str(message[0])[:40]!r} given, which means nothing to a keeper")

    def _booked(self, places: Mapping[int, Place]) -> None:
        self._book.write(places)
        self._others = [number for number in places if is_keeper(number) and number != self._number]
        for number, place in places.items():
            if not is_keeper(number) and number < self._rows.workers:
                self._rows.reachable(number, place.epoch)
        self._rows.send_anew()

    def _gone(self, sender: Address) -> None:
        if sender == self._supervisor:
            self._supervisor = None
            self._left()
        self._runners.gone(sender)
        if isinstance(sender, int):
            self._rows.send_anew()

    def _announce(self) -> None:
        """Tell the supervisor at which ports new processes listen."""
        for number in list(self._unannounced):
            found = read_json(self._port_file(number))
            if found is not None and found["epoch"] == self._hosted[number] and self._supervisor is not None:
                listens = ("listens", number, found["epoch"], found["port"], found["pid"])
                if self._transport.send(self._supervisor, listens):
                    self._unannounced.discard(number)

    def _tell_lanes(self) -> None:
        """Tell the supervisor what each process does, if that has changed."""
        if self._supervisor is None:
            return
        changed = {}
        for number in self._hosted:
            lanes = bytes(self._lanes[number * LANES_BYTES : (number + 1) * LANES_BYTES])
            if lanes != self._told.get(number):
                changed[number] = self._told[number] = lanes
        if changed:
            self._transport.send(self._supervisor, ("lanes", changed))
