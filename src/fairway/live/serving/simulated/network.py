"""A network in virtual time: connections whose messages arrive after a while, in their order.

Messages are pickled on their way, as between processes, so that no two ends ever share an object. When one end closes,
or its process dies, the other end hears of it after everything that was sent before.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import suppress
from io import UnsupportedOperation

from fairway.live.serving.seams.transport import Address, Arrival, Message, WireError
from fairway.live.serving.simulated.virtual_time import VirtualTime

LATENCY_SECONDS = 1e-4


class SimulatedNetwork:
    """The transports that listen, by number; `latency` says how long the next message takes, in seconds."""

    def __init__(self, time: VirtualTime, latency: Callable[[], float] = lambda: LATENCY_SECONDS) -> None:
        self.time, self.latency = time, latency
        self.listening: dict[int, SimulatedTransport] = {}

    def transport(self, number: int) -> SimulatedTransport:
        """The transport of a worker."""
        return SimulatedTransport(self, number)

    def connect(self, number: int) -> SimulatedLine:
        """A line to a worker."""
        line = SimulatedLine(self)
        self.join(line, number)
        return line

    def join(self, end: _End, number: int) -> None:
        """Connect an end with a worker that listens; raises `OSError` if that is not there."""
        worker = self.listening.get(number)
        if worker is None:
            raise ConnectionRefusedError(f"worker {number} does not listen")
        end.other = worker.accepted()
        end.other.other = end


class _End:
    """One end of a connection; what arrives is handed to `arrive`, and None when the other end is gone."""

    other: _End

    def __init__(self, network: SimulatedNetwork) -> None:
        self._network = network
        self._last_at = 0.0
        self.closed = False
        self.other_gone = False

    def transmit(self, message: Message) -> None:
        """Send a message to the other end."""
        self._deliver(pickle.dumps(message, protocol=5))

    def shut(self) -> None:
        """Close this end: nothing more arrives here, and the other end hears of it."""
        if not self.closed:
            self.closed = True
            self._deliver(None)

    def arrive(self, content: bytes | None) -> None:
        """Something has arrived."""
        raise NotImplementedError

    def _deliver(self, content: bytes | None) -> None:
        time = self._network.time
        self._last_at = max(self._last_at, time.now() + self._network.latency())  # none overtakes another one
        time.at(self._last_at, lambda: self.other._take(content))

    def _take(self, content: bytes | None) -> None:
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

    def __init__(self, network: SimulatedNetwork) -> None:
        super().__init__(network)
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
        """No event loop waits in virtual time."""
        raise UnsupportedOperation("a simulated line has no descriptor")

    def close(self) -> None:
        """End the connection."""
        self.shut()

    def arrive(self, content: bytes | None) -> None:
        """Keep what has arrived."""
        if content is not None:
            self._arrived.append(content)
        self.ready()


class _WorkerEnd(_End):
    """The end of a connection at a worker; `address` is what stands for the other end."""

    def __init__(self, network: SimulatedNetwork, transport: SimulatedTransport, number: int | None = None) -> None:
        super().__init__(network)
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

    def __init__(self, network: SimulatedNetwork, number: int) -> None:
        self._network, self._number = network, number
        self.ready: Callable[[], None] = lambda: None
        self._ends: dict[_WorkerEnd, None] = {}
        self._called: dict[int, _WorkerEnd] = {}
        self._arrived: list[Arrival] = []
        self._is_woken = False

    def listen(self) -> None:
        """Let others connect."""
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
        end = self._end_of(to) if isinstance(to, int) else to
        if not isinstance(end, _WorkerEnd) or end.closed:
            return False
        end.transmit(message)
        return True

    def receive(self, seconds: float | None) -> list[Arrival]:
        """What has arrived, after waiting for it in virtual time."""
        if seconds != 0.0:
            self._network.time.advance(seconds, lambda: bool(self._arrived) or self._is_woken)
        self._is_woken = False
        arrived, self._arrived = self._arrived, []
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
