"""The rows of a node's own workers in the memory of another node."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairway.live.serving.nodes.node_rows import NodeRows
from fairway.live.serving.seams.state_board import SharedRows

WORKERS, MODELS = 4, 2


class Node:
    """A node that has its own workers, and hears of those of others."""

    def __init__(self, *own: int) -> None:
        self.memory = bytearray(NodeRows.size(WORKERS, MODELS))
        self.rows = NodeRows(self.memory, np.full(WORKERS, 1e9), MODELS)
        self.rows.clear()
        self.numbers, _ = SharedRows.arrays(self.memory, WORKERS, MODELS)
        self.lines: Any = SharedRows.lines_in(self.memory, WORKERS, MODELS)
        for worker in own:
            self.rows.host(worker, 1)
        for worker in range(WORKERS):
            self.rows.reachable(worker, 1)
            if worker in own:
                self.numbers[0, worker] = 0.0

    def hear(self, other: Node) -> None:
        message = other.rows.changed()
        if message is not None:
            self.rows.take(*message[1:])


def test_what_waits_is_told_and_that_nothing_waits_any_more() -> None:
    here, there = Node(0, 1), Node(2, 3)
    for waiting in (0.0, 3.0, 3.0, 0.0, 0.0, 2.0, 0.0):
        here.lines[0, 0, 1] = waiting
        here.numbers[0, 0] += 1.0
        there.hear(here)
        assert there.lines[0, 0, 1] == waiting
        assert there.numbers[0, 0] == here.numbers[0, 0]


def test_that_nothing_waits_is_told_when_another_worker_has_begun_anew_meanwhile() -> None:
    here, there = Node(0, 1), Node(2, 3)
    here.lines[0, 0, 0] = 3.0
    there.hear(here)
    there.rows.reachable(1, 2)  # its row of before is not taken any more
    here.rows.host(1, 2)
    here.lines[0, 0, 0] = 0.0
    there.hear(here)
    assert there.lines[0, 0, 0] == 0.0


def test_rows_that_have_not_changed_are_not_sent() -> None:
    here = Node(0, 1)
    assert here.rows.changed() is not None
    assert here.rows.changed() is None
    here.rows.send_anew()
    assert here.rows.changed() is not None
