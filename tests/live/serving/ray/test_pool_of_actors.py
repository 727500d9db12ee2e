"""Workers on the nodes of a cluster, whose agents, actors and keepers are stood in for: no Ray is needed."""

from __future__ import annotations

import select
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fairway.live.ray_cluster.nodes import RayNode
from fairway.live.serving.nodes.address_book import AddressBook, Place
from fairway.live.serving.nodes.node_keeper import LANES_BYTES, keeper_number
from fairway.live.serving.ray import worker_pool as module
from fairway.live.serving.ray.node_agent import Life
from fairway.live.serving.ray.node_agents import Node
from fairway.live.serving.ray.worker_pool import RayPool
from fairway.live.serving.supervise.settings import ServingSettings


class Call:
    """What a call of an actor gives; its end comes when the test says so."""

    def __init__(self) -> None:
        self.ended: Future[Any] = Future()

    def future(self) -> Future[Any]:
        return self.ended


class Actor:
    """An actor for a worker on a node."""

    def __init__(self, node: RayNode, has_accelerator: bool) -> None:
        self.node, self.has_accelerator = node.id, has_accelerator
        self.runs: list[tuple[Any, ...]] = []
        self.calls: list[Call] = []
        self.killed: list[str] = []
        self.run = SimpleNamespace(remote=self._run)
        self.kill = SimpleNamespace(remote=lambda: self.killed.append("process"))
        self.stop = SimpleNamespace(remote=lambda seconds: self.killed.append(f"stop {seconds:g}"))

    def _run(self, *arguments: Any) -> Call:
        self.runs.append(arguments)
        self.calls.append(Call())
        return self.calls[-1]


class Keepers:
    """Lines to keepers."""

    def __init__(self, _: object, heard: Any, lost: Any) -> None:
        self.heard, self.lost = heard, lost
        self.called: list[int] = []
        self.told: list[tuple[int | None, Any]] = []
        self.books: list[dict[int, Place]] = []
        self.lines: list[Any] = []
        self.unreachable: set[int] = set()
        self.closed = False

    def call(self, node: int, _: Place) -> None:
        if node in UNREACHABLE:
            raise OSError("no route")
        self.called.append(node)

    def tell(self, message: Any, node: int | None = None) -> None:
        self.told.append((node, message))

    def book(self, places: dict[int, Place]) -> bool:
        self.books.append(dict(places))
        return True

    def pump(self) -> None: ...

    def close(self) -> None:
        self.closed = True


UNREACHABLE: set[int] = set()


def node(number: int, accelerators: int = 2) -> Node:
    ray = RayNode(f"id{number}", f"at-{number}", f"n{number}", "v100", accelerators, declared=False)
    return Node(number, ray, None, Place(f"at-{number}", 100 + number, 0))


@dataclass
class Site:
    """A pool of three workers and a planner, on two nodes."""

    directory: Path
    nodes: list[Node] = field(default_factory=lambda: [node(0), node(1)])
    coming: list[Node] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    actors: list[Actor] = field(default_factory=list)
    ended: list[Any] = field(default_factory=list)
    answers: bool = True

    def __post_init__(self) -> None:
        def come() -> list[Node]:
            came, self.coming = self.coming, []
            self.nodes += came
            return came

        def lose(number: int) -> None:
            self.lost.append(number)
            self.nodes[:] = [each for each in self.nodes if each.number != number]

        agents = SimpleNamespace(all=self.nodes, watch=lambda _: None, come=come, lost=lose)
        settings = ServingSettings("m:a", self.directory, self.directory, workers=3, has_planner=True)
        self.lanes = bytearray(8 * LANES_BYTES)
        self.book = AddressBook(self.directory / "book")
        self.pool = RayPool(settings, cast(Any, agents), None, self.lanes, self.book, "/work")
        self.keepers = cast(Keepers, self.pool.keepers)

    def hear(self, node: int, *message: Any) -> None:
        self.keepers.heard(node, message)
        self.pool.wait(0.0, ())

    def on(self) -> dict[int, str]:
        """The node of each worker that was started."""
        return {run[1]: actor.node for actor in self.actors for run in actor.runs}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    made: list[Site] = []
    UNREACHABLE.clear()

    def worker_actor(ray: RayNode, *, has_accelerator: bool) -> Actor:
        made[0].actors.append(Actor(ray, has_accelerator))
        return made[0].actors[-1]

    ray = SimpleNamespace(
        kill=lambda actor: made[0].ended.append(actor),  # noqa: PLW0108 - there is none yet
        wait=lambda refs, **_: (refs, []) if made[0].answers else ([], refs),
    )
    monkeypatch.setattr(module, "KeeperLines", Keepers)
    monkeypatch.setattr(module, "worker_actor", worker_actor)
    monkeypatch.setattr(module, "ray_module", lambda: ray)
    made.append(Site(tmp_path))
    yield made[0]
    made[0].pool.close()


