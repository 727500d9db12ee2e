"""A network in virtual time: connections whose messages arrive after a while, in their order.

Messages are pickled on their way, as between processes, so that no two ends ever share an object. When one end closes,
or its process dies, the other end hears of it after everything that was sent before. A line can be cut: what is on its
way is lost then, and both ends hear that the other one is gone.
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from contextlib import suppress

from fairway.live.serving.seams.transport import Address, Arrival, Message, WireError
from fairway.live.serving.simulated.life import Life
from fairway.live.serving.simulated.virtual_time import VirtualTime

LATENCY_SECONDS = 1e-4


class SimulatedNetwork:
    """The transports that listen, by number; `latency` says how long the next message takes, in seconds.

    `on_send` hears of each message, from whom to whom, None for the end of a connection, and says by how much it is
    late; `is_reachable` says whether one process can connect to another. Processes go by their names.
    """

    def __init__(self, time: VirtualTime, latency: Callable[[], float] = lambda: LATENCY_SECONDS) -> None:
        self.time, self.latency = time, latency
        self.on_send: Callable[[str, str, Message | None], float] | None = None
        self.is_reachable: Callable[[str, str], bool] = lambda *_: True
        self.listening: dict[int, SimulatedTransport] = {}
        self.lines: dict[int, SimulatedLine] = {}
        self._descriptors = itertools.count(3)

    def transport(self, number: int, life: Life | None = None) -> SimulatedTransport:
        """The transport of a worker."""
        return SimulatedTransport(self, number, life)

    def connect(self, number: int, name: str = "supervisor") -> SimulatedLine:
        """A line of a process to a worker."""
        line = SimulatedLine(self, name, next(self._descriptors))
        self.join(line, number)
        self.lines[line.fileno()] = line
        return line

    def join(self, end: _End, number: int) -> None:
        """Connect an end with a worker that listens; raises `OSError` if that is not there."""
        worker = self.listening.get(number)
        if worker is None or not self.is_reachable(end.name, worker.name):
            raise ConnectionRefusedError(f"worker {number} does not listen")
        end.other = worker.accepted()
        end.other.other = end


class _End:
    """One end of a connection; what arrives is handed to `arrive`, and None when the other end is gone."""

    other: _End

    def __init__(self, network: SimulatedNetwork, name: str) -> None:
        self._network = network
        self._last_at = 0.0
        self.name = name
        self.closed = False
        self.other_gone = False
        self.is_cut = False

    def transmit(self, message: Message) -> None:
        """Send a message to the other end."""
        self._deliver(pickle.dumps(message, protocol=5), message)

    def shut(self) -> None:
        """Close this end: nothing more arrives here, and the other end hears of it."""
        if not self.closed:
            self.closed = True
            self._deliver(None, None)

    def cut(self) -> None:
        """The connection breaks: what is on its way is lost, and both ends hear that the other one is gone."""
        for end in (self, self.other):
            if not (end.closed or end.other_gone):
                end.is_cut = end.other_gone = True
                end.arrive(None)

    def arrive(self, content: bytes | None) -> None:
        """Something has arrived."""
        raise NotImplementedError

    def _deliver(self, content: bytes | None, message: Message | None) -> None:
        network, other = self._network, self.other
        late = 0.0 if network.on_send is None else network.on_send(self.name, other.name, message)
        # None overtakes another one.
        self._last_at = max(self._last_at, network.time.now() + network.latency() + late)
        network.time.at(self._last_at, lambda: other._take(content))

    def _take(self, content: bytes | None) -> None:
        if self.is_cut:
            return
        if content is None:
            self.other_gone = True
        if not self.closed:
            self.arrive(content)


def _decoded(content: bytes) -> Message:
    message = pickle.loads(content)
    if not isinstance(message, tuple) or not message:
        raise WireError(f"a {type(message).__name__} given, expected a message")
    return message


class SimulatedLine(_End):
    """A line to a worker; `ready` is called when something has arrived."""

    unwritten = False

    def __init__(self, network: SimulatedNetwork, name: str, descriptor: int) -> None:
        super().__init__(network, name)
        self._descriptor = descriptor
        self._arrived: list[bytes] = []
        self.ready: Callable[[], None] = lambda: None

    def send(self, message: Message) -> bool:
        """Send a message; nothing is ever left to be written."""
        if self.closed or self.other_gone:
            raise BrokenPipeError("the worker is gone")
        self.transmit(message)
        return False

    def flush(self) -> bool:
        """Nothing is left to be written."""
        return False

    def receive(self, seconds: float | None = 0.0) -> list[Message] | None:
        """The messages that have arrived, after waiting for one in virtual time."""
        if seconds != 0.0:
            self._network.time.advance(seconds, self.is_ready)
        arrived, self._arrived = self._arrived, []
        if not arrived and self.other_gone:
            return None
        return [_decoded(content) for content in arrived]

    def is_ready(self) -> bool:
        """Whether `receive` has something to say."""
        return bool(self._arrived) or self.other_gone

    def fileno(self) -> int:
        """By what an event loop in virtual time knows it."""
        return self._descriptor

    def close(self) -> None:
        """End the connection."""
        self._network.lines.pop(self._descriptor, None)
        self.shut()

    def arrive(self, content: bytes | None) -> None:
        """Keep what has arrived."""
        if content is not None:
            self._arrived.append(content)
        self.ready()


class _WorkerEnd(_End):
    """The end of a connection at a worker; `address` is what stands for the other end."""

    def __init__(self, network: SimulatedNetwork, transport: SimulatedTransport, number: int | None = None) -> None:
        super().__init__(network, transport.name)
        self._transport = transport
        self.address: Address = self if number is None else number

    def arrive(self, content: bytes | None) -> None:
        """Hand it to the worker; an end that sends nonsense is let go."""
        message: Message | None = None
        if content is not None:
            with suppress(WireError):
                message = _decoded(content)
        if message is None:
            self._transport.dropped(self)
        self._transport.arrived(Arrival(self.address, message))


class SimulatedTransport:
    """The connections of a worker; `ready` is called when something has arrived, or it is woken."""

    def __init__(self, network: SimulatedNetwork, number: int, life: Life | None = None) -> None:
        self._network, self._number = network, number
        self._life = Life(f"worker-{number}", number) if life is None else life
        self.name = self._life.name
        self.ready: Callable[[], None] = lambda: None
        self._ends: dict[_WorkerEnd, None] = {}
        self._called: dict[int, _WorkerEnd] = {}
        self._arrived: list[Arrival] = []
        self._is_woken = False

    def listen(self) -> None:
        """Let others connect."""
        self._life.reach("listen")
        self._network.listening[self._number] = self

    def stay_reachable(self) -> None:
        """Nothing can be removed here."""

    def accepted(self) -> _WorkerEnd:
        """The end here of a connection that another process makes."""
        end = _WorkerEnd(self._network, self)
        self._ends[end] = None
        return end

    def send(self, to: Address, message: Message) -> bool:
        """Send a message; False if the other end is known to be gone."""
        life, word = self._life, message[0]
        life.reach(f"send-{word}")
        end = self._end_of(to) if isinstance(to, int) else to
        if not isinstance(end, _WorkerEnd) or end.closed:
            return False
        end.transmit(message)
        life.reach(f"sent-{word}")
        return True

    def receive(self, seconds: float | None) -> list[Arrival]:
        """What has arrived, after waiting for it in virtual time."""
        if seconds != 0.0:
            self._network.time.advance(seconds, lambda: bool(self._arrived) or self._is_woken)
        self._is_woken = False
        arrived, self._arrived = self._arrived, []
        for _, message in arrived:
            self._life.reach("left" if message is None else f"received-{message[0]}")
        return arrived

    def wake(self) -> None:
        """Let `receive` return."""
        self._is_woken = True
        self.ready()

    def hang_up(self, address: Address) -> None:
        """End the connection with a caller, or to a worker."""
        end = self._called.get(address) if isinstance(address, int) else address
        if isinstance(end, _WorkerEnd):
            self.dropped(end)

    def close(self) -> None:
        """End all connections, and be reached no more."""
        if self._network.listening.get(self._number) is self:
            del self._network.listening[self._number]
        for end in list(self._ends):
            self.dropped(end)
        self._arrived = []

    def arrived(self, arrival: Arrival) -> None:
        """Something has arrived at one of the ends."""
        self._arrived.append(arrival)
        self.ready()

    def dropped(self, end: _WorkerEnd) -> None:
        """An end is of no use any more."""
        end.shut()
        self._ends.pop(end, None)
        if isinstance(end.address, int) and self._called.get(end.address) is end:
            del self._called[end.address]

    def _end_of(self, number: int) -> _WorkerEnd | None:
        end = self._called.get(number)
        if end is None:
            end = _WorkerEnd(self._network, self, number)
            try:
                self._network.join(end, number)
            except OSError:
                return None
            self._called[number] = end
            self._ends[end] = None
        return end
