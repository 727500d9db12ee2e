"""The agent loses nothing: commands twice, late commands, lost connections, and kills at bad moments."""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fairway.live.backend.answers import CommandAnswer, RefusedError
from fairway.live.backend.codec import COMMANDS
from fairway.live.backend.commands import EndRun, JobProgram, StartRun
from fairway.live.backend.reports import RunProgressed, RunStarted
from fairway.live.backend.status import RunState
from fairway.live.local.agent.client import AgentClient, AgentGoneError, start_agent
from fairway.live.local.agent.frames import FrameError, connected_socket, encoded
from fairway.live.local.agent.keepers import KeeperProcesses, keeper_of
from fairway.live.local.agent.state import AgentState
from fairway.live.local.identity import identify
from tests.live.training.jobs import COUNTING
from tests.live.training.machine import Machine, kill, python, until

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc, as on Linux")


def state_of(answer: CommandAnswer) -> RunState:
    assert answer.run is not None
    return answer.run.state


def steps_in(trace: Path) -> list[int]:
    return [int(line) for line in trace.read_text().splitlines()] if trace.exists() else []


def test_a_killed_agent_comes_back_and_adopts_the_running_job(tmp_path: Path) -> None:
    trace = tmp_path / "trace"

    async def check() -> None:
        async with Machine(tmp_path) as machine:
            await machine.start(run=python(COUNTING, 400, 0.005, trace))
            await until(lambda: len(steps_in(trace)) > 10)
            keeper = keeper_of(machine.files())
            machine.kill_agent()
            with pytest.raises(AgentGoneError):
                await machine.client.status()
            await machine.disconnect()
            before = len(steps_in(trace))
            await until(lambda: len(steps_in(trace)) > before + 10, "for the job to go on without an agent")
            machine.start_agent()
            status = await machine.connect(epoch=2)
            assert [(run.job, run.lease, run.state) for run in status.runs] == [("job", 1, "running")]
            assert keeper_of(machine.files()) == keeper
            assert (await machine.start(run="echo twice")).result == "known"
            outcome = await machine.ended()
            assert (outcome.kind, outcome.steps) == ("finished", 400)
            assert steps_in(trace) == list(range(400))

    asyncio.run(check())


def test_what_happened_while_no_agent_was_there_is_found_out_afterwards(tmp_path: Path) -> None:
    async def check() -> None:
        async with Machine(tmp_path, "v100=3") as machine:
            go = tmp_path / "go"
            await machine.start("ends", 1, run=f"while [ ! -e {go} ]; do sleep 0.02; done; exit 5", workers=[0])
            await machine.start("dies", 2, run=f"echo $$ > {tmp_path}/pid; sleep 600 & wait", workers=[1])
            await until(lambda: all(machine.files(n, job).started() for n, job in ((1, "ends"), (2, "dies"))))
            await until((tmp_path / "pid").exists)
            machine.kill_agent()
            await machine.disconnect()
            go.touch()
            keeper = keeper_of(machine.files(2, "dies"))
            assert keeper is not None
            kill(keeper.pid)
            await until(lambda: machine.files(1, "ends").exit())
            machine.start_agent()
            status = await machine.connect(epoch=2)
            outcomes = {run.job: run.outcome for run in status.runs if run.outcome is not None}
            assert (outcomes["ends"].kind, outcomes["ends"].code) == ("failed", 5)
            assert outcomes["dies"].kind == "failed"
            assert identify(int((tmp_path / "pid").read_text())) is None

    asyncio.run(check())


def test_a_run_that_was_accepted_but_not_started_is_started_once(tmp_path: Path) -> None:
    async def check() -> None:
        async with Machine(tmp_path) as machine:
            count = tmp_path / "count"
            await machine.start(run=f"echo ran >> {count}")
            await machine.ended()
            machine.kill_agent()
            await machine.disconnect()
            # As if the agent had been killed right after it wrote down that it would start the run.
            state = AgentState.load(machine.directory / "state.json")
            state.runs[0].state, state.runs[0].outcome = RunState.STARTING, None
            state.save(machine.directory / "state.json")
            for name in ("claim.json", "exit.json", "ranks.json"):
                (machine.files().directory / name).unlink()
            count.unlink()
            machine.start_agent()
            await machine.connect(epoch=2)
            await until(lambda: machine.files().exit())
            keepers = [KeeperProcesses().spawn(machine.files()) for _ in range(3)]
            assert [keeper.wait() for keeper in keepers] == [0, 0, 0]
            assert count.read_text() == "ran\n"

    asyncio.run(check())


