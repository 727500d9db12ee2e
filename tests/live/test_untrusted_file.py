"""A file that a job can write is read only if it is a regular, small and flat one."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from fairway.live.durable_file import read_json
from fairway.live.untrusted_file import (
    MOST_BYTES,
    UntrustedFileError,
    is_regular,
    open_regular,
    read_object,
    read_regular,
    replace_regular,
)


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


KINDS = {
    "a FIFO": os.mkfifo,
    "a directory": Path.mkdir,
    "a symbolic link": lambda path: path.symlink_to(path.with_name("elsewhere")),
    "a socket": a_socket,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_WRONLY | os.O_APPEND | os.O_CREAT])
def test_what_is_no_regular_file_is_refused_by_its_kind_at_once(
    kind: str, flags: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("f")  # short enough for the name of a socket
    KINDS[kind](path)
    with pytest.raises(UntrustedFileError, match=rf"f is {kind}, expected a regular file"):
        open_regular(path, flags)
    assert not is_regular(path)


def test_a_directory_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there/file").write_text("{}")
    (tmp_path / "link").symlink_to(tmp_path / "there")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert read_object(tmp_path / "there/file") == {}
    for name in ("link", "loop"):
        with pytest.raises(UntrustedFileError, match=f"{name} is a symbolic link, expected a directory"):
            read_object(tmp_path / name / "file")


def test_too_large_and_too_deeply_nested_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("[" * 200_000)
    with pytest.raises(UntrustedFileError, match=f"larger than {MOST_BYTES} bytes"):
        read_object(path)
    path.write_text("[" * 60_000)
    with pytest.raises(UntrustedFileError, match="opens more than 64 brackets"):
        read_object(path)
    assert read_json(path) is None  # also where larger files are expected, no depth is a reason to fail
    with path.open("wb") as file:
        file.truncate(2**40)  # a sparse file, for which no memory would do
    with pytest.raises(UntrustedFileError, match="larger"):
        read_regular(path)


@pytest.mark.parametrize("content", ["", "{", "[]", "7", '"x"', "\xff", "9" * 5000])
def test_what_is_no_object_is_nothing(content: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(content, encoding="latin-1")
    assert read_object(tmp_path / "file") is None
    assert read_object(tmp_path / "absent") is None


def test_a_file_is_put_beside_what_a_job_has_prepared_for_it(tmp_path: Path) -> None:
    """The name of the unfinished file can be guessed, and be a link to a file of somebody else."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    channel = tmp_path / "channel"
    channel.mkdir()
    (channel / f".lease.json.{os.getpid()}.part").symlink_to(victim)
    (channel / "lease.json").symlink_to(victim)
    replace_regular(channel / "lease.json", b"{}")
    assert victim.read_text() == "precious"
    assert (channel / "lease.json").read_bytes() == b"{}"
    assert [path.name for path in channel.iterdir()] == ["lease.json"]
    (channel / "lease.json").unlink()
    (channel / "lease.json").mkdir()
    with pytest.raises(OSError, match="directory"):
        replace_regular(channel / "lease.json", b"{}")
    assert [path.name for path in channel.iterdir()] == ["lease.json"]
