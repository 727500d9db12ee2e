"""A work directory arrives at a node as it was, without what is ignored, whole or not at all."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.errors import InputError
from fairway.live.ray import work_package
from fairway.live.ray.ignored_files import IgnoredFiles
from fairway.live.ray.sent_directories import WorkPackages
from fairway.live.ray.work_package import ReceivedPackages, pack, packed_files


def project(directory: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return directory


def sent(packages: WorkPackages, received: ReceivedPackages, workdir: Path, *, part: int = 50) -> Path:
    package = packages.of("job-1", workdir)
    content = package.path.read_bytes()
    where = None
    for position in range(0, len(content), part):
        assert where is None
        last = position + part >= len(content)
        where = received.receive("job-1", package.digest, position, content[position : position + part], last=last)
    assert where is not None
    assert received.find("job-1", package.digest) == where
    return Path(where)


def test_what_arrives_is_what_was_packed(tmp_path: Path) -> None:
    workdir = project(tmp_path / "p", {"train.py": "print(1)", "lib/net.py": "x", "notes.log": "no", ".git/HEAD": "no",
                                       "lib/__pycache__/net.pyc": "no", ".gitignore": "*.log\n"})  # fmt: skip
    (workdir / "train.py").chmod(0o755)
    (workdir / "link").symlink_to("lib/net.py")
    os.mkfifo(workdir / "pipe")
    there = sent(WorkPackages(tmp_path / "c"), ReceivedPackages(tmp_path / "n"), workdir)
    found = {str(path.relative_to(there)) for path in there.rglob("*") if not path.is_dir()}
    assert found == {"train.py", "lib/net.py", "link", ".gitignore"}
    assert (there / "link").read_text() == "x"
    assert os.access(there / "train.py", os.X_OK)


def test_the_same_files_have_the_same_package_and_a_job_keeps_its_own(tmp_path: Path) -> None:
    for name in "ab":
        project(tmp_path / name, {"one": "1", "two/three": "3"})
        for path in (tmp_path / name).rglob("*"):
            os.utime(path, (1e9, 1e9))
        pack(tmp_path / name, tmp_path / f"{name}.tar.gz")
    assert (tmp_path / "a.tar.gz").read_bytes() == (tmp_path / "b.tar.gz").read_bytes()
    packages = WorkPackages(tmp_path / "packages")
    before = packages.of("job-1", tmp_path / "a")
    (tmp_path / "a" / "one").write_text("changed")
    assert packages.of("job-1", tmp_path / "a") == before
    assert packages.of("job-2", tmp_path / "a").digest != before.digest
    packages.drop("job-1")
    assert not before.path.exists()


def test_a_package_that_arrives_broken_is_no_work_directory(tmp_path: Path) -> None:
    packages, received = WorkPackages(tmp_path / "c"), ReceivedPackages(tmp_path / "n")
    package = packages.of("job-1", project(tmp_path / "p", {"a": "1"}))
    content = package.path.read_bytes()
    with pytest.raises(ValueError, match="did not arrive as it was sent"):
        received.receive("job-1", package.digest, 0, content[:-1] + b"?", last=True)
    assert received.find("job-1", package.digest) is None
    assert received.receive("job-1", package.digest, 0, content, last=True) is not None
    received.drop("job-1")
    assert received.find("job-1", package.digest) is None


def test_what_cannot_be_packed_is_refused_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workdir = project(tmp_path / "p", {"big.bin": "x" * 2000, "small": "y"})
    (workdir / "out").symlink_to("/etc/passwd")
    with pytest.raises(InputError, match=r"'.*/out' is a link that leads out of it; name what is not needed in"):
        packed_files(workdir)
    (workdir / ".fairwayignore").write_text("out\n")
    assert packed_files(workdir) == [".fairwayignore", "big.bin", "small"]
    monkeypatch.setattr(work_package, "MOST_BYTES", 1500)
    with pytest.raises(InputError, match=r"more than 0 MB to be sent there, of which 'big.bin' is the largest"):
        packed_files(workdir)


PATTERNS = ["*.log", "build/", "/top", "a/**/z", "**/deep", "!keep.log", "x?y", "a/b", "docs/*.md", "a/**"]
PATHS = ["a.log", "keep.log", "lib/keep.log", "build/x", "src/build/x", "top", "src/top", "a/z", "a/b/c/z", "q/deep",
         "xzy", "a/b/f", "docs/r.md", "docs/x/r.md", "build", "a/q"]  # fmt: skip


@settings(max_examples=30, deadline=None)
@given(patterns=st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=4))
def test_patterns_mean_what_they_mean_to_git(tmp_path_factory: pytest.TempPathFactory, patterns: list[str]) -> None:
    directory = tmp_path_factory.mktemp("git")
    for name in PATHS:
        path = directory / name
        if any(other.startswith(f"{name}/") for other in PATHS):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    (directory / ".gitignore").write_text("\n".join(patterns))
    git = ["git", "-C", str(directory)]
    subprocess.run([*git, "init", "-q"], check=True, env={**os.environ, "HOME": str(directory)})
    listed = subprocess.run([*git, "ls-files", "-o", "--exclude-standard"], capture_output=True, text=True, check=True)
    ours = {name for name in packed_files(directory) if not (directory / name).is_dir()}
    assert ours == set(listed.stdout.split())


def test_comments_and_empty_lines_exclude_nothing() -> None:
    ignored = IgnoredFiles.read("# a\n\n/\n!\n")
    assert "a" not in ignored
    assert "# a" not in ignored
