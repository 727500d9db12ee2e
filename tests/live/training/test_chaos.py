"""Random jobs, cancels, drains and kills, in virtual time: whatever happens in whatever order, nothing is lost."""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from fairway.store.states import JobState
from tests.live.training.invariants import check_history, check_journal
from tests.live.training.test_crashes import check
from tests.live.training.virtual import ConnectionLost, Crash, World

_TYPES = ("ResNet-18 (batch size 16)", "ResNet-18 (batch size 64)", "ResNet-50 (batch size 16)")
_WORKERS = [("v100", 0), ("v100", 1), ("k80", 0)]


class Chaos:
    """What happens is drawn from a seed."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.draw = random.Random(seed)
        self.kills = self.draw.choice([0.0, 0.02, 0.1, 0.3])
        policy = self.draw.choice(
            ["max-min-fairness", "max-min-fairness:space-sharing", "fifo", "finish-time-fairness:space-sharing"]
        )
        self.world = World(directory, "v100=2,k80=1", policy=policy, point=self._point)
        self.said: list[str] = []

    def _point(self, what: str) -> None:
        self.said.append(f"{self.world.now - 1e6:.3f} {what}")
        if self.draw.random() < self.kills:
            match self.draw.randint(0, 3):
                case 0:
                    self.said.append("*** agent and controller are killed")
                    self.world.start_agent()
                case 1 if what.endswith("was given"):
                    self.said.append("*** the connection is lost")
                    raise ConnectionLost
                case _:
                    self.said.append("*** the controller is killed")
            raise Crash

    def run(self, actions: int) -> None:
        with self.world.running():
            for _ in range(actions):
                self.world.survive(self._act)
                check_history(self.world.store)
            self.kills = 0.0
            self.world.survive(lambda: self.world.drain(_WORKERS, on=False))
            self.world.finish()
            check(self.world)
            check_journal(self.world.store)

    def _act(self) -> None:
        world, draw = self.world, self.draw
        match draw.choices(
            ["submit", "cancel", "drain", "wait", "agent", "keeper"], weights=[8, 3, 2, 12, 1, 1]
        )[0]:  # fmt: skip
            case "submit":
                self.said.append("submit")
                world.submit(draw.randint(1, 60), **self._kind())
            case "cancel":
                active = [job.id for job in world.jobs() if job.active]
                if active:
                    name = draw.choice(active)
                    self.said.append(f"cancel {name}")
                    world.cancel(name)
            case "drain":
                some = draw.sample(_WORKERS, draw.randint(1, 3))
                on = draw.random() < 0.5
                self.said.append(f"drain {some} {on}")
                world.drain(some, on=on)
            case "wait":
                world.run_for(draw.choice([0.05, 0.2, 1.0, 4.0]))
            case "agent":
                self.said.append("*** the agent is killed")
                world.kill_agent()
            case "keeper":
                alive = world.alive()
                if alive:
                    one = draw.choice(alive)
                    self.said.append(f"*** the keeper of {one.job} is killed")
                    one.kill()
                    world.run_for(0.3)

    def _kind(self) -> dict[str, object]:
        draw = self.draw
        match draw.randint(0, 9):
            case 0:
                return {"run": ["fail"], "retries": draw.randint(0, 2)}
            case 1:
                return {"resources": {"accelerators": "v100:2"}}
            case 2:
                return {"preemptible": False}
            case 3 | 4 | 5 | 6:
                return {"job_type": draw.choice(_TYPES)}
        return {"team": draw.choice("ab")}


@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_lost_whatever_happens(seed: int) -> None:
    with TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as directory:
        chaos = Chaos(Path(directory), seed)
        chaos.run(40)
        for job in chaos.world.jobs():
            if job.spec["run"] != ["fail"]:
                assert job.state is not JobState.FAILED, job
