"""A machine in virtual time under a served application: any number of processes, all in this one."""

from __future__ import annotations

from collections.abc import Callable

from fairway.live.serving.seams.message_board import MessageBoard, MessageMarks
from fairway.live.serving.seams.run_record import RunRecord
from fairway.live.serving.seams.state_board import RowMarks, RowTable, SharedBoard, SharedMarks, SharedRows, StateBoard
from fairway.live.serving.seams.transport import Message, Transport
from fairway.live.serving.simulated.background import SimulatedBackground
from fairway.live.serving.simulated.life import Life
from fairway.live.serving.simulated.memory import SimulatedRows, SimulatedRunRecord, SimulatedValues
from fairway.live.serving.simulated.network import SimulatedLine, SimulatedNetwork, SimulatedTransport
from fairway.live.serving.simulated.virtual_time import VirtualTime
from fairway.place.arrays import BoolArray
from fairway.place.fleet import Fleet

_MOST_PROCESSES = 64


class SimulatedMachine:
    """What all simulated processes have in common: the time, the network, and the memory that they share.

    `rows_as_messages`: the state table is not in that memory, and rows travel. `on_place` hears of every place that the
    code of a worker reaches, and may end that worker there; `has_room` says whether a value can be kept; `lateness` is
    by how many seconds a process comes too late to its next turn. `background` is what runs beside a loop now,
    `running` the process whose code runs.
    """

    def __init__(self, *, rows_as_messages: bool = False) -> None:
        self.time = VirtualTime()
        self.network = SimulatedNetwork(self.time)
        self.kept: dict[str, bytes] = {}
        self.rows = bytearray()
        self.record = bytearray(RunRecord.size(_MOST_PROCESSES))
        self.rows_as_messages = rows_as_messages
        self.on_place: Callable[[Life, str], None] | None = None
        self.has_room: Callable[[str], bool] = lambda _: True
        self.lateness: Callable[[], float] = lambda: 0.0
        self.background: SimulatedBackground | None = None
        self.running: Life | None = None

    def wipe(self) -> None:
        """All that processes share is removed; values of before are found by no process any more."""
        self.kept = {}
        self.record = bytearray(RunRecord.size(_MOST_PROCESSES))

    def is_room(self, kept: dict[str, bytes], owner: str) -> bool:
        """Whether a process can keep another value where it keeps its values."""
        return kept is self.kept and self.has_room(owner)

    def runs_beside(self, background: SimulatedBackground | None) -> SimulatedBackground | None:
        """Say what runs beside a loop now, and get what has run there before."""
        before, self.background = self.background, background
        self.running = None if background is None else background.life
        return before


class SimulatedSeams:
    """The machine as one process of it has it; `close` ends that process.

    `ready` is called when something has come for its transport, or over one of its lines.
    """

    def __init__(self, machine: SimulatedMachine, life: Life | None = None) -> None:
        self._machine = machine
        self.life = Life("supervisor") if life is None else life
        self.now, self._time = machine.time.now, machine.time
        self.ready: Callable[[], None] = lambda: None
        self.lines: list[SimulatedLine] = []
        self._open: list[SimulatedTransport | SimulatedBackground] = []

    def sleep(self, seconds: float) -> None:
        """Let virtual time pass."""
        self._time.advance(seconds)

    def transport(self, number: int) -> SimulatedTransport:
        """The transport of a worker."""
        transport = self._machine.network.transport(number, self.life)
        transport.ready = self._is_ready
        self._open.append(transport)
        return transport

    def is_near(self, number: int) -> bool:  # noqa: ARG002
        """All share the memory of one machine."""
        return True

    def connect(self, number: int) -> SimulatedLine:
        """A line to a worker."""
        line = self._machine.network.connect(number, self.life.name)
        line.ready = self._is_ready
        self.lines = [each for each in self.lines if not each.closed]
        self.lines.append(line)
        return line

    def values(self, owner: str) -> SimulatedValues:
        """The values of this process."""
        return SimulatedValues(self._machine.kept, owner, self.life, self._machine.is_room)

    def make_rows(self, fleet: Fleet) -> None:
        """Make room for the rows."""
        self._machine.rows = bytearray(SharedRows.size(fleet))
        SharedRows(fleet, self._machine.rows).clear()

    def board(self, number: int, fleet: Fleet, homes: BoolArray | None, transport: Transport) -> StateBoard:
        """The rows that are shared, or what this process knows of them from messages."""
        if self._machine.rows_as_messages:
            return MessageBoard(RowTable(fleet, homes=homes), number, transport)
        return SharedBoard(SimulatedRows(fleet, self._machine.rows, homes, self.life), number)

    def marks(self, fleet: Fleet, tell_others: Callable[[int, Message], None]) -> RowMarks:
        """The supervisor writes in the rows, or tells the workers."""
        if self._machine.rows_as_messages:
            return MessageMarks(tell_others)
        return SharedMarks(SharedRows(fleet, self._machine.rows))

    def background(self, name: str, wake: Callable[[], None]) -> SimulatedBackground:  # noqa: ARG002
        """Work that takes virtual time."""
        background = SimulatedBackground(self._time, wake, self.life, self._machine.runs_beside)
        self._open.append(background)
        return background

    def run_record(self) -> RunRecord:
        """What all processes do."""
        return SimulatedRunRecord(self._machine.record, self.life, lambda: self._machine.background)

    def slices(self, number: int) -> None:  # noqa: ARG002
        """Nothing: in virtual time, what a stage takes is what is said that it takes."""
        return

    def close(self) -> None:
        """The process is dead: its connections end, and what runs in its background."""
        self.life.over()
        for each in self._open:
            each.close()
        for line in self.lines:
            line.close()

    def _is_ready(self) -> None:
        self.ready()
