"""Turns shares of time into rounds: who runs where until the next one begins (Gavel §5, with its gaps mended).

A job is owed its share of the time that passes, by accelerator type, less the time it gets there. Each round, what is
owed most is served first, whatever its type and whatever the size of the gang: a gang that was passed over because too
few workers were left is owed more and more until it comes first, so it cannot starve. A job that holds workers keeps
them until another job is owed `keep` seconds more: what a restart costs is weighed against what waiting costs. Then
workers that are left go to jobs that would wait otherwise, and what is still left lets jobs move to faster types; no
worker idles that a waiting job could use.

A job that runs moves for its own sake only if it gains more than a restart costs it (`weigh_moves`). Where the shares
of a job are on a type that is no better for it than the one it runs on, the job may as well be given its time here: it
keeps its workers for it, and stays if there is room. Which jobs can stay by changing places with others is decided
after the choice, in `places`.

What a job is owed is work. When a new decision moves its shares to other types, the debt moves along. Time that no
other job wanted is a gift: a job is never owed less than nothing. Nor is it owed for ever what cannot be given, as
where gangs do not fill a type: the larger its share, the less a job can be owed, since one that is to run all the time
could never make up for time lost and would always come before the jobs that wait.
"""

from __future__ import annotations

import numpy as np

from fairway.allocate.arrays import BoolArray, FloatArray, IntArray
from fairway.compiled import FloatBlock, FloatTable, IntTable, compiled

_SAME = 1e-9
_LITTLE = 1e-2
_MOST_TURNS = 10.0
"""The most that a row with hardly any share is owed, beyond the two of one that is to run all the time."""


@compiled()
def account(seconds: float, shares: FloatTable, owed: FloatTable, charged: IntArray, turn: float) -> None:
    """Let time pass: every row is owed its shares of it, and has been given it on the type that it is charged for."""
    rows, types = shares.shape
    for row in range(rows):
        most = turn * (2.0 + _MOST_TURNS * max(1.0 - shares[row].sum(), 0.0))
        for column in range(types):
            value = owed[row, column] + shares[row, column] * seconds
            if charged[row] == column:
                value -= seconds
            owed[row, column] = min(max(value, 0.0), most)


@compiled()
def movable(
    on: IntArray, fixed: IntArray, beside: IntArray, held: IntArray, free: IntArray, preempt: bool
) -> tuple[BoolArray, IntArray]:
    """The jobs that run on as they do, and the workers that may be given away: of jobs that may be stopped, too."""
    stays, room = np.zeros(len(on), np.bool_), free.copy()
    for job in range(len(on)):
        if on[job] >= 0:
            stays[job] = fixed[job] > 0 or not preempt
            if not stays[job] and beside[job] < job:  # two that share hold their workers once
                room[on[job]] += held[job]
    return stays, room


@compiled()
def changes(
    to: IntArray, on: IntArray, together: IntArray, beside: IntArray, held: IntArray
) -> tuple[IntArray, IntArray]:
    """The jobs that stop, and those that start, of two that share the first: large gangs come first.

    They then choose while there are nodes with room for all of them.
    """
    jobs = len(to)
    stopped, starting, sizes = np.empty(jobs, np.int64), np.empty(jobs, np.int64), np.empty(jobs, np.int64)
    stops, starts = 0, 0
    for job in range(jobs):
        if to[job] != on[job] or together[job] != beside[job]:
            if on[job] >= 0:
                stopped[stops] = job
                stops += 1
            if to[job] >= 0 and (together[job] < 0 or together[job] > job):
                starting[starts], sizes[starts] = job, -held[job]
                starts += 1
    order = np.argsort(sizes[:starts], kind="mergesort")
    return stopped[:stops].copy(), starting[order]


@compiled()
def carry_over(owed: FloatTable, rates: FloatTable, shares: FloatTable) -> None:
    """Move what each job is owed on types where it has no share any more to those where it has, as work."""
    rows, types = shares.shape
    for row in range(rows):
        lost, rate = 0.0, 0.0
        for column in range(types):
            if shares[row, column] > 0.0:
                rate += shares[row, column] * rates[row, column]
            else:
                lost += owed[row, column] * rates[row, column]
                owed[row, column] = 0.0
        if rate > 0.0 and lost > 0.0:
            for column in range(types):
                owed[row, column] += shares[row, column] * lost / rate


