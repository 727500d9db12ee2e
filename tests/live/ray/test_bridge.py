"""The bridge between a controller and a cluster, and its client, over real sockets: only Ray itself is stood in for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import pytest

pytest.importorskip("ray")

from fairway.errors import InputError
from fairway.live.backend.commands import JobProgram
from fairway.live.local.agent.client import AgentGoneError
from fairway.live.local.agent.frames import connected_socket
from fairway.live.ray import bridge as module
from fairway.live.ray.bridge import Bridge, BridgeOptions
from fairway.live.ray.bridge_client import BridgeGoneError, BridgeProcess, NodeAccess, NodesThere
from fairway.live.ray_cluster.client import reason_of

HERE = version("fairway")


class Actor:
    """The actor of a node; `said` is what its methods return or raise, by name."""

    def __init__(self, name: str, options: dict[str, Any], **said: Any) -> None:
        self.options, self.calls = options, list[tuple[Any, ...]]()
        self.said = {
            "describe": {"fairway": HERE, "name": name, "found": 0, "directory": f"/files/{name}"}, "sees": True,
            "ports": (7001, 7002), "start": None, "has_directory": True, "work_directory": None, "check": None,
            "log": {"content": b"text", "size": 9, "skipped": 2}, "receive": None, "open": 5, "write": True,
            "drop_package": None, "wait_for_end": None, **said,
        }  # fmt: skip
        self.to_read: asyncio.Queue[bytes | None] = asyncio.Queue()

    def __getattr__(self, method: str) -> Any:
        return SimpleNamespace(remote=lambda *given: self._called(method, *given))

    def _called(self, method: str, *given: Any) -> Any:
        self.calls.append((method, *given))
        if method == "close":
            return None
        return self.to_read.get() if method == "read" else self._answer(method)

    async def _answer(self, method: str) -> Any:
        said = self.said[method]
        if isinstance(said, Exception):
            raise said
        return said

    def called(self, method: str) -> list[tuple[Any, ...]]:
        return [given for name, *given in self.calls if name == method]  # type: ignore[misc]


class Ray:
    """As much of Ray as the bridge uses."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.actors: dict[str, Actor] = {}
        self.said: dict[str, dict[str, Any]] = {}
        self.killed: list[Any] = []
        self.named: list[str] = []
        self.draining: dict[str, float] = {}
        self.asked: list[Any] = []

    def node(self, name: str, count: int = 1, **labels: str) -> None:
        given = {"ray.io/accelerator-type": "V100", "fairway.io/accelerators": str(count), "fairway.io/node": name}
        self.rows.append({"NodeID": f"id-{name}", "NodeManagerAddress": f"at-{name}", "Alive": True, "Resources": {},
                          "Labels": given | labels})  # fmt: skip

    def lose(self, name: str) -> None:
        self.rows[:] = [row for row in self.rows if row["NodeID"] != f"id-{name}"]

    def nodes(self) -> list[dict[str, Any]]:
        return list(self.rows)

    def remote(self, _: type) -> Any:
        def made(options: dict[str, Any], name: str) -> Actor:
            self.actors[name] = Actor(name, options, **self.said.get(name, {}))
            return self.actors[name]

        return SimpleNamespace(options=lambda **options: SimpleNamespace(remote=lambda name, _: made(options, name)))

    def kill(self, actor: Any, *, no_restart: bool) -> None:
        assert no_restart
        self.killed.append(actor)

    def get_actor(self, name: str) -> str:
        return name


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Ray:
    found = Ray()
    monkeypatch.setattr(module, "ray", found)
    monkeypatch.setattr(module, "list_named_actors", lambda: found.named)
    monkeypatch.setattr(module, "draining_nodes", lambda: found.draining)
    monkeypatch.setattr(module, "ask_ray_for", found.asked.append)
    monkeypatch.setattr(module, "_POLL_SECONDS", 0.01)
    return found


class Client:
    """The controller's end, and the nodes that it has heard of."""

    def __init__(self, directory: Path) -> None:
        self.process = BridgeProcess(directory, cast(Any, SimpleNamespace()))
        self.heard: list[NodesThere] = []

    async def follow(self) -> None:
        async for there in self.process.nodes():
            self.heard.append(there)

    async def until(self, is_so: Callable[[NodesThere], bool]) -> NodesThere:
        for _ in range(400):
            if self.heard and is_so(self.heard[-1]):
                return self.heard[-1]
            await asyncio.sleep(0.01)
        raise AssertionError(self.heard)

    async def names(self, *names: str) -> NodesThere:
        return await self.until(lambda there: {node.name for node in there.nodes} == set(names))