def test_of_several_keepers_of_one_run_only_one_runs_it(tmp_path: Path) -> None:
    async def check() -> None:
        async with Machine(tmp_path) as machine:
            await machine.start("blocker", 1, run="sleep 600")
            await until(lambda: machine.files(1, "blocker").started())
            await machine.end(1, "blocker", save=False)
            count = tmp_path / "count"
            await machine.start(lease=2, run=f"echo ran >> {count}; sleep 0.3")
            keepers = [KeeperProcesses().spawn(machine.files(2)) for _ in range(4)]
            assert (await machine.ended()).kind == "finished"
            for keeper in keepers:
                keeper.wait()
            assert count.read_text() == "ran\n"

    asyncio.run(check())


def test_a_controller_that_comes_back_finds_everything_and_hears_on(tmp_path: Path) -> None:
    async def check() -> None:
        async with Machine(tmp_path) as machine:
            go = tmp_path / "go"
            await machine.start(run=f"while [ ! -e {go} ]; do sleep 0.02; done")
            await machine.report(RunStarted)
            await machine.disconnect()
            status = await machine.connect()
            assert [(run.job, run.state) for run in status.runs] == [("job", "running")]
            go.touch()
            assert (await machine.ended()).kind == "finished"

    asyncio.run(check())


def test_commands_may_come_twice_and_late_ones_change_nothing(tmp_path: Path) -> None:
    async def check() -> None:
        async with Machine(tmp_path) as machine:
            count = tmp_path / "count"
            script = f"echo ran >> {count}"
            assert (await machine.start(lease=5, run=script)).result == "accepted"
            assert (await machine.start(lease=5, run=script)).result == "known"
            await machine.ended()
            assert (await machine.start(lease=5, run=script)).result == "known"
            assert (await machine.start(lease=4, run=script)) == CommandAnswer("stale", newest=5)
            await machine.forget(5, "job")
            await machine.forget(5, "job")
            assert not machine.files(5).directory.exists()
            assert (await machine.start(lease=5, run=script)) == CommandAnswer("stale", newest=5)
            assert (await machine.start(lease=6, run="sleep 600")).result == "accepted"
            assert (await machine.end(5, "job")).result == "stale"
            assert (await machine.hand_over("job", 5, 7)).result == "stale"
            assert (await machine.run("job", 6)).state in {"starting", "running"}
            with pytest.raises(RefusedError, match="has not ended under lease 6"):
                await machine.forget(6, "job")
            assert (await machine.end(6, "job", save=False)).result == "accepted"
            # The second may find that the run has ended meanwhile.
            assert (await machine.end(6, "job", save=False)).result in {"accepted", "known"}
            await machine.ended(lease=6)
            assert (await machine.end(6, "job")).result == "known"
            await machine.retire("job")
            assert (await machine.client.status()).runs == ()
            assert count.read_text() == "ran\n"

    asyncio.run(check())


def test_a_command_that_was_refused_is_refused_for_good_should_it_come_twice(tmp_path: Path) -> None:
    """Its controller has gone on as if it had never been: a copy that comes late must not be carried out."""

    async def check() -> None:
        async with Machine(tmp_path) as machine:
            await machine.start(lease=1, run="sleep 600")
            epoch = (await machine.client.status()).epoch
            reader, writer = await asyncio.open_unix_connection(sock=connected_socket(machine.directory))

            async def answered(**message: object) -> dict[str, Any]:
                writer.write(encoded(message))
                while True:
                    length = int.from_bytes(await reader.readexactly(4), "big")
                    content: dict[str, Any] = json.loads(await reader.readexactly(length))
                    if content.get("reply") == message["id"]:
                        return content

            await answered(id=1, command="hello", epoch=epoch + 1)
            order = COMMANDS.document_of(StartRun(2, "other", JobProgram("true"), "v100", (0,)))
            refused = await answered(id=2, **order)
            assert refused["code"] == "busy"
            end = COMMANDS.document_of(EndRun(1, "job", save=False))
            assert (await answered(id=3, **end))["answer"]["result"] == "accepted"
            assert await answered(id=2, **order) == refused
            assert (await answered(id=4, **order))["answer"]["result"] == "accepted"
            writer.close()

    asyncio.run(check())


def test_a_worker_is_never_held_by_two_leases_at_once(tmp_path: Path) -> None:
    async def check() -> None:
        async with Machine(tmp_path) as machine:
            alone = f"mkdir {tmp_path}/held && sleep 0.3 && rmdir {tmp_path}/held"
            leave = f"trap 'sleep 0.3; rmdir {tmp_path}/held; exit 0' TERM"
            slow = f"{leave}; mkdir {tmp_path}/held; while true; do sleep 0.02; done"
            await machine.start("first", 1, run=slow)
            await until((tmp_path / "held").exists)
            with pytest.raises(RefusedError, match="job 'first' runs under lease 1") as refused:
                await machine.start("second", 2, run=alone)
            assert refused.value.code == "busy"
            await machine.end(1, "first")
            assert state_of(await machine.start("second", 2, run=alone)) == "waiting"
            assert state_of(await machine.start("third", 3, run="true")) == "waiting"
            await machine.end(3, "third")
            assert (await machine.ended("third")).reason == "asked to stop before it had started"
            assert (await machine.ended("first")).kind == "stopped"
            assert (await machine.ended("second")).kind == "finished"

    asyncio.run(check())


