"""The faults of a history: each is armed or done when its step comes, and counted when it takes effect."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from fairway.live.serving.seams.transport import Message
from fairway.live.serving.seams.values import worker_owner
from fairway.live.serving.simulated.life import Life
from fairway.live.serving.simulated.network import SimulatedLine
from fairway.live.serving.simulated.system import SimulatedSystem
from fairway.simtest.serving.application import Scene
from fairway.simtest.serving.promises import Record


@dataclass(slots=True)
class _Trap:
    """Strikes a worker (any, if it is None) when its code has come to a place so often; `tears` its next write."""

    kind: str
    worker: int | None
    place: str
    left: int
    tears: bool = False


@dataclass(slots=True)
class _Delay:
    """Holds up the next message from one process to another (any, if it is "")."""

    sender: str
    receiver: str
    word: str
    seconds: float


@dataclass(slots=True)
class _Partition:
    """Nothing gets from one process to another until then, in either direction."""

    one: str
    other: str
    until: float
    took_effect: bool = False


class Faults:
    """The faults of one history; `took_effect` counts them by kind, `record` gets them with their time."""

    def __init__(self, system: SimulatedSystem, scene: Scene, record: Record, draws: Random) -> None:
        self.took_effect: Counter[str] = Counter()
        self.messages: list[tuple[float, str, str, str]] = []
        self._system, self._scene, self._record, self._draws = system, scene, record, draws
        self._time = system.time
        self._traps: list[_Trap] = []
        self._delays: list[_Delay] = []
        self._partitions: list[_Partition] = []
        self._no_room = 0
        self._is_over = False
        machine = system.machine
        machine.on_place = self._reached
        machine.has_room = self._has_room
        machine.network.on_send = self._sent
        machine.network.is_reachable = self._is_reachable
        scene.did = lambda harm: self._happened(f"harm-{harm}")
        self._does: Mapping[str, Callable[..., None]] = {
            "crash": self._crash,
            "tear": self._tear,
            "kill": self._kill,
            "pause": self._pause,
            "hang": self._hang,
            "stall": self._stall,
            "cut": self._cut,
            "delay": self._delay,
            "partition": self._partition,
            "no-room": self._lack_room,
            "vanish": self._vanish,
            "load": self._load,
            "restart": self._restart,
        }

    def do(self, what: str, arguments: Mapping[str, Any]) -> None:
        """The step of a fault has come."""
        self._does[what](**arguments)

    def end(self) -> None:
        """No fault takes effect from now on; what was stopped goes on."""
        self._is_over = True
        self._traps.clear()
        self._delays.clear()
        self._partitions.clear()
        self._scene.loads.clear()
        self._no_room = 0

    def happened(self, kind: str) -> None:
        """A fault took effect that is none of the system under the workers."""
        self._happened(kind)

    def _happened(self, kind: str) -> None:
        self.took_effect[kind] += 1
        now = self._time.now()
        self._record.faults.append((now, kind))
        self._record.last_fault_at = now

    def died(self, worker: int, status: str) -> None:
        """A process has ended."""
        self._record.deaths.append((self._time.now(), worker, status))

    # At places of the code

    def _reached(self, life: Life, place: str) -> None:
        if not self._traps:
            return
        for trap in self._traps:
            if trap.worker is None or trap.worker == life.number:
                if trap.place and not place.startswith(trap.place):
                    continue
                trap.left -= 1
                if trap.left < 0:
                    self._traps.remove(trap)
                    self._happened(trap.kind)
                    if trap.tears:
                        life.tears = Random(self._draws.getrandbits(32))
                    else:
                        life.end_process("-9", "it was killed")
                    return

    def _crash(self, place: str, after: int, worker: int | None = None) -> None:
        self._traps.append(_Trap("crash", worker, place, after))

    def _tear(self, place: str, after: int, worker: int | None = None) -> None:
        self._traps.append(_Trap("tear", worker, place, after, tears=True))

    # Of processes

    def _kill(self, worker: int) -> None:
        if self._system.pool.ended(worker) is None:
            self._happened("kill")
            self._system.pool.kill(worker)

    def _pause(self, worker: int, seconds: float) -> None:
        self._halt("pause", worker, seconds, by_signal=True)

    def _hang(self, worker: int, seconds: float) -> None:
        self._halt("hang", worker, seconds, by_signal=False)

    def _halt(self, kind: str, worker: int, seconds: float, *, by_signal: bool) -> None:
        pool = self._system.pool
        if pool.is_serving(worker):
            self._happened(kind)
            pid = pool.pid(worker)
            pool.halt(worker, by_signal=by_signal)
            self._time.after(seconds, lambda: self._go_on(kind, worker, pid))

    def _go_on(self, kind: str, worker: int, pid: int) -> None:
        pool = self._system.pool
        if pool.pid(worker) == pid and pool.ended(worker) is None:
            self._record.faults.append((self._time.now(), kind))
            pool.go_on(worker)

    def _stall(self, seconds: float) -> None:
        self._happened("stall")
        self._system.supervisor_stalls_until = self._time.now() + seconds

    def _restart(self) -> None:
        self._happened("restart")
        self._system.restart()

    # Of messages

    def _sent(self, sender: str, receiver: str, message: Message | None) -> float:
        now = self._time.now()
        word = "" if message is None else message[0]
        if type(word) is not str:
            word = "?"
        self.messages.append((now, sender, receiver, word))
        if message is not None and len(message) > 1:
            if word in {"ask", "ask-again"}:
                self._record.heard(receiver, sender, message[1], ask=True)
            elif word in {"reply", "refused"}:
                self._record.heard(sender, receiver, message[1], ask=False)
        late = 0.0
        for delay in self._delays:
            if delay.sender in {"", sender} and delay.receiver in {"", receiver} and delay.word in {"", word}:
                self._delays.remove(delay)
                self._happened("delay")
                late = delay.seconds
                break
        if (partition := self._between(sender, receiver)) is not None:
            late = max(late, partition.until - now)
        return late

    def _is_reachable(self, one: str, other: str) -> bool:
        if one.startswith("worker"):  # a worker that lives can be reached by the others, however late
            return True
        return self._between(one, other) is None

    def _between(self, one: str, other: str) -> _Partition | None:
        """What keeps two processes apart now."""
        now = self._time.now()
        for each in self._partitions:
            if each.until > now and {each.one, each.other} == {one, other}:
                if not each.took_effect:
                    each.took_effect = True
                    self._happened("partition")
                return each
        return None

    def _delay(self, sender: str, receiver: str, seconds: float, word: str = "") -> None:
        self._delays.append(_Delay(sender, receiver, word, seconds))

    def _partition(self, one: str, other: str, seconds: float) -> None:
        now = self._time.now()
        self._partitions = [each for each in self._partitions if each.until > now]
        self._partitions.append(_Partition(one, other, now + seconds))

    def _cut(self, client: str, worker: int) -> None:
        for line in list(self._system.machine.network.lines.values()):
            if line.name == client and line.other.name == f"worker-{worker}" and not line.other_gone:
                self._cut_line(line)

    def _cut_line(self, line: SimulatedLine) -> None:
        self._happened("cut")
        line.cut()

    # Of memory

    def _has_room(self, _: str) -> bool:
        if self._no_room > 0:
            self._no_room -= 1
            self._happened("no-room")
            return False
        return True

    def _lack_room(self, count: int) -> None:
        self._no_room += count

    def _vanish(self) -> None:
        """What a dead worker has left may be gone at any time."""
        kept = self._system.machine.kept
        living = tuple(
            worker_owner(worker.number, worker.epoch)
            for worker in self._system.monitor.workers
            if self._system.pool.ended(worker.number) is None
        )
        left = [name for name in kept if not name.startswith(("c", *living))]
        for name in left:
            self._happened("vanish")
            del kept[name]

    def _load(self, model: str, harms: list[str]) -> None:
        self._scene.loads.setdefault(model, deque()).extend(harms)
