"""Logs as bytes: from a position on, and the last lines, through whatever reads them."""

from __future__ import annotations

import ctypes
import errno
import os
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.live import bounded_log
from fairway.live.backend import logs
from fairway.live.backend.logs import LogBlock, start_of_tail
from fairway.live.bounded_log import open_log, trim_log
from fairway.live.local.log_files import read_log


@given(st.lists(st.sampled_from([b"", b"a", b"\n", b"line\n", b"x" * 70_000 + b"\n"]), max_size=8), st.integers(0, 9))
def test_a_tail_is_the_last_lines(tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], lines: int) -> None:
    path = tmp_path_factory.getbasetemp() / "tail.log"
    content = b"".join(parts)
    path.write_bytes(content)
    expected = b"".join(content.splitlines(keepends=True)[-lines:]) if lines else b""
    read = partial(read_log, path)
    start = start_of_tail(read, lines)
    assert content[start:] == expected
    assert read(start, 1_000_000).content == expected
    assert read(0, 0).size == len(content)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 300_000), st.integers(1, 70_000), st.integers(0, 40), st.integers(0, 400_000))
def test_positions_in_a_log_whose_beginning_was_dropped_stay_what_they_were(
    tmp_path_factory: pytest.TempPathFactory, count: int, most: int, lines: int, position: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "trimmed.log"
    path.unlink(missing_ok=True)
    content = b"".join(b"line %d\n" % number for number in range(count // 8))
    descriptor = open_log(path)
    os.write(descriptor, content)
    dropped = trim_log(descriptor, 131_072)
    assert os.fstat(descriptor).st_blocks * 512 <= 131_072
    os.close(descriptor)
    read = partial(read_log, path)
    assert dropped or read(0, 0).skipped == 0
    assert read(0, 0).size == len(content)
    whole = read(0, 1_000_000)
    kept = len(content) - whole.skipped
    notice, _, rest = whole.content.partition(b"\n") if dropped else (b"", b"", whole.content)
    assert len(whole.content) == kept, "the line that says so takes the place of what is missing"
    assert content.endswith(rest)
    assert (b"bytes before this were dropped" in notice) is dropped
    block = read(position, most)
    begin = position + block.skipped
    assert block.content == whole.content[begin - whole.skipped :][:most] if begin < len(content) else not block.content
    assert begin >= min(whole.skipped, position)
    wanted = b"".join(whole.content.splitlines(keepends=True)[-lines:]) if lines else b""
    assert read(start_of_tail(read, lines), 1_000_000).content == wanted


def test_a_sparse_log_is_not_read_through_and_takes_no_room_that_would_have_to_be_given_back(tmp_path: Path) -> None:
    descriptor = open_log(tmp_path / "log")
    os.ftruncate(descriptor, 2**40)
    assert not trim_log(descriptor, 131_072)
    os.write(descriptor, b"end\n")
    os.close(descriptor)
    read = partial(read_log, tmp_path / "log")
    assert read(0, 1000).content.endswith(b"end\n")
    assert read(0, 1000).skipped > 2**40 - 10_000


def test_where_no_part_of_a_file_can_be_given_back_all_of_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> int:
        ctypes.set_errno(errno.EOPNOTSUPP)
        return -1

    monkeypatch.setattr(bounded_log, "_LIBC", SimpleNamespace(fallocate=refused))
    descriptor = open_log(tmp_path / "log")
    os.write(descriptor, b"x" * 500_000)
    assert trim_log(descriptor, 131_072)
    os.write(descriptor, b"more\n")
    os.close(descriptor)
    lines = (tmp_path / "log").read_text().splitlines()
    assert lines == ["=== fairway: what the log held was dropped, since it grew too large ===", "more"]


def test_a_log_without_line_breaks_is_not_read_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MOST_TAIL_BYTES", 10 * logs.BLOCK_BYTES)
    size, asked = 2**40, []

    def read(position: int, most: int) -> LogBlock:
        asked.append(most)
        return LogBlock(b"x" * min(most, size - position), size)

    assert start_of_tail(read, 5) == size - 10 * logs.BLOCK_BYTES
    assert len(asked) == 11
