"""The control group of a run, as files: what is written where, over directories that stand for the kernel's."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairway.live.machine.containment import CAVEAT, Containment, RunGroup, group_at

SECOND = ("pids.max", "cpu.max", "memory.max", "memory.swap.max", "memory.oom.group", "cgroup.procs")
FIRST = ("cpu.cfs_period_us", "cpu.cfs_quota_us", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes")


@pytest.fixture
def group(tmp_path: Path) -> RunGroup:
    """One whose files are there, as the kernel makes them."""
    path = tmp_path / "1-job"
    path.mkdir()
    for name in (*SECOND, *FIRST):
        (path / name).write_text("")
    return RunGroup((path,))


def _bounds(group: RunGroup) -> dict[str, str]:
    return {path.name: text for path in group.paths[0].iterdir() if (text := path.read_text())}


def test_a_run_that_asks_for_nothing_is_bounded_in_its_processes_only(group: RunGroup) -> None:
    group.make()
    assert set(_bounds(group)) == {"pids.max"}
    assert int(_bounds(group)["pids.max"]) > 0


@pytest.mark.parametrize(("cpus", "quota"), [(1.5, "150000"), (1e-6, "1000")])
def test_cpus_are_a_quota_of_each_tenth_of_a_second_in_both_versions(group: RunGroup, cpus: float, quota: str) -> None:
    """The kernel takes a thousand microseconds at least."""
    group.make(cpus=cpus)
    bounds = _bounds(group)
    del bounds["pids.max"]
    assert bounds == {"cpu.max": f"{quota} 100000", "cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": quota}


def test_memory_is_bounded_with_what_is_swapped_out_and_a_run_that_needs_more_ends_as_a_whole(group: RunGroup) -> None:
    group.make(memory_bytes=2**30)
    bounds = _bounds(group)
    del bounds["pids.max"]
    assert bounds == {
        "memory.max": str(2**30), "memory.swap.max": "0", "memory.oom.group": "1",
        "memory.limit_in_bytes": str(2**30), "memory.memsw.limit_in_bytes": str(2**30),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("memory.events", "low 0\noom 3\noom_kill 1\n", True), ("memory.events", "low 0\noom 3\noom_kill 0\n", False),
        ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", True),
        ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n", False),
    ],
)  # fmt: skip
def test_that_the_kernel_has_killed_for_want_of_memory_is_seen(
    group: RunGroup, name: str, text: str, expected: bool
) -> None:
    assert not group.ran_out_of_memory()
    (group.paths[0] / name).write_text(text)
    assert group.ran_out_of_memory() is expected


def test_a_process_enters_every_group_of_its_run(tmp_path: Path, group: RunGroup) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "cgroup.procs").write_text("")
    RunGroup((*group.paths, tmp_path / "nowhere", other)).enter()
    assert (group.paths[0] / "cgroup.procs").read_text() == "0", "0 stands for the process that writes it"
    assert (other / "cgroup.procs").read_text() == "0"


def test_a_group_is_empty_if_it_is_there_without_processes(tmp_path: Path) -> None:
    path = tmp_path / "1-job"
    assert not group_at([str(path)]).is_empty(), "it is not there"
    path.mkdir()
    (path / "cgroup.procs").write_text("")
    assert group_at([str(path)]).is_empty()
    (path / "cgroup.procs").write_text("4194305\n")
    assert not group_at([str(path)]).is_empty()
    assert not RunGroup().is_empty()


def test_a_group_whose_processes_do_not_end_says_so_when_patience_is_over(tmp_path: Path) -> None:
    path = tmp_path / "1-job"
    path.mkdir()
    (path / "cgroup.procs").write_text("4194305\n")  # a number that no process has
    assert not group_at([str(path)]).kill(patience=0.01)
    assert (path / "cgroup.kill").read_text() == "1"
    (path / "cgroup.procs").write_text("")
    assert group_at([str(path)]).kill(patience=0.01)


def test_runs_that_ask_for_bounds_are_in_the_hierarchies_for_these_too(tmp_path: Path) -> None:
    found = Containment((tmp_path / "pids",), (tmp_path / "memory",))
    assert found.group_of("1-job").paths == (tmp_path / "pids/1-job", tmp_path / "memory/1-job")
    assert found.group_of("1-job", limited=False).paths == (tmp_path / "pids/1-job",)


def test_groups_that_no_record_names_are_cleared_in_all_hierarchies(tmp_path: Path) -> None:
    found = Containment((tmp_path / "pids",), (tmp_path / "memory",))
    for name in ("1-known", "2-unknown"):
        for parent in (*found.parents, *found.bounding):
            (parent / name).mkdir(parents=True)
    found.clear({"1-known"})
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/*")) == [
        "memory/1-known", "pids/1-known",
    ]  # fmt: skip
    found.discard()
    assert (tmp_path / "pids").exists(), "a run still has its group there"
    found.clear(set())
    found.discard()
    assert not (tmp_path / "pids").exists()
    assert not (tmp_path / "memory").exists()


def test_what_the_kernel_does_not_offer_is_said_and_nothing_else(tmp_path: Path) -> None:
    assert Containment((tmp_path,)).caveats == ()
    assert Containment().caveats == (CAVEAT,)
    both = Containment(enforced=frozenset({"memory"})).caveats
    assert both[0] == CAVEAT
    assert "CPUs" in both[1]
    assert len(both) == 2
