"""Keepers: rows from node to node, the address book, and what a supervisor marks in rows."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.live.serving.nodes.address_book import Place
from fairway.live.serving.nodes.keeper_lines import KeeperLines, KeeperMarks
from fairway.live.serving.nodes.node_keeper import LANES_BYTES, NodeKeeper, keeper_number
from fairway.live.serving.nodes.node_place import address_book
from fairway.live.serving.nodes.node_rows import NodeRows
from fairway.live.serving.seams.state_board import SharedRows
from fairway.live.serving.seams.transport import Message, WireError
from fairway.place.arrays import FloatArray
from fairway.place.state import ABSENT, NEVER
from tests.live.serving.nodes.several import SECRET, SeveralNodes, host_of

WORKERS, MODELS = 4, 3
BUDGETS = np.full(WORKERS, 100.0)


def _rows() -> NodeRows:
    rows = NodeRows(bytearray(NodeRows.size(WORKERS, MODELS)), BUDGETS, MODELS)
    rows.clear()
    return rows


def _write(rows: NodeRows, worker: int, queued: float, busy_until: float, models: list[int]) -> None:
    """As a worker on the node does, in the memory that it shares."""
    numbers, cached = SharedRows.arrays(rows._memory, WORKERS, MODELS)
    numbers[:, worker] = queued, busy_until, 100.0 - len(models)
    cached[:, worker] = False
    cached[models, worker] = True


def _row(rows: NodeRows, worker: int) -> tuple[Any, ...]:
    numbers, cached = SharedRows.arrays(rows._memory, WORKERS, MODELS)
    return (*numbers[:, worker].tolist(), np.flatnonzero(cached[:, worker]).tolist())


IDLE, GONE = (0.0, NEVER, 100.0, []), (ABSENT, NEVER, 100.0, [])


def test_rows_of_all_workers_of_a_node_go_in_one_message() -> None:
    here, there = _rows(), _rows()
    for worker in (1, 3):
        here.host(worker, 0)
        _write(here, worker, 2.0 + worker, 7.0, [worker - 1])
        there.reachable(worker, 0)
    message = here.changed()
    assert message is not None
    assert here.changed() is None
    there.take(*message[1:])
    assert [_row(there, worker) for worker in (1, 3)] == [(3.0, 7.0, 99.0, [0]), (5.0, 7.0, 99.0, [2])]
    assert _row(there, 0) == GONE


def test_a_row_does_not_come_before_its_worker_can_be_reached_nor_after_its_end() -> None:
    here, there = _rows(), _rows()
    here.host(1, 0)
    _write(here, 1, 5.0, 6.0, [1])
    early = here.changed()
    assert early is not None
    there.take(*early[1:])
    assert _row(there, 1) == GONE
    there.reachable(1, 0)
    assert _row(there, 1) == IDLE  # it can be given tasks, whatever its row says later
    there.take(*early[1:])
    assert _row(there, 1) == (5.0, 6.0, 99.0, [1])
    there.leave(1, 0)
    there.take(*early[1:])
    assert _row(there, 1) == GONE


def _lines(rows: NodeRows) -> FloatArray:
    return SharedRows.lines_in(rows._memory, WORKERS, MODELS)


def test_what_waits_at_a_worker_goes_along_and_ends_with_it() -> None:
    here, there = _rows(), _rows()
    for worker in (1, 3):
        here.host(worker, 0)
        _write(here, worker, 1.0, 2.0, [0])
    there.reachable(3, 0)
    first = here.changed()
    assert first is not None
    assert first[5] == b"", "where nothing waits, nothing is sent of it"
    _lines(here)[:, 2, 1] = 4.0, 7.5, 0.2
    _lines(here)[:, 3, 3] = 1.0, 9.5, 0.1
    message = here.changed()
    assert message is not None
    assert here.changed() is None
    there.take(*message[1:])
    assert _lines(there)[:, 3, 3].tolist() == [1.0, 9.5, 0.1]
    assert not _lines(there)[:, :, 1].any(), "it cannot be reached yet"
    there.take(*first[1:])
    assert not _lines(there).any(), "an empty queue is news, too"
    there.take(*message[1:])
    there.leave(3, 0)
    assert not _lines(there).any()


def test_a_late_death_of_a_former_life_changes_nothing_for_its_successor() -> None:
    rows = _rows()
    rows.host(2, 1)
    rows.reachable(2, 1)
    _write(rows, 2, 1.0, 2.0, [])
    rows.leave(2, 0)
    assert _row(rows, 2)[0] == 1.0
    other = _rows()
    other.reachable(2, 1)
    other.leave(2, 0)
    assert _row(other, 2) == IDLE


_EVENTS = st.lists(
    st.tuples(st.sampled_from(["begin", "reachable", "write", "push", "deliver", "die", "leave"]), st.integers(0, 9)),
    max_size=40,
)


@settings(max_examples=60)
@given(_EVENTS)
def test_in_whatever_order_things_come_no_row_is_of_a_life_that_is_over(events: list[tuple[str, int]]) -> None:
    """One worker on one node, as another node sees it: messages are late, lives end and begin."""
    here, there = _rows(), _rows()
    epoch, alive, booked, left = -1, False, -1, -1
    under_way: list[Message] = []
    for word, number in events:
        if word == "begin" and not alive and left == epoch:
            epoch, alive = epoch + 1, True
            here.host(0, epoch)
        elif word == "reachable" and alive and booked < epoch:
            booked = epoch
            here.reachable(0, epoch)
            there.reachable(0, epoch)
        elif word == "write" and alive:
            _write(here, 0, float(epoch), float(number), [])
        elif word == "push" and (message := here.changed()) is not None:
            under_way.append(message)
        elif word == "deliver" and under_way:
            there.take(*under_way.pop(number % len(under_way))[1:])
        elif word == "die":
            alive = False
        elif word == "leave" and not alive and left < epoch:
            left = epoch
            here.leave(0, epoch)
            there.leave(0, epoch)
        queued = _row(there, 0)[0]
        if left >= booked:
            assert queued == ABSENT
        else:
            assert queued in {0.0, float(booked)}


@pytest.mark.parametrize(
    "rows",
    [
        (7, 7, 7, 7),
        (b"1", b"", b"", b""),
        (np.array([9]).tobytes(), np.array([0]).tobytes(), bytes(24), bytes(3)),
        (np.array([-1]).tobytes(), np.array([0]).tobytes(), bytes(24), bytes(3)),
        (np.array([1]).tobytes(), np.array([0, 0]).tobytes(), bytes(24), bytes(3)),
        (np.array([1]).tobytes(), np.array([0]).tobytes(), bytes(16), bytes(3)),
        (np.array([1]).tobytes(), np.array([0]).tobytes(), bytes(24), bytes(3), bytes(8)),
        (np.array([1]).tobytes(), np.array([0]).tobytes(), bytes(24), bytes(3), 7),
    ],
)
def test_rows_that_are_none_are_refused(rows: tuple[Any, ...]) -> None:
    with pytest.raises(WireError):
        _rows().take(*rows)


class Kept:
    """Three nodes with a keeper each, in threads of this process, and the supervisor's lines to them."""

    def __init__(self, place: Path) -> None:
        self.nodes = SeveralNodes(place, nodes=3)
        self.rows = [_rows() for _ in range(3)]
        self.lanes = [bytearray(WORKERS * LANES_BYTES) for _ in range(3)]
        self.heard: list[tuple[int, Message]] = []
        self.lost: list[int] = []
        self.places: dict[int, Place] = {}
        self.keepers, self.threads = [], []
        self.lines = KeeperLines(SECRET, lambda *heard: self.heard.append(heard), self.lost.append)
        for node, backend in enumerate(self.nodes.backends):
            number = keeper_number(node)
            transport = backend.transport(number)
            ports: list[int] = []
            transport.announce_to(ports.append)
            directory = self.nodes.directories[node]
            keeper = NodeKeeper(
                number,
                transport,
                address_book(directory),
                self.rows[node],
                self.lanes[node],
                directory / "memory",
                lambda process, directory=directory: directory / f"{process}.port",  # type: ignore[misc]
                time.monotonic,
            )
            self.keepers.append(keeper)
            self.threads.append(Thread(target=keeper.serve, daemon=True))
            self.threads[-1].start()
            _until(lambda ports=ports: ports)  # type: ignore[misc]
            self.places[number] = Place(host_of(node), ports[0], 0)
            self.lines.call(node, self.places[number])
        assert self.lines.book(self.places)

    def end(self, node: int) -> None:
        self.keepers[node].stop()
        self.threads[node].join(10.0)

    def close(self) -> None:
        self.lines.close()
        for node in range(3):
            self.end(node)


