"""Simulates faults: histories of the live system in virtual time, each drawn from a seed and judged by its promises.

    python -m fairway.simtest --component training --generator swarm --seed 7        one history
    python -m fairway.simtest --component training --faults 10000 --jobs 2           many, with all generators in turn
    python -m fairway.simtest --plan plan.json                                       one plan again

Ends with 1 if a promise was broken, and then prints the seed, a smaller plan and the command that repeats it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import count
from pathlib import Path

from fairway.errors import InputError
from fairway.simtest.component import Component, History
from fairway.simtest.plan import Plan
from fairway.simtest.runner import COMPONENTS, Tally, component_named, plan_of, run_many, smallest


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m fairway.simtest",
        description="Simulates faults of the live system in virtual time, and checks what it promises.",
    )
    parser.add_argument("--component", choices=(*COMPONENTS, "all"), default="all", help="what is simulated")
    parser.add_argument("--generator", help="which generator draws the plans; all of them in turn without")
    parser.add_argument("--seed", type=int, default=None, help="the first seed; with nothing else, the only one")
    parser.add_argument("--histories", type=int, help="stop after so many histories of each component")
    parser.add_argument("--faults", type=int, help="stop after so many faults, shared among the components")
    parser.add_argument("--seconds", type=float, help="stop after so many seconds for each component")
    parser.add_argument("--plan", type=Path, help="repeat the plan in this file")
    parser.add_argument("--shrink", action="store_true", help="look for a smaller plan that breaks the same promises")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes work, each on its own seeds")
    options = parser.parse_args(arguments)
    for name in ("histories", "faults", "jobs", "seconds"):
        if (given := getattr(options, name)) is not None and given <= 0:
            parser.error(f"argument --{name}: {given} given, expected a number above 0")
    return options


def main(arguments: list[str]) -> int:
    """Simulate; 1 if a promise was broken, 2 for bad input."""
    options = _options(arguments)
    try:
        if options.plan is not None:
            status = _repeat(options.plan, shrink=options.shrink)
        else:
            names = tuple(COMPONENTS) if options.component == "all" else (options.component,)
            status = max(_simulate(name, options, share=len(names)) for name in names)
        sys.stdout.flush()
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of the output, such as `head`, has seen enough; Python must not try again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


def _repeat(path: Path, *, shrink: bool) -> int:
    try:
        plan = Plan.from_dict(json.loads(path.read_text()))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(
            f"plan: {path} cannot be read as a plan: {error}; give one that this command printed"
        ) from None
    component = component_named(plan.component)
    history = component.run(plan)
    print(f"{plan.component} {plan.generator} seed {plan.seed}: {_described(history)}")
    return _report(component, plan, history, shrink=shrink) if history.violations else 0


def _simulate(name: str, options: argparse.Namespace, *, share: int) -> int:
    component = component_named(name)
    generators = tuple(component.generators) if options.generator is None else (options.generator,)
    first = options.seed or 0
    plan_of(component, generators[0], first)  # refuses a generator that is none
    one = options.seed is not None and not (options.histories or options.faults or options.seconds)
    histories = len(generators) if one else options.histories
    faults = None if options.faults is None else -(-options.faults // share)
    if not (histories or faults or options.seconds):
        histories = 100 * len(generators)
    tally = Tally()
    if options.jobs == 1 or one:
        tally = run_many(component, generators, count(first), histories=histories, faults=faults,
                         seconds=options.seconds)  # fmt: skip
    else:
        jobs = options.jobs
        with ProcessPoolExecutor(jobs) as pool:
            parts = [
                pool.submit(_part, name, generators, first + number, jobs, _of(histories, jobs), _of(faults, jobs),
                            options.seconds)
                for number in range(jobs)
            ]  # fmt: skip
            for part in parts:
                tally.merge(part.result())
    rate = tally.histories / tally.seconds if tally.seconds else 0.0
    print(
        f"{name}: {tally.histories} histories from seed {first} on ({', '.join(generators)}), "
        f"{tally.faults.total()} faults, {tally.events} events, {len(tally.broken)} with a broken promise, "
        f"{tally.seconds:.1f} s, {rate:.1f} histories/s"
    )
    for kind, number in sorted(tally.faults.items()):
        print(f"  {number:>8} {kind}")
    if not tally.broken:
        return 0
    plan, history = tally.broken[0]
    return _report(component, plan, history, shrink=True)


def _part(
    name: str, generators: tuple[str, ...], first: int, step: int, histories: int | None, faults: int | None,
    seconds: float | None,
) -> Tally:  # fmt: skip
    """The share of one process: every so many-th seed."""
    component = component_named(name)
    return run_many(component, generators, count(first, step), histories=histories, faults=faults, seconds=seconds)


def _of(number: int | None, jobs: int) -> int | None:
    return None if number is None else -(-number // jobs)


def _report(component: Component, plan: Plan, history: History, *, shrink: bool) -> int:
    print(f"\nA promise was broken: {plan.component} {plan.generator}, seed {plan.seed}")
    for violation in history.violations:
        print(f"  {violation}")
    if shrink:
        plan = smallest(component, plan)
        print(f"A smaller plan, of {len(plan.steps)} steps, breaks one, too:")
        for violation in component.run(plan).violations:
            print(f"  {violation}")
    document = json.dumps(plan.to_dict())
    print("Repeat it with:")
    print(f"  python -m fairway.simtest --plan /dev/stdin <<'PLAN'\n{document}\nPLAN")
    return 1


def _described(history: History) -> str:
    return (
        f"{sum(history.faults.values())} faults, {history.events} events, {len(history.violations)} broken promises, "
        f"digest {history.digest[:16]}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
