"""`fairway simulate serving --find-rate 99%`: the highest rate that each scheduler holds, and a page about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairway.cli.output import STDOUT, write_json
from fairway.cli.simulate.progress import watching
from fairway.cli.simulate.serving_experiment import ServingExperiment
from fairway.cli.simulate.serving_plan import ServingPlan
from fairway.errors import InputError
from fairway.sim.held_rate import PRECISION, RateRecord, RateSearch, at_rate

_PARTS_OF_HIGHEST = (0.25, 0.5, 0.7, 0.85, 1.0, 1.15, 1.3, 1.6, 2.0)
"""At such parts of the highest rate that any scheduler holds, a page shows all of them."""


def part_of(text: str) -> float:
    """Read `99%` or `0.99`."""
    number, percent = text.strip().removesuffix("%"), text.strip().endswith("%")
    try:
        part = float(number) / (100 if percent else 1)
    except ValueError:
        part = -1.0
    if not 0 < part <= 1:
        raise InputError(f"--find-rate: '{text}' given, expected the part of requests to be in time, as in 99% or 0.99")
    return part


def check_search(experiment: ServingExperiment, *, requests_to: str | None) -> None:
    """Refuse options that a search for a rate has no use for."""
    if experiment.is_esg_apps:
        raise InputError("--find-rate: requests of esg-apps come at the gaps of --load, not at a rate; leave out one")
    if experiment.rate is not None:
        raise InputError("--rate: given, but --find-rate searches for one; leave out one")
    if requests_to is not None:
        raise InputError("--requests-to: given, but --find-rate makes many runs, each with its own; leave out one")


def find_rates(
    plan: ServingPlan, *, processes: int | None, quiet: bool, json_to: str | None, report: str | None
) -> None:
    """Search for the rates of all schedulers and seeds, and tell."""
    from fairway.sim.comparison import compare

    assert plan.experiment.find_rate is not None
    part = part_of(plan.experiment.find_rate)
    searches = [RateSearch(run, part) for run in plan.runs]
    with watching(
        plan.labels, None, shown=not quiet, told=lambda rate: f"requests so far, now {rate:.4g} per second"
    ) as watcher:
        found = compare(searches, processes=processes, watcher=watcher)
    if report is not None:
        _write_page(plan, part, found, report, processes=processes, quiet=quiet)
    if json_to is not None:
        write_json(_answer(plan, part, found), json_to)
    if json_to != STDOUT:
        from rich.console import Console

        from fairway.report.serving.rate_table import rate_table

        Console(highlight=False).print(rate_table(_rates(found), part))


def _answer(plan: ServingPlan, part: float, found: Sequence[RateRecord]) -> dict[str, Any]:
    return {
        "in_time": part,
        "precision": PRECISION,
        "rates": [
            {
                "scheduler": each.scheduler,
                "seed": each.seed,
                "rate": each.rate,
                "tried": [{"rate": rate, "slo_hit_rate": hits} for rate, hits in sorted(each.tried.items())],
                "wall_seconds": each.wall_seconds,
                "settings": dict(run.settings),
            }
            for each, run in zip(found, plan.runs, strict=True)
        ],
        "means": [
            {"scheduler": name, "rate": sum(rates) / len(rates), "least": min(rates), "most": max(rates)}
            for name, rates in _rates(found).items()
        ],
    }


def _rates(found: Sequence[RateRecord]) -> dict[str, list[float]]:
    """By scheduler, the rates of all seeds; 0 where none was held."""
    rates: dict[str, list[float]] = {}
    for each in found:
        rates.setdefault(each.scheduler, []).append(each.rate or 0.0)
    return rates


def _write_page(
    plan: ServingPlan, part: float, found: Sequence[RateRecord], path: str, *, processes: int | None, quiet: bool
) -> None:
    from fairway.cli.simulate.saving import save_runs
    from fairway.dashboard.of_loads import RateCurve, saved_rates
    from fairway.report.serving.metrics import summarize_serving
    from fairway.sim.comparison import compare

    highest = max(each.rate or min(each.tried) for each in found)
    shared = [float(f"{highest * each:.3g}") for each in _PARTS_OF_HIGHEST]
    runs = [at_rate(run, rate) for run in plan.runs for rate in shared]
    labels = [f"{label}, {rate:g} per second" for label in plan.labels for rate in shared]
    with watching(labels, plan.requests, shown=not quiet, told=lambda now: f"requests, {now:.0f} s") as watcher:
        records = compare(runs, processes=processes, watcher=watcher)
    hits = [summarize_serving(record)["slo_hit_rate"] or 0.0 for record in records]
    curves = []
    for number, each in enumerate(found):
        on_grid = dict(zip(shared, hits[number * len(shared) :], strict=False))
        curves.append(RateCurve(each.scheduler, each.seed, each.rate, {**each.tried, **on_grid}))
    run = saved_rates(curves, part, settings=plan.experiment.settings())
    save_runs([run], report=path, command=plan.experiment.command())
