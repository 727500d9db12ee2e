"""Which tests should notice a mutant: those that execute the statement that it changes.

Those of the file's own test file come first, then the fastest of every test file of its folder, then the second of
every one, and so on, and then the other folders. What is beyond `budget` seconds is left out: tests that start real
processes are passed over where many faster ones execute the line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.mutants.changes import ROOT, SOURCE, Mutant
from tests.mutants.recording import Record

_FIRST_SECONDS = 1.0
_FIRST_TESTS = 25
_FILE_SECONDS = 0.4  # what it takes to load a test file
_DRIVERS = {
    "engine": {"allocate", "configure", "place"},
    "sim": {"allocate", "configure", "place", "engine"},
    "client": {"service"},
    "simtest": {"live", "store"},
}
"""Folders of tests by the parts whose mistakes show there."""


class Selection:
    """The tests of all records, by the lines that they execute."""

    def __init__(self, records: Mapping[bool, Sequence[Record]], budget: float) -> None:
        self._records = records
        self._budget = budget
        self.seconds = {
            compiled: {test: took for record in found for test, took in record.seconds.items()}
            for compiled, found in records.items()
        }

    def batches(self, mutant: Mutant, compiled: bool) -> list[list[str]]:
        """The tests in the order in which to try them: first a few that are quick, then the others."""
        seconds = self.seconds[compiled]
        own, folder = _mirror(mutant.file)
        rank: dict[str, int] = {}
        taken: Counter[str] = Counter()
        for test in sorted(self._executing(mutant, compiled), key=lambda test: seconds[test]):
            path = test.partition("::")[0]
            taken[path] += 1
            rank[test] = 0 if path == own else taken[path]

        def distance(test: str) -> tuple[bool, bool, int, float]:
            path = test.partition("::")[0]
            return path != own, not path.startswith((folder, "tests/test_")), rank[test], seconds[test]

        first: list[str] = []
        later: list[str] = []
        files: set[str] = set()
        spent = 0.0
        for test in sorted(rank, key=distance):
            file = test.partition("::")[0]
            cost = seconds[test] + (0 if file in files else _FILE_SECONDS)
            if spent + cost > self._budget and first:
                continue
            spent += cost
            files.add(file)
            early = not first or (spent < _FIRST_SECONDS and len(first) < _FIRST_TESTS)
            (first if early else later).append(test)
        return [sorted(batch, key=lambda test: seconds[test]) for batch in (first, later) if batch]

    def is_imported(self, mutant: Mutant, compiled: bool) -> bool:
        """Whether the statement runs, too, while Fairway and the tests are loaded."""
        file = str(mutant.file.relative_to(SOURCE))
        return any(record.is_imported(file, line) for record in self._records[compiled] for line in mutant.lines)

    def _executing(self, mutant: Mutant, compiled: bool) -> set[str]:
        """The tests that execute the statement; if none was seen to (processes are killed), those of its file."""
        file = str(mutant.file.relative_to(SOURCE))
        records = self._records[compiled]
        imported = mutant.imported or self.is_imported(mutant, compiled)
        if not imported:
            found = {test for record in records for line in mutant.lines for test in record.tests(file, line)}
            if found:
                return found
        found = {test for record in records for test in record.tests_of_file(file)}
        if imported or not found:  # what a module defines may matter to whatever imports it
            near = [record for record in records if _near(record, mutant.file)]
            found |= {test for record in near for test in record.seconds}
        return found


def _mirror(file: Path) -> tuple[str, str]:
    """The test file of a source file, and the folder of it; tests may be in fewer folders than what they test."""
    folder = Path("tests") / file.parent.relative_to(SOURCE / "fairway")
    while len(folder.parts) > 2 and not (ROOT / folder).is_dir():
        folder = folder.parent
    return str(folder / f"test_{file.stem}.py"), f"{folder}/"


def _near(record: Record, file: Path) -> bool:
    """Whether these are tests of the same part, or of none in particular."""
    part = "tests/" + file.relative_to(SOURCE / "fairway").parts[0]
    return any(test.startswith((part, "tests/test_")) for test in record.seconds)


def folders_of(paths: Sequence[Path]) -> list[Path]:
    """The folders of tests that mirror parts of the source, and those of what drives these parts as a whole."""
    parts = {path.absolute().relative_to(SOURCE / "fairway").parts[0].removesuffix(".py") for path in paths}
    parts |= {driver for driver, driven in _DRIVERS.items() if parts & driven}
    return [folder for part in sorted(parts) if (folder := ROOT / "tests" / part).is_dir()]
