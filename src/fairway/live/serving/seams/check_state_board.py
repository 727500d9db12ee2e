"""The conformance kit of state boards: what workers see of each other's rows, and what the supervisor marks in them.

`check_state_board` runs every check of `CHECKS`, each over seams of its own, with the boards of several workers in this
one process, whatever way rows take from one to the other. A failure names the check and what happened.
"""

from __future__ import annotations

from collections.abc import Callable

from fairway.engine.serving.messages import PeerLoad, PeerModels, PublishLoad, PublishModels
from fairway.live.serving.seams.backend import Seams
from fairway.live.serving.seams.conformance import SeamError, require, require_equal
from fairway.live.serving.seams.state_board import StateBoard
from fairway.live.serving.seams.transport import Line, Message
from fairway.place.fleet import Fleet, Worker
from fairway.workflows import Model

_FLEET = Fleet.of([Worker(f"w{number}", 10.0) for number in range(3)], [Model("a", 4), Model("b", 3)])
_ROUNDS = 6


def check_state_board(make: Callable[[], Seams]) -> None:
    """Raise `SeamError` unless boards over seams that `make` makes pass every check."""
    for check in CHECKS:
        trial = Trial(make())
        try:
            check(trial)
        except SeamError:
            raise
        except Exception as error:
            raise SeamError(f"check '{check.__name__}' fails: raises {type(error).__name__}: {error}") from error
        finally:
            trial.close()


class Trial:
    """Three workers, by number, and a planner that has no row; each with its board, and none of them there at first."""

    def __init__(self, seams: Seams) -> None:
        self.seams = seams
        seams.make_rows(_FLEET)
        self.planner = len(_FLEET)
        self._transports = [seams.transport(number) for number in range(self.planner + 1)]
        for transport in self._transports:
            transport.listen()
        self.boards = [self._new_board(number) for number in range(self.planner + 1)]
        self._lines: dict[int, Line] = {number: seams.connect(number) for number in range(self.planner + 1)}
        self._there: list[int] = []
        self._sequences = [0] * len(_FLEET)
        self.marks = seams.marks(_FLEET, self.tell_others)

    def _new_board(self, number: int) -> StateBoard:
        return self.seams.board(number, _FLEET, None, self._transports[number])

    def joins(self, number: int) -> None:
        """A worker, or the planner, is there: its supervisor says so to it and to the others."""
        self.boards[number].join()
        for message in self.marks.greeting([other for other in self._there if other < self.planner]):
            self._lines[number].send(message)
        if number < self.planner:
            self.tell_others(number, ("joined", number))
        self._there.append(number)
        self.settle()

    def dies(self, number: int) -> None:
        """A worker is dead, its row is marked, and the others hear of it."""
        self._there.remove(number)
        self.marks.leave(number)
        self.boards[number] = self._new_board(number)
        self.tell_others(number, ("lost", number))
        self.settle()

    def writes(self, number: int, queued: float, busy_until: float, models: tuple[int, ...]) -> None:
        """A worker writes its row, as its engine does."""
        board, now = self.boards[number], self.seams.now()
        board.table.write_load(number, queued, busy_until, now)
        for model in range(len(_FLEET.models)):
            board.table.write_cache(number, model, model in models, now)
        if board.publishes:
            self._sequences[number] += 2
            board.publish(PublishLoad(self._sequences[number], queued, busy_until))
            board.publish(PublishModels(self._sequences[number] + 1, models))

    def tell_others(self, number: int, message: Message) -> None:
        """The supervisor tells all that are there, but one, something."""
        for other in self._there:
            if other != number:
                self._lines[other].send(message)

    def settle(self) -> None:
        """Let all that was written be seen: what a worker program does in its loop."""
        for _ in range(_ROUNDS):
            for number, (board, transport) in enumerate(zip(self.boards, self._transports, strict=True)):
                for _, message in transport.receive(0.01):
                    self._take(number, board, message)
                if board.due <= (now := self.seams.now()):
                    board.push(now)

    def _take(self, number: int, board: StateBoard, message: Message | None) -> None:
        match message:
            case ("joined", worker):
                board.peers_present([worker])
            case ("lost", worker):
                board.peer_lost(worker)
                if board.table.is_seen(worker):
                    board.table.leave(worker)
            case ("row", content):
                event = board.received(content)
                if isinstance(event, PeerLoad):
                    board.table.receive_load(*event[:4])
                elif isinstance(event, PeerModels):
                    board.table.receive_cache(event.worker, event.sequence, list(event.models))
            case None:
                raise SeamError(f"process {number} has lost a connection")

    def close(self) -> None:
        """End everything."""
        for line in self._lines.values():
            line.close()
        for transport in self._transports:
            transport.close()


