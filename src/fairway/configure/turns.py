"""Which queue is asked first when something has changed: by ESG's recheck list and ring, a plain ring, or least slack.

`recheck`: queues for which nothing fitted are on a list. A pass asks each of them once, the longest there first, and
takes it off the list if a task starts. Then it goes around all other queues, beginning after the one that was served
last, and asks each until it is empty or fails, which puts it on the list. `ring`: the same without a list. `slack`:
whichever has the least time left first. `largest`: whichever could start the most jobs at once first.

A pass is pure but for the `Turns` that it advances: `ask` does what a decision says, and tells whether a task started.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Ask = Callable[[int], bool]
"""Decides for a queue and starts the task, if there is one to start; returns whether there was."""


@dataclass(slots=True)
class Turns:
    """Where the last pass ended: the queues to recheck, the last one served, how often each failed in a row."""

    queues: int
    recheck: list[int] = field(default_factory=list)
    last: int = -1
    failures: dict[int, int] = field(default_factory=dict)

    def started(self, queue: int) -> None:
        """A task of this queue starts."""
        self.failures.pop(queue, None)

    def failed(self, queue: int) -> None:
        """Nothing fitted for this queue."""
        self.failures[queue] = self.failures.get(queue, 0) + 1

    def emptied(self, queue: int) -> None:
        """The last job of this queue has left it without a task."""
        self.failures.pop(queue, None)
        if queue in self.recheck:
            self.recheck.remove(queue)

    def _asked(self, queue: int, ask: Ask) -> bool:
        if ask(queue):
            self.started(queue)
            return True
        self.failed(queue)
        return False


def recheck_pass(turns: Turns, lengths: Sequence[int], ask: Ask) -> None:
    """One pass of ESG; `lengths` says how many jobs each queue holds, and changes as tasks start."""
    for queue in tuple(turns.recheck):
        if turns._asked(queue, ask) and queue in turns.recheck:  # one whose jobs were given up has left it
            turns.recheck.remove(queue)
    _around(turns, lengths, ask, turns.recheck)


def ring_pass(turns: Turns, lengths: Sequence[int], ask: Ask) -> None:
    """One pass around all queues."""
    _around(turns, lengths, ask, None)


def slack_pass(turns: Turns, lengths: Sequence[int], slack: Callable[[int], float], ask: Ask) -> None:
    """One pass by the time that the oldest job of each queue has left, the least first, each until it fails.

    Any other number that is least for the queue to be asked first will do.
    """
    failed: set[int] = set()
    while waiting := [queue for queue in range(turns.queues) if lengths[queue] and queue not in failed]:
        queue = min(waiting, key=lambda each: (slack(each), each))
        if not turns._asked(queue, ask):
            failed.add(queue)


def _around(turns: Turns, lengths: Sequence[int], ask: Ask, failures: list[int] | None) -> None:
    """Ask all queues but those that have failed; those that fail now join them."""
    failed = failures or ()
    waiting = [queue for queue, length in enumerate(lengths) if length and queue not in failed]
    begin = bisect_right(waiting, turns.last)
    for queue in waiting[begin:] + waiting[:begin]:
        while lengths[queue]:
            if not turns._asked(queue, ask):
                if failures is not None:
                    failures.append(queue)
                break
            turns.last = queue
