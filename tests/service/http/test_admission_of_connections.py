"""Which connection makes room for a new one, and when there is none: the book-keeping by itself."""

from __future__ import annotations

import resource
from typing import Any

import pytest

from fairway.service.http.connections import ConnectionLimits, Connections


class _Handle:
    """A moment that the loop was asked for."""


class _Loop:
    def __init__(self) -> None:
        self.asked: list[tuple[float, Any]] = []

    def call_later(self, seconds: float, call: Any) -> _Handle:
        self.asked.append((seconds, call))
        return _Handle()


class _Connection:
    """A connection of a client, which can be let go and looked at."""

    def __init__(self, among: Connections, client: str, loop: _Loop) -> None:
        self.client_name, self.loop = client, loop
        self.given_up = False
        self.checked = 0
        self._among: Any = among

    def give_up(self) -> None:
        self.given_up = True
        self._among.remove(self)

    def check(self) -> None:
        self.checked += 1


class _Server:
    def __init__(self, most: int, most_per_client: int) -> None:
        self.all: Any = Connections(ConnectionLimits(most=most, most_per_client=most_per_client))
        self.loop = _Loop()

    def open(self, client: str) -> tuple[_Connection, bool]:
        connection = _Connection(self.all, client, self.loop)
        return connection, self.all.admit(connection)

    def silent(self, client: str) -> _Connection:
        connection, admitted = self.open(client)
        assert admitted
        return connection

    def busy(self, client: str) -> _Connection:
        connection = self.silent(client)
        self.all.begins(connection)
        return connection

    def resting(self, client: str) -> _Connection:
        connection = self.busy(client)
        self.all.rests(connection)
        return connection


def test_as_many_are_taken_in_as_there_may_be_and_then_the_one_that_never_asked_makes_room() -> None:
    server = _Server(3, 3)
    rested, silent, later = server.resting("a"), server.silent("b"), server.silent("c")
    assert server.open("d")[1]
    assert (rested.given_up, silent.given_up, later.given_up) == (False, True, False)
    assert server.open("e")[1]
    assert later.given_up
    assert not rested.given_up, "it has asked before"


def test_of_those_that_wait_for_their_next_request_the_one_that_waits_longest_makes_room() -> None:
    server = _Server(2, 2)
    first, second = server.resting("a"), server.resting("b")
    server.all.begins(first)
    server.all.rests(first)
    server.busy("c")
    assert (first.given_up, second.given_up) == (False, True)


def test_where_all_are_busy_a_new_one_is_refused() -> None:
    server = _Server(2, 2)
    busy = [server.busy("a"), server.busy("b")]
    assert not server.open("c")[1]
    assert not any(each.given_up for each in busy)
    server.all.remove(busy[0])
    assert server.open("c")[1]


def test_a_client_with_too_many_gives_up_one_of_its_own() -> None:
    server = _Server(10, 2)
    of_another = server.silent("b")
    own = server.silent("a")
    server.busy("a")
    assert server.open("a")[1]
    assert own.given_up
    assert not of_another.given_up


def test_a_client_that_has_as_many_busy_as_it_may_have_is_refused_and_others_are_not() -> None:
    server = _Server(10, 2)
    busy = server.busy("a"), server.busy("a")
    assert not server.open("a")[1]
    assert server.open("b")[1]
    server.all.remove(busy[0])
    server.all.remove(busy[0])
    assert server.open("a")[1]
    refused = [server.open("a")[1] for _ in range(2)]
    assert refused == [True, True], "its silent one makes room"


def test_one_that_is_gone_waits_for_nothing_more() -> None:
    server = _Server(1, 1)
    gone = server.busy("a")
    server.all.remove(gone)
    server.all.rests(gone)
    there = server.busy("b")
    assert not server.open("c")[1], "there is none that waits"
    assert not there.given_up


def test_connections_are_looked_at_each_half_second_while_there_are_any() -> None:
    server = _Server(5, 5)
    one, other = server.silent("a"), server.busy("b")
    ((seconds, sweep),) = server.loop.asked
    assert seconds == 0.5
    sweep()
    assert (one.checked, other.checked) == (1, 1)
    assert len(server.loop.asked) == 2, "once for all of them"
    server.all.remove(one)
    server.all.remove(other)
    server.loop.asked[-1][1]()
    assert len(server.loop.asked) == 2
    server.silent("c")
    assert len(server.loop.asked) == 3


@pytest.mark.parametrize(
    ("files", "most", "per_client"),
    [(10**6, 10_000, 4_000), (1_280, 1_024, 768), (300, 44, 33), (288, 32, 24), (100, 32, 24)],
)
def test_a_process_takes_as_many_as_its_descriptors_allow_and_a_client_three_quarters(
    files: int, most: int, per_client: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    limits = ConnectionLimits.of_this_process()
    assert (limits.most, limits.most_per_client) == (most, per_client)
