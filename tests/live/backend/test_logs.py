"""Logs as bytes: from a position on, and the last lines, through whatever reads them."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.live.backend import logs
from fairway.live.backend.logs import LogBlock, start_of_tail
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


def test_a_log_without_line_breaks_is_not_read_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MOST_TAIL_BYTES", 10 * logs.BLOCK_BYTES)
    size, asked = 2**40, []

    def read(position: int, most: int) -> LogBlock:
        asked.append(most)
        return LogBlock(b"x" * min(most, size - position), size)

    assert start_of_tail(read, 5) == size - 10 * logs.BLOCK_BYTES
    assert len(asked) == 11
