"""Which test executes which lines, and how long it takes: recorded once, one test file after another.

A record is kept as long as the test file is the same. Where the source has changed since, its lines are followed to
where they are now. What a test starts in other processes counts as its own. With `compiled=False` kernels run as plain
Python, so that their lines can be seen; a test that takes too long that way is left out.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import coverage
import pytest

from tests.mutants.apart import PYTEST, Run
from tests.mutants.changes import ROOT, SOURCE

CACHE = ROOT / ".cache" / "mutants"
PLAIN = ("-W", "ignore::RuntimeWarning")  # what compiled code divides by zero without a word, plain Python warns of
_LIMIT_SECONDS = {True: 100.0, False: 10.0}  # for one test, with compiled kernels and without
_LEFT_OUT = "not postgresql and not test_speed"
_SETTINGS = """
[run]
include = {source}/*
data_file = {data}
parallel = true
context = ${{PYTEST_CURRENT_TEST-}}
sigterm = true
patch = _exit, fork
disable_warnings = no-data-collected, module-not-measured, already-imported, no-contracts
"""


@dataclass(slots=True)
class Record:
    """What the tests of one file execute: by test its seconds, by source file and line the tests."""

    seconds: dict[str, float]
    lines: dict[str, dict[int, list[str]]]
    imported: dict[str, list[int]]
    sources: dict[str, str] = field(default_factory=dict)

    def tests(self, file: str, line: int) -> list[str]:
        """The tests that execute a line as it is now."""
        recorded = _was(self.sources[file], file, line) if file in self.sources else None
        return [] if recorded is None else self.lines.get(file, {}).get(recorded, [])

    def tests_of_file(self, file: str) -> set[str]:
        """The tests that execute anything of a source file."""
        return {test for tests in self.lines.get(file, {}).values() for test in tests}


class _Recorder:
    """A pytest plugin: tells coverage which test is running, and notes how long it took and whether it passed."""

    def __init__(self, measured: coverage.Coverage) -> None:
        self._measured = measured
        self.seconds: dict[str, float] = defaultdict(float)
        self.failed: set[str] = set()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._measured.switch_context(nodeid)

    def pytest_runtest_logfinish(self) -> None:
        self._measured.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration
        if not report.passed:
            self.failed.add(report.nodeid)


def record_path(test_file: Path, compiled: bool) -> Path:
    """Where the record of a test file is kept; another path when the file has changed."""
    digest = hashlib.sha256(test_file.read_bytes()).hexdigest()[:12]
    name = str(test_file.relative_to(ROOT / "tests").with_suffix("")).replace(os.sep, ".")
    return CACHE / f"{name}-{'compiled' if compiled else 'plain'}-{digest}.json"


def load(path: Path) -> Record:
    """A record that was written before."""
    told = json.loads(path.read_text())
    lines = {
        file: {int(line): [told["tests"][test] for test in tests] for line, tests in by_line.items()}
        for file, by_line in told["lines"].items()
    }
    return Record(told["seconds"], lines, told["imported"], told["sources"])


def recording(test_file: Path, compiled: bool, output: Path) -> Run:
    """The run that records a test file."""
    seconds = 900.0 if compiled else 400.0
    return Run(lambda: _record(test_file, compiled), SOURCE, seconds, seconds, compiled, output)


def _record(test_file: Path, compiled: bool) -> int:
    with tempfile.TemporaryDirectory(prefix="fairway-record-") as directory:
        settings = Path(directory) / "settings"
        settings.write_text(_SETTINGS.format(source=SOURCE / "fairway", data=Path(directory) / "data"))
        os.environ["COVERAGE_PROCESS_START"] = str(settings)
        os.environ.pop("PYTEST_CURRENT_TEST", None)
        measured = coverage.Coverage(config_file=str(settings))
        recorder = _Recorder(measured)
        measured.start()
        arguments = [*PYTEST, "-o", f"timeout={_LIMIT_SECONDS[compiled]}", "-k", _LEFT_OUT]
        code = pytest.main([*arguments, *(() if compiled else PLAIN), str(test_file)], plugins=[recorder])
        measured.stop()
        measured.save()
        measured.combine()
        _write(record_path(test_file, compiled), measured.get_data(), recorder)
        return int(code)


def _write(path: Path, data: coverage.CoverageData, recorder: _Recorder) -> None:
    good = [test for test in recorder.seconds if test not in recorder.failed]
    number = {test: at for at, test in enumerate(good)}
    lines: dict[str, dict[int, list[int]]] = {}
    imported: dict[str, list[int]] = {}
    sources: dict[str, str] = {}
    for name in sorted(data.measured_files()):
        file = str(Path(name).relative_to(SOURCE))
        text = Path(name).read_text()
        sources[file] = hashlib.sha256(text.encode()).hexdigest()
        (CACHE / sources[file]).write_text(text)
        by_line: dict[int, list[int]] = {}
        for line, contexts in data.contexts_by_lineno(name).items():
            tests = sorted({number[test] for test in map(_test_of, contexts) if test in number})
            if tests:
                by_line[line] = tests
            if "" in contexts:
                imported.setdefault(file, []).append(line)
        lines[file] = by_line
    told = {
        "tests": good,
        "seconds": {test: round(recorder.seconds[test], 4) for test in good},
        "lines": lines,
        "imported": imported,
        "sources": sources,
    }
    path.write_text(json.dumps(told))


def _test_of(context: str) -> str:
    """The test that a process was started by says also whether it was being set up, called or cleaned up after."""
    for phase in (" (setup)", " (call)", " (teardown)"):
        context = context.removesuffix(phase)
    return context


def _was(digest: str, file: str, line: int) -> int | None:
    """Where a line was in the source that was recorded; the line before it, if it is new."""
    then = _moved(digest, _now(file))
    return then[line - 1] if line <= len(then) else None


@cache
def _now(file: str) -> str:
    return (SOURCE / file).read_text()


@cache
def _moved(digest: str, now: str) -> list[int | None]:
    recorded = (CACHE / digest).read_text().splitlines()
    current = now.splitlines()
    found: list[int | None] = [None] * len(current)
    for tag, old, old_end, new, new_end in difflib.SequenceMatcher(None, recorded, current, False).get_opcodes():
        for at in range(new, new_end):
            found[at] = old + at - new + 1 if tag == "equal" else min(max(old, old_end - 1) + 1, len(recorded))
    return found


def test_files(folders: list[Path]) -> Iterator[Path]:
    """The test files below folders."""
    for folder in folders:
        yield from sorted(folder.rglob("test_*.py"))
