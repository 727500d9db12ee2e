"""Whatever is killed, whenever: a scenario is run again and again, with a kill at each of its moments in turn."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from fairway.store.queries import job_history
from fairway.store.states import JobState
from tests.live.backend.simulated import START_SECONDS
from tests.live.training.invariants import check_all_over, check_history, check_journal
from tests.live.training.virtual import Crash, World

Scenario = Callable[[World, "Steps"], None]


class Steps:
    """The steps of a scenario, each of which is begun once, however often the scenario is begun anew."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self._done: set[str] = set()
        self._begun: set[str] = set()

    def once(self, what: str, action: Callable[[], object]) -> None:
        if what in self._done:
            return
        if what not in self._begun:
            self._begun.add(what)
            action()
        self._done.add(what)


def contention(world: World, steps: Steps) -> None:
    """Three jobs of two teams, one of them a gang, want three workers; some are preempted."""
    steps.once("a", lambda: world.submit(14, team="red"))
    steps.once("b", lambda: world.submit(14, team="blue", resources={"accelerators": "v100:2"}))
    steps.once("c", lambda: world.submit(14, team="red"))
    world.finish()


def sharing(world: World, steps: Steps) -> None:
    """Pairs share workers; one of a pair finishes, one is cancelled, and the others go on without a stop."""
    kind = "ResNet-18 (batch size 16)"
    for number in range(4):
        steps.once(f"submit {number}", lambda number=number: world.submit((60, 200, 200, 200)[number], job_type=kind))
    steps.once("run", lambda: world.run_for(4.0))
    steps.once("cancel", lambda: world.cancel("job-3"))
    world.finish()


def trouble(world: World, steps: Steps) -> None:
    """A job that fails, one that is never preempted, and one whose worker is drained for a while."""
    steps.once("a", lambda: world.submit(8))
    steps.once("b", lambda: world.submit(30, run=["fail"], retries=1))
    steps.once("c", lambda: world.submit(12, preemptible=False))
    steps.once("run", lambda: world.run_for(3.0))
    steps.once("drain", lambda: world.drain([("k80", 0), ("v100", 0)], on=True))
    steps.once("run on", lambda: world.run_for(8.0))
    steps.once("undrain", lambda: world.drain([("k80", 0), ("v100", 0)], on=False))
    world.finish()


def cancels(world: World, steps: Steps) -> None:
    """Jobs are taken back while they wait, start, run, save and rest after a failure."""
    steps.once("a", lambda: world.submit(100, run=["slow"]))
    steps.once("b", lambda: world.submit(100, run=["fail"]))
    steps.once("c", lambda: world.submit(30))
    steps.once("begin", lambda: world.run_for(0.1))
    steps.once("starting", lambda: world.cancel("job-1"))
    steps.once("rest", lambda: world.run_until(lambda: world.job("job-2").reason_code == "BackOff"))
    steps.once("resting", lambda: world.cancel("job-2"))
    steps.once("more", lambda: world.submit(30))
    steps.once("other", lambda: world.submit(30))
    steps.once("wait", lambda: world.run_for(1.0))
    steps.once("drain", lambda: world.drain([("k80", 0)], on=True))
    some = sorted((job for job in world.jobs() if job.active), key=lambda job: job.state == "preempting")
    steps.once("preempting", lambda: world.cancel(some[-1].id))
    steps.once("run", lambda: world.run_for(1.0))
    steps.once("undrain", lambda: world.drain([("k80", 0)], on=False))
    steps.once("run on", lambda: world.run_for(1.0))
    for job in ("job-5", "job-4", "job-3"):
        steps.once(f"cancel {job}", lambda job=job: world.cancel(job))
    world.finish()


def plenty(world: World, steps: Steps) -> None:
    """Everybody has a worker."""
    for number in range(3):
        steps.once(f"submit {number}", lambda: world.submit(8))
    world.finish()


