"""Answers "why is my job pending?" from the state of the training engine, with numbers and names.

What would happen next is not guessed but tried, on copies of the engine (`what_if`): whether the job starts as the next
round begins, which jobs have the workers then, and which change would start it (`smallest_change`). The codes, and a
cheaper answer for all jobs at once, are in `reasons`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from fairway.allocate.allocation import PRICED_IN_TIME, Allocation
from fairway.allocate.arrays import FloatArray
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.job_table import NONE
from fairway.engine.training.precedence import precedence
from fairway.engine.training.reasons import (
    NONE_DRAINED,
    Code,
    Reason,
    Room,
    blocked,
    either,
    gang,
    joined,
    reasons,
    so_many,
    without_room,
)
from fairway.engine.training.smallest_change import Change, Trials, smallest_changes
from fairway.engine.training.what_if import begin_next_round, snapshot, team_of, turn_seconds
from fairway.errors import InputError

__all__ = ["Ahead", "Change", "Code", "Explanation", "PriceThere", "Reason", "explain", "reasons", "snapshot"]

_MOST_AHEAD = 10
_MOST_TRIALS = 40
_JOBS_TIMES_TRIALS = 200_000
"""Trials are fewer with more jobs, each of which they have to look at."""

_NEGLIGIBLE = 1e-6
"""Shares below this part of a job's time are what a search for prices leaves behind."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """A job that has, or gets, so many workers that the waiting one could use."""

    job: str
    team: str | None
    accelerator: str
    workers: int
    why: str


