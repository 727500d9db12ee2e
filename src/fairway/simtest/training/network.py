"""Connections between a controller and an agent in virtual time: real frames, whose ways can be made bad.

What is written at once travels as one message and takes a while. Messages of one direction keep their order, as on a
socket, unless a fault lets one be late, overtake another, or come twice. In a partition nothing arrives until it is
over; a connection that breaks loses what is under way. A process that is killed leaves its connections to the system,
which closes them.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, cast

from fairway.simtest.training.promises import Promises
from fairway.simtest.virtual_loop import Timeline, VirtualProcess

Converse = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

_SLOWEST_SECONDS = 0.004


class End:
    """One end of a connection: what its process reads from, and a writer (and its transport) to the other end."""

    def __init__(self, network: Network, process: VirtualProcess) -> None:
        self._network, self.process = network, process
        self.reader = asyncio.StreamReader(loop=process.loop)
        self.other: End
        self.closed = False
        self.last_arrival = 0.0
        self.epoch = 0
        self.asked: dict[int, dict[str, Any]] = {}

    # As a writer

    @property
    def transport(self) -> End:
        """It is its own."""
        return self

    def write(self, data: bytes) -> None:
        """Send a message."""
        if not self.closed and self.process.alive:
            self._network.send(self, data)

    async def drain(self) -> None:
        """There is always room; who writes into a closed connection hears of it."""
        if self.closed:
            raise ConnectionResetError("the connection is closed")

    def close(self) -> None:
        """End the connection in both directions, after what was sent has arrived."""
        if not self.closed:
            self.closed = True
            self.reader.feed_eof()
            self._network.send_end(self)

    abort = close

    async def wait_closed(self) -> None:
        """Nothing is waited for."""

    def is_closing(self) -> bool:
        """Whether it is closed."""
        return self.closed

    def get_write_buffer_size(self) -> int:
        """Nothing is kept back."""
        return 0

    # From the other end

    def arrive(self, data: bytes) -> None:
        """A message has come."""
        if not self.closed:
            self.reader.feed_data(data)

    def arrive_end(self) -> None:
        """The other end is closed."""
        if not self.closed:
            self.closed = True
            self.reader.feed_eof()
            self._network.forget(self)


class Network:
    """All connections. `listening` is the process that takes them in, with what it does with each.

    `wanted` has how many of the next messages are to be late, doubled or overtaken; `happened` is told of each.
    """

    def __init__(self, timeline: Timeline, draw: Random, happened: Callable[[str], None], promises: Promises) -> None:
        self._timeline, self._draw, self._happened, self._promises = timeline, draw, happened, promises
        self._listening: tuple[VirtualProcess, Converse] | None = None
        self._ends: dict[End, None] = {}
        self._cut_until = 0.0
        self.wanted: Counter[str] = Counter()
        self.late_seconds = 1.0

    def listen(self, process: VirtualProcess, converse: Converse) -> Callable[[], None]:
        """Take connections in; gives what ends that."""
        self._listening = process, converse

        def close() -> None:
            if self._listening is not None and self._listening[0] is process:
                self._listening = None

        return close

    async def connect(self, process: VirtualProcess) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to the process that listens; raises `OSError` where there is none."""
        await asyncio.sleep(self._seconds())
        if self._listening is None or not self._listening[0].alive:
            raise ConnectionRefusedError(111, "no process listens")
        other, converse = self._listening
        mine, theirs = End(self, process), End(self, other)
        mine.other, theirs.other = theirs, mine
        self._ends[mine] = self._ends[theirs] = None
        self._timeline.at(
            self._timeline.now, lambda: other.loop.create_task(converse(theirs.reader, _as_writer(theirs))), owner=other
        )
        return mine.reader, _as_writer(mine)

    def send(self, end: End, data: bytes) -> None:
        """Let a message travel."""
        self._overhear(end, data)
        arrival = self._arrival(end)
        if self._takes("late-message"):
            arrival += self._draw.uniform(0.05, self.late_seconds)
        if self._takes("reordered-message"):
            arrival += self._draw.uniform(0.005, 0.05)  # those behind it may overtake it
        else:
            end.last_arrival = arrival
        self._deliver(end, arrival, data)
        if self._takes("doubled-message"):
            self._deliver(end, arrival + self._draw.uniform(0.0, 0.02), data)

    def send_end(self, end: End) -> None:
        """Let the other end hear that this one is closed."""
        self._ends.pop(end, None)
        other = end.other
        self._timeline.at(max(self._arrival(end), end.last_arrival), other.arrive_end, owner=other.process)

    def forget(self, end: End) -> None:
        """An end is closed."""
        self._ends.pop(end, None)

    def cut(self, seconds: float) -> None:
        """Let nothing arrive for some time."""
        self._cut_until = max(self._cut_until, self._timeline.now + seconds)

    def break_all(self) -> None:
        """Break every connection: what is under way is lost."""
        for end in list(self._ends):
            end.arrive_end()

    def process_died(self, process: VirtualProcess) -> None:
        """The system closes the connections of a process that is gone."""
        if self._listening is not None and self._listening[0] is process:
            self._listening = None
        for end in [end for end in self._ends if end.process is process]:
            end.closed = True
            self.send_end(end)

    @property
    def open(self) -> int:
        """How many ends are open."""
        return len(self._ends)

    def heal(self) -> None:
        """Let nothing bad happen from now on."""
        self.wanted.clear()
        self._cut_until = 0.0

    def _overhear(self, end: End, data: bytes) -> None:
        """Tell the model what controllers ask, and what the agent says that it has done."""
        message = json.loads(data[4:])
        if "command" in message:
            end.asked[message["id"]] = message
        elif message.get("ok"):
            request = end.other.asked[message["reply"]]
            if request["command"] == "hello":
                end.other.epoch = request["epoch"]
                self._promises.greeted(request["epoch"])
            elif isinstance(message["answer"], dict) and message["answer"].get("result") == "accepted":
                self._promises.obeyed(end.other.epoch, request["command"])

    def _deliver(self, end: End, arrival: float, data: bytes) -> None:
        other = end.other
        self._timeline.at(arrival, other.arrive, data, owner=other.process)

    def _arrival(self, end: End) -> float:
        return max(self._timeline.now + self._seconds(), end.last_arrival, self._cut_until)

    def _seconds(self) -> float:
        return self._draw.uniform(0.0002, _SLOWEST_SECONDS)

    def _takes(self, fault: str) -> bool:
        if self.wanted[fault] <= 0:
            return False
        self.wanted[fault] -= 1
        self._happened(fault)
        return True


def _as_writer(end: End) -> asyncio.StreamWriter:
    return cast("asyncio.StreamWriter", cast("Any", end))
