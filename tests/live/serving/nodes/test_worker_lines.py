"""A keeper and the runners of workers on its node: what the supervisor says to them, and they to the supervisor."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

from fairway.live.serving.local.unix_socket import connect
from fairway.live.serving.nodes.address_book import Place
from fairway.live.serving.nodes.keeper_lines import KeeperLines
from fairway.live.serving.nodes.node_keeper import LANES_BYTES, NodeKeeper, keeper_number
from fairway.live.serving.nodes.node_place import address_book
from fairway.live.serving.nodes.node_rows import NodeRows
from fairway.live.serving.seams.transport import Message
from fairway.live.serving.sockets.channel import Channel
from tests.live.serving.nodes.several import SECRET, SeveralNodes, host_of

LANES = b"\0" * LANES_BYTES


class OneNode:
    """A keeper in a thread, the supervisor's line to it, and what it has said over that."""

    def __init__(self, place: Path) -> None:
        nodes = SeveralNodes(place, nodes=1)
        self.directory = nodes.directories[0]
        number = keeper_number(0)
        ports: list[int] = []
        transport = nodes.backends[0].transport(number)
        transport.announce_to(ports.append)
        rows = NodeRows(bytearray(NodeRows.size(2, 1)), np.full(2, 1.0), 1)
        rows.clear()
        self.met, self.left = Event(), Event()
        self.keeper = NodeKeeper(
            number,
            transport,
            address_book(self.directory),
            rows,
            bytearray(2 * LANES_BYTES),
            self.directory,
            lambda process: self.directory / f"{process}.port",
            time.monotonic,
            met=self.met.set,
            left=self.left.set,
        )
        self._thread = Thread(target=self.keeper.serve, daemon=True)
        self._thread.start()
        _until(lambda: ports)
        self.heard: list[Message] = []
        self._runners: list[Channel] = []
        self.lines = KeeperLines(SECRET, lambda _, message: self.heard.append(message), lambda _: None)
        self.lines.call(0, Place(host_of(0), ports[0], 0))
        assert not self.met.is_set()
        assert self.lines.book({number: Place(host_of(0), ports[0], 0)})
        assert self.met.is_set()
        self._socket = nodes.backends[0]._settings.socket(number)

    def runner(self, name: str) -> Channel:
        made = Channel(connect(self._socket))
        made.send(("actor", name))
        self._runners.append(made)
        return made

    def hears(self, message: Message) -> None:
        _until(lambda: (self.lines.pump(), message in self.heard)[1])

    def close(self) -> None:
        for runner in self._runners:
            runner.close()
        self.lines.close()
        self.keeper.stop()
        self._thread.join(10.0)


def _until(condition: Callable[[], Any]) -> Any:
    end = time.monotonic() + 20.0
    while not (value := condition()):
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.005)
    return value


@pytest.fixture
def node(tmp_path: Path) -> Iterator[OneNode]:
    made = OneNode(tmp_path)
    yield made
    made.close()


def _next(runner: Channel) -> Message | None:
    found = runner.receive(20.0)
    assert found is None or len(found) == 1
    return found and found[0]


def test_a_life_begins_when_its_runner_is_there_and_its_end_is_told(node: OneNode) -> None:
    node.lines.tell(("begin", "one", 1, 0))
    runner = node.runner("one")
    assert _next(runner) == ("begin", 1, 0)
    node.hears(("joined", "one"))
    runner.send(("ended", "one", 1, 0, "-9", "last words", LANES))
    node.hears(("ended", "one", 1, 0, "-9", "last words", LANES))
    node.lines.tell(("begin", "one", 1, 1))
    assert _next(runner) == ("begin", 1, 1)
    node.lines.tell(("kill", "one"))
    assert _next(runner) == ("kill",)
    runner.close()
    node.hears(("gone", "one"))


def test_all_runners_are_told_to_stop(node: OneNode) -> None:
    runners = [node.runner(name) for name in ("one", "two")]
    for name in ("one", "two"):
        node.hears(("joined", name))
    node.lines.tell(("stop", 2.0))
    assert [_next(runner) for runner in runners] == [("stop", 2.0)] * 2


def test_a_runner_that_is_dismissed_is_let_go_now_or_when_it_comes(node: OneNode) -> None:
    runner = node.runner("early")
    node.hears(("joined", "early"))
    for name in ("early", "late"):
        node.lines.tell(("begin", name, 0, 0) if name == "late" else ("kill", "nothing"))
        node.lines.tell(("dismiss", name))
    assert _next(runner) is None
    assert _next(node.runner("late")) is None
    node.lines.tell(("begin", "other", 0, 1))
    assert _next(node.runner("other")) == ("begin", 0, 1)
    node.hears(("joined", "other"))
    assert [message for message in node.heard if message[0] in {"joined", "gone"}] == [
        ("joined", "early"), ("joined", "other")
    ]  # fmt: skip


@pytest.mark.parametrize("nonsense", [False, True])
def test_the_end_of_the_supervisors_line_is_noticed(node: OneNode, nonsense: bool) -> None:
    node.runner("one")
    node.hears(("joined", "one"))
    assert not node.left.is_set()
    if nonsense:
        node.lines.tell(("nonsense",))
    else:
        node.lines.close()
    assert node.left.wait(20.0)


def test_a_runner_that_says_nonsense_ends_its_own_line_only(node: OneNode) -> None:
    runner, other = node.runner("one"), node.runner("two")
    for name in ("one", "two"):
        node.hears(("joined", name))
    runner.send(("ended", "one"))
    assert _next(runner) is None
    node.hears(("gone", "one"))
    node.lines.tell(("kill", "two"))
    assert _next(other) == ("kill",)
    assert not node.left.is_set()