@dataclass(frozen=True, slots=True)
class PriceThere:
    """What a worker of one type costs by the last decision, and what it is worth with this job on it.

    `price` is what one more worker of the type would add to the policy's objective: what the other jobs make of it.
    `worth` is what this job would make of it, judged by what it pays for a step where it gets time (it may be worth
    more, if it is to run all the time); a job that gets none is judged by its cheapest type, and may be worth less.
    Where `worth` is closest to `price` it is closest to running. `affordable` says that the policy gives it time there.
    """

    price: float
    worth: float
    affordable: bool


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a job waits.

    `position` counts from 1 among the `waiting` jobs, in the order in which they are served as the next round begins;
    None for a job that runs. `ahead` are the first of `ahead_count` jobs that have or get workers it could use.
    `shares` of time and what it is `owed`, in seconds, are by accelerator type, as the next round begins; a job that
    runs is stopped for one that is owed `turn_seconds` more. `prices` is None where the policy has none.
    `changes` would each start it, the smallest first; none if it runs, or if no small change was found.
    """

    job: str
    code: Code
    reason: str
    round_ends_at: float | None
    turn_seconds: float
    position: int | None = None
    waiting: int = 0
    ahead: tuple[Ahead, ...] = ()
    ahead_count: int = 0
    shares: Mapping[str, float] = field(default_factory=dict)
    owed: Mapping[str, float] = field(default_factory=dict)
    prices: Mapping[str, PriceThere] | None = None
    changes: tuple[Change, ...] = ()

    @property
    def smallest_change(self) -> str | None:
        """The smallest change that would start it, in words."""
        if not self.changes:
            return None
        first = self.changes[0]
        return f"{first.text} (starts {'at once' if first.at_once else 'with the next round'})"


def explain(
    engine: TrainingEngine,
    job: str,
    *,
    drained: Mapping[str, int] = NONE_DRAINED,
    other_rates: Mapping[str, float] | None = None,
    when: Callable[[float], str] = "{:.0f} s".format,
    span: Callable[[float], str] = "{:.0f} s".format,
    enough: Callable[[], bool] = lambda: False,
) -> Explanation:
    """Say why a job waits, which jobs are ahead of it, and what would start it.

    `drained` says how many workers of each type left because of a drain; `other_rates` are the steps per second that
    the job would make on types that it does not accept, where they are known. `when` and `span` put the engine's times
    and durations into words. `enough` is asked again and again, and ends the search for changes when it says so; it
    ends too after a number of trials that is smaller the more jobs there are. The engine itself is left as it is.
    """
    if job not in engine.jobs:
        raise InputError(f"job '{job}' neither waits nor runs here; look at its state")
    position, jobs, room = engine.jobs.position(job), engine.jobs, Room.of(engine, drained)
    ends = engine.round_end
    if jobs.on[position] != NONE:
        on = f"{so_many(int(jobs.scale[position]), int(jobs.part[position]))} {engine.types[jobs.on[position]]}"
        if jobs.since[position] > engine.now:
            return Explanation(job, "Starting", f"it starts on {on}", ends, turn_seconds(engine))
        return Explanation(job, "Running", f"it runs on {on}", ends, turn_seconds(engine))
    later = snapshot(engine)
    begin_next_round(later)
    queue = _Queue.of(engine, later, position)
    reason = blocked(engine, position, room) or _reason(engine, later, queue, room, when, span)
    ahead, count = _ahead(engine, later, queue, when, span)
    trials = Trials(
        engine,
        job,
        most=min(_MOST_TRIALS, _JOBS_TIMES_TRIALS // len(jobs)),
        at_once_only=reason.code == "WaitingForRound",
        enough=enough,
    )
    return Explanation(
        job,
        reason.code,
        reason.sentence,
        ends,
        turn_seconds(engine),
        position=queue.place,
        waiting=queue.waiting,
        ahead=ahead,
        ahead_count=count,
        shares=_by_type(engine, later.jobs.shares[position]),
        owed=_by_type(engine, later.jobs.owed[position]),
        prices=_prices(later, position),
        changes=smallest_changes(engine, job, room, other_rates=other_rates or {}, trials=trials),
    )


@dataclass(frozen=True, slots=True)
class _Queue:
    """The order in which jobs are served as the next round begins: by `claims`, what each is owed then at the most."""

    position: int
    claims: FloatArray
    place: int
    waiting: int

    @classmethod
    def of(cls, engine: TrainingEngine, later: TrainingEngine, position: int) -> _Queue:
        jobs = later.jobs
        coming = jobs.owed + jobs.shares * later.options.round_seconds
        claims = np.where((jobs.shares > 0) & (jobs.rates > 0), coming, 0.0).max(axis=1, initial=0.0)
        claims[engine.jobs.on >= 0] += turn_seconds(engine)
        waits = np.flatnonzero(engine.jobs.on < 0)
        ahead = precedence(engine.jobs)
        order = waits[np.lexsort((waits, -jobs.owed[waits].sum(axis=1), -claims[waits], -ahead[waits]))]
        return cls(position, claims, int(np.flatnonzero(order == position)[0]) + 1, len(waits))

    @property
    def claim(self) -> float:
        """What the job in question is owed."""
        return float(self.claims[self.position])


def _reason(
    engine: TrainingEngine,
    later: TrainingEngine,
    queue: _Queue,
    room: Room,
    when: Callable[[float], str],
    span: Callable[[float], str],
) -> Reason:
    """The reason of a job that could run if it were its turn."""
    position, jobs = queue.position, engine.jobs
    usable, scale = np.flatnonzero(jobs.rates[position] > 0).tolist(), int(jobs.scale[position])
    part = int(jobs.part[position])
    types, ends = [engine.types[column] for column in usable], engine.round_end
    at = "when the round ends" if ends is None else f"when the round ends at {when(ends)}"
    if later.jobs.on[position] != NONE:
        where = f"{so_many(scale, part)} {engine.types[later.jobs.on[position]]}"
        return Reason("WaitingForRound", f"it starts on {where} {at}, if nothing changes before")
    place = f"it is number {queue.place} of {queue.waiting} that wait"
    higher = np.count_nonzero((engine.jobs.priority > engine.jobs.priority[position]) & (engine.jobs.on >= 0))
    if higher:
        place += f"; {higher} of a higher priority class {'run' if higher > 1 else 'runs'}"
    short = without_room(engine, position)
    if short is not None:
        return Reason(short.code, f"{short.sentence}; {place}")
    idle = [f"{room.free[column]} {engine.types[column]}" for column in usable if room.free[column]]
    if idle:
        free = f"{joined(idle, 'and')} {'is' if sum(room.free[usable]) == 1 else 'are'} free"
        return Reason("NotEnoughWorkers", f"it asks for {gang(scale, types, part)} at once, but only {free}; {place}")
    held = joined([f"{room.present[column]} {engine.types[column]}" for column in usable], "and")
    if not later.jobs.shares[position].any():
        costs = _costs_others(later, usable, span)
        return Reason(
            "WaitingForShare",
            f"{engine.policy.name} gives it no share of {either(types)}; all {held} are held; {costs}{place}",
        )
    share = f"its share is {later.jobs.shares[position].sum():.1%} of the time, and it is owed {span(queue.claim)}"
    return Reason("WaitingForShare", f"all {held} are held, and others keep or get them {at}; {share}; {place}")


def _costs_others(later: TrainingEngine, usable: list[int], span: Callable[[float], str]) -> str:
    """What an hour on each type costs the other jobs, where the policy's prices are in time; empty otherwise."""
    decided = later.allocation
    if decided is None or decided.prices is None or PRICED_IN_TIME not in decided.details:
        return ""
    costs = [f"{span(3600 * float(decided.prices[column]))} on a {later.types[column]}" for column in usable]
    return f"an hour costs the others {joined(costs, 'and')}; "


