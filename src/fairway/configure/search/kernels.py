"""The loops over configurations, compiled: the best completions of a front, ESG_1Q in both its forms, brute force.

A path takes one configuration of each layer. Layers lie one after another in flat arrays; layer i is
`offsets[i]:offsets[i + 1]`. All of these answer the same question: for each first configuration, the cheapest path that
ends within the budget; and of those the k cheapest, between equals the faster. `layered`, `a_star` and `front` say what
the arrays are and which paper section or idea each follows.
"""

from __future__ import annotations

import heapq

import numpy as np

from fairway.compiled import compiled, compiled_within
from fairway.configure.arrays import FloatArray, IntArray

TOLERANCE = 1e-12
"""Seconds by which sums of the same times may differ, and the part of a cost by which sums of costs may."""

ROUNDING = 1e-13
"""Far more than the part of a sum of a few times that rounding can change."""


@compiled()
def any_fits(free_cpu: IntArray, free_gpu: IntArray, cpu: int, gpu: int) -> bool:
    """Whether a worker has so many CPUs and slices free."""
    for worker in range(len(free_cpu)):  # noqa: SIM110 - compiled, and a generator would not be
        if free_cpu[worker] >= cpu and free_gpu[worker] >= gpu:
            return True
    return False


@compiled()
def undominated(cost: FloatArray, order: IntArray) -> IntArray:
    """Of points in order of time, then cost, those that nothing faster undercuts: cost falls strictly."""
    kept = np.empty(len(order), np.int64)
    count, least = 0, np.inf
    for point in order:
        if cost[point] < least:
            least = cost[point]
            kept[count] = point
            count += 1
    return kept[:count].copy()


@compiled()
def side_by_side(
    seconds: FloatArray, cost: FloatArray, other_seconds: FloatArray, other_cost: FloatArray
) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
    """The front of two things in parallel: the slower decides when both are done, costs add.

    At each time at which one of them offers something new, both take the cheapest that is done by then.
    """
    longest = len(seconds) + len(other_seconds)
    times, costs = np.empty(longest), np.empty(longest)
    firsts, seconds_points = np.empty(longest, np.int64), np.empty(longest, np.int64)
    first, second, count = -1, -1, 0
    while first + 1 < len(seconds) or second + 1 < len(other_seconds):
        next_first = seconds[first + 1] if first + 1 < len(seconds) else np.inf
        next_second = other_seconds[second + 1] if second + 1 < len(other_seconds) else np.inf
        now = min(next_first, next_second)
        if next_first == now:
            first += 1
        if next_second == now:
            second += 1
        if first >= 0 and second >= 0:
            times[count], costs[count] = now, cost[first] + other_cost[second]
            firsts[count], seconds_points[count] = first, second
            count += 1
    return times[:count].copy(), costs[:count].copy(), firsts[:count].copy(), seconds_points[:count].copy()


@compiled_within()
def last_in_time(seconds: FloatArray, begin: int, end: int, left: float) -> int:
    """The last point of the front `begin:end` that is done in the time left; the one before `begin` if none is."""
    low, high = begin - 1, end
    while high - low > 1:
        middle = (low + high) // 2
        if seconds[middle] <= left:
            low = middle
        else:
            high = middle
    return low


@compiled()
def best_completions(
    own_seconds: FloatArray,
    own_cost: FloatArray,
    begins: IntArray,
    ends: IntArray,
    rest_seconds: FloatArray,
    rest_cost: FloatArray,
    added: float,
    budget: float,
    k: int,
) -> tuple[IntArray, FloatArray, FloatArray, IntArray]:
    """The k cheapest first configurations with what follows each: number, seconds, cost, point of the front.

    What follows configuration j is the front `begins[j]:ends[j]`; of it, the last point that is done in time is the
    cheapest. `added` is what every first configuration takes on top of its own time.
    """
    numbers = np.full(k, -1, np.int64)
    times, costs = np.full(k, np.inf), np.full(k, np.inf)
    points = np.full(k, -1, np.int64)
    held = 0
    for number in range(len(own_seconds)):
        own = own_seconds[number] + added
        low = last_in_time(rest_seconds, begins[number], ends[number], budget + TOLERANCE - own)
        if low < begins[number]:
            continue
        cost = own_cost[number] + rest_cost[low]
        time = own + rest_seconds[low]
        if held == k and not (cost < costs[k - 1] or (cost == costs[k - 1] and time < times[k - 1])):
            continue
        position = held if held < k else k - 1
        while position > 0 and (
            cost < costs[position - 1] or (cost == costs[position - 1] and time < times[position - 1])
        ):
            numbers[position], points[position] = numbers[position - 1], points[position - 1]
            times[position], costs[position] = times[position - 1], costs[position - 1]
            position -= 1
        numbers[position], times[position], costs[position], points[position] = number, time, cost, low
        held = min(held + 1, k)
    return numbers[:held], times[:held], costs[:held], points[:held]


