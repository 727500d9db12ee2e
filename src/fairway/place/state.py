"""What workers know of each other: for each, its load and the models that its memory holds (Compass, global state).

Each worker knows its own row exactly and the others' as of their last push. The two columns are pushed on their own,
since old news of a load is worth much less than old news of a memory. Free memory is never sent: it is what the models
that are there leave.

A load is two numbers: seconds of work that waits, and the time until which the running task takes. So readers see the
running task shrink as time goes by, without another push (`Load`).
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Literal, NamedTuple, cast

import numpy as np

from fairway.errors import InputError
from fairway.made import made
from fairway.place.arrays import BoolArray, FloatArray
from fairway.place.fleet import OUTSIDE, Fleet
from fairway.place.lines import FIELDS, Lines
from fairway.place.pace import Pace

ABSENT = math.inf
"""The load of a worker that has left: no planner will wait for it."""

NEVER = -math.inf

OLD_SECONDS = 5e-3
"""Rows that may be older are not worth deciding by, where a worker can ask for newer ones."""

RunningLoad = Literal["decays", "counts", "ignored"]
"""How the running task counts as load: what is left of it, all of it until it ends, or nothing at all."""


_NO_LINES, _NO_LINE = np.zeros((FIELDS, 0, 0)), np.zeros((FIELDS, 0))


class View(NamedTuple):
    """What one reader sees at one moment: its own row exactly, the others' as of their last push.

    `me` is the reader, `OUTSIDE` if it is no worker. `cached[m, w]` says whether worker w holds model m, `homes[m, w]`
    whether that is at home there (`homes`). `lines` are what waits at the workers, by model (`lines`). Pushed loads and
    lines may be as old as `age`, in seconds. The arrays are the table's own: read them, never write to them, and only
    until the table changes.
    """

    me: int
    queued: FloatArray
    busy_until: FloatArray
    cached: BoolArray
    free: FloatArray
    own_queued: float
    own_busy_until: float
    own_cached: BoolArray
    own_free: float
    homes: BoolArray
    lines: FloatArray = _NO_LINES
    own_line: FloatArray = _NO_LINE
    age: float = 0.0

    def load(self, worker: int, now: float) -> float:
        """Seconds of work ahead of a task that would join the worker's queue now; infinite if it has left."""
        if worker == self.me:
            return self.own_queued + max(0.0, self.own_busy_until - now)
        return float(self.queued[worker]) + max(0.0, float(self.busy_until[worker]) - now)

    def holds(self, worker: int, model: int) -> bool:
        """Whether the worker has the model in memory, or on its way there."""
        return bool(self.own_cached[model] if worker == self.me else self.cached[model, worker])

    def free_bytes(self, worker: int) -> float:
        """The memory that no model takes."""
        return self.own_free if worker == self.me else float(self.free[worker])

    def is_present(self, worker: int) -> bool:
        """Whether the worker can be given tasks."""
        return bool((self.own_queued if worker == self.me else self.queued[worker]) != ABSENT)


@dataclass(frozen=True, slots=True)
class Pushes:
    """When others see a change: pushed at the next multiple of the period, there after the delay; both in seconds.

    Without a period, every change is pushed at once.
    """

    period: float = 0.0
    delay: float = 0.0

    def __post_init__(self) -> None:
        for name, value in (("period", self.period), ("delay", self.delay)):
            if not (math.isfinite(value) and value >= 0):
                raise InputError(f"{name}: {value} given, expected seconds >= 0")

    @property
    def immediate(self) -> bool:
        """Whether others see everything as it happens."""
        return self.period == 0 and self.delay == 0

    def seen_at(self, now: float) -> float:
        """When others see what changes now."""
        pushed = now if self.period == 0 else math.ceil(now / self.period) * self.period
        return max(pushed, now) + self.delay


