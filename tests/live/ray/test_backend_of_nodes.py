"""The backend of many nodes without Ray: its bridge and the agents of the nodes are stood in for."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairway.errors import InputError
from fairway.live.backend.accelerators import Accelerator
from fairway.live.backend.answers import BackendGoneError, RefusedError, SupersededError
from fairway.live.backend.commands import EndRun, JobProgram, RetireJob, StartRun
from fairway.live.backend.demand import JobDemand
from fairway.live.backend.reports import (
    AcceleratorsChanged,
    Connected,
    Disconnected,
    RunEnded,
    RunStarted,
    Superseded,
)
from fairway.live.backend.status import MachineSize, OutcomeKind, RunOutcome, RunState, RunStatus
from fairway.live.ray import backend as module
from fairway.live.ray.backend import RayBackend
from fairway.live.ray.bridge_client import NodeThere
from tests.live.ray.cluster_of_nodes import SITE, Agent, Bridge, Site, connected, node, play, run_of, settled, standing


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setattr(module, "LocalBackend", Agent)
    monkeypatch.setattr(module, "BridgeProcess", Bridge)
    monkeypatch.setattr(module, "_LOOK_SECONDS", 0.001)
    SITE.append(Site(tmp_path))
    return SITE[-1]


def test_the_first_report_comes_when_all_nodes_have_been_heard(site: Site) -> None:
    async def scene(_: RayBackend) -> None:
        await site.nodes(node("a"), node("b"))
        site.agents["a"].say(Connected(standing(run_of(3), accelerators=2)))
        await settled()
        assert site.reports == []
        assert not (site.directory / "nodes.json").exists()
        site.agents["b"].say(Disconnected("no answer; see agent.log"))
        await settled()
        (report,) = site.take()
        assert isinstance(report, Connected)
        assert [(one.number, one.node) for one in report.status.accelerators] == [(0, "a"), (1, "a")]
        assert [run.lease for run in report.status.runs] == [3]
        assert site.remembered == ["a", "b"]
        site.agents["b"].say(Connected(standing()))
        (later,) = site.take()
        assert isinstance(later, Connected)
        assert [(one.number, one.node) for one in later.status.accelerators] == [(0, "a"), (1, "a"), (2, "b")]

    play(site, scene, address="here:1", namespace="mine", node_directory="/n")
    assert site.options == {"address": "here:1", "namespace": "mine", "node_directory": "/n"}
    assert (site.agents["a"].epoch, site.agents["a"].emulate, site.agents["a"].time_scale) == (5, "v100=1", 1.0)


def test_if_no_agent_answers_that_is_said_with_the_reasons(site: Site) -> None:
    async def scene(backend: RayBackend) -> None:
        await site.nodes(node("a"))
        site.agents["a"].say(Disconnected("it does not start; see its log"))
        await settled()
        assert site.take() == [Disconnected("no agent answers: a: it does not start")]
        await backend.status()  # it is there, although no agent is

    play(site, scene)


@pytest.mark.parametrize(
    ("there", "options", "said"),
    [
        ((), {}, r"no node of Ray at auto can be used \(x: no label\)"),
        ((node("a", emulate=None),), {"time_scale": 2.0}, "only emulated accelerators can run faster"),
    ],
)
def test_a_cluster_that_cannot_be_used_is_refused(
    site: Site, there: tuple[NodeThere, ...], options: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        play(site, lambda _: site.nodes(*there, x="no label"), **options)


def test_emulated_nodes_run_faster_and_real_ones_as_they_are(site: Site) -> None:
    play(site, lambda _: site.nodes(node("a")), time_scale=2.0)
    assert site.agents["a"].time_scale == 2.0
    play(site, lambda _: site.nodes(node("b", emulate=None)))
    assert site.agents["b"].emulate is None


def test_what_is_emulated_is_said_by_labels(site: Site) -> None:
    with pytest.raises(InputError, match="nodes say by their labels"):
        site.backend(emulate="v100=1")


def test_a_ray_that_cannot_be_reached_is_refused_at_first_and_looked_for_later(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.starts = [InputError("no Ray")]
    with pytest.raises(InputError, match="no Ray"):
        play(site, lambda _: settled())
    waits: list[int] = []
    monkeypatch.setattr(
        module, "_BACK_OFF", type("", (), {"seconds": staticmethod(lambda failures: waits.append(failures) or 0.001)})
    )

    async def scene(backend: RayBackend) -> None:
        await connected(site, "a")
        first = site.bridge
        site.starts = [InputError("no Ray"), InputError("no Ray"), Bridge()]
        first.news.put_nowait(None)
        await settled()
        gone, *tried = site.take()
        assert gone == Disconnected("Ray is gone, or its head; jobs run on, and it is looked for again")
        assert tried == [Disconnected("no Ray; jobs run on, and it is tried again")] * 2
        assert waits == [1, 2]
        assert first.stopped
        assert site.bridge is not first
        with pytest.raises(BackendGoneError):
            await backend.give(EndRun(1, "job"))
        with pytest.raises(BackendGoneError):
            await backend.status()
        assert len(await connected(site, "a")) == 1
        await backend.status()

    play(site, scene)


# Nodes that come and go


def test_runs_of_a_node_that_is_gone_are_lost_after_the_fence(site: Site) -> None:
    async def scene(_: RayBackend) -> None:
        await connected(site, "a", "b", a=(run_of(1),), b=(run_of(2, "other"),))
        await site.nodes(node("b"))
        assert site.take() == [AcceleratorsChanged((Accelerator("v100", 1, node="b", slot=0),))]
        assert site.remembered == ["a", "b"], "its jobs may still run there"
        await asyncio.sleep(0.1)
        (lost,) = site.take()
        assert isinstance(lost, RunEnded)
        assert (lost.lease, lost.outcome.kind) == (1, OutcomeKind.LOST)
        assert site.remembered == ["b"]

    play(site, scene)


def test_a_node_that_is_back_in_time_has_lost_nothing(site: Site) -> None:
    async def scene(_: RayBackend) -> None:
        await connected(site, "a", "b", a=(run_of(1),))
        first = site.agents["a"]
        await site.nodes(node("b"))
        await site.nodes(node("a"), node("b"))
        assert site.agents["a"] is not first, "its agent is greeted anew"
        site.agents["a"].say(Connected(standing(run_of(1))))
        await asyncio.sleep(0.1)
        assert not [report for report in site.take() if isinstance(report, RunEnded)]

    play(site, scene)


def test_a_node_that_is_about_to_leave_offers_nothing(site: Site) -> None:
    async def scene(backend: RayBackend) -> None:
        await connected(site, "a", "b")
        await site.nodes(node("a", leaving="ends in 60 s"), node("b"))
        (changed,) = site.take()
        assert isinstance(changed, AcceleratorsChanged)
        assert [one.node for one in changed.accelerators] == ["b"]
        site.agents["a"].standing = site.agents["b"].standing = standing()
        assert "node a: ends in 60 s" in (await backend.status()).caveats
        await site.nodes(node("a", leaving="ends in 60 s"), node("b"))
        assert site.take() == []

    play(site, scene)


def test_nodes_of_a_controller_of_before_are_waited_for(site: Site) -> None:
    (site.directory / "nodes.json").write_text(json.dumps({"nodes": ["a", "old"]}))

    async def scene(_: RayBackend) -> None:
        assert await connected(site, "a") == []
        await asyncio.sleep(0.08)
        (report,) = site.take()
        assert isinstance(report, Connected)
        assert site.remembered == ["a"]

    play(site, scene)


# What agents say


def test_reports_of_runs_have_no_numbers_and_are_passed_on(site: Site) -> None:
    async def scene(_: RayBackend) -> None:
        await connected(site, "a", a=(run_of(1),))
        started = RunStarted(1, "job", 5.0, 4.0)
        ended = RunEnded(1, "job", 6.0, RunOutcome(OutcomeKind.FINISHED))
        for report in (started, ended):
            site.agents["a"].say(report)
        assert site.take() == [started, ended]

    play(site, scene)


def test_accelerators_that_change_have_the_numbers_of_the_cluster(site: Site) -> None:
    async def scene(_: RayBackend) -> None:
        await connected(site, "a", "b")
        site.agents["b"].say(AcceleratorsChanged((Accelerator("v100", 0), Accelerator("v100", 1))))
        (changed,) = site.take()
        assert isinstance(changed, AcceleratorsChanged)
        assert [(one.number, one.node) for one in changed.accelerators] == [(0, "a"), (1, "b"), (2, "b")]

    play(site, scene)


def test_another_controller_ends_this_one(site: Site) -> None:
    async def scene(backend: RayBackend) -> None:
        await connected(site, "a", "b")
        site.agents["b"].say(Superseded("another has taken over"))
        await settled()
        assert site.take() == [Superseded("another has taken over")]
        assert site.bridge.stopped
        with pytest.raises(SupersededError, match="another has taken over"):
            await backend.give(EndRun(1, "job"))
        await backend.need((JobDemand(("v100",)),))
        assert len(site.bridges) == 1, "it is not started again"

    play(site, scene)


# Commands and questions


def test_a_run_that_waits_starts_when_the_older_one_has_ended(site: Site) -> None:
    async def scene(backend: RayBackend) -> None:
        await connected(site, "a", "b", a=(run_of(1, state=RunState.ENDING),))
        answer = await backend.give(StartRun(2, "job", JobProgram("true"), "v100", (1,)))
        assert answer.run is not None
        assert answer.run.state is RunState.WAITING
        site.agents["a"].standing = standing(run_of(1, state=RunState.ENDING))
        site.agents["b"].standing = standing()
        status = await backend.status()
        assert (status.last_lease, [run.lease for run in status.runs]) == (2, [1, 2])
        site.agents["a"].say(RunEnded(1, "job", 6.0, RunOutcome(OutcomeKind.STOPPED)))
        await asyncio.sleep(0.05)
        assert [command.lease for command in site.agents["b"].given if isinstance(command, StartRun)] == [2]

    play(site, scene)


def test_what_is_needed_is_told_while_ray_is_there(site: Site) -> None:
    async def scene(backend: RayBackend) -> None:
        await backend.need((JobDemand(("v100",)),))
        await settled()
        assert site.bridge.asked == []
        await connected(site, "a")
        await backend.need((JobDemand(("v100",)),))
        await settled()
        assert [question for question, _ in site.bridge.asked] == ["need"]

    play(site, scene)


def test_packages_of_a_retired_job_go_from_the_nodes_that_can_be_reached(site: Site) -> None:
    async def scene(backend: RayBackend) -> None:
        await connected(site, "a", "b")
        site.agents["b"].say(Disconnected("away"))
        await backend.give(RetireJob("job"))
        await asyncio.sleep(0.05)
        assert site.bridge.asked == [("drop-package", {"node": "a", "job": "job"})]

    play(site, scene)


def test_how_things_stand_is_asked_of_all_that_can_be_reached(site: Site) -> None:
    async def scene(backend: RayBackend) -> None:
        await connected(site, "a", "b", a=(run_of(1),), b=(run_of(2, "other"),))
        size = MachineSize(4.0, 100)
        site.agents["a"].standing = standing(former=("z", "y"), last_lease=9, draining=True, machines=(size,),
                                             caveats=("no cgroups",))  # fmt: skip
        site.agents["b"].standing = BackendGoneError("away")
        status = await backend.status()
        assert [run.lease for run in status.runs] == [2], "of b as it last said"
        assert (status.former, status.last_lease, status.draining, status.epoch) == (("y", "z"), 9, False, 5)
        assert status.machines == (replace(size, node="a"),)
        assert status.instance == "a:i b:i"
        assert status.caveats == ("no cgroups",)
        site.agents["b"].standing = standing(draining=True, caveats=("no cgroups",))
        status = await backend.status()
        assert (status.draining, status.caveats) == (True, ("no cgroups",))
        site.agents["b"].standing = RefusedError("system", "broken")
        with pytest.raises(RefusedError):
            await backend.status()

    play(site, scene)


def test_an_answer_that_is_older_than_what_was_noted_meanwhile_does_not_count(site: Site) -> None:
    async def scene(backend: RayBackend) -> None:
        await connected(site, "a", a=(run_of(1),))
        agent = site.agents["a"]
        agent.standing = standing(run_of(1))
        asked = asyncio.create_task(backend.status())
        await asyncio.sleep(0)
        agent.say(RunEnded(1, "job", 6.0, RunOutcome(OutcomeKind.FINISHED)))
        (run,) = (await asked).runs
        assert run.state is RunState.ENDED

    play(site, scene)


def test_what_is_wrong_with_nodes_is_a_caveat(site: Site) -> None:
    async def scene(backend: RayBackend) -> None:
        await site.nodes(node("b", shares=False), node("a", shares=False), node("c"), x="no label")
        for name in "abc":
            site.agents[name].say(Connected(standing()))
            site.agents[name].standing = standing()
        await settled()
        apart, unused = (await backend.status()).caveats
        assert f"{site.directory} is not found at this path by the nodes a, b:" in apart
        assert unused == "node x is not used: no label"

    play(site, scene)


def test_a_program_that_no_node_can_run_is_refused(site: Site) -> None:
    async def scene(backend: RayBackend) -> None:
        program = JobProgram("true")
        backend.check(program)
        assert len(site.bridge.checked) == 1
        site.bridge.said = {"b": "no such user", "a": "no such user either"}
        with pytest.raises(InputError, match=r"no such user \(asked of every node: a, b\)"):
            backend.check(program)
        site.bridge.said = {"b": "no such user", "a": None}
        backend.check(program)

    play(site, scene)
    site.backend().check(JobProgram("true"))  # without a bridge nothing can be said


def test_a_job_finds_its_log_where_it_ran(site: Site) -> None:
    async def scene(backend: RayBackend) -> None:
        await connected(site, "a", "b")
        await backend.give(StartRun(1, "job", JobProgram("true"), "v100", (1,)))
        block = await asyncio.to_thread(backend.read_log, "job", 0, 4, 100)
        assert block.content == b"0 on b"
        site.bridge.stopped = True
        block = await asyncio.to_thread(backend.read_log, "job", 0, 4, 100)
        assert block.content == b""

    play(site, scene)


@pytest.mark.parametrize("runs", [(), (run_of(1),)])
def test_what_is_shut_down_remembers_nodes_only_if_something_runs_there(
    site: Site, runs: tuple[RunStatus, ...]
) -> None:
    async def scene(backend: RayBackend) -> None:
        await connected(site, "a", a=runs)
        await backend.shut_down()
        assert site.agents["a"].is_shut_down
        assert [question for question, _ in site.bridge.asked] == ["end"]
        assert site.bridge.stopped
        assert site.remembered == (["a"] if runs else [])
        await settled()
        assert len(site.bridges) == 1

    play(site, scene)
