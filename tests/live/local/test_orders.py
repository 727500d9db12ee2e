"""What a keeper is ordered to run: as the command said, with what this machine adds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from fairway.live import durable_file
from fairway.live.backend.answers import RefusedError
from fairway.live.backend.commands import JobProgram
from fairway.live.backend.logs import LOG_BYTES
from fairway.live.backend.status import MachineSize
from fairway.live.local.run_files import RunOrder
from fairway.live.machine.containment import Containment
from tests.live.local.standing_machine import StandingMachine


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[StandingMachine]:
    with patch.object(durable_file, "_sync", lambda _: None):
        yield StandingMachine(tmp_path)


def _ordered(machine: StandingMachine, lease: int = 1, *workers: int, **program: Any) -> RunOrder:
    machine.start(lease, *(workers or (0,)), job=f"job-{lease}", program=JobProgram(**{"run": "train", **program}))
    order = machine.files(lease, f"job-{lease}").order()
    assert order is not None
    return order


def test_a_run_is_in_the_groups_for_cpus_and_memory_if_it_asks_for_either(machine: StandingMachine) -> None:
    pids, bounding = machine.directory / "pids", machine.directory / "bounding"
    machine.agent(containment=Containment((pids,), (bounding,)))
    for lease, asked, is_bounded in (
        (1, {}, False), (2, {"cpus": 1.5}, True), (3, {"memory_bytes": 2**20}, True),
    ):  # fmt: skip
        order = _ordered(machine, lease, lease, **asked)
        name = f"{lease}-job-{lease}"
        assert order.groups == [str(pids / name), *([str(bounding / name)] if is_bounded else [])]
        assert (order.cpus, order.memory_bytes) == (asked.get("cpus"), asked.get("memory_bytes"))


def test_what_the_program_says_is_what_is_run(machine: StandingMachine) -> None:
    order = _ordered(machine, 4, 2, 3, run=("python", "train.py"), setup="make", workdir="/tmp", checkpoint_seconds=7.0,
                     grace_seconds=3.0, log_bytes=2**22)  # fmt: skip
    assert (order.job, order.lease, order.run, order.setup, order.workdir) == (
        "job-4", 4, ["python", "train.py"], "make", "/tmp",
    )  # fmt: skip
    assert (order.checkpoint_seconds, order.grace_seconds, order.log_bytes) == (7.0, 3.0, 2**22)
    assert len(order.ranks) == len(order.logs) == 2
    assert (order.user, order.requirements, order.environments) == (None, None, None)
    text = _ordered(machine, 5, 1, run="echo x | cat")
    assert (text.run, text.log_bytes) == ("echo x | cat", LOG_BYTES)


def test_a_job_with_requirements_has_its_environments_below_the_agent(machine: StandingMachine) -> None:
    order = _ordered(machine, 1, 0, requirements="/some/requirements.txt")
    assert order.requirements == "/some/requirements.txt"
    assert order.environments == str(machine.directory / "environments" / "own")
    assert (machine.directory / "environments" / "own").is_dir()


def test_checkpoints_are_below_the_agent_or_where_the_program_says(machine: StandingMachine, tmp_path: Path) -> None:
    _ordered(machine, 1, 0)
    assert (machine.directory / "checkpoints" / "job-1").is_dir()
    own = tmp_path / "of-my-own"
    order = _ordered(machine, 2, 1, checkpoint_directory=str(own))
    assert own.is_dir()
    assert order.environment["FAIRWAY_CHECKPOINT_DIR"] == str(own)
    assert not (machine.directory / "checkpoints" / "job-2").exists()


def test_a_checkpoint_directory_that_cannot_be_made_is_refused_with_its_name(machine: StandingMachine) -> None:
    file = machine.directory / "a-file"
    file.touch()
    with pytest.raises(RefusedError, match=r"checkpoint directory .*a-file") as caught:
        _ordered(machine, 1, 0, checkpoint_directory=str(file / "below"))
    assert caught.value.code == "cannot-start"
    with pytest.raises(RefusedError, match="user 'nobody-of-this-name'"):
        _ordered(machine, 1, 0, user="nobody-of-this-name")


def test_only_an_emulated_run_with_a_known_rate_is_paced(machine: StandingMachine) -> None:
    machine.start(1, 0, 1, job="paced", steps_per_second=8.0)
    machine.start(2, 2, job="free")
    paced, free = machine.files(1, "paced").lease(), machine.files(2, "free").lease()
    assert paced is not None
    assert free is not None
    assert (paced.pace, free.pace) == (8.0, None), "by rank, on a clock that runs twice as fast"


def test_the_size_of_the_machine_is_in_the_status_where_it_is_known(machine: StandingMachine) -> None:
    assert machine.table.status().machines == ()
    size = MachineSize(8.0, 2**34)
    assert machine.agent(machine=size).status().machines == (size,)