def test_all_nodes_learn_where_the_keepers_are_before_any_worker_starts(site: Site) -> None:
    keepers = {keeper_number(0): Place("at-0", 100, 0), keeper_number(1): Place("at-1", 101, 0)}
    assert site.keepers.called == [0, 1]
    assert site.keepers.books == [keepers]
    assert dict(site.book.places) == keepers


def test_workers_go_where_most_accelerators_are_free_and_the_planner_takes_none(site: Site) -> None:
    site.nodes[1] = node(1, 3)
    for number in range(4):
        site.pool.start(number, 7)
    assert site.on() == {0: "id1", 1: "id0", 2: "id1", 3: "id0"}
    assert [actor.has_accelerator for actor in site.actors] == [True, True, True, False]
    assert site.keepers.told == [
        (1, ("host", 0, 7, True)), (0, ("host", 1, 7, True)), (1, ("host", 2, 7, True)), (0, ("host", 3, 7, False)),
    ]  # fmt: skip
    assert site.actors[0].runs == [(str(site.directory / "node-1"), 0, 7, "/work")]
    assert [site.pool.epoch_of(number) for number in range(4)] == [7] * 4


def test_a_worker_without_room_waits_for_a_node_that_has_some(site: Site) -> None:
    site.nodes[:] = [node(0, 1), node(1, 0)]
    for number in range(3):
        site.pool.start(number, 1)
    assert site.on() == {0: "id0"}
    assert site.pool.ended(1) is None
    site.pool.wait(0.0, ())
    assert site.on() == {0: "id0"}
    site.coming = [node(2, 1)]
    site.pool.wait(0.0, ())
    assert site.on() == {0: "id0", 1: "id2"}
    assert keeper_number(2) in site.keepers.books[-1]


def test_where_no_node_has_accelerators_workers_go_to_the_first_that_has_fewest(site: Site) -> None:
    bare = Site(site.directory, nodes=[node(0, 0), node(1, 0)])
    for number in range(3):
        bare.pool.start(number, 1)
    assert [actor.has_accelerator for actor in site.actors] == [False] * 3
    assert {run[1]: actor.node for actor in site.actors for run in actor.runs} == {0: "id0", 1: "id1", 2: "id0"}
    bare.pool.close()


def test_a_process_that_listens_is_in_the_book_if_it_is_the_one_that_was_started(site: Site) -> None:
    site.pool.start(0, 7)
    before = len(site.keepers.books)
    site.hear(0, "listens", 0, 6, 5000, 42)
    site.hear(1, "listens", 0, 7, 5000, 42)
    site.hear(0, "listens", 5, 7, 5000, 42)
    assert len(site.keepers.books) == before
    assert site.pool.pid(0) == -1
    site.hear(0, "listens", 0, 7, 5000, 42)
    assert site.keepers.books[-1][0] == Place("at-0", 5000, 7)
    assert site.book.find(0) == Place("at-0", 5000, 7)
    assert site.pool.pid(0) == 42
    site.pool.start(0, 8)
    site.hear(0, "listens", 0, 7, 5001, 43)
    assert 0 not in site.pool._places, "a new life has not said where it listens"