def test_of_two_that_share_the_one_that_stays_goes_on_under_a_new_lease(tmp_path: Path) -> None:
    trace = tmp_path / "trace"

    async def check() -> None:
        async with Machine(tmp_path) as machine:
            await machine.start("stays", 1, run=python(COUNTING, 100_000, 0.005, trace), steps_per_second=20.0)
            await machine.start("leaves", 1, run="sleep 600")
            await until(lambda: steps_in(trace))
            keeper = keeper_of(machine.files(1, "stays"))
            assert (await machine.hand_over("stays", 1, 2, rate=40.0)).result == "accepted"
            assert (await machine.hand_over("stays", 1, 2, rate=40.0)).result == "known"
            await machine.end(1, "leaves", save=False)
            assert (await machine.end(1, "stays", save=False)).result == "stale"
            await machine.ended("leaves")
            assert (await machine.run("stays", 2)).state == "running"
            assert keeper_of(machine.files(1, "stays")) == keeper
            lease = machine.files(1, "stays").lease()
            assert lease is not None
            assert (lease.lease, lease.pace, lease.stop) == (2, 40.0, None)
            await machine.end(2, "stays")
            assert (await machine.ended("stays", 2)).kind == "stopped"

    asyncio.run(check())


def test_a_lease_that_expires_ends_by_itself_unless_it_is_extended(tmp_path: Path) -> None:
    trace = tmp_path / "trace"

    async def check() -> None:
        async with Machine(tmp_path) as machine:
            # The first end lies far enough ahead for a busy machine to extend it in time.
            await machine.start(run=python(COUNTING, 10**6, 0.005, trace), until=time.time() + 600, expires=True)
            await until(lambda: steps_in(trace))
            soon = time.time() + 0.5
            assert (await machine.extend(soon)).leases == (1,)
            outcome = await machine.ended()
            assert time.time() >= soon
            assert (outcome.kind, outcome.reason) == ("stopped", "saved a checkpoint and stopped")
            assert outcome.checkpoint_step == len(steps_in(trace))
            await machine.start("goes-on", 2, run="sleep 600", until=time.time() + 600, expires=True)
            assert (await machine.extend(time.time() + 900, leases=(9,))).leases == ()
            assert (await machine.run("goes-on", 2)).state != "ended"

    asyncio.run(check())


def test_only_the_newest_controller_gives_commands(tmp_path: Path) -> None:
    async def check() -> None:
        async with Machine(tmp_path) as machine:
            looking, _ = await AgentClient.connect(machine.directory, None)
            assert (await looking.status()).epoch == 1
            with pytest.raises(RefusedError, match="may only ask for the status"):
                await looking.drain()
            newer, _ = await AgentClient.connect(machine.directory, 2)
            await until(lambda: machine.client.gone, "for the older controller to be cut off")
            with pytest.raises(RefusedError, match="a controller of epoch 2 has taken over from epoch 1"):
                await AgentClient.connect(machine.directory, 1)
            await newer.drain()
            with pytest.raises(RefusedError, match="draining"):
                await newer.give(StartRun(1, "job", JobProgram("true"), accelerator="v100", workers=(0,)))
            await newer.drain(on=False)
            await newer.close()
            await looking.close()
            machine.kill_agent()
            machine.start_agent()
            with pytest.raises(RefusedError, match="a controller of epoch 2"):
                await AgentClient.connect(machine.directory, 1)

    asyncio.run(check())


