"""Checkpoints of a job: whole files, the last step that all ranks have, and how many are kept."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairway.live.job.checkpoint import Checkpoints


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_rank_goes_on_from_the_last_step_that_all_have_saved(tmp_path: Path) -> None:
    first, second = (Checkpoints(tmp_path / "c", rank, 2) for rank in range(2))
    assert first.latest() is None
    first.save(10, "a")
    assert first.latest() is None
    second.save(10, "b")
    first.save(20, "c")
    assert first.latest() == second.latest() == 10
    assert (first.load(10), second.load(10), first.load(20)) == ("a", "b", "c")


def test_two_are_kept_and_never_is_the_common_one_removed(tmp_path: Path) -> None:
    one = Checkpoints(tmp_path)
    for step in (1, 2, 3, 4):
        one.save(step, step)
    assert names(tmp_path) == ["step-000000000003.rank-0.pickle", "step-000000000004.rank-0.pickle"]
    first, second = (Checkpoints(tmp_path / "gang", rank, 2) for rank in range(2))
    second.save(5, None)
    for step in (5, 6, 7, 8):
        first.save(step, step)
    assert len(names(tmp_path / "gang")) == 5, "the other rank has 5 only"
    second.save(8, None)
    first.save(9, 9)
    assert sorted(first._files(0)) == [8, 9]


@pytest.mark.parametrize(
    ("state", "ending"),
    [
        ({"w": np.arange(3.0), "b": np.ones((2, 2))}, "npz"),
        ({}, "pickle"),
        ({"w": [1, 2]}, "pickle"),
        ({"w": np.array([{}], dtype=object)}, "pickle"),
        ({"not a name": np.ones(1)}, "pickle"),
        ({"file": np.ones(1)}, "pickle"),
        ({3: np.ones(1)}, "pickle"),
        ([1, "x"], "pickle"),
        (None, "saved"),
    ],
)
def test_a_state_comes_back_as_it_was(tmp_path: Path, state: Any, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(7, state)
    assert names(tmp_path) == [f"step-000000000007.rank-0.{ending}"]
    loaded = checkpoints.load(7)
    if ending == "npz":
        assert loaded.keys() == state.keys()
        assert all((loaded[name] == value).all() for name, value in state.items())
    else:
        assert str(loaded) == str(state)


def test_other_files_and_other_ranks_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    (tmp_path / "step-9.rank-0.part").touch()
    (tmp_path / "step-000000000009.rank-10.pickle").touch()
    checkpoints = Checkpoints(tmp_path, 1, 1)
    assert checkpoints.latest() is None
    checkpoints.save(3, 3)
    assert len(names(tmp_path)) == 4
