"""What agents that were killed have left of control groups is removed by the next one, and nothing that is in use."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairway.live.machine.abandoned_groups import hold, remove_abandoned, undisturbed
from fairway.live.machine.containment import Containment, RunGroup


@pytest.fixture
def mine(tmp_path: Path) -> Iterator[Containment]:
    found = Containment.found(tmp_path / "mine")
    if not found.parents:
        pytest.skip("no control group can be made here: this needs root, or a delegated group")
    yield found
    found.discard()


def _other(mine: Containment) -> tuple[Path, ...]:
    """The groups of another agent, with that of a run."""
    name = f"fairway-{uuid.uuid4().hex[:12]}"
    others = tuple(parent.with_name(name) for parent in mine.parents)
    for other in others:
        (other / "1-job").mkdir(parents=True)
    return others


def test_groups_that_no_agent_holds_and_no_process_is_in_are_removed(mine: Containment) -> None:
    others = _other(mine)
    remove_abandoned(mine.parents)
    assert not any(other.exists() for other in others)
    assert all(parent.exists() for parent in mine.parents)


def test_groups_that_an_agent_holds_stay_until_it_ends_however_it_ends(mine: Containment) -> None:
    others = _other(mine)
    held = hold(others)
    assert len(held) == len(others)
    remove_abandoned(mine.parents)
    assert all((other / "1-job").exists() for other in others)
    for descriptor in held:
        os.close(descriptor)
    remove_abandoned(mine.parents)
    assert not any(other.exists() for other in others)


def test_groups_in_which_a_run_outlives_its_agent_stay(mine: Containment) -> None:
    others = _other(mine)
    group = RunGroup(tuple(other / "1-job" for other in others))
    with subprocess.Popen(["sleep", "60"], preexec_fn=group.enter) as process:  # noqa: PLW1509 - no thread runs here
        try:
            remove_abandoned(mine.parents)
            assert all((other / "1-job").exists() for other in others)
        finally:
            process.kill()
    remove_abandoned(mine.parents)
    assert not any(other.exists() for other in others)


def test_groups_of_an_agent_that_is_about_to_hold_them_stay(mine: Containment) -> None:
    """As when several agents begin at once on a machine, each of which removes what it finds."""
    with undisturbed(Containment.places()):
        others = _other(mine)
        remove_abandoned(mine.parents)
        assert all((other / "1-job").exists() for other in others)
        with undisturbed(Containment.places()):
            pass  # several may begin at a time
    remove_abandoned(mine.parents)
    assert not any(other.exists() for other in others)