SCENARIOS: dict[str, tuple[Scenario, str, str]] = {
    "contention": (contention, "v100=2,k80=1", "max-min-fairness"),
    "cancels": (cancels, "v100=1,k80=1", "max-min-fairness"),
    "sharing": (sharing, "v100=1,k80=1", "max-min-fairness:space-sharing"),
    "trouble": (trouble, "v100=1,k80=1", "max-min-fairness"),
}
PLENTY: tuple[Scenario, str, str] = (plenty, "v100=3", "max-min-fairness")


def run(scenario: str, kill: Callable[[World, int, str], None]) -> tuple[World, int]:
    """Run a scenario; `kill` is called at each moment with its number. Returns the world and the number of moments."""
    script, emulate, policy = SCENARIOS.get(scenario, PLENTY)
    moments = 0

    def point(what: str) -> None:
        nonlocal moments
        moments += 1
        kill(world, moments, what)

    with TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as directory:
        world = World(Path(directory), emulate, policy=policy, point=point)
        with world.running():
            steps = Steps()
            while True:
                try:
                    script(world, steps)
                    break
                except Crash:
                    world.start_controller()
            check(world)
            if moments % 5 == 0:
                check_journal(world.store)
            world.end = world.jobs()
    return world, moments


def check(world: World) -> None:
    check_history(world.store)
    check_all_over(world.store)
    status = world.status()
    assert status.runs == ()
    assert status.former == ()
    for job in world.jobs():
        mine = [one for one in world.processes if one.job == job.id and one.started]
        assert len(mine) == job.attempts, f"{job.id} was started {len(mine)} times"
        for one, attempt in zip(mine, world.store.read(job_history, job.id).attempts, strict=True):
            assert attempt.started_at == pytest.approx(one.begun + START_SECONDS)
            assert one.ended_at is None or attempt.ended_at == pytest.approx(one.ended_at), "as long as it really ran"
        for one, following in pairwise(mine):
            assert following.steps_done[0][0] <= one.steps_done[0][1], "no step is left out"
        if job.state is JobState.SUCCEEDED:
            assert mine[-1].steps_done[-1][1] == mine[-1].total
            assert job.steps_left == 0


def undisturbed(scenario: str) -> tuple[World, int]:
    return run(scenario, lambda *_: None)


@pytest.mark.parametrize("part", range(3))
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_controller_can_be_killed_at_any_moment(scenario: str, part: int) -> None:
    expected, moments = undisturbed(scenario)
    states = {job.id: job.state for job in expected.end}
    assert moments > 30
    every = 3 if scenario in {"contention", "sharing"} else 6
    for chosen in range(1 + part, moments + 1, every):

        def kill(world: World, moment: int, what: str, chosen: int = chosen) -> None:
            if moment == chosen:
                if chosen % 4 == 0:
                    world.start_agent()  # the agent is killed with it
                raise Crash(what)

        world, _ = run(scenario, kill)
        assert {job.id: job.state for job in world.end} == states or scenario == "cancels"


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_agent_can_be_killed_at_any_moment(scenario: str) -> None:
    expected, moments = undisturbed(scenario)
    for chosen in range(1, moments + 1, 9):

        def kill(world: World, moment: int, what: str, chosen: int = chosen) -> None:
            if moment == chosen:
                world.kill_agent()

        world, _ = run(scenario, kill)
        assert len(world.end) == len(expected.end)


def test_no_kill_makes_a_job_start_again_that_has_its_workers_to_itself() -> None:
    _, moments = undisturbed("plenty")
    for chosen in range(1, moments + 1, 2):

        def kill(world: World, moment: int, what: str, chosen: int = chosen) -> None:
            if moment == chosen:
                if chosen % 4 == 1:
                    world.start_agent()
                raise Crash(what)

        world, _ = run("plenty", kill)
        assert [job.attempts for job in world.end] == [1, 1, 1], f"killed at moment {chosen}"
        assert len(world.processes) == 3
