"""A log that is on several nodes reads as one."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from fairway.live.backend.logs import LogBlock
from fairway.live.ray.log_parts import LogParts


class Files:
    """The log of one rank on each node; nodes can be gone."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}
        self.gone: set[str] = set()

    def read(self, node: str, position: int, most: int) -> LogBlock | None:
        if node in self.gone:
            return None
        content = self.content.get(node, b"")
        return LogBlock(content[position : position + most], len(content))

    def size(self, node: str) -> int | None:
        return None if node in self.gone else len(self.content.get(node, b""))

    def write(self, parts: LogParts, node: str, text: bytes) -> None:
        parts.move("job", 0, node, self.size)
        self.content[node] = self.content.get(node, b"") + text


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.binary(max_size=6)), max_size=8),
    st.integers(0, 40),
    st.integers(0, 40),
)
def test_the_log_of_a_job_that_moves_is_what_it_has_written_in_order(
    tmp_path_factory: object, writes: list[tuple[str, bytes]], position: int, most: int
) -> None:
    directory = tmp_path_factory.mktemp("parts")  # type: ignore[attr-defined]
    parts, files = LogParts(directory), Files()
    for node, text in writes:
        files.write(parts, node, text)
    whole = b"".join(text for _, text in writes)
    block = LogParts(directory).read("job", 0, position, most, files.read)
    assert (block.content, block.size, block.skipped) == (whole[position : position + most], len(whole), 0)


def test_what_a_lost_node_had_is_skipped_and_positions_stay(tmp_path: Path) -> None:
    parts, files = LogParts(tmp_path), Files()
    files.write(parts, "a", b"12345")
    assert parts.read("job", 0, 0, 3, files.read) == LogBlock(b"123", 5)
    files.gone.add("a")
    files.write(parts, "b", b"678")
    assert parts.read("job", 0, 0, 100, files.read) == LogBlock(b"678", 8, skipped=5)
    assert parts.read("job", 0, 6, 100, files.read) == LogBlock(b"78", 8)
    files.gone.clear()
    assert parts.read("job", 0, 0, 100, files.read) == LogBlock(b"12345678", 8)


def test_a_job_without_a_log_has_none(tmp_path: Path) -> None:
    assert LogParts(tmp_path).read("none", 0, 0, 10, Files().read) == LogBlock(b"", 0)