def play(directory: Path, scene: Callable[[Client], Awaitable[None]]) -> None:
    servers: list[asyncio.Server] = []
    start = asyncio.start_unix_server

    async def started(*given: Any, **named: Any) -> asyncio.Server:
        servers.append(await start(*given, **named))
        return servers[-1]

    async def both() -> None:
        bridge = Bridge(BridgeOptions("here", "n", "/files", str(directory)))
        serving = asyncio.create_task(bridge.serve())
        while not (directory / "bridge" / "agent.sock").exists():
            await asyncio.sleep(0.005)
            if serving.done():
                await serving
        client = Client(directory)
        following = asyncio.create_task(client.follow())
        try:
            await scene(client)
        finally:
            for task in (following, serving):
                task.cancel()
            await asyncio.gather(following, serving, return_exceptions=True)
            for server in servers:
                server.close()
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            await asyncio.sleep(0.01)

    with patch.object(asyncio, "start_unix_server", started):
        asyncio.run(both())


def test_nodes_with_accelerators_get_an_actor_and_are_told_of(
    ray: Ray, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ray.node("a", 2)
    ray.node("none", 0)
    ray.said["a"] = {"sees": False}

    async def scene(client: Client) -> None:
        (node,) = (await client.names("a")).nodes
        assert (node.address, node.emulate, node.directory, node.shares) == ("at-a", "v100=2", "/files/a", False)
        assert node.leaving is None
        assert list(ray.actors) == ["a"]
        options = ray.actors["a"].options
        assert (options["name"], options["lifetime"], options["get_if_exists"]) == (
            "fairway-agent-id-a",
            "detached",
            True,
        )
        assert (options["max_restarts"], options["max_task_retries"], options["num_cpus"]) == (-1, 0, 0)
        probe, content = ray.actors["a"].called("sees")[0]
        assert Path(probe).read_text() == content

    play(tmp_path, scene)
    assert json.loads(capsys.readouterr().out) == {"ok": True}


def test_a_cluster_without_accelerators_is_refused(ray: Ray, tmp_path: Path) -> None:
    ray.node("none", 0)
    with pytest.raises(InputError, match="none with accelerators"):
        play(tmp_path, lambda _: asyncio.sleep(0))


def test_actors_of_nodes_that_are_gone_are_ended_when_it_starts(ray: Ray, tmp_path: Path) -> None:
    ray.node("a")
    ray.named = ["fairway-agent-id-a", "fairway-agent-id-old", "somebody-else"]

    async def scene(client: Client) -> None:
        await client.names("a")
        assert ray.killed == ["fairway-agent-id-old"]

    play(tmp_path, scene)


def test_nodes_come_and_go(ray: Ray, tmp_path: Path) -> None:
    ray.node("a")

    async def scene(client: Client) -> None:
        await client.names("a")
        ray.node("b")
        await client.names("a", "b")
        ray.lose("a")
        await client.names("b")
        assert ray.killed == [ray.actors["a"]]
        with pytest.raises(BridgeGoneError, match="node a is not there"):
            await client.process.ask("ports", node="a")

    play(tmp_path, scene)


def test_what_is_wrong_with_a_node_is_told_until_it_is_right(ray: Ray, tmp_path: Path) -> None:
    ray.node("a")
    ray.node("old")
    ray.node("odd", **{"fairway.io/accelerators": "two"})
    ray.said["old"] = {"describe": {"fairway": "0.0.1", "name": "old", "found": 0, "directory": "/"}}

    async def scene(client: Client) -> None:
        there = await client.until(lambda there: "old" in there.problems)
        assert there.problems["old"] == f"Fairway 0.0.1 is installed there, expected {HERE} as here"
        assert "is not a whole number" in there.problems["odd"]
        assert [node.name for node in there.nodes] == ["a"]
        del ray.said["old"]
        there = await client.names("a", "old")
        assert list(there.problems) == ["odd"]

    play(tmp_path, scene)


def test_a_node_that_is_drained_leaves_and_takes_no_actor(ray: Ray, tmp_path: Path) -> None:
    ray.node("a")
    ray.node("b")
    ray.draining = {"id-b": 0.0}

    async def scene(client: Client) -> None:
        await client.names("a")
        ray.draining = {"id-a": 0.0}
        there = await client.until(lambda there: any(node.leaving for node in there.nodes))
        assert [node.leaving for node in there.nodes if node.name == "a"] == ["Ray drains it; its jobs save and move"]
        ray.draining = {}
        await client.until(lambda there: not any(node.leaving for node in there.nodes))

    play(tmp_path, scene)


def test_questions_are_answered_by_the_actor_of_the_node(ray: Ray, tmp_path: Path) -> None:
    ray.node("a")
    ray.node("b")

    async def scene(client: Client) -> None:
        await client.names("a", "b")
        ask = client.process.ask
        assert await ask("ports", node="b") == [7001, 7002]
        assert await ask("sees", node="b", path="/x") is True
        assert await ask("start", node="b", emulate="v100=1", time_scale=2.0) is None
        await ask("drop-package", node="b", job="j")
        await ask("wait", node="b")
        assert [call for call in ray.actors["b"].calls if call[0] not in {"describe", "sees"}] == [
            ("ports",), ("has_directory", "/x"), ("start", "v100=1", 2.0), ("drop_package", "j"), ("wait_for_end",),
        ]  # fmt: skip
        assert {call[0] for call in ray.actors["a"].calls} == {"describe", "sees"}
        block = await asyncio.to_thread(client.process.read_log, "a", "job", 1, 2, 3)
        assert (block.content, block.size, block.skipped) == (b"text", 9, 2)
        assert ray.actors["a"].called("log") == [["job", 1, 2, 3]]
        ray.actors["b"].said["ports"] = RuntimeError("first\nlast line")
        with pytest.raises(BridgeGoneError, match=r"^last line$"):
            await ask("ports", node="b")
        access = NodeAccess("b", client.process)
        ray.actors["b"].said["start"] = "no space"
        with pytest.raises(AgentGoneError, match="the agent of node b does not start: no space"):
            await access.start(tmp_path, emulate=None, time_scale=1.0)
        await access.wait_for_end(tmp_path)

    play(tmp_path, scene)


def test_a_program_is_checked_by_all_nodes_that_answer(ray: Ray, tmp_path: Path) -> None:
    for name in "abc":
        ray.node(name)
    ray.said = {"b": {"check": "no such user"}, "c": {"check": RuntimeError("broken")}}

    async def scene(client: Client) -> None:
        await client.names("a", "b", "c")
        said = await asyncio.to_thread(client.process.check, JobProgram("true"))
        assert said == {"a": None, "b": "no such user"}

    play(tmp_path, scene)


def test_what_the_queue_needs_is_asked_of_ray(ray: Ray, tmp_path: Path) -> None:
    ray.node("a")

    async def scene(client: Client) -> None:
        await client.names("a")
        await client.process.ask("need", demand=[])
        assert ray.asked == [[]]
        with pytest.raises(BridgeGoneError, match="demand"):
            await client.process.ask("need", demand=[{"workers": "many"}])

    play(tmp_path, scene)


def test_a_package_is_sent_in_parts_to_a_node_that_does_not_have_it(
    ray: Ray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PART_BYTES", 4)
    package = tmp_path / "package"
    package.write_bytes(b"0123456789")
    ray.node("a")

    async def scene(client: Client) -> None:
        await client.names("a")
        actor = ray.actors["a"]

        async def receive(job: str, digest: str, position: int, content: bytes, last: bool) -> str | None:
            actor.calls.append(("received", job, digest, position, content, last))
            return "/there" if last else None

        actor.receive = SimpleNamespace(remote=receive)
        deliver = {"node": "a", "job": "j", "path": str(package), "digest": "d"}
        assert await client.process.ask("deliver", **deliver) == "/there"
        assert actor.called("received") == [
            ["j", "d", 0, b"0123", False], ["j", "d", 4, b"4567", False], ["j", "d", 8, b"89", True],
        ]  # fmt: skip
        actor.said["work_directory"] = "/had"
        assert await client.process.ask("deliver", **deliver) == "/had"
        assert len(actor.called("received")) == 3
        actor.said["work_directory"] = None
        package.write_bytes(b"")
        with pytest.raises(BridgeGoneError, match="the package of job 'j' is empty"):
            await client.process.ask("deliver", **deliver)

    play(tmp_path, scene)


def test_bytes_go_to_the_agent_of_a_node_and_back(ray: Ray, tmp_path: Path) -> None:
    ray.node("a")

    async def scene(client: Client) -> None:
        await client.names("a")
        actor = ray.actors["a"]
        place = client.process.socket_directory("a")
        reader, writer = await asyncio.open_unix_connection(sock=connected_socket(place))
        writer.write(b"hello")
        for content in (b"", b"answer"):
            actor.to_read.put_nowait(content)
        assert await reader.readexactly(6) == b"answer"
        assert actor.called("write") == [[5, b"hello"]]
        actor.to_read.put_nowait(None)
        assert await reader.read() == b""
        writer.close()
        await asyncio.sleep(0.05)
        assert actor.called("close") == [[5]]
        actor.said["open"] = "it has ended"
        reader, writer = await asyncio.open_unix_connection(sock=connected_socket(place))
        assert await reader.read() == b""
        writer.close()
        assert actor.called("close") == [[5]], "there is no connection to close"

    play(tmp_path, scene)


def test_when_it_is_to_end_it_ends_all_actors(ray: Ray, tmp_path: Path) -> None:
    ray.node("a")

    async def scene(client: Client) -> None:
        await client.names("a")
        await client.process.ask("end")
        assert ray.killed == [ray.actors["a"]]
        await asyncio.sleep(0.2)
        with pytest.raises(BridgeGoneError):
            await client.process.ask("ports", node="a")

    play(tmp_path, scene)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (TimeoutError(), "it does not answer"),
        (ValueError("one\n\n two \n"), "two"),
        (ValueError(""), "ValueError"),
        (ImportError("x\nNo module named 'fairway.live'\ny"),
         "Fairway is not installed there; install it, as here, for the Python that Ray uses"),
    ],
)  # fmt: skip
def test_reasons_are_the_last_line_of_what_went_wrong(error: Exception, said: str) -> None:
    assert reason_of(error) == said


def test_of_an_error_that_ray_brings_from_elsewhere_the_cause_is_told() -> None:
    outer = RuntimeError("a long\ntrace")
    outer.cause = ValueError("the point")  # type: ignore[attr-defined]
    assert reason_of(outer) == "the point"
