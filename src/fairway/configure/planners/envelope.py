"""Traffic envelopes (InferLine): the most requests that came within any window of each of several lengths.

A trace whose requests come in bursts exceeds the envelope of an even one in short windows, one whose rate has risen in
long ones.
"""

from __future__ import annotations

from collections.abc import Sequence

LONGEST_SECONDS = 60.0


def windows(service_seconds: float, longest: float = LONGEST_SECONDS) -> tuple[float, ...]:
    """The lengths that count: the time that a request is served, and twice as long again and again."""
    found = [max(service_seconds, 1e-3)]
    while 2 * found[-1] <= longest:
        found.append(2 * found[-1])
    return tuple(found)


def most_within(arrivals: Sequence[float], seconds: float) -> int:
    """The most requests that came within any window of this length; `arrivals` rise."""
    most = first = 0
    for number, arrival in enumerate(arrivals):
        while arrivals[first] <= arrival - seconds:
            first += 1
        most = max(most, number - first + 1)
    return most


def envelope(arrivals: Sequence[float], lengths: Sequence[float]) -> tuple[int, ...]:
    """The most requests within windows of each of these lengths."""
    return tuple(most_within(arrivals, seconds) for seconds in lengths)


def exceeding_rate(
    live: Sequence[int], planned: Sequence[int], lengths: Sequence[float], sample_seconds: float
) -> float | None:
    """The highest rate of the windows in which more requests came than was planned for; None if there are none.

    Windows longer than the sample that was planned with say nothing.
    """
    rates = [
        now / seconds
        for now, then, seconds in zip(live, planned, lengths, strict=True)
        if now > then and seconds <= sample_seconds
    ]
    return max(rates, default=None)