class StateTable:
    """The rows of all workers, exact and as others see them.

    One table serves every reader of a simulation: `write_*` changes a worker's own row, and others see it when its
    pushes say so. In a live system each worker has its own: it writes its own row, and `receive_*` takes what others
    push, with their sequence numbers, as messages may overtake each other.

    Where models are at home does not change; without `homes`, they are nowhere. `model_bytes` and `fetch_seconds` are
    those of the fleet as plain numbers, which engines look up one by one; `present` says of each worker whether it has
    a row (`is_seen`).
    """

    def __init__(
        self,
        fleet: Fleet,
        loads: Pushes | None = None,
        caches: Pushes | None = None,
        homes: BoolArray | None = None,
    ) -> None:
        workers, models = len(fleet), len(fleet.models)
        self.fleet = fleet
        self._has_homes = homes is not None
        self.homes = np.zeros((models, workers), dtype=np.bool_) if homes is None else homes
        self.loads = Pushes() if loads is None else loads
        self.caches = Pushes() if caches is None else caches
        self.age = self.loads.period + self.loads.delay  # of the oldest load that others may see
        # A worker's own row is read and written by itself, number by number; the pushed ones by kernels, all at once.
        self.present = [True] * workers
        self._own_queued = [0.0] * workers
        self._own_busy_until = [NEVER] * workers
        self._own_caches = np.zeros((workers, models), dtype=np.bool_)
        self._own_cached = list(self._own_caches)
        self._own_free: list[float] = fleet.memory.tolist()
        self.lines: Lines | None = None
        self._from_outside: View
        self._use_rows(
            np.zeros(workers),
            np.full(workers, NEVER),
            fleet.memory.copy(),
            np.zeros((models, workers), dtype=np.bool_),
        )
        self._loads_under_way: deque[tuple[float, int, float, float]] = deque()
        self._caches_under_way: deque[tuple[float, int, int, bool]] = deque()
        self._load_sequence = [-1] * workers
        self._cache_sequence = [-1] * workers
        self.model_bytes: list[float] = fleet.model_bytes.tolist()
        self.fetch_seconds: list[float] = fleet.fetch_seconds.tolist()
        # Rows are written all the time, and most often without a period: then there is nothing to work out.
        self._shows_loads_at_once, self._shows_caches_at_once = self.loads.immediate, self.caches.immediate
        self._load_delay, self._cache_delay = (
            pushes.delay if pushes.period == 0 else None for pushes in (self.loads, self.caches)
        )

    def view(self, me: int, now: float, own: Load | None = None) -> View:
        """What worker `me` sees now; `OUTSIDE` sees no row but the pushed ones.

        A worker that is about to write its load may give it here, to see what it will have written.
        """
        loads, caches = self._loads_under_way, self._caches_under_way
        queued_at, busy_until_at = self._queued_at, self._busy_until_at
        while loads and loads[0][0] <= now:
            _, worker, queued, busy_until = loads.popleft()
            queued_at[worker] = queued
            busy_until_at[worker] = busy_until
        while caches and caches[0][0] <= now:
            _, worker, model, held = caches.popleft()
            self._show_cache(worker, model, held)
        lines, own_line = _NO_LINES, _NO_LINE
        if self.lines is not None:
            lines = self.lines.see(now)
            if me != OUTSIDE:
                own_line = self.lines.own(me)
        if me == OUTSIDE:
            return self._from_outside
        fields = (
            me,
            self._queued,
            self._busy_until,
            self._cached,
            self._free,
            self._own_queued[me] if own is None else own.queued,
            self._own_busy_until[me] if own is None else own.busy_until,
            self._own_cached[me],
            self._own_free[me],
            self.homes,
            lines,
            own_line,
            self.age,
        )
        return made(View, fields)

    def show_lines(self) -> None:
        """Have rows for what waits at the workers, too; nothing happens if they are there."""
        if self.lines is None:
            self._use_lines(Lines(len(self.fleet.models), len(self.fleet), delay=self.loads.delay))

    def _use_lines(self, lines: Lines) -> None:
        self.lines = lines
        nothing = np.zeros(lines.pushed.shape[:2])
        self._from_outside = self._from_outside._replace(lines=lines.pushed, own_line=nothing)

    def homes_at(self, worker: int) -> list[int]:
        """The models that are at home on a worker; none at `OUTSIDE`."""
        if worker == OUTSIDE or not self._has_homes:
            return []
        return [model for model, at_home in enumerate(self.homes[:, worker].tolist()) if at_home]

    def is_seen(self, worker: int) -> bool:
        """Whether a worker has a row, as others see it; when it comes or goes, all see that at once."""
        return self.present[worker]

    def exact_rows(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        """By worker: its own account of what waits, until when its task runs, and (by model) what its memory holds.

        Only a table that serves all workers knows these of all of them.
        """
        return np.array(self._own_queued), np.array(self._own_busy_until), self._own_caches

    def write_load(self, worker: int, queued: float, busy_until: float, now: float) -> None:
        """Set a worker's own load; the others see it when it has been pushed."""
        if not self.present[worker]:
            return
        self._own_queued[worker] = queued
        self._own_busy_until[worker] = busy_until
        delay = self._load_delay
        if delay:
            self._loads_under_way.append((now + delay, worker, queued, busy_until))
        elif self._shows_loads_at_once:
            self._queued_at[worker] = queued
            self._busy_until_at[worker] = busy_until
        else:
            self._loads_under_way.append((self.loads.seen_at(now), worker, queued, busy_until))

    def write_cache(self, worker: int, model: int, held: bool, now: float) -> None:
        """Say that a worker's memory takes in, or gives up, a model; the others see it when it has been pushed."""
        own = self._own_cached[worker]
        if not self.present[worker] or bool(own[model]) == held:
            return
        own[model] = held
        size = self.model_bytes[model]
        self._own_free[worker] += -size if held else size
        if self._shows_caches_at_once:
            self._show_cache(worker, model, held)
        else:
            seen = self.caches.seen_at(now) if self._cache_delay is None else now + self._cache_delay
            self._caches_under_way.append((seen, worker, model, held))

    def receive_load(self, worker: int, sequence: int, queued: float, busy_until: float) -> bool:
        """Take a peer's load as it pushed it; False if a newer one is known or the peer has left."""
        if not self.present[worker] or sequence <= self._load_sequence[worker]:
            return False
        self._load_sequence[worker] = sequence
        self._queued[worker] = queued
        self._busy_until[worker] = busy_until
        return True

    def receive_cache(self, worker: int, sequence: int, models: list[int]) -> bool:
        """Take the models of a peer's memory as it pushed them; False if newer ones are known or the peer has left."""
        if not self.present[worker] or sequence <= self._cache_sequence[worker]:
            return False
        self._cache_sequence[worker] = sequence
        self._cached[:, worker] = False
        self._cached[models, worker] = True
        self._free[worker] = self.fleet.memory[worker] - self.fleet.model_bytes[models].sum()
        return True

    def leave(self, worker: int) -> None:
        """Forget a worker that has left: nothing is placed there, and what it still pushes changes nothing."""
        self._reset(worker, ABSENT)

    def join(self, worker: int) -> None:
        """Take a worker back: idle, with empty memory."""
        self._reset(worker, 0.0)

    def _reset(self, worker: int, queued: float) -> None:
        self.present[worker] = queued != ABSENT
        # What is under way is from before.
        self._loads_under_way = deque(news for news in self._loads_under_way if news[1] != worker)
        self._caches_under_way = deque(news for news in self._caches_under_way if news[1] != worker)
        self._load_sequence[worker] = self._cache_sequence[worker] = -1
        self._own_queued[worker] = self._queued[worker] = queued
        self._own_busy_until[worker] = self._busy_until[worker] = NEVER
        self._own_cached[worker][:] = False
        self._cached[:, worker] = False
        self._own_free[worker] = self._free[worker] = float(self.fleet.memory[worker])
        if self.lines is not None:
            self.lines.clear(worker)

    def _use_rows(self, queued: FloatArray, busy_until: FloatArray, free: FloatArray, cached: BoolArray) -> None:
        """Keep the pushed rows in these arrays; single numbers are written through views, which takes half the time."""
        self._queued, self._busy_until, self._free, self._cached = queued, busy_until, free, cached
        self._queued_at, self._busy_until_at, self._free_at = (
            cast("memoryview[float]", numbers.data) for numbers in (queued, busy_until, free)
        )
        self._cached_at = cast("memoryview[bool]", cached.data)
        nothing = np.zeros(len(cached), dtype=np.bool_)
        self._from_outside = View(OUTSIDE, queued, busy_until, cached, free, 0.0, NEVER, nothing, 0.0, self.homes)

    def _show_cache(self, worker: int, model: int, held: bool) -> None:
        self._cached_at[model, worker] = held
        size = self.model_bytes[model]
        self._free_at[worker] += -size if held else size


class Load:
    """A worker's account of its own load, from which it writes its row: tasks join, start and end.

    `running` says how the task that runs counts. It decays by default: a reader subtracts what has passed since its
    start. The authors' system counts all of it until it ends, their simulator none of it. `queued` are the seconds of
    work that waits and, where it counts in full, of the task that runs. A worker that measures what its tasks
    really take (`pace`) counts with it: what waits there takes longer, and so would a task that comes.
    """

    __slots__ = ("_decays", "_running", "_seconds", "_waiting", "busy_until", "pace", "queued", "running")

    def __init__(self, running: RunningLoad = "decays") -> None:
        self.running: RunningLoad = running
        self._decays = running == "decays"
        self.pace = Pace()
        self.queued = 0.0
        self.busy_until = NEVER
        self._seconds = 0.0
        self._running = 0.0
        self._waiting = 0

    def enqueue(self, seconds: float) -> None:
        """A task joins the queue; one that takes several inputs joins with the first of them."""
        pace = self.pace
        self._waiting += 1
        self._seconds = waiting = self._seconds + seconds
        self.queued = waiting * pace.factor + self._running + pace.extra  # `sum_up` without a call

    def admit(self, seconds: float) -> None:
        """The same for a task that starts at once, or is dropped: what waits is only summed up then."""
        self._waiting += 1
        self._seconds += seconds

    def start(self, seconds: float, now: float, expected: float | None = None) -> None:
        """A task leaves the queue and runs; `expected` is the time until its end, if that is more than its seconds."""
        pace = self.pace
        if self._decays:
            slower = seconds * (pace.factor - 1.0)
            self.busy_until = now + (seconds if expected is None else expected) + slower
        elif self.running == "counts":
            self._running = seconds
        self._waiting = tasks = self._waiting - 1  # as in `drop`, without a call
        if tasks > 0:
            waiting = self._seconds - seconds
            self._seconds = waiting = waiting if waiting > 0.0 else 0.0
            self.queued = waiting * pace.factor + self._running + pace.extra
        else:
            self._seconds = 0.0
            self.queued = self._running + pace.extra

    def finish(self) -> None:
        """The running task has ended."""
        self.busy_until = NEVER
        if self._running:
            self._running = 0.0
            self.sum_up()

    def overrun(self, now: float, since: float) -> None:
        """The running task should have ended: as long as it has taken so far, it may take once more."""
        if self._decays:
            self.busy_until = now + (now - since)

    def fade(self, now: float) -> None:
        """Nothing runs: what is known of the own pace grows old."""
        self.pace.fade(now)
        self.sum_up()

    def drop(self, seconds: float) -> None:
        """A task leaves the queue without running here."""
        self._waiting -= 1
        # Rounding must neither make a load negative nor leave one behind when the queue is empty.
        self._seconds = max(0.0, self._seconds - seconds) if self._waiting > 0 else 0.0
        self.queued = self._seconds * self.pace.factor + self._running + self.pace.extra

    def sum_up(self) -> None:
        """Work out what waits, at the pace of now."""
        pace = self.pace
        self.queued = self._seconds * pace.factor + self._running + pace.extra