@compiled()
def same_answer_between(
    own_seconds: FloatArray,
    own_cost: FloatArray,
    begins: IntArray,
    ends: IntArray,
    rest_seconds: FloatArray,
    rest_cost: FloatArray,
    added: float,
    budget: float,
    numbers: IntArray,
    points: IntArray,
    most_cost: float,
) -> tuple[float, float]:
    """From which budget on, and below which, `best_completions` gives this answer for sure, with the same `added`.

    With less time, the answer changes when one of its own is not in time any more; with more, when one of its own can
    take the next point of its front, or another one has a point that costs no more than `most_cost`: the last of the
    answer's or, if it has fewer than k, any. Where rounding decides, no budget counts.
    """
    since, until = -np.inf, np.inf
    taken = np.full(len(own_seconds), -1, np.int64)
    taken[numbers] = points
    for number in range(len(own_seconds)):
        begin, end, own = begins[number], ends[number], own_seconds[number] + added
        last = taken[number]
        after = last + 1
        if last < 0:
            last = last_in_time(rest_seconds, begin, end, budget + TOLERANCE - own)
            low, high = last, end
            while high - low > 1:  # costs fall along a front
                middle = (low + high) // 2
                if own_cost[number] + rest_cost[middle] > most_cost:
                    low = middle
                else:
                    high = middle
            after = high
            if last >= begin and own_cost[number] + rest_cost[last] > most_cost:
                last = begin - 1  # it costs too much to count, and would cost more with less time
        safe = ROUNDING * (1.0 + abs(budget) + own)
        if last >= begin:
            since = max(since, rest_seconds[last] + own - TOLERANCE + safe)
        if after < end:
            until = min(until, rest_seconds[after] + own - TOLERANCE - safe)
    return since, until


@compiled_within()
def _lower_bound(values: FloatArray, owners: IntArray, held: int, value: float, owner: int, guard: bool) -> int:
    """Keep the k lowest upper bounds in order; returns how many are held.

    With the guard, a first configuration counts once, however many paths of it have a bound: else the k-th bound would
    be too low for k different ones, and true answers would be cut.
    """
    k = len(values)
    position = held
    if guard:
        for index in range(held):
            if owners[index] == owner:
                if value >= values[index]:
                    return held
                position = index
                break
    if position == held:
        if held == k:
            if value >= values[k - 1]:
                return held
            position = k - 1
        else:
            held += 1
    while position > 0 and values[position - 1] > value:
        values[position], owners[position] = values[position - 1], owners[position - 1]
        position -= 1
    values[position], owners[position] = value, owner
    return held


