"""Runs the tests of a mutant until one fails.

Most mutants are put into functions that are loaded already (`loaded`, `patching`), in a fork. What runs while Fairway
is loaded, or cannot be put there, is tried in a process that loads Fairway anew. Either way a copy of the source has
the mutant as well, for the processes that tests start.
"""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.apart import PYTEST, TOO_LONG, Run
from tests.mutants.changes import SOURCE, Mutant
from tests.mutants.loaded import PLAIN, Loaded, results_of
from tests.mutants.patching import Functions, mutated_code
from tests.mutants.probes import write_bytecode
from tests.mutants.selection import Selection

_NO_TESTS = 5  # pytest's exit code
_NOT_PATCHED = 71  # ours
_LEAST_SECONDS = 20.0  # what a run may take at least, and how many times as long as usual: the machine may be busy
_TIMES = 8.0
_LEAST_PROCESSOR_SECONDS = 5.0  # the same for the processor's time, which a loop without an end uses up
_PROCESSOR_TIMES = 3.0
_FILE_SECONDS = 1.0  # what it may take to load a test file
_CHECKED_SECONDS = 0.3  # a test that takes longer kills only if it passes without the mutant, now
_MOST_CHECKS = 4


@dataclass(slots=True)
class Trial:
    """One mutant, the tests that it has to pass, and what came of it."""

    mutant: Mutant
    batches: list[list[str]]
    compiled: bool
    anew: bool
    killed_by: str | None = None
    is_over: bool = False


Say = Callable[[Trial], None]


def try_all(trials: Sequence[Trial], selection: Selection, say: Say) -> None:
    """Try all of them, one after another."""
    for trial in trials:
        if not trial.batches:
            say(trial)
    waiting = [trial for trial in trials if trial.batches]
    with tempfile.TemporaryDirectory(prefix="fairway-mutants-", ignore_cleanup_errors=True) as directory:
        scratch = Path(directory)
        place = Path(shutil.copytree(SOURCE, scratch / "src"))
        for compiled in (True, False):
            group = [trial for trial in waiting if trial.compiled is compiled and not trial.anew]
            if group:
                _try_loaded(group, place, scratch, selection, say)
        for trial in waiting:
            if trial.anew:
                _try_anew(trial, place, scratch, selection)
                say(trial)


def _try_loaded(trials: list[Trial], place: Path, scratch: Path, selection: Selection, say: Say) -> None:
    compiled = trials[0].compiled
    files = sorted({_file(test) for trial in trials for batch in trial.batches for test in batch})

    def work(loaded: Loaded, tell: Callable[[Any], None]) -> None:
        functions = Functions(SOURCE)
        gc.collect()
        gc.freeze()
        for trial in trials:
            with _mutated_copy(trial.mutant, place):
                tell(_Loading(loaded, functions, place, scratch / "output", selection).outcome(trial))

    with results_of(files, SOURCE, compiled, (), scratch, work) as results:
        for trial, (code, killed_by) in zip(trials, results, strict=False):
            trial.anew = code == _NOT_PATCHED
            trial.killed_by = killed_by
            if not trial.anew:
                say(trial)


@dataclass(slots=True)
class _Loading:
    """Runs the tests of one mutant in forks of this process."""

    loaded: Loaded
    functions: Functions
    place: Path
    output: Path
    selection: Selection

    def outcome(self, trial: Trial) -> tuple[int, str | None]:
        """The exit code, and what killed the mutant."""
        tests = [test for batch in trial.batches for test in batch]
        for _ in range(_MOST_CHECKS):
            code, failed = self._run(tests, trial.compiled, trial.mutant)
            if code in {0, _NOT_PATCHED}:
                return code, None
            if code == TOO_LONG:
                return code, "time"
            if failed not in tests:
                return code, "crash"
            if self.selection.seconds[trial.compiled][failed] < _CHECKED_SECONDS:
                return code, failed
            if self._run([failed], trial.compiled, None)[0] == 0:
                return code, failed
            tests.remove(failed)  # it fails by itself
        return 0, None

    def _run(self, tests: list[str], compiled: bool, mutant: Mutant | None) -> tuple[int, str]:
        failed: list[str] = []

        def note(report: pytest.TestReport) -> None:
            if report.failed and not failed:
                failed.append(report.nodeid)
                self.output.write_text(report.nodeid)

        def run() -> int:
            if mutant is not None and not self.functions.patch(mutant):
                return _NOT_PATCHED
            self.loaded.reported = note
            return int(not self.loaded.run(tests, lambda: not failed))

        usual = sum(self.selection.seconds[compiled][test] for test in tests)
        self.output.write_text("")
        allowed = _LEAST_PROCESSOR_SECONDS + _PROCESSOR_TIMES * usual
        standard = self.output.with_name("standard")
        source = SOURCE if mutant is None else self.place
        code = _wait(Run(run, source, _LEAST_SECONDS + _TIMES * usual, allowed, compiled, standard))
        return code, self.output.read_text()


def _wait(run: Run) -> int:
    _, status = os.waitpid(run.start({}), 0)
    return os.waitstatus_to_exitcode(status)


@contextmanager
def _mutated_copy(mutant: Mutant, place: Path) -> Iterator[None]:
    """The copy of the source has the mutant, as bytecode."""
    source = place / mutant.file.relative_to(SOURCE)
    made = write_bytecode(source, mutated_code(mutant))
    try:
        yield
    finally:
        made.unlink()


class _Chosen:
    """A pytest plugin: only these tests, in this order; a property that fails is not shrunk to its smallest case."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._place = {test: at for at, test in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        from hypothesis import Phase, settings  # noqa: PLC0415 (our own settings are loaded by tests/conftest.py)

        settings.register_profile("mutants", settings.get_profile("fairway"), phases=[Phase.explicit, Phase.generate])
        settings.load_profile("mutants")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted((item for item in items if item.nodeid in self._place), key=lambda i: self._place[i.nodeid])


def _try_anew(trial: Trial, place: Path, scratch: Path, selection: Selection) -> None:
    output = scratch / "output"
    with _mutated_copy(trial.mutant, place):
        for tests in trial.batches:
            usual = sum(selection.seconds[trial.compiled][test] for test in tests)
            files = list(dict.fromkeys(map(_file, tests)))
            loading = _FILE_SECONDS * len(files)
            arguments = [*PYTEST, "-x", "--tb=line", *(() if trial.compiled else PLAIN), *files]
            plugin = _Chosen(tests)

            def run(arguments: list[str] = arguments, plugin: _Chosen = plugin) -> int:
                return int(pytest.main(arguments, plugins=[plugin]))

            allowed = _LEAST_PROCESSOR_SECONDS + _PROCESSOR_TIMES * usual + loading
            seconds = _LEAST_SECONDS + _TIMES * (usual + loading)
            code = _wait(Run(run, place, seconds, allowed, trial.compiled, output))
            if code not in {0, _NO_TESTS}:
                trial.killed_by = "time" if code == TOO_LONG else _failed(output)
                return


def _file(test: str) -> str:
    return test.partition("::")[0]


def _failed(output: Path) -> str:
    text = output.read_text(errors="replace")
    found = [line for line in text.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return found[0].partition(" - ")[0].partition(" ")[2] if found else "crash"