@compiled()
def weigh_moves(
    on: IntArray,
    rates: FloatTable,
    known: FloatTable,
    left: FloatArray,
    rate: FloatArray,
    bound: IntArray,
    dollars: FloatArray,
    restart: float,
    turn: float,
    blind: bool,
    crowded: bool,
) -> tuple[IntArray, FloatArray]:
    """What a move to each type is to each job that runs: a gain (1), a loss (-1) or neither (0); and the least gain.

    A job with so much `left` that it needs T more seconds at its `rate`, and would lose `restart` of them, gains by a
    move to a place that is more than T / (T - restart) times as fast. T is counted up to a turn, since nothing is sure
    beyond. A rate that is not `known` is no reason to move. Where the policy goes by cost, `dollars` are the prices of
    the types, otherwise 0, and more steps for a dollar are a gain too. No move pays for a job that is `bound` to its
    place because it would begin from zero elsewhere. A `blind` policy cannot tell gains from losses: where it is
    `crowded`, with more asked for than there are workers, its shares are followed to every type that is not just as
    fast, and otherwise no move is a gain.
    """
    jobs, types = rates.shape
    gains = np.zeros((jobs, types), np.int64)
    least = np.full(jobs, 1.0 + _SAME)
    for job in range(jobs):
        here = on[job]
        if here < 0:
            continue
        seconds = turn
        if left[job] < turn * rate[job]:
            seconds = left[job] / rate[job]
        if bound[job] > 0 or seconds <= restart:
            least[job] = np.inf
        else:
            least[job] += restart / (seconds - restart)
        for column in range(types):
            if column != here and rates[job, column] > 0.0:
                ratio = rates[job, column] / rates[job, here] if known[job, column] * known[job, here] > 0.0 else 1.0
                if blind:
                    gains[job, column] = crowded and abs(ratio - 1.0) > _SAME
                elif ratio > least[job] or ratio * dollars[here] > least[job] * dollars[column]:
                    gains[job, column] = 1
                elif ratio < 1.0 - _SAME or dollars[here] < ratio * dollars[column] * (1.0 - _SAME):
                    gains[job, column] = -1
    return gains, least


