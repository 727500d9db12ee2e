"""What workers die of: decides which requests are refused, and which workflows and models are set aside for a while.

The supervisor says of each worker that died what it did at that moment (`RunRecord`). From that follows, with no clock
and no process at hand:

- A request that ran when a worker died is a suspect. It waits until several workers are there, or all, so that it never
  takes the last one along; it runs alone, and is cleared if it is answered. After `MOST_DEATHS` it is refused: two
  deaths, or three if the processes were killed by signal 9, which may have come from anywhere. One that ran longer than
  it may is refused at once.
- A request that was put aside, since it took longer than usual while others waited for its worker, is a suspect as
  well, but it may take twice as long the next time; after the third time it is refused. Of all that were put aside one
  runs at a time, and nothing beside it of a workflow that had several of them: they hold one worker at most.
- What ran on a machine that is lost is held against no workflow and no model, of which many may have run there at once.
  A request that was lost with three machines is refused.
- Other requests of its workflow wait as well while there is one worker only, or none, since they may be of the same
  kind, and are on trial then. If it was signal 9, they wait for three seconds at most, and are not.
- A workflow with several suspects that are not cleared is on trial: one request of it at a time, through one door. If
  that goes on to cost workers, it is set aside: its requests are refused, with the reason, for a while, which is longer
  each time.
- A model whose load ends or hangs a worker twice is set aside in the same way, with the workflows that need it.

All of it concerns the requests of that workflow alone.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fairway.back_off import BackOff
from fairway.live.serving.seams.run_record import NO_MARK, LaneKind, Running, workflow_of
from fairway.live.serving.seams.transport import WireError
from fairway.live.serving.seams.worker_pool import MACHINE_LOST

MOST_DEATHS = 2.0
"""So many deaths, counted by their weight, and a request is refused, or a model set aside."""

_BY_SIGNAL_9 = "-9"
_KILLED = 0.7
"""The weight of a death by signal 9, and below of one with two things under way, or just after the last one."""
_UNCLEAR = 0.5

_WINDOW_SECONDS = 60.0
_TRIED_REQUESTS, _SET_ASIDE_REQUESTS, _MANY_REQUESTS = 2, 3, 6
_SET_ASIDE = BackOff(10.0, 300.0)
_TRIAL_SECONDS = 5.0
_MOST_WAIT_SECONDS, _MOST_HELD_SECONDS = 15.0, 3.0
_REFUSED_SECONDS = 300.0
_MOST_REFUSED = 1024
_RECENT_SECONDS = 1.0
_TURN_SECONDS, _PUT_ASIDE_SECONDS = 2.0, 60.0
_MOST_TIMES_ASIDE = 3

Culprit = tuple[str, int]
"""("workflow", number) or ("model", number)."""

HELD, TRIED, SET_ASIDE = "held", "tried", "set aside"


class Notice(NamedTuple):
    """What the doors have to know.

    Marks of requests that are refused, with the reason; marks of suspects, which wait unless `suspects_run`, and of
    those that have just become suspects `again`; those that were put `aside`, the one first whose turn it is; workflows
    and models that are on trial or set aside, with the reason. The door of process `tries_at` lets those on trial in,
    one at a time.
    """

    refused: dict[bytes, str]
    suspects: frozenset[bytes]
    again: frozenset[bytes]
    suspects_run: bool
    culprits: dict[Culprit, tuple[str, str]]
    aside: tuple[bytes, ...]
    tries_at: int

    @classmethod
    def checked(cls, content: object) -> Notice:
        """The notice that came as a message; refuses what no supervisor would send."""
        kinds = [dict, frozenset, frozenset, bool, dict, tuple, int]
        if type(content) is tuple and [type(part) for part in content] == kinds:
            return cls(*content)
        raise WireError("a notice that is none")


class Death(NamedTuple):
    """How a worker came to its end: what it did, and how it ended.

    `overrun` is the lane that took too long, for which the worker was killed. `status` is its exit status. One that
    was `put_aside` had not reached its limit, but took longer than usual while others waited.
    """

    doing: Sequence[Running]
    status: str
    overrun: LaneKind | None = None
    put_aside: bool = False


@dataclass(slots=True)
class _Case:
    """What is held against a workflow or a model: by time, the weight of each death and the marks that ran."""

    deaths: list[tuple[float, float, set[bytes]]] = field(default_factory=list)
    state: str = ""
    until: float = math.inf
    times_set_aside: int = 0
    reason: str = ""
    has_proof: bool = False
    by_itself: bool = False


class Blame:
    """What is held against whom; `workflows` and `models` are their names by number."""

    def __init__(self, workflows: Sequence[str], models: Sequence[str]) -> None:
        self._names = {"workflow": list(workflows), "model": list(models)}
        self._cases: dict[Culprit, _Case] = {}
        self._weights: OrderedDict[bytes, float] = OrderedDict()
        self._refused: OrderedDict[bytes, tuple[float, str]] = OrderedDict()
        self._suspects_run = True
        self._waits_since = math.inf
        self._again: set[bytes] = set()
        self._aside: OrderedDict[bytes, tuple[float, int]] = OrderedDict()  # since when, and how often; by turns
        self._turn, self._turn_at = NO_MARK, -math.inf
        self._is_new = True

    @property
    def is_new(self) -> bool:
        """Whether there is something that the doors do not know yet."""
        return self._is_new

    def notice(self, tries_at: int) -> Notice:
        """What the doors have to know."""
        return Notice(
            {mark: reason for mark, (_, reason) in self._refused.items()},
            frozenset(self._weights),
            frozenset(self._again),
            self._suspects_run,
            {culprit: (case.state, case.reason) for culprit, case in self._cases.items() if case.state},
            tuple(self._aside),
            tries_at,
        )

    def told(self) -> None:
        """All doors have been told."""
        self._is_new = False
        self._again.clear()

    def died(self, now: float, death: Death) -> None:
        """A worker has died."""
        if death.status == MACHINE_LOST:
            self._lost_with_machine(now, {mark for each in death.doing if each.is_active for mark in each.marks})
            return
        overrun = [each for each in death.doing if each.kind == death.overrun]
        doing = overrun or [each for each in death.doing if each.is_active]
        weight = 1.0
        if not doing:
            doing = [each for each in death.doing if now - each.ended < _RECENT_SECONDS][:1]
            weight = _UNCLEAR
        elif len(doing) > 1:
            weight = _UNCLEAR
        if death.status == _BY_SIGNAL_9 and not overrun:
            weight *= _KILLED
        if death.put_aside:
            weight = 0.0
        for each in doing:
            self._hold_against(now, each, weight, death, bool(overrun))

    def allowance(self, marks: Sequence[bytes]) -> float:
        """How many times what is usual these requests may take while others wait: twice as long each time."""
        return 2.0 ** min(self._aside.get(mark, (0.0, 0))[1] for mark in marks) if marks else 1.0

    def cleared(self, mark: bytes) -> None:
        """A suspect was answered."""
        self._aside.pop(mark, None)
        if self._weights.pop(mark, None) is not None:
            self._is_new = True
            for case in self._cases.values():
                for _, _, marks in case.deaths:
                    marks.discard(mark)
                case.deaths = [each for each in case.deaths if each[2]]

    def loaded(self, model: int) -> None:
        """A model that is on trial was loaded."""
        if self._cases.pop(("model", model), None) is not None:
            self._is_new = True

    def time_passed(self, now: float, *, all_there: bool, several_there: bool, running: Collection[bytes] = ()) -> None:
        """Let those in again whose time has come; suspects run when several workers are there, or all."""
        self._pass_the_turn(now, running)
        waited = now - self._waits_since > _MOST_WAIT_SECONDS
        if not self._suspects_run and (all_there or several_there or waited):
            self._suspects_run, self._waits_since, self._is_new = True, math.inf, True
            for case in self._cases.values():
                if case.state == TRIED:
                    case.until = now + _TRIAL_SECONDS
        for mark in [mark for mark, (until, _) in self._refused.items() if until <= now]:
            del self._refused[mark]
            self._weights.pop(mark, None)
            self._is_new = True
        for culprit, case in list(self._cases.items()):
            case.deaths = [each for each in case.deaths if now - each[0] < _WINDOW_SECONDS]
            if case.state == HELD and (all_there or several_there or now >= case.until):
                # It did this by itself, so several of its requests at once may; signal 9 may have come from outside.
                self._enter(case, TRIED if case.by_itself else "", now + _TRIAL_SECONDS if case.by_itself else math.inf)
            elif case.state == SET_ASIDE and now >= case.until:
                self._enter(case, TRIED, now + _TRIAL_SECONDS)
            elif case.state == TRIED and not (case.deaths or case.times_set_aside or self._has_aside(culprit)):
                self._enter(case, "", math.inf)
            elif case.state == TRIED and now >= case.until and all_there and not self._has_aside(culprit):
                case.deaths.clear()
                self._enter(case, "", now + _WINDOW_SECONDS * (1 + case.times_set_aside))
            if not case.state and not case.deaths and not (now < case.until < math.inf):
                del self._cases[culprit]

    def _has_aside(self, culprit: Culprit) -> bool:
        kind, number = culprit
        return kind == "workflow" and any(workflow_of(mark) == number for mark in self._aside)

    def _pass_the_turn(self, now: float, running: Collection[bytes]) -> None:
        """The one whose turn it is has it until it is answered or refused, or for a while if it does not run."""
        aside = self._aside
        for mark, (since, _) in list(aside.items()):
            if now - since > _PUT_ASIDE_SECONDS and mark not in running:  # its client has gone
                del aside[mark]
                self._weights.pop(mark, None)
                self._is_new = True
        turn = next(iter(aside), NO_MARK)
        if turn != self._turn or turn in running:
            self._turn, self._turn_at = turn, now
        elif now - self._turn_at > _TURN_SECONDS and len(aside) > 1:
            aside.move_to_end(turn)
            self._turn, self._turn_at, self._is_new = next(iter(aside)), now, True

    def _hold_against(self, now: float, running: Running, weight: float, death: Death, overran: bool) -> None:
        self._is_new = True
        self._suspects_run = False
        self._waits_since = min(self._waits_since, now)
        kind = "model" if running.kind == LaneKind.LOAD else "workflow"
        culprit = (kind, running.number)
        name = self._names[kind][running.number] if running.number < len(self._names[kind]) else str(running.number)
        seconds = running.until - running.since
        late = now > running.until
        how = f"ended workers (status {death.status})"
        if death.put_aside:
            how = "took longer than usual while others waited"
        elif overran:
            how = f"took longer than {seconds:.3g} s" if late else "let no other code of its worker run"
        case = self._cases.setdefault(culprit, _Case())
        marks = {mark for mark in running.marks if mark != NO_MARK}
        case.deaths.append((now, weight, set(marks) or {NO_MARK}))
        self._again |= marks
        for mark in marks:
            total = self._weights[mark] = self._weights.get(mark, 0.0) + weight
            self._weights.move_to_end(mark)
            if death.put_aside:
                times = self._aside.pop(mark, (now, 0))[1] + 1
                self._aside[mark] = (now, times)
                self._turn_at = now
            gave_up = self._aside.get(mark, (now, 0))[1] >= _MOST_TIMES_ASIDE
            if (overran and not death.put_aside) or total >= MOST_DEATHS or gave_up:
                case.has_proof = True
                told = how if overran and not gave_up else f"{how} each time that it was tried"
                self._refuse(now, mark, f"it {told}, so it is not tried again")
        self._bound_weights()
        self._judge(now, kind, case, death, f"{kind} '{name}' {how}")

    def _lost_with_machine(self, now: float, marks: set[bytes]) -> None:
        for mark in marks - {NO_MARK}:
            self._is_new = True
            total = self._weights[mark] = self._weights.get(mark, 0.0) + _KILLED
            self._weights.move_to_end(mark)
            if total >= MOST_DEATHS:
                self._refuse(now, mark, "its machine was lost each time that it was tried, so it is not tried again")
        self._bound_weights()

    def _bound_weights(self) -> None:
        while len(self._weights) > _MOST_REFUSED:
            self._weights.popitem(last=False)

    def _judge(self, now: float, kind: str, case: _Case, death: Death, what: str) -> None:
        weight = sum(each[1] for each in case.deaths)
        status = death.status
        case.by_itself = status != _BY_SIGNAL_9
        if kind == "model":
            guilty, suspicious = weight >= MOST_DEATHS, True
        else:
            requests = len({frozenset(marks) for _, _, marks in case.deaths})  # one that is tried again is one
            is_sure = case.has_proof or status != _BY_SIGNAL_9 or death.put_aside
            guilty = requests >= (_SET_ASIDE_REQUESTS if is_sure else _MANY_REQUESTS)
            suspicious = requests >= _TRIED_REQUESTS
        if guilty or (case.times_set_aside and case.state == TRIED):
            case.times_set_aside += 1
            seconds = _SET_ASIDE.seconds(case.times_set_aside)
            case.reason = f"{what} again and again, so it is set aside for {seconds:.3g} s"
            self._enter(case, SET_ASIDE, now + seconds)
        elif suspicious:
            self._enter(case, TRIED, now + _TRIAL_SECONDS)
        elif not case.state:
            self._enter(case, HELD, now + (_MOST_HELD_SECONDS if status == _BY_SIGNAL_9 else _MOST_WAIT_SECONDS))

    def _enter(self, case: _Case, state: str, until: float) -> None:
        case.state, case.until = state, until
        self._is_new = True

    def _refuse(self, now: float, mark: bytes, reason: str) -> None:
        self._aside.pop(mark, None)
        self._refused[mark] = (now + _REFUSED_SECONDS, reason)
        while len(self._refused) > _MOST_REFUSED:
            self._refused.popitem(last=False)
