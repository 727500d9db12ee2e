"""Which test executes which lines, and how long it takes: recorded once, one test file after another.

A record is kept as long as the test file is the same. Where the source has changed since, its lines are followed to
where they are now. What a test starts in other processes counts as its own. With `compiled=False` kernels run as plain
Python, so that their lines can be seen; a test that takes too long that way is left out, as is what comes after the
time that a file may take.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.apart import Run
from tests.mutants.changes import ROOT, SOURCE
from tests.mutants.loaded import Loaded, results_of
from tests.mutants.probes import Probes

CACHE = ROOT / ".cache" / "mutants"
_LIMIT_SECONDS = {True: 60.0, False: 10.0}  # for one test, with compiled kernels and without
_LEFT_OUT = "not postgresql and not test_speed"


@dataclass(slots=True)
class Record:
    """What the tests of one file execute: by test its seconds, by source file and line the tests.

    `imported` are the lines of functions that run while Fairway and the tests are loaded.
    """

    seconds: dict[str, float]
    lines: dict[str, dict[int, list[str]]]
    imported: dict[str, list[int]]
    sources: dict[str, str] = field(default_factory=dict)

    def tests(self, file: str, line: int) -> list[str]:
        """The tests that execute a line as it is now."""
        recorded = _was(self.sources[file], file, line) if file in self.sources else None
        return [] if recorded is None else self.lines.get(file, {}).get(recorded, [])

    def is_imported(self, file: str, line: int) -> bool:
        """Whether a line as it is now runs while Fairway and the tests are loaded."""
        recorded = _was(self.sources[file], file, line) if file in self.sources else None
        return recorded in self.imported.get(file, ())

    def tests_of_file(self, file: str) -> set[str]:
        """The tests that execute anything of a source file."""
        return {test for tests in self.lines.get(file, {}).values() for test in tests}


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


def record(files: Sequence[Path], compiled: bool, seconds: float, say: Callable[[str], None]) -> None:
    """Record test files, each for so many seconds at most."""
    with tempfile.TemporaryDirectory(prefix="fairway-record-", ignore_cleanup_errors=True) as directory:
        scratch = Path(directory)
        probes = Probes.below(scratch / "src")
        options = ["-o", f"timeout={_LIMIT_SECONDS[compiled]}", "-k", _LEFT_OUT]
        paths = [str(file.relative_to(ROOT)) for file in files]

        def work(loaded: Loaded, tell: Callable[[Any], None]) -> None:
            imported = set(probes.taken())
            by_file: dict[str, list[str]] = {path: [] for path in paths}
            for test in loaded.items:
                by_file[test.partition("::")[0]].append(test)
            for path, tests in by_file.items():
                target = record_path(ROOT / path, compiled)
                recorder = _Recorder(loaded, probes, seconds)

                def run(recorder: _Recorder = recorder, target: Path = target, tests: list[str] = tests) -> int:
                    loaded.run(tests, recorder.goes_on)
                    recorder.write(target, imported)
                    return 0

                most = seconds + 3 * _LIMIT_SECONDS[compiled]
                os.waitpid(Run(run, probes.place, most, most, compiled, scratch / "output").start({}), 0)
                if not target.exists():
                    target.write_text('{"tests": [], "seconds": {}, "lines": {}, "imported": {}, "sources": {}}')
                told = json.loads(target.read_text())
                tell(f"{path}{'' if compiled else ' (plain)'}: {len(told['tests'])} of {len(tests)} tests")

        with results_of(paths, probes.place, compiled, options, scratch, work) as results:
            for result in results:
                say(f"recorded {result}")


class _Recorder:
    """Notes which blocks each test runs, how long it takes, and whether it passes."""

    def __init__(self, loaded: Loaded, probes: Probes, seconds: float) -> None:
        self._probes = probes
        self._until = time.monotonic() + seconds
        self.seconds: dict[str, float] = defaultdict(float)
        self.blocks: dict[str, list[int]] = {}
        self.failed: set[str] = set()
        loaded.began = lambda _: self._forget()
        loaded.reported = self._note
        loaded.ended = self._take

    def goes_on(self) -> bool:
        return time.monotonic() < self._until

    def _forget(self) -> None:
        self._probes.taken()

    def _note(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration
        if not report.passed:
            self.failed.add(report.nodeid)

    def _take(self, test: str) -> None:
        self.blocks[test] = self._probes.taken()

    def write(self, path: Path, imported: set[int]) -> None:
        """Write the record of the tests that have passed."""
        good = [test for test in self.seconds if test not in self.failed and test in self.blocks]
        lines: dict[str, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
        for number, test in enumerate(good):
            for block in self.blocks[test]:
                file, within = self._probes.blocks[block]
                for line in within:
                    lines[file][line].add(number)
        at_import: dict[str, set[int]] = defaultdict(set)
        for block in imported:
            file, within = self._probes.blocks[block]
            if file in lines:
                at_import[file].update(within)
        told = {
            "tests": good,
            "seconds": {test: round(self.seconds[test], 4) for test in good},
            "lines": {file: {line: sorted(tests) for line, tests in by.items()} for file, by in lines.items()},
            "imported": {file: sorted(found) for file, found in at_import.items()},
            "sources": {file: _kept(file) for file in lines},
        }
        path.write_text(json.dumps(told))


@cache
def _kept(file: str) -> str:
    """The digest by which the source of today is kept."""
    text = (SOURCE / file).read_text()
    digest = hashlib.sha256(text.encode()).hexdigest()
    if not (CACHE / digest).exists():
        (CACHE / digest).write_text(text)
    return digest


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