def _ahead(
    engine: TrainingEngine,
    later: TrainingEngine,
    queue: _Queue,
    when: Callable[[float], str],
    span: Callable[[float], str],
) -> tuple[tuple[Ahead, ...], int]:
    """The jobs that have workers it could use when the next round has begun; if it starts then, those before."""
    before, after, position = engine.jobs.on, later.jobs.on, queue.position
    starts = after[position] != NONE
    usable = [int(after[position])] if starts else np.flatnonzero(engine.jobs.rates[position] > 0).tolist()
    have = np.isin(before, usable) & (after != before) if starts else np.isin(after, usable)
    holders = np.flatnonzero(have)
    order = holders[np.lexsort((holders, -queue.claims[holders], -engine.jobs.fixed[holders]))]
    ends = engine.round_end
    end = "the round ends" if ends is None else f"the round ends at {when(ends)}"
    found = []
    for other in order[:_MOST_AHEAD].tolist():
        claim = span(float(queue.claims[other]))
        if starts:
            column, why = before[other], f"holds them until {end}"
        elif engine.jobs.fixed[other] and before[other] != NONE:
            column, why = after[other], "holds them until it ends: it must not be preempted"
        elif before[other] == after[other]:
            column = after[other]
            why = f"keeps them when {end}: to take them one must be owed {claim}, this job is owed {span(queue.claim)}"
        else:
            column = after[other]
            why = f"gets them when {end}: it is owed {claim}, this job {span(queue.claim)}"
        team, workers = team_of(engine, other), int(engine.jobs.scale[other])
        found.append(Ahead(engine.jobs.ids[other], team, engine.types[column], workers, why))
    return tuple(found), len(holders)


def _prices(later: TrainingEngine, position: int) -> dict[str, PriceThere] | None:
    """The prices of the types that the job runs on, as the decision has them that is about to hold.

    A job that gets some of the time, but not all, has the same price s p / T of a step wherever it runs, and none lower
    anywhere (complementary slackness: p is the price of a worker, s the size of the gang, T its rate). What it makes
    of a worker is T / s times that.
    """
    decided = later.allocation
    if decided is None or decided.prices is None:
        return None
    rates, scale = later.jobs.rates[position], float(later.jobs.sizes[position])
    if PRICED_IN_TIME in decided.details:
        return _prices_in_time(later, decided, position)
    if later.policy.agnostic:
        rates = (rates > 0).astype(float)
    shares = decided.job_shares[position]
    given = shares > _NEGLIGIBLE * shares.sum()
    types = np.flatnonzero((rates > 0) & (later.workers.present >= scale))
    if not len(types):
        return {}
    step = scale * decided.prices[types] / rates[types]
    paid = float(step[given[types]].max()) if given[types].any() else float(step.min())
    return {
        later.types[column]: PriceThere(
            float(decided.prices[column]), float(paid * rates[column] / scale), bool(given[column])
        )
        for column in types.tolist()
    }


def _prices_in_time(later: TrainingEngine, decided: Allocation, position: int) -> dict[str, PriceThere]:
    """Hours that an hour on each type costs the others, and saves this job's class: (T kappa - 1) / s."""
    prices, kappa = decided.prices, float(decided.details[PRICED_IN_TIME][position])
    assert prices is not None
    rates, scale = later.jobs.rates[position], float(later.jobs.sizes[position])
    return {
        later.types[column]: PriceThere(
            float(prices[column]),
            float(rates[column] * kappa - 1.0) / scale,
            bool(decided.job_shares[position, column] > 0),
        )
        for column in np.flatnonzero((rates > 0) & (later.workers.present >= scale)).tolist()
    }


def _by_type(engine: TrainingEngine, values: FloatArray) -> dict[str, float]:
    return dict(zip(engine.types, values.tolist(), strict=True))