def _until(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + 20.0
    while not condition():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.005)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    made = Kept(tmp_path)
    yield made
    made.close()


def test_keepers_bring_rows_to_all_nodes_and_the_supervisor_marks_them(kept: Kept) -> None:
    kept.lines.tell(("host", 2, 0, True), 1)
    (kept.nodes.directories[1] / "2.port").write_text(json.dumps({"port": 77, "pid": 5, "epoch": 0}))
    _until(lambda: (kept.lines.pump(), (1, ("listens", 2, 0, 77, 5)) in kept.heard)[1])
    kept.places[2] = Place(host_of(1), 77, 0)
    assert kept.lines.book(kept.places)
    assert [address_book(each).find(2).port for each in kept.nodes.directories] == [77] * 3
    assert [_row(kept.rows[node], 2) for node in (0, 2)] == [IDLE, IDLE]
    _write(kept.rows[1], 2, 4.0, 9.0, [0, 2])
    for node in (0, 2):
        _until(lambda node=node: _row(kept.rows[node], 2) == (4.0, 9.0, 98.0, [0, 2]))  # type: ignore[misc]
    marks = KeeperMarks(kept.lines, lambda _: 0)
    marks.call_busy(2, 50.0)
    _until(lambda: all(_row(rows, 2)[1] == 50.0 for rows in kept.rows))
    marks.leave(2)
    assert all(_row(rows, 2) == GONE for rows in kept.rows)
    assert marks.greeting([0]) == ()


