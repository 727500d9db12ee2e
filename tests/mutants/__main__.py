"""Changes one operator at a time in the code, and sees whether any test notices.

    python -m tests.mutants src/fairway/store src/fairway/engine --count 60 --seed 1

Which changes are tried is drawn by the seed over all paths together, so that a run can be repeated. A mutant is killed
when a test fails, when the tests take several times as long as without it, or when the module cannot even be imported;
it survives when all tests pass that execute it, or when none does. A mutant that makes no difference is listed in
`equal.toml` with the reason. The code of the working tree is not touched: every mutant lives in a copy of it.

What stands in a compiled kernel is tried with the kernels as plain Python: a kernel that calls another keeps a compiled
copy of it, which would not change with the mutant.
"""

from __future__ import annotations

import argparse
import random
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.mutants import recording
from tests.mutants.apart import warm_up
from tests.mutants.changes import ROOT, SOURCE, Mutant, mutants_of
from tests.mutants.selection import Selection, folders_of
from tests.mutants.trials import Trial, try_all

_EQUAL = Path(__file__).with_name("equal.toml")


def _with_kernels(file: Path) -> bool:
    return "from fairway.compiled import" in file.read_text()


def _recorded(
    folders: list[Path], kernels: Sequence[Path], seconds: float, *, only_there: bool
) -> dict[bool, list[recording.Record]]:
    """The records of all test files, made where they are missing, unless `only_there`.

    Without compiled kernels, only those of the parts that the kernels are in: elsewhere they are a means.
    """
    recording.CACHE.mkdir(parents=True, exist_ok=True)
    files = [*recording.test_files(folders), *sorted((ROOT / "tests").glob("test_*.py"))]
    parts = {kernel.relative_to(SOURCE).parts[1] for kernel in kernels}
    found: dict[bool, list[recording.Record]] = {}
    for compiled in (True, False):
        missing = [file for file in files if not recording.record_path(file, compiled).exists()]
        if missing and not only_there:
            recording.record(missing, compiled, seconds, lambda told: print(told, flush=True))
        paths = [recording.record_path(file, compiled) for file in files]
        found[compiled] = [recording.load(path) for path in paths if path.exists()]  # not if edited since
        files = [file for file in files if file.relative_to(ROOT / "tests").parts[0] in parts]
    return found


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
    parser.add_argument(
        "--tests", nargs="*", type=Path, help="folders of tests; those of the paths and of what drives them if left out"
    )
    parser.add_argument("--record-seconds", type=float, default=300.0, help="for the tests of one file, at most")
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
    kernels = [file for file in {one.file for one in tried or everything} if _with_kernels(file)]
    folders = [folder.absolute() for folder in options.tests] if options.tests else folders_of(paths)
    records = _recorded(folders, kernels, options.record_seconds, only_there=options.recorded)
    selection = Selection(records, options.budget)
    print(f"{len(drawn)} mutants drawn; tests recorded after {time.monotonic() - began:.0f} s", flush=True)
    trials = []
    for mutant in tried:
        compiled = not (mutant.kernel or (mutant.imported and _with_kernels(mutant.file)))
        anew = mutant.imported or selection.is_imported(mutant, compiled)
        trials.append(Trial(mutant, selection.batches(mutant, compiled), compiled, anew))
    if options.recorded:
        reached = [trial for trial in trials if trial.batches]
        print(f"{len(trials) - len(reached)} of them are not tried: no test that is recorded executes them", flush=True)
        trials = reached
    unseen = {id(trial) for trial in trials if not trial.batches}

    def say(trial: Trial) -> None:
        trial.is_over = True
        if trial.killed_by is None:
            why = " (no test executes it)" if id(trial) in unseen else ""
            print(f"SURVIVES {trial.mutant}   [{trial.mutant.within}]{why}", flush=True)
        else:
            print(f"killed   {trial.mutant}   by {trial.killed_by}", flush=True)

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that starts it in the background has it ignored
    with suppress(KeyboardInterrupt):  # those that were tried by then are drawn by chance, too
        try_all(trials, selection, say)
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


def _print_scores(trials: list[Trial], equal: list[Mutant]) -> None:
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
