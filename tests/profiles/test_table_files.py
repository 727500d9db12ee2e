"""Reading a table from a file of any known format."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairway.errors import InputError
from fairway.profiles import read_table

CSV = "job_type,scale_factor,accelerator,steps_per_second\nlm,1,v100,2.5\n"
JSON = """{"v100": {"('lm', 1)": {"null": 2.5}}}"""


@pytest.mark.parametrize(
    ("name", "text"),
    [("t.csv", CSV), ("t.CSV", CSV), ("t.json", JSON), ("t.txt", CSV), ("t.txt", JSON), ("t", f"\n {JSON}")],
)
def test_the_format_is_found_by_suffix_or_content(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    table = read_table(tmp_path / name)
    assert table.rates("lm", 1) == {"v100": 2.5}
    assert table.source == str(tmp_path / name)


@pytest.mark.parametrize("text", [CSV, JSON])
def test_a_byte_order_mark_is_skipped(tmp_path: Path, text: str) -> None:
    (tmp_path / "t").write_text(text, encoding="utf-8-sig")
    assert read_table(str(tmp_path / "t")).rate("lm", 1, "v100") == 2.5


def test_the_suffix_decides_which_error_a_broken_file_gets(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text("job_type", encoding="utf-8")
    with pytest.raises(InputError, match=r"t\.json: not valid JSON"):
        read_table(tmp_path / "t.json")


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent\.csv: cannot be read: No such file"):
        read_table(tmp_path / "absent.csv")
    with pytest.raises(InputError, match=r": cannot be read: "):
        read_table(tmp_path)


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"t\.csv: not text in UTF-8"):
        read_table(tmp_path / "t.csv")
