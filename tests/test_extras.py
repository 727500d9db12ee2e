"""What an installation without extras can do, and what it says of the rest."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fairway.extras import EXTRAS, missing, require

ROOT = Path(__file__).parents[1]
GENERATED = ("--generate", "jobs=3,lam=0", "--cluster", "v100=2", "-p", "max-min-fairness")


def without_extras(*words: str) -> subprocess.CompletedProcess[str]:
    """A command in a process that can import nothing that an extra brings."""
    libraries = sorted({library for libraries in EXTRAS.values() for library in libraries})
    hide = f"import sys; sys.modules.update(dict.fromkeys({libraries})); sys.argv = ['fairway', *sys.argv[1:]]"
    start = f"{hide}; from fairway.cli.main import app; app()"
    command = [sys.executable, "-c", start, *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "words",
    [
        ("--help",),
        ("allocate", "examples/mixed-cluster.json", "-p", "makespan"),
        ("configure", "examples/configure-pipeline.json", "--algorithm", "front"),
        ("place", "examples/place-request.json", "--scheduler", "compass"),
        ("simulate", "training", *GENERATED),
        ("simulate", "serving", "--requests", "20"),
        ("reproduce",),
    ],
    ids=lambda words: words[0],
)
def test_decisions_and_simulations_need_no_extra(words: tuple[str, ...]) -> None:
    done = without_extras(*words)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ("live", ("ls",)),
        ("live", ("up", "--emulate", "v100=1")),
        ("tables", ("sweep", "-p", "fifo", "--rate", "1", "--generate", "jobs=3", "--cluster", "v100=1")),
    ],
)
def test_what_needs_an_extra_says_which_in_one_line(extra: str, words: tuple[str, ...]) -> None:
    done = without_extras(*words)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1, done.stderr
    assert f"install Fairway with its extra '{extra}'" in done.stderr
    assert not done.stdout, "nothing was run in vain"


def test_the_table_of_extras_is_that_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    core = {re.split(r"[^a-z0-9-]", name.lower())[0] for name in project["dependencies"]}
    for extra, libraries in EXTRAS.items():
        brought = {re.split(r"[^a-z0-9-]", name.lower())[0] for name in project["optional-dependencies"][extra]}
        assert not brought & core
        assert brought <= {library.replace("_", "-") for library in libraries}


def test_a_library_that_no_extra_brings_is_not_explained_away() -> None:
    assert missing(ModuleNotFoundError("no", name="nosuch")) is None
    require("json")
    with pytest.raises(ModuleNotFoundError, match="No module named 'nosuch'"):
        require("json", "nosuch")
