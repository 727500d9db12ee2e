"""Where control groups are found, by what the system says of mounts and of this process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fairway.live.machine import containment
from fairway.live.machine.containment import Containment, group_at, most_processes

VERSION_2 = "35 25 0:30 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate"
PIDS = "40 25 0:35 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids"
MEMORY = "41 25 0:36 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"
INSIDE = "42 25 0:37 /docker/abc /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids"
DISK = "43 25 0:38 / /data rw - ext4 /dev/sda rw"


def found(monkeypatch: pytest.MonkeyPatch, mounts: list[str], groups: list[str]) -> list[str]:
    told = {"/proc/self/mountinfo": "\n".join(mounts), "/proc/self/cgroup": "\n".join(groups)}
    monkeypatch.setattr(Path, "read_text", lambda path: told[str(path)])
    return [str(path) for path in containment._own_groups()]


@pytest.mark.parametrize(
    ("mounts", "groups", "expected"),
    [
        ([VERSION_2], ["0::/user.slice/me"], ["/sys/fs/cgroup/user.slice/me"]),
        ([VERSION_2], ["0::/"], ["/sys/fs/cgroup"]),
        ([PIDS, MEMORY, DISK], ["9:pids:/me", "8:memory:/me"], ["/sys/fs/cgroup/pids/me"]),
        ([PIDS], ["9:cpu,pids:/me"], ["/sys/fs/cgroup/pids/me"]),
        ([INSIDE], ["9:pids:/docker/abc/me"], ["/sys/fs/cgroup/pids/me"]),
        ([VERSION_2, PIDS], ["0::/a", "9:pids:/b"], ["/sys/fs/cgroup/a", "/sys/fs/cgroup/pids/b"]),
        ([VERSION_2], ["9:pids:/b"], []),
        ([VERSION_2], ["1:name=systemd:/b"], []),
        ([PIDS], ["0::/a"], []),
        ([MEMORY], ["9:pids:/b", "8:memory:/me"], []),
        ([DISK], ["0::/a", "9:pids:/b"], []),
    ],
)
def test_groups_of_version_2_and_of_pids_are_found(
    monkeypatch: pytest.MonkeyPatch, mounts: list[str], groups: list[str], expected: list[str]
) -> None:
    assert found(monkeypatch, mounts, groups) == expected


def test_without_proc_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(path: Path) -> str:
        raise FileNotFoundError(path)

    monkeypatch.setattr(Path, "read_text", missing)
    assert list(containment._own_groups()) == []
    assert most_processes() == 32768 // 4


@pytest.mark.parametrize(("most", "expected"), [("4194304", 32768), ("32768", 8192), ("100", 1024), ("x", 8192)])
def test_a_job_may_have_a_quarter_of_all_processes(monkeypatch: pytest.MonkeyPatch, most: str, expected: int) -> None:
    monkeypatch.setattr(Path, "read_text", lambda _: most)
    assert most_processes() == expected


def test_a_place_is_usable_where_groups_can_be_made_and_entered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = tmp_path / "fairway"
    assert not containment._is_usable(group), "what is made there is no group"
    assert group.is_dir()
    assert list(group.iterdir()) == [], "the trial is removed"
    assert not containment._is_usable(tmp_path / "missing" / "deep")
    monkeypatch.setattr(os, "access", lambda path, _: path.name == "cgroup.procs")
    assert containment._is_usable(group)
    monkeypatch.setattr(os, "access", lambda path, _: path.parent != tmp_path)
    assert not containment._is_usable(group)


def test_members_are_those_of_a_group_and_of_all_inside_it(tmp_path: Path) -> None:
    for name, members in (("", "1\n2\n"), ("in", "3\n"), ("in/deep", "4\n"), ("odd", "x\n")):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "cgroup.procs").write_text(members)
    assert sorted(containment._members(tmp_path)) == [1, 2, 3, 4]
    nested = list(containment._nested(tmp_path))
    assert nested[-1] == tmp_path
    assert nested.index(tmp_path / "in" / "deep") < nested.index(tmp_path / "in")
    assert list(containment._nested(tmp_path / "nowhere")) == []
    assert group_at([str(tmp_path)]).paths == (tmp_path,)
    assert Containment((tmp_path,)).group_of("run").paths == (tmp_path / "run",)
