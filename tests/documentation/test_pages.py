"""Every code block of the README and the documentation works, or says why it is not run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.installation import Installation
from tests.documentation.blocks import ROOT, Block, blocks_of, pages
from tests.documentation.commands import check_options, smaller

WITH_CODE = [page for page in pages() if blocks_of(page)]
LANGUAGES = {"console", "sh", "bash", "python", "json", "yaml", "toml", "csv", "text"}


@pytest.mark.timeout(340)  # pages with servers wait for rounds, and the machine may be busy
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.stem)
def test_a_page_can_be_played_from_its_first_block_to_its_last(page: Path, tmp_path: Path) -> None:
    directory = tmp_path / "work"
    directory.mkdir()
    with Installation(tmp_path) as installation:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("FAIRWAY_")},
            "FAIRWAY_HOME": str(installation.home),
            "HOME": str(tmp_path),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "COLUMNS": "200",
            "TERMINAL_WIDTH": "200",
        }
        played = subprocess.run(
            [sys.executable, "-m", "tests.documentation.play", str(page.relative_to(ROOT))],
            cwd=directory, env=environment, capture_output=True, text=True, check=False, timeout=330,
        )  # fmt: skip
    assert played.returncode == 0, played.stderr


def test_every_block_is_in_a_language_that_is_known() -> None:
    unknown = [f"{block}: {block.language!r}" for page in pages() for block in blocks_of(page)
               if block.language not in LANGUAGES]  # fmt: skip
    assert not unknown, "name the language of the block, or say in tests/documentation how it is checked"


def test_few_blocks_are_not_run() -> None:
    blocks = [block for page in pages() for block in blocks_of(page)]
    excused = [str(block) for block in blocks if block.marker is not None and block.marker[0] == "not run"]
    assert len(excused) <= 8, excused


def test_a_command_that_does_not_exist_is_found() -> None:
    for line in ("fairway nosuch", "python -m benchmarks.place --nosuch", "make nosuch", "nosuch --help"):
        with pytest.raises(AssertionError):
            check_options(line)
    for line in ("fairway allocate --nosuch x", "fairway up --port many"):
        with pytest.raises(Exception, match=r"No such option|valid integer"):
            check_options(line)


def test_a_block_knows_its_commands_its_file_and_what_is_not_done_with_it(tmp_path: Path) -> None:
    block = Block("p", 1, "console", "$ a \\\n  b  # why\nprinted\n# c\n", None)
    assert block.commands == ["a    b  # why", "c"]
    assert Block("p", 1, "python", "# a.py\nx = 1\n", None).file_name == "a.py"
    assert Block("p", 1, "python", "# as before\nx = 1\n", None).file_name is None


def test_a_smaller_command_keeps_its_options() -> None:
    words = ["fairway", "simulate", "training", "--generate", "jobs=500,rate=4", "--window", "4000:5000", "-p", "fifo"]
    assert smaller(words) == [*words[:4], "jobs=12,rate=4", "--window", "4:8", "-p", "fifo", "--processes", "1"]


def test_the_front_page_links_every_page() -> None:
    docs = ROOT / "docs"
    linked = set(re.findall(r"\]\(([\w/.-]+\.md)", (docs / "index.md").read_text(encoding="utf-8")))
    assert linked == {str(page.relative_to(docs)) for page in docs.rglob("*.md")} - {"index.md"}


def test_nothing_is_installed_from_an_index_that_does_not_have_it() -> None:
    for page in pages():
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"(pip install|uvx|uv add) ['\"]?fairway(\[|['\"`\s])", text), page
