"""A policy of one's own decides live, too: in the process that decides, which finds its module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairway import Cluster, Job, Problem, policy_of
from fairway.allocate.policy import UndecidedError
from fairway.live.training.decision.process import DecisionProcess
from fairway.live.training.settings import ControllerSettings

MODULE = """
import os
from dataclasses import dataclass
from typing import ClassVar
from fairway import Allocation, Policy, Problem


@dataclass(frozen=True)
class Own(Policy):
    name: ClassVar[str] = "own"
    part: float = 0.5
    fails: bool = False

    def allocate(self, problem: Problem) -> Allocation:
        if self.fails:
            raise ValueError(f"in process {os.getpid()}")
        return Allocation.of_jobs(self.name, problem, self.part * problem.isolated_shares, objective=1.0)
"""

PROBLEM = Problem.of(Cluster({"v100": 1}), [Job("a", {"v100": 1.0}, steps_left=10.0)])


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DecisionProcess]:
    (tmp_path / "own_live_policy.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    process = DecisionProcess()
    yield process
    process.close()


def test_the_process_that_decides_finds_the_module(process: DecisionProcess, tmp_path: Path) -> None:
    settings = ControllerSettings(tmp_path, policy="own_live_policy:Own:part=0.25", emulate="v100=1")
    decided = process.decide(policy_of(settings.policy), PROBLEM, 30.0)
    assert decided.shares.tolist() == [[0.25]]
    with pytest.raises(UndecidedError, match="policy 'own' failed: ValueError: in process"):
        process.decide(policy_of("own_live_policy:Own:fails"), PROBLEM, 30.0)