@compiled()
def choose(
    shares: FloatTable,
    owed: FloatTable,
    rates: FloatTable,
    scale: IntArray,
    on: IntArray,
    beside: IntArray,
    pair_first: IntArray,
    pair_second: IntArray,
    pair_shares: FloatTable,
    pair_owed: FloatTable,
    pair_rates: FloatBlock,
    stays: BoolArray,
    free: IntArray,
    ahead: float,
    keep: float,
    gains: IntTable,
    least: FloatArray,
    first: FloatArray,
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Decide who runs: the type of each job (-1: waits), its partner (-1: alone) and the types charged for it.

    `on` and `beside` are what runs now; `free` the workers of each type that may be given away, those held by jobs that
    may be stopped included; `ahead` the seconds until the next decision, in which shares will be owed; `keep` how many
    seconds more another job must be owed to take a job's workers. `gains` says which moves are a gain to a job
    that runs, and `least` by what factor its rate must rise if it is to leave a job that it shares with. Jobs that run
    and are marked in `stays` go on as they are. Jobs come `first` by so many seconds, whatever they are owed, and also
    where they have no share: 0 unless some are of a higher class than others. The last two arrays are the types that
    the jobs and the pairs are charged for.
    """
    jobs, types = rates.shape
    pairs = len(pair_first)
    to = np.full(jobs, -1, np.int64)
    partner = np.full(jobs, -1, np.int64)
    charge = np.full(jobs, -1, np.int64)
    pair_charge = np.full(pairs, -1, np.int64)
    left = free.copy()
    for job in range(jobs):
        if stays[job]:
            to[job], partner[job] = on[job], beside[job]

    # 1. What is owed most comes first, over all types at once.
    size = jobs * types + pairs * types
    score = np.empty(size)
    entry = np.empty(size, np.int64)
    count = 0
    for job in range(jobs):
        if to[job] >= 0:
            continue
        shareless = first[job] > 0.0 and shares[job].max() <= 0.0
        for column in range(types):
            if (shares[job, column] > 0.0 or shareless) and rates[job, column] > 0.0:
                value = owed[job, column] + shares[job, column] * ahead
                if shareless:  # the policy does not know of classes; it is served last of its own, where it is fastest
                    value = _LITTLE * ahead * rates[job, column] / rates[job].max()
                if on[job] >= 0 and beside[job] < 0 and (on[job] == column or gains[job, column] == 0):
                    value += keep
                if value > 0.0:
                    score[count] = -(value + first[job])
                    entry[count] = job * types + column
                    count += 1
    for pair in range(pairs):
        one, other = pair_first[pair], pair_second[pair]
        if to[one] >= 0 or to[other] >= 0:
            continue
        for column in range(types):
            if pair_shares[pair, column] > 0.0 and pair_rates[pair, column].min() > 0.0:
                value = pair_owed[pair, column] + pair_shares[pair, column] * ahead
                if on[one] == column and beside[one] == other:
                    value += keep
                if value > 0.0:
                    score[count] = -(value + min(first[one], first[other]))
                    entry[count] = (jobs + pair) * types + column
                    count += 1
    for position in np.argsort(score[:count], kind="mergesort"):
        row, column = entry[position] // types, entry[position] % types
        if row < jobs:
            if to[row] < 0 and scale[row] <= left[column]:
                to[row] = charge[row] = column
                left[column] -= scale[row]
        else:
            pair = row - jobs
            one, other = pair_first[pair], pair_second[pair]
            if to[one] < 0 and to[other] < 0 and scale[one] <= left[column]:
                to[one] = to[other] = pair_charge[pair] = column
                partner[one], partner[other] = other, one
                left[column] -= scale[one]

    # 2. Workers that are left go to jobs that would wait, those owed most first.
    waiting = np.empty(jobs)
    for job in range(jobs):
        waiting[job] = -np.inf if to[job] >= 0 else owed[job].sum() + (keep if on[job] >= 0 else 0.0) + first[job]
    by_need = np.argsort(-waiting, kind="mergesort")
    moved = True
    for _ in range(3):
        if not moved:
            break
        for job in by_need:
            if to[job] >= 0:
                continue
            best, best_rate, best_left = -1, 0.0, 0
            for column in range(types):
                if scale[job] <= left[column] and rates[job, column] > 0.0:
                    rate = rates[job, column]
                    if rate > best_rate * (1.0 + _SAME) or (
                        rate > best_rate * (1.0 - _SAME) and left[column] > best_left
                    ):
                        best, best_rate, best_left = column, rate, left[column]
            here = on[job]
            can_stay = here >= 0 and beside[job] < 0 and scale[job] <= left[here]
            if best >= 0 and can_stay and gains[job, best] <= 0:
                best = here
            if best >= 0:
                to[job] = best
                left[best] -= scale[job]
                charge[job] = best if shares[job, best] > 0.0 else -1
        # A job that is served as well where it is stays there, if there is room; others may need what it leaves.
        moved = False
        waits = to.min() < 0
        for job in range(jobs):
            here = on[job]
            moves = here >= 0 and to[job] >= 0 and to[job] != here and partner[job] < 0 and beside[job] < 0
            if moves and scale[job] <= left[here] and gains[job, to[job]] <= 0:
                left[to[job]] += scale[job]
                left[here] -= scale[job]
                to[job] = here
                moved = waits
        # 3. What is still left lets jobs move to faster types, those that gain most first, and pairs come apart.
        pace = np.empty(jobs)
        for job in range(jobs):
            pace[job] = rates[job, to[job]] if to[job] >= 0 and not stays[job] else np.inf
        for pair in range(pairs):
            one, other = pair_first[pair], pair_second[pair]
            if pair_charge[pair] >= 0 and partner[one] == other:
                pace[one] = pair_rates[pair, pair_charge[pair], 0]
                pace[other] = pair_rates[pair, pair_charge[pair], 1]
        gain = np.zeros(jobs)
        for job in range(jobs):
            settled = to[job] == on[job] and partner[job] == beside[job]
            enough = pace[job] * (least[job] if settled and partner[job] >= 0 else 1.0 + _SAME)
            for column in range(types):
                pays = gains[job, column] > 0 or not settled or partner[job] >= 0
                if pays and scale[job] <= left[column] and rates[job, column] > enough:
                    gain[job] = max(gain[job], rates[job, column] / pace[job])
        for job in np.argsort(-gain, kind="mergesort"):
            if gain[job] <= 0.0:
                break
            here = best = to[job]
            highest = pace[job]
            settled = here == on[job] and partner[job] == beside[job]
            enough = pace[job] * (least[job] if settled and partner[job] >= 0 else 1.0 + _SAME)
            for column in range(types):
                pays = gains[job, column] > 0 or not settled or partner[job] >= 0
                if pays and scale[job] <= left[column] and rates[job, column] > enough:
                    best, highest = column, rates[job, column]
                    enough = highest * (1.0 + _SAME)
            if highest > pace[job]:
                if partner[job] < 0:
                    left[here] += scale[job]
                else:
                    other = partner[job]
                    pace[other] = rates[other, here]
                    partner[other] = partner[job] = -1
                left[best] -= scale[job]
                to[job], pace[job] = best, highest
                moved = True
    return to, partner, charge, pair_charge
