"""The agent of a node and the actor of a worker without Ray: what they make, what they refuse, and how they end."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import pytest

from fairway.live.serving.nodes.address_book import Place
from fairway.live.serving.nodes.backend import EPOCH
from fairway.live.serving.nodes.guarded_channel import GuardedChannel
from fairway.live.serving.nodes.keeper_lines import KeeperLines
from fairway.live.serving.nodes.node_keeper import keeper_number
from fairway.live.serving.nodes.node_place import NodePlace, address_book
from fairway.live.serving.ray import node_agent
from fairway.live.serving.ray.node_agent import NodeAgent, NodeContent, WorkerActor, node_directory
from fairway.live.serving.seams.transport import Message, WireError
from fairway.live.serving.supervise.settings import ServingSettings
from tests.live.serving.nodes.several import SECRET, host_of


@pytest.fixture
def content(tmp_path: Path) -> NodeContent:
    settings = ServingSettings("app", tmp_path / "served", tmp_path / "memory", workers=2, has_planner=False)
    return NodeContent(
        settings=settings,
        workflows=b'["one"]',
        node=0,
        host=host_of(0),
        secret=SECRET.secret,
        certificate=None,
        key=None,
        profile=b"models: {}\n",
        work_directory=str(tmp_path),
        budgets=(10.0, 10.0),
        models=1,
    )


def _agent(content: NodeContent) -> NodeAgent:
    return NodeAgent(content, leave=lambda: None)


def test_an_agent_keeps_a_node_and_leaves_only_logs(content: NodeContent) -> None:
    agent = _agent(content)
    port = agent.start(2.5)
    directory = node_directory(content.settings, 0)
    settings = ServingSettings.read(directory / "settings.json")
    assert (settings.backend, settings.profile) == ("nodes", directory / "profile.yaml")
    assert settings.memory_directory.exists()
    assert NodePlace.read(directory).clock_seconds == 2.5
    lines = KeeperLines(SECRET, lambda *_: None, lambda _: None)
    lines.call(0, Place(host_of(0), port, 0))
    assert lines.book({keeper_number(0): Place(host_of(0), port, 0), 1: Place(host_of(0), 7, 3)})
    assert address_book(directory).find(1) == Place(host_of(0), 7, 3)
    lines.close()
    (directory / "worker-0.log").write_text("kept")
    agent.end()
    agent.end()  # as it does by itself, too, when the line has ended
    assert not settings.memory_directory.exists()
    assert [path.name for path in directory.iterdir()] == ["worker-0.log"]


def test_an_agent_ends_with_the_line_of_its_supervisor(content: NodeContent) -> None:
    """As when `fairway serve` is killed, and Ray is not there to notice it."""
    gone = Event()
    agent = NodeAgent(replace(content, keeps_logs=False), leave=gone.set)
    port = agent.start(0.0)
    memory = agent._settings.memory_directory
    agent.run_beside(["-c", "import time; print('begun', flush=True); time.sleep(600)"], {})
    program = agent._program
    assert program is not None
    lines = KeeperLines(SECRET, lambda *_: None, lambda _: None)
    lines.call(0, Place(host_of(0), port, 0))
    assert lines.book({keeper_number(0): Place(host_of(0), port, 0)})
    assert not gone.wait(0.2)
    lines.close()
    assert gone.wait(20.0)
    assert program.wait(10.0) != 0
    assert not memory.exists()
    assert not node_directory(content.settings, 0).exists()


def test_an_agent_ends_if_its_supervisor_never_comes(content: NodeContent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_agent, "_UNMET_SECONDS", 0.1)
    gone = Event()
    NodeAgent(content, leave=gone.set)
    assert gone.wait(20.0)


@pytest.mark.timeout(60)
def test_an_actor_says_how_lives_of_its_worker_have_ended_and_ends_with_the_agent(
    content: NodeContent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The application is not there, so that no life lasts."""
    for name in ("PYTHONPATH", EPOCH):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    monkeypatch.chdir(content.work_directory)
    agent = _agent(content)
    port = agent.start(0.0)
    heard: list[Message] = []
    lines = KeeperLines(SECRET, lambda _, message: heard.append(message), lambda _: None)
    lines.call(0, Place(host_of(0), port, 0))
    assert lines.book({keeper_number(0): Place(host_of(0), port, 0)})
    gone = Event()
    actor = WorkerActor(leave=gone.set)
    said = (str(node_directory(content.settings, 0)), keeper_number(0), "actor", content.work_directory)
    thread = Thread(target=actor.serve, args=said)
    thread.start()
    for epoch in range(2):
        lines.tell(("begin", "actor", 1, epoch))
        while not [message for message in heard if message[:4] == ("ended", "actor", 1, epoch)]:
            lines.pump()
            time.sleep(0.01)
    ended = [message for message in heard if message[0] == "ended"]
    assert [message[4] for message in ended] == ["1", "1"]
    assert all("'app'" in message[5] for message in ended), ended
    agent.end()
    assert gone.wait(20.0)
    thread.join()
    lines.close()


def test_an_actor_whose_agent_is_gone_ends(content: NodeContent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_agent, "_LAST_WORDS_SECONDS", 0.0)
    gone = Event()
    with pytest.raises(FileNotFoundError):
        WorkerActor(leave=gone.set).serve(str(node_directory(content.settings, 0)), keeper_number(0), "actor", "/")
    assert gone.wait(20.0)


def test_a_work_directory_that_a_node_does_not_have_is_refused(content: NodeContent, tmp_path: Path) -> None:
    agent = _agent(replace(content, work_directory=str(tmp_path / "elsewhere")))
    with pytest.raises(FileNotFoundError, match="elsewhere is not there"):
        agent.start(0.0)
    agent.end()
    assert not node_directory(content.settings, 0).exists()


def test_the_keeper_takes_no_other_secret(content: NodeContent) -> None:
    agent = _agent(replace(content, secret=b"another"))
    port = agent.start(0.0)
    line = GuardedChannel(socket.create_connection((host_of(0), port)), SECRET, is_caller=True)
    line.send(("clear-clients",))
    with pytest.raises(WireError, match="does not know the secret"):
        _ = [line.receive(1.0) for _ in range(20)]
    line.close()
    agent.end()


def test_a_program_beside_the_workers_is_started_again_and_ends_with_the_agent(content: NodeContent) -> None:
    agent = _agent(content)
    agent.start(0.0)
    program = "import sys, time; print(open(sys.argv[1] + '/file').read(), sys.argv[2], flush=True); time.sleep(600)"
    assert agent.run_beside(["-c", program], {"file": b"word"}) == f"word {host_of(0)}"
    first = agent._program
    assert first is not None
    first.kill()
    for _ in range(300):
        if agent._program is not first:
            break
        first.poll()
        time.sleep(0.05)
    again = agent._program
    assert again is not None
    assert again is not first
    agent.end()
    assert again.wait(10.0) != 0


def test_a_program_that_does_not_start_says_why(content: NodeContent) -> None:
    agent = _agent(content)
    agent.start(0.0)
    with pytest.raises(OSError, match="it has no address"):
        agent.run_beside(["-c", "import sys; sys.exit('it has no address')"], {})
    agent.end()