@compiled_within()
def _suffixes(seconds: FloatArray, cost: FloatArray, offsets: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """By layer, over it and all after it: the least time, the least cost, and the cost of the fastest."""
    layers = len(offsets) - 1
    least_time, least_cost, fastest_cost = np.zeros(layers + 1), np.zeros(layers + 1), np.zeros(layers + 1)
    for layer in range(layers - 1, -1, -1):
        begin, end = offsets[layer], offsets[layer + 1]
        least_time[layer] = least_time[layer + 1] + seconds[begin]
        fastest_cost[layer] = fastest_cost[layer + 1] + cost[begin]
        least_cost[layer] = least_cost[layer + 1] + cost[begin:end].min()
    return least_time, least_cost, fastest_cost


@compiled_within()
def _longer(array: IntArray) -> IntArray:
    return np.concatenate((array, np.empty_like(array)))


@compiled_within()
def _longer_floats(array: FloatArray) -> FloatArray:
    return np.concatenate((array, np.empty_like(array)))


@compiled()
def layered_search(
    seconds: FloatArray, cost: FloatArray, offsets: IntArray, budget: float, k: int, guard: bool
) -> tuple[FloatArray, FloatArray, IntArray, int]:
    """ESG_1Q layer by layer: by first configuration, the seconds, cost and choices of its best path; paths kept.

    Each layer is in order of time, then cost. Infinite where no path of a first configuration is an answer.
    """
    layers = len(offsets) - 1
    firsts = offsets[1] - offsets[0]
    best_seconds, best_cost = np.full(firsts, np.inf), np.full(firsts, np.inf)
    best_parent, best_choice = np.full(firsts, -1, np.int64), np.full(firsts, -1, np.int64)
    choices = np.full((firsts, layers), -1, np.int64)
    least_time, least_cost, fastest_cost = _suffixes(seconds, cost, offsets)
    if least_time[0] > budget + TOLERANCE:
        return best_seconds, best_cost, choices, 0
    bounds, owners = np.full(k, np.inf), np.full(k, -1, np.int64)
    held = _lower_bound(bounds, owners, 0, fastest_cost[0], 0, guard)
    # Nodes of all layers: one array each; a layer's nodes lie together.
    size, room = 1, 1024
    times, costs = np.empty(room), np.empty(room)
    first_of, parents, taken = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    times[0], costs[0], first_of[0], parents[0], taken[0] = 0.0, 0.0, -1, -1, -1
    begin, expanded = 0, 0
    for layer in range(layers):
        end = size
        last = layer == layers - 1
        for node in range(begin, end):
            # The bound may have fallen since the node was kept.
            if costs[node] + least_cost[layer] > bounds[k - 1] * (1 + TOLERANCE):
                continue
            for choice in range(offsets[layer], offsets[layer + 1]):
                time = times[node] + seconds[choice]
                if time + least_time[layer + 1] > budget + TOLERANCE:
                    break  # time blade: those after it in the layer are slower
                price = costs[node] + cost[choice]
                if price + least_cost[layer + 1] > bounds[k - 1] * (1 + TOLERANCE):
                    continue  # cost blade
                first = choice if layer == 0 else first_of[node]
                held = _lower_bound(bounds, owners, held, price + fastest_cost[layer + 1], first, guard)
                expanded += 1
                if last:
                    if price < best_cost[first] or (price == best_cost[first] and time < best_seconds[first]):
                        best_cost[first], best_seconds[first] = price, time
                        best_parent[first], best_choice[first] = node, choice
                    continue
                if size == len(times):
                    times, costs = _longer_floats(times), _longer_floats(costs)
                    first_of, parents, taken = _longer(first_of), _longer(parents), _longer(taken)
                times[size], costs[size], first_of[size], parents[size], taken[size] = time, price, first, node, choice
                size += 1
        begin = end
    for first in range(firsts):
        if best_choice[first] >= 0:
            choices[first, layers - 1] = best_choice[first]
            node = best_parent[first]
            for layer in range(layers - 2, -1, -1):
                choices[first, layer] = taken[node]
                node = parents[node]
    return best_seconds, best_cost, choices, expanded


@compiled()
def best_first_search(
    seconds: FloatArray, cost: FloatArray, offsets: IntArray, budget: float, k: int
) -> tuple[FloatArray, FloatArray, IntArray, int]:
    """ESG_1Q as A*: the path with the least bound on its cost goes on; the first k that end are the answers.

    Answers as `layered_search`. Bounds never fall along a path, so a path that ends is the best of those that are left.
    """
    layers = len(offsets) - 1
    firsts = offsets[1] - offsets[0]
    best_seconds, best_cost = np.full(firsts, np.inf), np.full(firsts, np.inf)
    choices = np.full((firsts, layers), -1, np.int64)
    least_time, least_cost, fastest_cost = _suffixes(seconds, cost, offsets)
    if least_time[0] > budget + TOLERANCE:
        return best_seconds, best_cost, choices, 0
    bounds, owners = np.full(k, np.inf), np.full(k, -1, np.int64)
    held = _lower_bound(bounds, owners, 0, fastest_cost[0], 0, True)
    size, room = 1, 1024
    times, costs = np.empty(room), np.empty(room)
    first_of, parents, taken, depths = (
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
    )
    times[0], costs[0], first_of[0], parents[0], taken[0], depths[0] = 0.0, 0.0, -1, -1, -1, 0
    waiting = [(least_cost[0], least_time[0], 0)]
    expanded, found = 0, 0
    while len(waiting) > 0 and found < k:
        bound, _, node = heapq.heappop(waiting)
        first, layer = first_of[node], depths[node]
        if first >= 0 and best_cost[first] < np.inf:
            continue  # a better path of this first configuration has ended
        if layer == layers:
            best_cost[first], best_seconds[first] = costs[node], times[node]
            found += 1
            at = node
            for step in range(layers - 1, -1, -1):
                choices[first, step] = taken[at]
                at = parents[at]
            continue
        if bound > bounds[k - 1] * (1 + TOLERANCE):
            continue
        for choice in range(offsets[layer], offsets[layer + 1]):
            time = times[node] + seconds[choice]
            if time + least_time[layer + 1] > budget + TOLERANCE:
                break
            price = costs[node] + cost[choice]
            if price + least_cost[layer + 1] > bounds[k - 1] * (1 + TOLERANCE):
                continue
            owner = choice if layer == 0 else first
            held = _lower_bound(bounds, owners, held, price + fastest_cost[layer + 1], owner, True)
            expanded += 1
            if size == len(times):
                times, costs = _longer_floats(times), _longer_floats(costs)
                first_of, parents, taken, depths = _longer(first_of), _longer(parents), _longer(taken), _longer(depths)
            times[size], costs[size], first_of[size], parents[size] = time, price, owner, node
            taken[size], depths[size] = choice, layer + 1
            heapq.heappush(waiting, (price + least_cost[layer + 1], time + least_time[layer + 1], size))
            size += 1
    return best_seconds, best_cost, choices, expanded


@compiled()
def every_plan(
    seconds: FloatArray,
    cost: FloatArray,
    offsets: IntArray,
    before_offsets: IntArray,
    before: IntArray,
    budget: float,
) -> tuple[FloatArray, FloatArray, IntArray, int]:
    """Try every plan of a graph, with nothing left out: by configuration of stage 0, its best; plans tried.

    Stages are in topological order; those before stage s are `before[before_offsets[s]:before_offsets[s + 1]]`. The
    last of them to end decides when s starts, and the last stage to end when the plan does.
    """
    stages = len(offsets) - 1
    firsts = offsets[1] - offsets[0]
    best_seconds, best_cost = np.full(firsts, np.inf), np.full(firsts, np.inf)
    choices = np.full((firsts, stages), -1, np.int64)
    chosen = offsets[:stages].copy()
    finish, spent, latest = np.zeros(stages), np.zeros(stages + 1), np.zeros(stages + 1)
    starts = np.zeros(stages)
    tried, stage = 0, 0
    while stage >= 0:
        if chosen[stage] == offsets[stage + 1]:
            chosen[stage] = offsets[stage]
            stage -= 1
            if stage >= 0:
                chosen[stage] += 1
            continue
        choice = chosen[stage]
        finish[stage] = starts[stage] + seconds[choice]
        spent[stage + 1] = spent[stage] + cost[choice]
        latest[stage + 1] = max(latest[stage], finish[stage])
        if stage + 1 < stages:
            stage += 1
            start = 0.0
            for source in range(before_offsets[stage], before_offsets[stage + 1]):
                start = max(start, finish[before[source]])
            starts[stage] = start
            continue
        tried += 1
        if latest[stages] <= budget + TOLERANCE:
            first = chosen[0]
            price, time = spent[stages], latest[stages]
            if price < best_cost[first] or (price == best_cost[first] and time < best_seconds[first]):
                best_cost[first], best_seconds[first] = price, time
                choices[first] = chosen
        chosen[stage] += 1
    return best_seconds, best_cost, choices, tried