def test_bad_messages_are_answered_and_the_agent_goes_on(tmp_path: Path) -> None:
    async def check() -> None:
        async with Machine(tmp_path) as machine:
            for message, line in (
                (
                    {"command": "explode"},
                    "command: 'explode' given, expected one of hello, ask-status, drain, shutdown, start-run",
                ),
                (
                    {"command": "end-run", "lease": 0, "job": "a"},
                    "end-run.lease: input should be greater than or equal to 1",
                ),
                ({"command": "end-run", "lease": 1, "job": "../a"}, "end-run.job: string should match pattern"),
                ({"command": "end-run", "lease": "1", "job": "a"}, "end-run.lease: input should be a valid integer"),
                ({"command": "ask-status", "more": 1}, "ask-status.more: unexpected keyword argument"),
            ):
                reader, writer = await asyncio.open_unix_connection(sock=connected_socket(machine.directory))
                writer.write(encoded({"id": 1, "command": "hello", "epoch": None}))  # which looks only
                writer.write(encoded({"id": 2, **message}))
                await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
                answer = (await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))).decode()
                assert '"ok":false,"code":"bad-input"' in answer
                assert line in answer
                writer.close()
            for nonsense in (b"\xff\xff\xff\xff", b"\x00\x00\x00\x02[]", b"\x00\x00\x00\x01{"):
                reader, writer = await asyncio.open_unix_connection(sock=connected_socket(machine.directory))
                writer.write(nonsense)
                assert await reader.read() == b""
                writer.close()
            with pytest.raises(FrameError, match="expected at most"):
                await machine.start(run="x" * 17 * 2**20)
            with pytest.raises(RefusedError, match="its lease must not end"):
                await machine.start(run="true", preemptible=False, expires=True)
            with pytest.raises(RefusedError, match="expected each worker once"):
                await machine.start(run="true", workers=[1, 1])
            assert (await machine.client.status()).runs == ()

    asyncio.run(check())


def test_two_agents_never_share_a_directory_and_bad_options_are_one_line(tmp_path: Path) -> None:
    async def check() -> None:
        async with Machine(tmp_path) as machine:
            command = [sys.executable, "-m", "fairway.live.local.agent", "--directory"]
            second = subprocess.run([*command, machine.directory], capture_output=True, text=True, check=False)
            assert second.returncode == 2
            assert second.stderr.splitlines()[-1].endswith("another agent works in this directory")
            bad = subprocess.run(
                [*command, tmp_path / "x", "--emulate", "v100"], capture_output=True, text=True, check=False
            )
            assert bad.returncode == 2
            assert bad.stderr == "emulate: 'v100' given, expected TYPE=COUNT as in 'v100=8,k80=16'\n"
            await machine.client.shutdown()
            assert machine.agent is not None
            assert machine.agent.wait() == 0
            with pytest.raises(AgentGoneError, match="no agent answers"):
                await AgentClient.connect(machine.directory, 1)
            (machine.directory / "state.json").write_text("[]")
            with pytest.raises(AgentGoneError, match="not the state of an agent of this version"):
                start_agent(machine.directory)

    asyncio.run(check())


@pytest.mark.parametrize("torn", [b"", bytes(100)])
def test_a_state_that_was_torn_when_the_machine_stopped_is_read_from_its_synced_copy(
    torn: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "state.json"
    AgentState(epoch=3).save_synced(path)
    AgentState(epoch=4).save(path)
    assert AgentState.load(path).epoch == 4
    path.write_bytes(torn)
    assert AgentState.load(path).epoch == 3


def test_an_emulated_accelerator_paces_a_job_to_its_rate(tmp_path: Path) -> None:
    trace = tmp_path / "trace"

    async def check() -> None:
        async with Machine(tmp_path, time_scale=10.0) as machine:
            await machine.start(run=python(COUNTING, 600, 0, trace), steps_per_second=20.0)  # 200 steps/s on the clock
            assert (await machine.ended()).kind == "finished"
            told = [report.steps_per_second for report in machine.reports if isinstance(report, RunProgressed)]
            assert statistics.median(rate for rate in told if rate) == pytest.approx(200.0, rel=0.1)

    asyncio.run(check())


def test_an_agent_that_is_bound_to_a_process_kills_its_runs_and_ends_with_it(tmp_path: Path) -> None:
    directory, trace = tmp_path / "machine", tmp_path / "trace"

    async def check() -> None:
        with subprocess.Popen(["sleep", "600"]) as other:
            agent = start_agent(directory, emulate="v100=1", bound_to=other.pid)
            client, _ = await AgentClient.connect(directory, 1)
            program = JobProgram(tuple(python(COUNTING, 10**6, 0.01, trace)), grace_seconds=600.0)
            await client.give(StartRun(1, "job", program, "v100", (0,)))
            await until(lambda: len(steps_in(trace)) > 10)
            other.kill()
            await asyncio.to_thread(agent.wait, 30)
            await client.close()
        steps = len(steps_in(trace))
        (run,) = AgentState.load(directory / "state.json").runs
        assert run.outcome is not None
        assert (run.state, run.outcome.kind) == (RunState.ENDED, "lost")
        await asyncio.sleep(0.2)
        assert len(steps_in(trace)) == steps, "nothing of the job is left"

    asyncio.run(check())


def test_an_agent_cannot_be_bound_to_a_process_that_is_not_there(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    with pytest.raises(AgentGoneError, match=f"bound-to: there is no process {ended.pid}"):
        start_agent(tmp_path / "machine", emulate="v100=1", bound_to=ended.pid)
