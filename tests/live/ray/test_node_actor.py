"""The actor of a node: bytes to its agent and back, and what it says of the node; without Ray."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from fairway.live.backend.commands import JobProgram
from fairway.live.local.agent.frames import listening_socket
from fairway.live.local.log_files import log_path
from fairway.live.ray import node_agent as module
from fairway.live.ray.node_agent import NodeAgent


@pytest.fixture
def actor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NodeAgent:
    monkeypatch.setattr(module, "_POLL_SECONDS", 0.05)
    (tmp_path / "n1").mkdir()
    return NodeAgent("n1", str(tmp_path))


def with_agent(directory: Path, scene: Callable[[], Awaitable[None]]) -> None:
    """An agent that says everything twice, and ends a connection at a full stop."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (content := await reader.read(100)) not in {b"", b"."}:
            writer.write(2 * content)
        writer.close()

    async def both() -> None:
        server = await asyncio.start_unix_server(converse, sock=listening_socket(directory))
        try:
            await scene()
        finally:
            server.close()
            await asyncio.sleep(0.02)  # for the connections to end

    asyncio.run(both())


def test_bytes_go_to_the_agent_and_come_back(actor: NodeAgent, tmp_path: Path) -> None:
    async def scene() -> None:
        first, second = await actor.open(), await actor.open()
        assert (first, second) == (1, 2)
        assert isinstance(first, int)
        assert isinstance(second, int)
        assert await actor.write(second, b"two")
        assert await actor.write(first, b"one")
        assert await actor.read(first) == b"oneone"
        assert await actor.read(second) == b"twotwo"
        assert await actor.read(first) == b"", "nothing for a while"
        assert await actor.write(first, b".")
        assert await actor.read(first) is None
        await actor.close(first)
        await actor.close(first)
        assert not await actor.write(first, b"more")
        assert await actor.read(first) is None
        assert await actor.write(second, b"on")
        assert await actor.read(second) == b"onon"
        await actor.close(second)

    with_agent(tmp_path / "n1", scene)


def test_where_no_agent_listens_that_is_said(actor: NodeAgent) -> None:
    said = asyncio.run(actor.open())
    assert isinstance(said, str)
    assert "No such file" in said


def test_the_ports_are_two_at_which_nothing_listens(actor: NodeAgent) -> None:
    first, second = asyncio.run(actor.ports())
    assert first != second
    for port in (first, second):
        with socket.socket() as one:
            one.bind(("", port))


def test_it_sees_what_is_on_its_node(actor: NodeAgent, tmp_path: Path) -> None:
    (tmp_path / "probe").write_text("content")
    (tmp_path / "bytes").write_bytes(b"\xff\xff")

    async def scene() -> None:
        assert await actor.sees(str(tmp_path / "probe"), "content")
        assert not await actor.sees(str(tmp_path / "probe"), "other")
        assert not await actor.sees(str(tmp_path / "none"), "content")
        assert not await actor.sees(str(tmp_path / "bytes"), "content")
        assert await actor.has_directory(str(tmp_path))
        assert not await actor.has_directory(str(tmp_path / "probe"))
        assert await actor.check(JobProgram("true")) is None
        assert await actor.check(JobProgram(("/no/such/program",))) is not None
        assert await actor.work_directory("job", "digest") is None

    asyncio.run(scene())


def test_it_says_what_it_is(actor: NodeAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "found_accelerators", lambda: ["one", "two"])
    said = asyncio.run(actor.describe())
    assert (said["name"], said["found"], said["directory"]) == ("n1", 2, str(tmp_path / "n1"))
    assert said["hostname"] == socket.gethostname()


def test_a_log_is_read_in_parts(actor: NodeAgent, tmp_path: Path) -> None:
    path = log_path(tmp_path / "n1", "job", 1)
    path.parent.mkdir(parents=True)
    path.write_text("0123456789")
    block = asyncio.run(actor.log("job", 1, 2, 3))
    assert (block["content"], block["size"]) == (b"234", 10)