def test_keepers_bring_what_waits_at_a_worker_to_all_nodes(kept: Kept) -> None:
    kept.lines.tell(("host", 2, 0, True), 1)
    (kept.nodes.directories[1] / "2.port").write_text(json.dumps({"port": 77, "pid": 5, "epoch": 0}))
    _until(lambda: (kept.lines.pump(), (1, ("listens", 2, 0, 77, 5)) in kept.heard)[1])
    kept.places[2] = Place(host_of(1), 77, 0)
    assert kept.lines.book(kept.places)
    _write(kept.rows[1], 2, 4.0, 9.0, [0])
    _lines(kept.rows[1])[:, 0, 2] = 3.0, 12.5, 0.75
    for node in (0, 2):
        _until(lambda node=node: _lines(kept.rows[node])[:, 0, 2].tolist() == [3.0, 12.5, 0.75])  # type: ignore[misc]
    _lines(kept.rows[1])[:, 0, 2] = 0.0
    _until(lambda: not any(_lines(rows).any() for rows in kept.rows))
    KeeperMarks(kept.lines, lambda _: 0).leave(2)
    assert all(_row(rows, 2) == GONE for rows in kept.rows)


def test_the_supervisor_sees_what_processes_do_on_other_nodes(kept: Kept) -> None:
    kept.lines.tell(("host", 1, 0, True), 2)
    kept.lanes[2][LANES_BYTES : LANES_BYTES + 4] = b"runs"

    def seen() -> bool:
        kept.lines.pump()
        told = [message[1][1] for node, message in kept.heard if node == 2 and message[0] == "lanes"]
        return bool(told) and told[-1].startswith(b"runs")

    _until(seen)


def test_a_node_that_is_gone_is_not_waited_for(kept: Kept) -> None:
    kept.end(1)
    _until(lambda: (kept.lines.pump(), kept.lost)[1])
    assert kept.lost == [1]
    assert kept.lines.nodes == [0, 2]
    assert kept.lines.tell_for_sure("leave", 0, 0)


def test_nonsense_ends_a_line_and_no_other(kept: Kept) -> None:
    kept.lines.tell(("nonsense", 1), 0)
    _until(lambda: (kept.lines.pump(), kept.lost)[1])
    assert kept.lost == [0]
    assert kept.lines.tell_for_sure("leave", 0, 0)


def test_what_the_dead_have_left_is_cleared(kept: Kept) -> None:
    memory = kept.nodes.directories[0] / "memory"
    for name in ("w1-0-7", "w1-1-7", "c999999999-a-1"):
        (memory / name).touch()
    kept.lines.tell(("clear", "w1-0-"), 0)
    kept.lines.tell(("clear-clients",), 0)
    _until(lambda: [path.name for path in memory.iterdir()] == ["w1-1-7"])
