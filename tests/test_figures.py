"""The figures of `tests/fixtures`: every file cites its source, is listed, and together they stay small."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.figures import FIXTURES, policy_cases

FILES = sorted(path for path in FIXTURES.rglob("*") if path.is_file() and path.name != "README.md")


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.relative_to(FIXTURES).as_posix())
def test_a_file_cites_its_source_and_is_listed(file: Path) -> None:
    with file.open(encoding="utf-8") as lines:
        first = next(lines)
    assert first.startswith({".json": '{"source":"', ".csv": "# "}[file.suffix])
    assert len(first) > 60
    assert f"`{file.relative_to(FIXTURES).as_posix()}`" in (FIXTURES / "README.md").read_text(encoding="utf-8")


def test_all_of_them_are_small() -> None:
    assert sum(file.stat().st_size for file in FILES) < 1_500_000


def test_the_cases_of_the_policies_are_whole() -> None:
    assert len(policy_cases()) == 66
    assert len({policy for case in policy_cases() for policy in case.results}) == 22
    assert sum(len(case.jobs) for case in policy_cases()) == 1394
    assert [case.id for case in policy_cases() if case.wider_than_some_type] == [0, 6, 50]
