"""Changes one operator at a time in the code, and sees whether any test notices.

    python -m tests.mutants src/fairway/store src/fairway/engine --count 60 --seed 1

Which changes are tried is drawn by the seed over all paths together, so that a run can be repeated. A mutant is killed
when a test fails, when the tests take several times as long as without it, or when the module cannot even be imported;
it survives when all tests pass that execute it, or when none does. A mutant that makes no difference is listed in
`equal.toml` with the reason. The code of the working tree is not touched: every mutant lives in a copy of it.

Files with compiled kernels are tried with the kernels as plain Python: a kernel that calls another keeps a compiled
copy of it, which would not change with the mutant.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.mutants import recording
from tests.mutants.apart import PYTEST, TOO_LONG, Run, warm_up
from tests.mutants.changes import ROOT, SOURCE, Mutant, mutants_of, mutated
from tests.mutants.selection import Selection, folders_of

_EQUAL = Path(__file__).with_name("equal.toml")
_NO_TESTS = 5  # pytest's exit code
_LEAST_SECONDS = 30.0  # what a run may take at least, and how many times as long as usual: the machine may be busy
_TIMES = 8.0
_LEAST_PROCESSOR_SECONDS = 10.0  # the same for the processor's time, which a loop without an end uses up
_PROCESSOR_TIMES = 3.0  # of what the recording took, which was several times slower than without coverage


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


@dataclass(slots=True)
class _Trial:
    """One mutant, the tests that it has still to pass, and the copy of the source that it lives in."""

    mutant: Mutant
    batches: list[list[str]]
    compiled: bool
    place: Path | None = None
    killed_by: str | None = None
    is_over: bool = False


@dataclass(slots=True)
class _Processes:
    """Runs that go on at the same time, at most `most`, and what to do when one ends."""

    most: int
    running: dict[int, Callable[[int], None]] = field(default_factory=dict)

    def start(self, run: Run, environment: dict[str, str], ended: Callable[[int], None]) -> None:
        while len(self.running) >= self.most:
            self.wait_for_one()
        self.running[run.start(environment)] = ended

    def wait_for_one(self) -> None:
        pid, status = os.wait()
        self.running.pop(pid)(os.waitstatus_to_exitcode(status))

    def finish(self) -> None:
        while self.running:
            self.wait_for_one()


@contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="fairway-mutants-") as directory:
        yield Path(directory)


def _with_kernels(file: Path) -> bool:
    return "from fairway.compiled import" in file.read_text()


def _recorded(
    folders: list[Path], kernels: set[str], jobs: int, *, only_there: bool
) -> dict[bool, list[recording.Record]]:
    """The records of all test files, made where they are missing, unless `only_there`.

    Without compiled kernels, only those of the parts that the kernels are in: elsewhere they are a means.
    """
    recording.CACHE.mkdir(parents=True, exist_ok=True)
    files = list(recording.test_files(folders))
    found: dict[bool, list[recording.Record]] = {}
    for compiled in (True, False):
        missing = [file for file in files if not recording.record_path(file, compiled).exists()]
        _record([] if only_there else missing, compiled, jobs)
        paths = {file: recording.record_path(file, compiled) for file in files}
        by_file = {file: recording.load(path) for file, path in paths.items() if path.exists()}  # not if edited since
        found[compiled] = list(by_file.values())
        parts = {Path(kernel).parts[1] for kernel in kernels}
        files = [
            file
            for file, record in by_file.items()
            if file.relative_to(ROOT / "tests").parts[0] in parts and kernels & record.sources.keys()
        ]
    return found


def _record(files: list[Path], compiled: bool, jobs: int) -> None:
    processes = _Processes(jobs)
    with _scratch() as scratch:
        for number, file in enumerate(files):
            output = scratch / str(number)

            def ended(code: int, file: Path = file, output: Path = output) -> None:
                path = recording.record_path(file, compiled)
                if not path.exists():
                    path.write_text('{"tests": [], "seconds": {}, "lines": {}, "imported": {}, "sources": {}}')
                last = (output.read_text(errors="replace").strip().splitlines() or [f"exit code {code}"])[-1]
                print(f"recorded {file.relative_to(ROOT)}{'' if compiled else ' (plain)'}: {last[:90]}", flush=True)

            processes.start(recording.recording(file, compiled, output), {}, ended)
        processes.finish()


def _try_all(trials: list[_Trial], selection: Selection, jobs: int, say: Callable[[_Trial], None]) -> None:
    """Run the tests of every trial, batch after batch, until one fails."""
    with _scratch() as scratch:
        places = [Path(shutil.copytree(SOURCE, scratch / str(number))) for number in range(jobs)]
        processes = _Processes(jobs)
        waiting = list(reversed(trials))

        def go_on(trial: _Trial) -> None:
            assert trial.place is not None
            tests = trial.batches.pop(0)
            usual = sum(selection.seconds[trial.compiled][test] for test in tests)
            files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
            arguments = [*PYTEST, "-x", "--tb=line", *(() if trial.compiled else recording.PLAIN)]
            output = scratch / f"{trial.place.name}.txt"
            limit = _LEAST_SECONDS + _TIMES * usual + len(files)

            def ended(code: int) -> None:
                if code not in {0, _NO_TESTS}:
                    trial.killed_by = "time" if code == TOO_LONG else _failed(output)
                if trial.killed_by is None and trial.batches:
                    go_on(trial)
                    return
                assert trial.place is not None
                target = trial.place / trial.mutant.file.relative_to(SOURCE)
                shutil.copy2(trial.mutant.file, target)
                places.append(trial.place)
                say(trial)

            work = Run(
                lambda: int(pytest.main([*arguments, *files], plugins=[_Chosen(tests)])),
                trial.place,
                limit,
                _LEAST_PROCESSOR_SECONDS + _PROCESSOR_TIMES * usual + 0.5 * len(files),
                trial.compiled,
                output,
            )
            processes.start(work, {}, ended)

        while waiting or processes.running:
            if waiting and places:
                trial = waiting.pop()
                if not trial.batches:
                    say(trial)
                    continue
                trial.place = places.pop()
                (trial.place / trial.mutant.file.relative_to(SOURCE)).write_text(mutated(trial.mutant))
                go_on(trial)
            else:
                processes.wait_for_one()


def _failed(output: Path) -> str:
    text = output.read_text(errors="replace")
    found = [line for line in text.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return found[0].partition(" - ")[0].partition(" ")[2] if found else "crash"


def _equals() -> dict[str, list[dict[str, str]]]:
    """The mutants that make no difference, as the file that was reviewed lists them."""
    listed: dict[str, list[dict[str, str]]] = tomllib.loads(_EQUAL.read_text())
    return listed


def _is_equal(mutant: Mutant, listed: dict[str, list[dict[str, str]]]) -> bool:
    """Whether an entry names the mutant: by its function and text and, where that is not enough, its line and result.

    `a number` stands for any number, `a boundary` for a comparison of which only the case of equality changes, `text`
    for what is changed, where `before` says its kind only, and an ellipsis for any text.
    """
    file = str(mutant.file.relative_to(SOURCE / "fairway"))
    line = mutant.text.splitlines()[mutant.line - 1].strip()
    kinds = set()
    if mutant.before.replace(".", "").replace("e-", "").replace("_", "").isdigit():
        kinds.add("a number")
    if mutant.before != mutant.after and _without_equality(mutant.before) == _without_equality(mutant.after):
        kinds.add("a boundary")
    return any(
        _fits(one["in"], mutant.within)
        and (one["before"] in kinds or _fits(one["before"], mutant.before))
        and _fits(one.get("text", mutant.before), mutant.before)
        and one.get("after", mutant.after) == mutant.after
        and _fits(one.get("line", line), line)
        for files, ones in listed.items()
        if _fits(files, file)
        for one in ones
    )


def _without_equality(text: str) -> str:
    return text.replace("<=", "<").replace(">=", ">")


def _fits(pattern: str, text: str) -> bool:
    if "…" not in pattern:
        return pattern == text
    return re.fullmatch(".*".join(map(re.escape, pattern.split("…"))), text) is not None


def _changed_lines(base: str, files: Sequence[Path]) -> dict[Path, set[int]]:
    """The lines that are new or different since a revision."""
    command = ["git", "diff", "--unified=0", "--no-color", base, "--", *map(str, files)]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found: dict[Path, set[int]] = {}
    lines: set[int] = set()
    for line in told.splitlines():
        if line.startswith("+++ "):
            lines = found.setdefault(ROOT / line.removeprefix("+++ b/"), set())
        elif line.startswith("@@"):
            start, _, count = line.split("+")[1].split(" ")[0].partition(",")
            lines.update(range(int(start), int(start) + int(count or 1)))
    return found


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description="Changes one operator at a time and sees whether any test notices."
    )
    parser.add_argument("paths", nargs="+", type=Path, help="files and folders below src/fairway")
    parser.add_argument("--count", type=int, default=50, help="how many to try; 0 only records the tests")
    parser.add_argument("--seed", type=int, default=0, help="which to try")
    parser.add_argument("--changed", metavar="REVISION", help="only what has changed since this revision of git")
    parser.add_argument("--budget", type=float, default=30.0, help="seconds of tests for one mutant, at most")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many to try at the same time")
    parser.add_argument(
        "--recorded", action="store_true", help="record no more tests: try those mutants that a recorded test executes"
    )
    parser.add_argument(
        "--check-equal", action="store_true", help="only check that equal.toml names mutants that exist"
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Try the mutants of a draw; 1 if any survives."""
    options = _options(arguments)
    paths = [path.absolute() for path in options.paths]
    files = sorted(file for path in paths for file in ([path] if path.is_file() else path.rglob("*.py")))
    everything = [mutant for file in files for mutant in mutants_of(file)]
    if options.changed:
        changed = _changed_lines(options.changed, files)
        everything = [one for one in everything if changed.get(one.file, set()).intersection(one.lines)]
    equals = _equals()
    if options.check_equal:
        return _print_unknown(equals, everything)
    drawn = random.Random(options.seed).sample(everything, min(options.count, len(everything)))
    began = time.monotonic()
    warm_up()
    equal = [mutant for mutant in drawn if _is_equal(mutant, equals)]
    tried = [mutant for mutant in drawn if not _is_equal(mutant, equals)]
    kernels = {
        str(file.relative_to(SOURCE)) for file in {one.file for one in tried or everything} if _with_kernels(file)
    }
    records = _recorded(folders_of(paths), kernels, options.jobs, only_there=options.recorded)
    selection = Selection(records, options.budget)
    print(f"{len(drawn)} mutants drawn; tests recorded after {time.monotonic() - began:.0f} s", flush=True)
    trials = []
    for mutant in tried:
        compiled = not _with_kernels(mutant.file)
        trials.append(_Trial(mutant, selection.batches(mutant, compiled), compiled))
    if options.recorded:
        reached = [trial for trial in trials if trial.batches]
        print(f"{len(trials) - len(reached)} of them are not tried: no test that is recorded executes them", flush=True)
        trials = reached
    unseen = {id(trial) for trial in trials if not trial.batches}

    def say(trial: _Trial) -> None:
        trial.is_over = True
        if trial.killed_by is None:
            why = " (no test executes it)" if id(trial) in unseen else ""
            print(f"SURVIVES {trial.mutant}   [{trial.mutant.within}]{why}", flush=True)
        else:
            print(f"killed   {trial.mutant}   by {trial.killed_by}", flush=True)

    with suppress(KeyboardInterrupt):  # those that were tried by then are drawn by chance, too
        _try_all(trials, selection, options.jobs, say)
    trials = [trial for trial in trials if trial.is_over]
    _print_scores(trials, equal)
    survivors = sum(trial.killed_by is None for trial in trials)
    print(
        f"seed {options.seed}: {len(trials) - survivors} of {len(trials) + len(equal)} mutants killed, "
        f"{len(equal)} make no difference, {survivors} survive (drawn from {len(everything)}), "
        f"{time.monotonic() - began:.0f} s"
    )
    return 1 if survivors else 0


def _print_unknown(equals: dict[str, list[dict[str, str]]], everything: list[Mutant]) -> int:
    unknown = [
        f"equal.toml: {file}: no mutant {one} any more"
        for file, ones in equals.items()
        for one in ones
        if not any(_is_equal(mutant, {file: [one]}) for mutant in everything)
    ]
    print(*unknown, sep="\n")
    return 1 if unknown else 0


def _print_scores(trials: list[_Trial], equal: list[Mutant]) -> None:
    def part(mutant: Mutant) -> str:
        return mutant.file.relative_to(SOURCE / "fairway").parts[0]

    alike = Counter(map(part, equal))
    tried = Counter(part(trial.mutant) for trial in trials) + alike
    survivors = Counter(part(trial.mutant) for trial in trials if trial.killed_by is None)
    print(f"{'folder':12} {'mutants':>8} {'equal':>6} {'survive':>8} {'score':>7}")
    for name in sorted(tried):
        score = 1 - survivors[name] / tried[name]
        print(f"{name:12} {tried[name]:8} {alike[name]:6} {survivors[name]:8} {score:7.1%}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