def test_lanes_are_those_that_the_keeper_of_its_node_tells_of(site: Site) -> None:
    site.pool.start(1, 7)
    content = bytes([5]) * LANES_BYTES
    site.hear(1, "lanes", {1: content})
    site.hear(0, "lanes", {4: content})
    assert not any(site.lanes)
    site.hear(0, "lanes", {1: content})
    assert site.lanes[LANES_BYTES : 2 * LANES_BYTES] == content
    assert (sum(site.lanes), len(site.lanes)) == (5 * LANES_BYTES, 8 * LANES_BYTES)


def test_a_life_ends_with_its_status_and_the_next_begins_in_the_same_actor(site: Site) -> None:
    site.pool.start(1, 7)
    content = bytes([3]) * LANES_BYTES
    assert site.pool.ended(1) is None
    assert site.pool.last_words(1) == "it said nothing"
    site.actors[0].calls[0].ended.set_result(Life("1", "oh no", content))
    assert site.pool.ended(1) == "1"
    assert site.pool.last_words(1) == "oh no"
    assert site.lanes[LANES_BYTES : 2 * LANES_BYTES] == content
    assert len(site.lanes) == 8 * LANES_BYTES
    site.pool.start(1, 8)
    assert site.pool.ended(1) is None
    assert len(site.actors) == 1
    assert [run[2] for run in site.actors[0].runs] == [7, 8]


def test_news_of_a_life_of_before_does_not_end_this_one(site: Site) -> None:
    site.pool.start(1, 7)
    site.pool.start(1, 8)
    site.actors[0].calls[0].ended.set_result(Life("1", "old", b""))
    assert site.pool.ended(1) is None
    assert site.pool.ended(9) is None


def test_where_the_actor_is_gone_the_next_life_has_another(site: Site) -> None:
    site.pool.start(1, 7)
    site.actors[0].calls[0].ended.set_exception(RuntimeError("it died\nof this"))
    assert site.pool.ended(1) == "-9"
    assert site.pool.last_words(1) == "its actor is gone: it died"
    assert site.ended == [site.actors[0]]
    site.pool.start(1, 8)
    assert len(site.actors) == 2


def test_workers_of_a_node_that_is_lost_go_elsewhere(site: Site) -> None:
    for number in range(3):
        site.pool.start(number, 7)
    assert site.on() == {0: "id0", 1: "id1", 2: "id0"}
    site.keepers.lost(0)
    site.pool.wait(0.0, ())
    assert site.lost == [0]
    assert [site.pool.ended(number) for number in range(3)] == ["-9", None, "-9"]
    assert site.pool.last_words(0) == "its node is gone"
    assert keeper_number(0) not in site.pool._places
    for number in (0, 2):
        site.pool.start(number, 8)
    assert site.on()[0] == "id1"
    assert 2 not in [run[1] for actor in site.actors[3:] for run in actor.runs], "two accelerators, two workers"


def test_a_node_whose_keeper_cannot_be_reached_is_lost(site: Site) -> None:
    UNREACHABLE.add(2)
    site.coming = [node(2)]
    before = len(site.keepers.books)
    site.pool.wait(0.0, ())
    assert site.lost == [2]
    assert len(site.keepers.books) == before


def test_a_worker_is_killed_by_its_actor_or_with_it(site: Site) -> None:
    site.pool.start(0, 7)
    site.pool.kill(0)
    assert (site.actors[0].killed, site.ended) == (["process"], [])
    site.answers = False
    site.pool.kill(0)
    assert site.ended == [site.actors[0]]
    assert site.pool.ended(0) is None, "that is told when the call ends"
    site.pool.kill(0)
    assert site.pool.ended(0) == "-9", "without an actor it has ended"


def test_all_are_stopped_with_their_actors(site: Site) -> None:
    for number in range(2):
        site.pool.start(number, 7)
    site.pool.stop(2.0)
    assert [actor.killed for actor in site.actors] == [["stop 2"]] * 2
    assert site.ended == site.actors
    assert site.keepers.closed
    assert not site.pool.is_stopped(0)


def test_a_wait_ends_when_it_is_woken(site: Site) -> None:
    site.pool.wake()
    site.pool.wait(60.0, ())
    poll = select.poll()
    poll.register(site.pool._wakes, select.POLLIN)
    assert poll.poll(0) == [], "it was taken in"