def workers_are_seen_once_they_are_there(trial: Trial) -> None:
    """At first no worker is present; then each is for all, those that came before it and those that come after."""
    here = workers_are_seen_once_they_are_there
    for number in range(len(_FLEET)):
        seen = [number for number in range(len(_FLEET)) if trial.boards[0].table.is_seen(number)]
        require_equal(here, seen, list(range(number)), "worker 0 sees")
        trial.joins(number)
    trial.joins(trial.planner)
    for number, board in enumerate(trial.boards):
        seen = [other for other in range(len(_FLEET)) if board.table.is_seen(other)]
        require_equal(here, seen, list(range(len(_FLEET))), f"process {number} sees")


def all_see_what_a_worker_writes(trial: Trial) -> None:
    """A load and the models of a memory are seen by all others, and by the worker itself."""
    _all_there(trial)
    now = trial.seams.now()
    trial.writes(1, 1.5, now + 100.0, (1,))
    trial.settle()
    _require_row(all_see_what_a_worker_writes, trial, 1, now, (101.5, [False, True], 7.0))
    trial.writes(1, 0.5, now, (0, 1))
    trial.settle()
    _require_row(all_see_what_a_worker_writes, trial, 1, trial.seams.now(), (0.5, [True, True], 3.0))
    for number in (0, 2):
        _require_row(all_see_what_a_worker_writes, trial, number, now, (0.0, [False, False], 10.0))


def a_worker_that_comes_later_sees_the_rows(trial: Trial) -> None:
    """What was written before a process came it sees, too."""
    trial.joins(0)
    trial.writes(0, 2.0, trial.seams.now(), (0,))
    trial.settle()
    for number in (1, trial.planner):
        trial.joins(number)
        view = trial.boards[number].table.view(number if number < trial.planner else 1, trial.seams.now())
        found = (view.load(0, trial.seams.now()), view.holds(0, 0))
        require_equal(a_worker_that_comes_later_sees_the_rows, found, (2.0, True), f"process {number} sees")


def a_dead_worker_is_absent_at_once(trial: Trial) -> None:
    """When a worker is marked absent, all see that; when it is back, it is idle, and its memory empty."""
    here = a_dead_worker_is_absent_at_once
    _all_there(trial)
    trial.writes(2, 1.0, trial.seams.now(), (0,))
    trial.settle()
    trial.dies(2)
    for number, board in enumerate(trial.boards):
        require(here, not board.table.is_seen(2), f"process {number} sees worker 2")
    require(here, all(trial.boards[0].table.is_seen(number) for number in (0, 1)), "another worker is absent")
    trial.joins(2)
    _require_row(here, trial, 2, trial.seams.now(), (0.0, [False, False], 10.0))


def a_silent_worker_counts_as_busy(trial: Trial) -> None:
    """What the supervisor says of a worker that gives no sign counts until its own next word; not for an absent one."""
    here = a_silent_worker_counts_as_busy
    trial.joins(0)
    trial.joins(1)
    until = trial.seams.now() + 100.0
    trial.marks.call_busy(0, until)
    trial.marks.call_busy(2, until)
    trial.settle()
    now = trial.seams.now()
    load = trial.boards[1].table.view(1, now).load(0, now)
    require(here, abs(load - (until - now)) < 1.0, f"worker 1 sees a load of {load} s, expected {until - now} s")
    require(here, not trial.boards[1].table.is_seen(2), "a worker that is absent is seen")
    trial.writes(0, 0.25, now, ())
    trial.settle()
    now = trial.seams.now()
    require_equal(here, trial.boards[1].table.view(1, now).load(0, now), 0.25, "after its own word, worker 1 sees")


def the_last_word_counts(trial: Trial) -> None:
    """Of many changes in a short time the last one is seen in the end."""
    _all_there(trial)
    for step in range(200):
        trial.writes(0, float(step), trial.seams.now(), (step % 2,))
    trial.settle()
    _require_row(the_last_word_counts, trial, 0, trial.seams.now(), (199.0, [False, True], 7.0))


CHECKS: tuple[Callable[[Trial], None], ...] = (
    workers_are_seen_once_they_are_there,
    all_see_what_a_worker_writes,
    a_worker_that_comes_later_sees_the_rows,
    a_dead_worker_is_absent_at_once,
    a_silent_worker_counts_as_busy,
    the_last_word_counts,
)
"""Every check, in the order in which they run."""


def _all_there(trial: Trial) -> None:
    for number in range(len(_FLEET) + 1):
        trial.joins(number)


def _require_row(
    check: Callable[..., None], trial: Trial, worker: int, now: float, expected: tuple[float, list[bool], float]
) -> None:
    """All processes see this load (to a second, since rows travel), these models and this free memory of a worker."""
    for number, board in enumerate(trial.boards):
        view = board.table.view(number if number < trial.planner else (worker + 1) % len(_FLEET), now)
        load = view.load(worker, now)
        models = [view.holds(worker, model) for model in range(len(_FLEET.models))]
        what = f"process {number} sees of worker {worker}"
        require(check, abs(load - expected[0]) < 1.0, f"{what} a load of {load} s, expected {expected[0]} s")
        require_equal(check, (models, view.free_bytes(worker)), expected[1:], what)
